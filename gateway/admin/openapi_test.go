package admin_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/fairness"
)

// described is as much of openapi.yaml as there is to compare with the code.
type described struct {
	OpenAPI    string                    `json:"openapi"`
	Paths      map[string]map[string]any `json:"paths"`
	Components struct {
		Parameters map[string]any `json:"parameters"`
		Responses  map[string]any `json:"responses"`
		Schemas    map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"schemas"`
	} `json:"components"`
}

func description(t *testing.T) (d described) {
	t.Helper()
	text := ask(admin.Config{Source: aNode(), Operator: aDesk()}, "GET", "/v1/openapi.yaml", "").Body.Bytes()
	if err := yaml.Unmarshal(text, &d); err != nil || d.OpenAPI != "3.1.0" {
		t.Fatalf("%v, version %q", err, d.OpenAPI)
	}
	return d
}

// keysOf are the keys of a struct in JSON.
func keysOf(types ...reflect.Type) (keys []string) {
	for _, of := range types {
		for i := range of.NumField() {
			f := of.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous && name == "" {
				keys = append(keys, keysOf(f.Type)...)
			} else if name != "" {
				keys = append(keys, name)
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// Every field of every answer is described, and nothing else is.
func TestTheDescriptionHasEveryField(t *testing.T) {
	d := description(t)
	place, _ := typeOf[gateway.Place]().FieldByName("Cloudflare")
	room := slices.DeleteFunc(keysOf(typeOf[config.Room]()), func(key string) bool {
		return strings.HasPrefix(key, "custom_page_") || key == "logo" || key == "favicon"
	})
	answer := slices.Concat(room, keysOf(typeOf[admin.Room](), typeOf[admin.Configuration]()))
	slices.Sort(answer)
	want := map[string][]string{
		"Configuration": room, "Room": slices.Compact(answer),
		"RoomNow": {"why"}, "RoomWaits": {"room"}, // and all of RoomState, or of Shares
		"Pending": {"pending"}, "Ticket": {"ticket"}, "Pass": {"pass"}, "Push": {"push", "ticket"},
		"Problem": {"type", "title", "status", "detail", "code", "errors"},
	}
	for name, of := range map[string]reflect.Type{
		"Route": typeOf[config.Route](), "Event": typeOf[config.Event](), "BypassRule": typeOf[config.BypassRule](), "IPList": typeOf[config.IPList](),
		"CookieAttributes": typeOf[config.CookieAttributes](), "CORS": typeOf[config.CORS](),
		"RoomState": typeOf[admin.Room](), "RoomHere": typeOf[admin.RoomHere](), "RoomList": typeOf[admin.RoomList](), "Cluster": typeOf[admin.Cluster](),
		"Member": typeOf[admin.Member](), "Reclaimed": typeOf[admin.Reclaimed](), "HistoryList": typeOf[admin.HistoryList](), "Sample": typeOf[admin.Sample](),
		"Figures": typeOf[admin.Figures](), "Durations": typeOf[admin.Durations](), "Totals": typeOf[admin.Totals](), "Shares": typeOf[admin.Shares](), "MissingNode": typeOf[admin.MissingNode](),
		"NodeRan": typeOf[admin.NodeRan](), "Report": typeOf[admin.Report](), "People": typeOf[admin.People](), "Kept": typeOf[admin.Kept](),
		"EstimatesTrue": typeOf[admin.EstimatesTrue](), "Advice": typeOf[admin.Advice](), "Course": typeOf[admin.Course](),
		"AuditList": typeOf[admin.AuditList](), "AuditEntry": typeOf[admin.AuditEntry](), "Change": typeOf[admin.Change](), "Check": typeOf[admin.Check](), "Checked": typeOf[admin.Checked](),
		"HealthCheck": typeOf[config.HealthCheck](), "HealthList": typeOf[admin.HealthList](), "RoomHealth": typeOf[admin.RoomHealth](), "OriginAnswers": typeOf[admin.OriginAnswers](), "SlotsList": typeOf[admin.SlotsList](), "NodeSlots": typeOf[admin.NodeSlots](), "WaitsList": typeOf[admin.WaitsList](),
		"CheckHealth": typeOf[admin.CheckHealth](), "CheckSeen": typeOf[admin.CheckSeen](), "Governor": typeOf[config.Governor](), "Governed": typeOf[admin.Governed](), "CheckTurn": typeOf[admin.CheckTurn](),
		"ReceiverList": typeOf[admin.ReceiverList](), "Receiver": typeOf[admin.Receiver](), "TestSent": typeOf[admin.TestSent](),
		"NextEvent": typeOf[admin.Event](), "Reason": typeOf[admin.Reason](), "State": typeOf[admin.State](),
		"Verdict": typeOf[admin.Verdict](), "FieldError": typeOf[admin.FieldError](),
		"Fairness": typeOf[fairness.Report](), "Percentiles": typeOf[fairness.Percentiles](), "Delay": typeOf[fairness.Delay](),
		"Place": typeOf[gateway.Place](), "Message": typeOf[gateway.Message](), "Link": typeOf[gateway.Link](), "Pushed": typeOf[gateway.Pushed](), "Seconds": typeOf[gateway.Seconds](), "Cloudflare": place.Type, "Status": typeOf[gateway.Status](),
		"Draw": typeOf[gateway.Draw](), "PublicDraw": typeOf[gateway.PublicDraw](),
	} {
		want[name] = keysOf(of)
	}
	slices.Sort(want["Problem"])
	got := map[string][]string{}
	for name, s := range d.Components.Schemas {
		for key := range s.Properties {
			got[name] = append(got[name], key)
		}
		slices.Sort(got[name])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-code +openapi.yaml):\n%s", diff)
	}
}

// Every path of the code is described, with its methods, and no other.
func TestTheDescriptionHasEveryPath(t *testing.T) {
	d := description(t)
	want := map[string]bool{"/_anteroom/.well-known/jwks.json": true, "/_anteroom/status": true, "/_anteroom/v1/rooms/{room}/auth": true, "/_anteroom/v1/rooms/{room}/auth-only/{path}": true, "/healthz": true, "/readyz": true, "/_anteroom/m/{room}/{code}": true}
	// What only browsers ask: pages, and tools. AWS' own description is that of its paths.
	for path := range source(t, `(?:get|a\.on)\((?:mux, )?"(/[^"]*)"`, "admin.go", "edit.go", "board.go", "notifications.go") {
		if path != "/{$}" && !strings.HasPrefix(path, "/assets/") && !strings.HasPrefix(path, "/debug/") {
			want[path] = true
		}
	}
	for op := range source(t, `"(\w+)": \(\*call\)`, "../api.go") {
		if op != "page" && op != "return" && op != "left" && op != "take" && op != "moved" && op != "logo" && op != "favicon" {
			want["/_anteroom/v1/rooms/{room}/"+op] = true
		}
	}
	got := map[string]bool{}
	for path := range d.Paths {
		got[path] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-code +openapi.yaml):\n%s", diff)
	}
	for path, of := range d.Paths {
		for _, method := range []string{"get", "put", "post", "patch", "delete"} {
			o, _ := of[method].(map[string]any)
			answers, _ := o["responses"].(map[string]any)
			if _, ok := answers["default"]; of[method] != nil && !ok {
				t.Errorf("%s %s: no answer where all else fails", method, path)
			}
			for status, a := range answers {
				for key := range a.(map[string]any) { // a comma in the wrong place makes more of them
					if !slices.Contains([]string{"description", "headers", "content", "$ref"}, key) {
						t.Errorf("%s %s: %s: %q", method, path, status, key)
					}
				}
			}
		}
		if strings.HasPrefix(path, "/_anteroom") || path == "/metrics" || !strings.HasPrefix(path, "/v1") {
			continue
		}
		path = strings.NewReplacer("{room}", "shop", "{node}", "node-3", "{receiver}", "pager").Replace(path)
		for _, method := range []string{"GET", "PUT", "POST", "PATCH", "DELETE"} {
			if path == "/v1/stream" && method == "GET" {
				continue // it does not end
			}
			w := ask(admin.Config{Source: aNode(), Operator: aDesk(), Historian: &archive{}}, method, path, "{}")
			if _, ok := of[strings.ToLower(method)]; ok != (w.Code != 405) || w.Code == 404 {
				t.Errorf("%s %s: %d, described: %t", method, path, w.Code, ok)
			}
		}
	}
}

// source finds what a pattern captures in files of this package's directory.
func source(t *testing.T, pattern string, files ...string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			found[string(m[1])] = true
		}
	}
	if len(found) == 0 {
		t.Fatalf("nothing in %v is like %s", files, pattern)
	}
	return found
}

// What is referred to is there.
func TestTheDescriptionRefersToWhatIsThere(t *testing.T) {
	d := description(t)
	text := ask(admin.Config{Source: aNode(), Operator: aDesk()}, "GET", "/v1/openapi.yaml", "").Body.String()
	used := map[string]bool{}
	for _, m := range regexp.MustCompile(`'#/components/(\w+)/(\w+)'`).FindAllStringSubmatch(text, -1) {
		used[m[1]+"/"+m[2]] = true
	}
	there := map[string]bool{}
	for name := range d.Components.Schemas {
		there["schemas/"+name] = true
	}
	for name := range d.Components.Parameters {
		there["parameters/"+name] = true
	}
	for name := range d.Components.Responses {
		there["responses/"+name] = true
	}
	if diff := cmp.Diff(there, used); diff != "" {
		t.Errorf("(-there +used):\n%s", diff)
	}
}
