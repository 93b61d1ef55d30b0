package config_test

import (
	"encoding"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/config"
)

const (
	samplePath    = "../../docs/anteroom.yaml"
	referencePath = "../../docs/configuration.md"
)

// defaults returns the default of every key as the documents write it. Keys of
// rooms are written rooms[].name.
func defaults() map[string]string {
	all := map[string]string{}
	collect(all, "", reflect.ValueOf(config.Default("host name")))
	room := config.DefaultRoom()
	room.Routes = []config.Route{config.DefaultRoute()}
	room.BypassRules, room.IPLists = []config.BypassRule{config.DefaultBypassRule()}, []config.IPList{{}}
	room.Events = []config.Event{{}}
	room.HealthChecks = []config.HealthCheck{config.DefaultHealthCheck()}
	collect(all, "rooms[]", reflect.ValueOf(room))
	collect(all, "queues[]", reflect.ValueOf(config.DefaultQueue()))
	collect(all, "security.tokens[]", reflect.ValueOf(config.Token{}))
	collect(all, "notifications[]", reflect.ValueOf(config.DefaultNotification()))
	delete(all, "rooms")
	delete(all, "queues")
	all["queues[].name"] = "required"
	all["notifications[].name"], all["notifications[].url"] = "required", "required"
	for _, key := range []string{"name", "hash", "may"} {
		all["security.tokens[]."+key] = "required"
	}
	for _, key := range []string{"bypass_rules[].expression", "ip_lists[].name", "ip_lists[].items", "events[].name", "events[].event_start_time", "events[].event_end_time", "health_checks[].name"} {
		all["rooms[]."+key] = "required"
	}
	all["rooms[].bypass_rules"], all["rooms[].ip_lists"], all["rooms[].events"] = "none", "none", "none"
	all["rooms[].health_checks"] = "none"
	all["rooms[].name"], all["rooms[].total_active_users"] = "required", "required"
	all["rooms[].routes"] = "none"
	for key, words := range map[string]string{"enabled_origin_commands": "revoke", "cors.methods": "GET HEAD POST", "upgrades": "websocket", "health_checks[].expected_codes": "200"} {
		delete(all, "rooms[]."+key+"[]")
		all["rooms[]."+key] = words
	}
	return all
}

func collect(all map[string]string, key string, v reflect.Value) {
	if _, text := v.Interface().(encoding.TextMarshaler); v.Kind() == reflect.Struct && !text {
		for i := range v.NumField() {
			name := v.Type().Field(i).Tag.Get("json")
			if key != "" {
				name = key + "." + name
			}
			collect(all, name, v.Field(i))
		}
		return
	}
	text := fmt.Sprint(v.Interface())
	if text == "" || v.Kind() == reflect.Slice {
		text = "none"
	}
	if v.Kind() == reflect.Slice && v.Len() > 0 {
		collect(all, key+"[]", v.Index(0))
	}
	all[key] = text
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheSampleIsAGoodConfiguration(t *testing.T) {
	f := config.Parse("docs/anteroom.yaml", []byte(readFile(t, samplePath)), config.Options{Host: "host-1"})
	if f.Err() != nil || len(f.Warnings) > 0 {
		t.Errorf("errors: %v\nwarnings: %v", f.Err(), f.Warnings)
	}
	want := config.Default("host-1")
	want.Node.Data = "docs/data"
	room := config.DefaultRoom()
	room.Name, room.TotalActiveUsers, room.Origin, room.Routes = "shop", 200, "http://127.0.0.1:9000", []config.Route{config.DefaultRoute()}
	room.BypassRules, room.IPLists, room.Events = []config.BypassRule{}, []config.IPList{}, []config.Event{}
	room.HealthChecks, room.Messages = []config.HealthCheck{}, []config.Message{}
	queue := config.DefaultQueue()
	queue.Name = "jobs"
	want.Queues = []config.Queue{queue}
	want.Rooms, want.TrustedProxies, want.AdminHosts, want.Push.Hosts = []config.Room{room}, []string{}, []string{}, []string{}
	if diff := cmp.Diff(want, f.Config); diff != "" {
		t.Errorf("beside data and a room it differs from the defaults (-want +got):\n%s", diff)
	}
}

func TestTheSampleHasEveryKeyWithItsDefault(t *testing.T) {
	text := readFile(t, samplePath)
	sample := map[string]string{}
	var parents []string
	line := regexp.MustCompile(`^( *)(- )?#?([a-z_]+):(?: .*?)?(?:\s# \[([^\]]*)\].*)?$`)
	for l := range strings.Lines(text) {
		m := line.FindStringSubmatch(strings.TrimRight(l, "\n"))
		if m == nil {
			continue
		}
		depth := (len(m[1]) + len(m[2])) / 2
		if depth >= 2 && (parents[0] == "rooms" || parents[0] == "queues") {
			depth-- // the dash of the list
		}
		parents = append(parents[:depth], m[3])
		if m[4] != "" {
			sample[strings.Replace(strings.Replace(strings.Join(parents, "."), "rooms.", "rooms[].", 1), "queues.", "queues[].", 1)] = m[4]
		}
	}
	want := defaults()
	for key := range want {
		if strings.Contains(key, "[].") && strings.Count(key, "[]") > 1 || strings.HasPrefix(key, "security.tokens[]") || strings.HasPrefix(key, "notifications[]") { // on one line with the others
			delete(want, key)
		}
	}
	if diff := cmp.Diff(want, sample); diff != "" {
		t.Errorf("defaults of the code (-) and of the sample (+):\n%s", diff)
	}

	// What is not set there can be set.
	set := regexp.MustCompile(`(?m)^( *)#([a-z_]+:)`).ReplaceAllString(text, "$1$2")
	f := config.Parse("docs/anteroom.yaml", []byte(set), config.Options{})
	want2 := []string{
		"security.gossip_key_file: given beside security.gossip_key; give one of them",
		"security.admin_token: that of the sample; make one with: openssl rand -hex 32",
		"security.challenge_key: that of the sample; make one with: openssl rand -hex 32",
		"security.tokens[0].hash: that of the sample; make one with: anteroom keys token",
	}
	var got []string
	for _, p := range f.Errors {
		got = append(got, p.Key+": "+p.Text)
	}
	if diff := cmp.Diff(want2, got); diff != "" {
		t.Errorf("with every key set (-want +got):\n%s", diff)
	}
}

// TestTheReferenceHasEveryKey reads rows such as | `node.id` | host name | … |.
func TestTheReferenceHasEveryKey(t *testing.T) {
	reference := map[string]string{}
	row := regexp.MustCompile("(?m)^\\| `([a-z_.\\[\\]]+)` \\| `?([^|`]+?)`? \\|")
	for _, m := range row.FindAllStringSubmatch(readFile(t, referencePath), -1) {
		reference[m[1]] = m[2]
	}
	if diff := cmp.Diff(defaults(), reference); diff != "" {
		t.Errorf("defaults of the code (-) and of %s (+):\n%s", referencePath, diff)
	}
}

func TestKeysAreThoseWithAVariable(t *testing.T) {
	want := []string{}
	for key := range defaults() {
		if !strings.HasPrefix(key, "rooms") && !strings.HasPrefix(key, "queues") && !strings.HasPrefix(key, "security.tokens") && key != "notifications" && !strings.HasPrefix(key, "notifications[]") {
			want = append(want, key)
		}
	}
	slices.Sort(want)
	got := slices.Sorted(slices.Values(config.Keys()))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Keys (-want +got):\n%s", diff)
	}
	if got := config.Variable("security.tls.peer.ca"); got != "ANTEROOM_SECURITY_TLS_PEER_CA" {
		t.Errorf("Variable = %s", got)
	}
}

// TestTheExamplesOfTheGuideAreGood checks each block of YAML in it.
func TestTheExamplesOfTheGuideAreGood(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(readFile(t, "../../docs/operating.md"), -1)
	if len(blocks) < 3 {
		t.Fatalf("%d blocks, want at least 3", len(blocks))
	}
	for _, b := range blocks {
		text := strings.NewReplacer("GOSSIP_KEY", gossipKey, "8f0c7a…", strings.Repeat("8f0c7a", 6), "sha256:9c1e…", aHash, "sha256:5f2b…", strings.Replace(aHash, "0a", "5f", 1)).Replace(b[1])
		f := config.Parse("operating.md", []byte(text), config.Options{Host: "host-1"})
		if err := f.Err(); err != nil {
			t.Errorf("%v\n%s", err, b[1])
		}
		if whole := strings.Contains(text, "rooms:"); whole && len(f.Warnings) > 0 {
			t.Errorf("warnings %v\n%s", f.Warnings, b[1])
		}
	}
}

// TestTheExamplesOfTheRulesAreGood checks the blocks of YAML that are whole.
func TestTheExamplesOfTheRulesAreGood(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n(rooms:.*?)```").FindAllStringSubmatch(readFile(t, "../../docs/rules.md"), -1)
	if len(blocks) == 0 {
		t.Fatal("no block")
	}
	for _, b := range blocks {
		f := config.Parse("rules.md", []byte(b[1]), config.Options{Host: "host-1"})
		if f.Err() != nil {
			t.Errorf("%v\n%s", f.Err(), b[1])
		}
	}
}
