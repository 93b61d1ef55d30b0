package config_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/config"
)

// rewrite makes the golden files what the package says now. Read the diff:
// commit it only if you can say why it changed.
var rewrite = flag.Bool("rewrite", false, "rewrite testdata/*.golden")

// parse reads text as the file a.yaml on the machine host-1.
func parse(text string, o config.Options) *config.File {
	o.Host = "host-1"
	return config.Parse("a.yaml", []byte(text), o)
}

// problems is the text of each, without those of the keys in but.
func problems(list []config.Problem, but ...string) []string {
	texts := []string{}
next:
	for _, p := range list {
		for _, key := range but {
			if p.Key == key {
				continue next
			}
		}
		texts = append(texts, p.Error())
	}
	return texts
}

func TestEveryMistakeIsToldAtOnce(t *testing.T) {
	text, err := os.ReadFile("testdata/mistakes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f := config.Parse("mistakes.yaml", text, config.Options{})
	var b strings.Builder
	for _, p := range f.Errors {
		fmt.Fprintln(&b, p.Error())
	}
	for _, p := range f.Warnings {
		fmt.Fprintln(&b, "warning:", p.Error())
	}
	golden := "testdata/mistakes.golden"
	if *rewrite {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", golden, diff)
	}
	if diff := cmp.Diff(f.Err().Error(), strings.Join(problems(f.Errors), "\n")); diff != "" {
		t.Errorf("Err and Errors differ:\n%s", diff)
	}
}

func TestAnEmptyFileIsTheDefaults(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "node:\ncluster:\nrooms:\n", "{}"} {
		f := parse(text, config.Options{})
		if err := f.Err(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(config.Default("host-1"), f.Config); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
		if diff := cmp.Diff(eviction.Config{Copies: 1}.WithDefaults(), f.Config.Eviction().WithDefaults()); diff != "" {
			t.Errorf("%q: core (-want +got):\n%s", text, diff)
		}
	}
}

func TestWhatIsNotYAMLIsToldWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"node:\n  id: a: b\n":                         "a.yaml:2: not YAML: mapping value is not allowed in this context; the rest is checked once this is right",
		"security:\n  admin_token: \"opensesame\nx: ": "a.yaml:2: not YAML: could not find end character of double-quoted text; the rest is checked once this is right",
		"- node\n":                     "a.yaml:1: is a list; give keys with values: node, cluster, security, prefix, trusted_proxies, country_header, admin_hosts, rooms, queueing, queues, status_page, notifications, notification_thresholds, tracing, push",
		"prefix: /a\n---\nprefix: /b":  "a.yaml:3: a second document; give one, without --- between its parts",
		"prefix: *a\n":                 "a.yaml:1: prefix: *a: there is no &a in the file",
		"node: &a\n  <<: *a\n":         "a.yaml:2: node: aliases within aliases, or one that leads to itself; write the value out",
		"rooms: &a\n  - *a\n":          "a.yaml:2: rooms[0]: is a list; give keys with values: " + roomKeys,
		"prefix: ~\ntrusted_proxies: ": "",
		"\xef\xbb\xbfprefix: /a\r\nnod: 1\r\nnode: 1\r\n": "a.yaml:2: nod: unknown key; did you mean node?\n" +
			"a.yaml:3: node: is a number; give keys with values: id, gateway, admin, peer, grpc, gossip, advertise, join, expect, data",
	} {
		got := ""
		if err := parse(text, config.Options{}).Err(); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

const roomKeys = "name, routes, origin, total_active_users, new_users_per_minute, session_duration, session_renewal, session_max, queueing_method, " +
	"queueing_status_code, queue_all, queue_max, joins_per_address, places_per_address, active_per_address, streams_per_address, challenge, refresh_interval, ticket_ttl, claim_window, claims_max, algorithm, on_partition, survivor_after, cookie_suffix, default_template_language, message, title, logo, favicon, accent, description, push, bookmark, confirm_entry, suspended, messages, health_checks, on_unhealthy, outflow, governor, events, bypass_rules, search_engine_crawler_bypass, ip_lists, custom_page_html, custom_page_file, cookie_attributes, enabled_origin_commands, aws_api, preflight, cors, upgrades, strict_paths"

func TestRoomsBecomeThoseOfTheCore(t *testing.T) {
	f := parse(`
rooms:
  - &base
    name: shop
    total_active_users: 200
    new_users_per_minute: 60
    session_duration: 1h30m
    session_renewal: false
    session_max: 8h
    queueing_method: random
    queue_all: true
    queue_max: 5_000
    refresh_interval: 10s
    ticket_ttl: 90s
    claim_window: 1m
    on_partition: stop
    survivor_after: 0
  - {<<: *base, name: desk, algorithm: qpid, queueing_method: fifo, on_partition: share, survivor_after: 20m, session_renewal: true}
  - {name: open, suspended: true}
  - &plain {name: plain, total_active_users: 7}
  - {<<: [*plain, *base], name: both}
`, config.Options{})
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	shop := eviction.Room{
		Name: "shop", Target: 200, NewPerMinute: 60, Session: 90 * time.Minute, SessionMax: 8 * time.Hour, NoRenewal: true, Method: eviction.Random, QueueAll: true,
		QueueMax: 5000, Refresh: 10 * time.Second, TicketTTL: 90 * time.Second, ClaimWindow: time.Minute, ClaimsMax: 2, OnPartition: eviction.Stop,
	}
	desk := shop
	desk.Name, desk.Algorithm, desk.Method, desk.OnPartition = "desk", eviction.ByQPID, eviction.FIFO, eviction.Share
	desk.Survivor, desk.NoRenewal = 20*time.Minute, false
	plain := eviction.Room{Name: "plain", Target: 7, Session: 5 * time.Minute, Survivor: eviction.SurvivorAuto}.WithDefaults()
	open := plain
	open.Name, open.Target, open.Method = "open", 0, eviction.Passthrough
	both := shop
	both.Name, both.Target = "both", 7
	var rooms []eviction.Room
	for _, r := range f.Config.Rooms {
		rooms = append(rooms, r.Eviction())
	}
	if diff := cmp.Diff([]eviction.Room{shop, desk, open, plain, both}, rooms); diff != "" {
		t.Errorf("rooms (-want +got):\n%s", diff)
	}
	if got, want := f.Config.KeysKept(), 24*time.Hour+90*time.Minute; got != want {
		t.Errorf("KeysKept = %v, want %v", got, want)
	}
}

func TestPathsAreRelativeToTheFile(t *testing.T) {
	f := config.Parse("/etc/anteroom/a.yaml", []byte("node: {data: ./data}\nsecurity: {signing_keys: /keys.json, tls: {gateway: {cert: c.pem}}}"),
		config.Options{Environ: []string{"ANTEROOM_SECURITY_TLS_GATEWAY_KEY=k.pem"}})
	got := []config.Path{f.Config.Node.Data, f.Config.Security.SigningKeys, f.Config.Security.TLS.Gateway.Cert, f.Config.Security.TLS.Gateway.Key}
	want := []config.Path{config.Path(filepath.FromSlash("/etc/anteroom/data")), "/keys.json", config.Path(filepath.FromSlash("/etc/anteroom/c.pem")), "k.pem"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

func TestDifferencesNameKeysThatTakeARestart(t *testing.T) {
	a := parse("node: {join: [127.0.0.1:1]}\nsecurity: {admin_token: 0123456789abcdef0}\nrooms: []", config.Options{}).Config
	b := parse("node: {join: [127.0.0.1:2], id: x}\nsecurity: {admin_token: 0123456789abcdef1}\nrooms: [{name: a}]", config.Options{}).Config
	if diff := cmp.Diff([]string{"node.id", "node.join", "security.admin_token"}, config.Differences(a, b)); diff != "" {
		t.Errorf("Differences (-want +got):\n%s", diff)
	}
	if got := config.Differences(a, a); got != nil {
		t.Errorf("Differences of equal ones = %v", got)
	}
}

// FuzzParse feeds it anything. Whatever comes is told or taken, and a taken
// configuration means the same once it is printed.
func FuzzParse(f *testing.F) {
	mistakes, err := os.ReadFile("testdata/mistakes.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(mistakes)
	sample, err := os.ReadFile(samplePath)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sample)
	f.Fuzz(func(t *testing.T, text []byte) {
		first := config.Parse("a.yaml", text, config.Options{Host: "host-1"})
		c := first.Config
		if first.Err() != nil || len(c.Security.GossipKey) > 0 || !c.Security.AdminToken.Empty() {
			return // nothing to compare, or hidden
		}
		second := config.Parse("a.yaml", []byte(c.String()), config.Options{})
		if err := second.Err(); err != nil {
			t.Fatalf("printed, it is wrong: %v\n%s", err, c)
		}
		if c.String() != second.Config.String() {
			t.Fatalf("printed, it changes (-first +second):\n%s", cmp.Diff(c.String(), second.Config.String()))
		}
	})
}
