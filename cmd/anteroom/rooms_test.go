package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/internal/server"
)

// board is a cluster as far as an operator changes it.
type board struct {
	names   []string
	rooms   map[string]config.Room
	modes   map[string]admin.Mode
	version int
	pending bool
	meddle  func() // between a look and a change; nil: nobody does
}

func newBoard(rooms ...config.Room) *board {
	b := &board{rooms: map[string]config.Room{}, modes: map[string]admin.Mode{}}
	for _, r := range rooms {
		b.set(r)
	}
	return b
}

func (b *board) set(r config.Room) {
	if _, ok := b.rooms[r.Name]; !ok {
		b.names = append(b.names, r.Name)
		b.modes[r.Name] = admin.Normal
	}
	b.rooms[r.Name] = r
	b.version++
}

func (b *board) Cluster() admin.Cluster                          { return admin.Cluster{Node: "node-1"} }
func (b *board) Fairness(string) (r fairness.Report, ok bool)    { return r, false }
func (b *board) Health() []admin.RoomHealth                      { return nil }
func (b *board) Ready() string                                   { return "" }
func (b *board) History(string) (samples []admin.Sample, _ bool) { return nil, false }
func (b *board) Audit() []admin.AuditEntry                       { return nil }

func (b *board) Rooms() (all []admin.Room) {
	for _, name := range b.names {
		if r, ok := b.rooms[name]; ok {
			all = append(all, admin.Room{
				Name: name, TotalActiveUsers: r.TotalActiveUsers, QueueingMethod: r.QueueingMethod, Suspended: r.Suspended,
				Mode: b.modes[name], Active: 40, Called: 2, Queued: 1234,
			})
		}
	}
	return all
}

func (b *board) Configured(room string) (admin.Configured, bool) {
	r, ok := b.rooms[room]
	return admin.Configured{Keys: r.JSON(), ETag: fmt.Sprintf(`"%d"`, b.version), Mode: b.modes[room]}, ok
}

func (b *board) change(e admin.Edit, do func() error) (o admin.Outcome, err error) {
	if b.meddle != nil {
		b.meddle()
	}
	now, found := b.Configured(e.Room)
	if !found {
		now.ETag = ""
	}
	if !e.Matches(now.ETag) {
		return o, &admin.Refusal{Status: http.StatusPreconditionFailed, Code: "room_changed", Detail: "Read it again."}
	}
	if err := do(); err != nil {
		return o, err
	}
	o.Room, _ = b.Configured(e.Room)
	o.Created, o.Pending = !found, b.pending
	return o, nil
}

func (b *board) Put(_ context.Context, e admin.Edit, body []byte) (admin.Outcome, error) {
	return b.change(e, func() error {
		r, problems := config.ParseRoom(body, config.RoomOptions{Name: e.Room, Prefix: "/_anteroom", Ignore: admin.ReadOnly()})
		if r.Message == "refuse" {
			problems = []config.Problem{{Key: "message", Text: "not that one"}, {Key: "routes[0]", Text: "taken"}}
		}
		if len(problems) > 0 {
			no := &admin.Refusal{Status: http.StatusBadRequest, Code: "room_invalid", Detail: "Nothing was changed."}
			for _, p := range problems {
				no.Errors = append(no.Errors, admin.FieldError{Key: p.Key, Detail: p.Text})
			}
			return no
		}
		b.set(r)
		return nil
	})
}

func (b *board) known(e admin.Edit, do func()) func() error {
	return func() error {
		if _, ok := b.rooms[e.Room]; !ok {
			return &admin.Refusal{Status: http.StatusNotFound, Code: "room_unknown", Detail: "There is no such room."}
		}
		do()
		return nil
	}
}

func (b *board) Delete(_ context.Context, e admin.Edit) (admin.Outcome, error) {
	return b.change(e, b.known(e, func() { delete(b.rooms, e.Room) }))
}

func (b *board) SetMode(_ context.Context, e admin.Edit, m admin.Mode) (admin.Outcome, error) {
	return b.change(e, b.known(e, func() { b.modes[e.Room] = m }))
}

func (b *board) Reclaim(_ context.Context, _ admin.Edit, node string) (admin.Reclaimed, error) {
	switch node {
	case "node-1":
		return admin.Reclaimed{}, &admin.Refusal{Status: http.StatusConflict, Code: "node_alive", Detail: "The node is in the waves. Stop it first."}
	case "node-2":
		return admin.Reclaimed{Node: node, Rooms: []string{}}, nil
	}
	return admin.Reclaimed{Node: node, Rooms: []string{"news", "shop"}}, nil
}

func (b *board) Find(p gateway.Probe) gateway.Finding {
	var c config.Config
	for _, name := range b.names {
		c.Rooms = append(c.Rooms, b.rooms[name])
	}
	rooms, err := server.Rooms(c)
	if err != nil {
		panic(err)
	}
	f, err := gateway.Find(gateway.Config{Prefix: "/_anteroom", Rooms: rooms}, p)
	if err != nil {
		panic(err)
	}
	return f
}

func (b *board) port(t *testing.T, token string) string {
	t.Helper()
	s := httptest.NewServer(admin.New(admin.Config{Source: b, Operator: b, Token: token}))
	t.Cleanup(s.Close)
	return s.URL
}

func shopOf(limit int) config.Room {
	r := config.DefaultRoom()
	r.Name, r.TotalActiveUsers, r.Origin = "shop", limit, "http://127.0.0.1:9000"
	r.Routes = []config.Route{{Host: "shop.example.com", Path: "/"}}
	return r
}

const oneRoom = `# as rooms get prints it
name: shop
routes: [{host: shop.example.com}]
origin: http://127.0.0.1:9000
total_active_users: 300
message: "back at ten: we promise"
bypass_rules: [{expression: 'starts_with(http.request.uri.path, "/assets/")'}]
`

func TestRoomsOfACluster(t *testing.T) {
	news := config.DefaultRoom()
	news.Name, news.Suspended = "news", true
	at := newBoard(shopOf(200), news).port(t, "")
	back := inDir(t, map[string]string{
		"one.yaml":      oneRoom,
		"list.yaml":     "- {name: shop, total_active_users: 5}\n- {name: blog, total_active_users: 10}\n",
		"anteroom.yaml": "node: {id: x}\nrooms:\n  - {name: blog, total_active_users: 10, custom_page_file: blog.html}\n",
		"list.json":     `[{"name":"blog","total_active_users":11,"message":"a \"b\""}]`,
	})
	var b strings.Builder
	for _, args := range []string{
		"list", "list --json", "get shop", "apply -f one.yaml --dry-run", "apply -f one.yaml", "apply -f one.yaml", "apply -f list.yaml --json",
		"apply -f anteroom.yaml", "apply -f list.json", "hold shop blog", "list", "get shop", "get shop --json", "drain shop", "release shop --json", "release blog",
		"message shop", "message shop Sold_out. --at 2126-11-27T19:00:00+01:00", "message shop Doors_open. --at 2026-11-27T17:30:00Z", "message shop --clear",
		"reclaim node-2", "reclaim node-3", "reclaim node-3 --json", "delete blog", "delete shop --json",
	} {
		stdout, stderr, code := execute(t, t.Context(), append(strings.Fields("rooms "+args), "--admin", at)...)
		if code != 0 || stderr != "" {
			t.Errorf("%s: exit code %d, %s", args, code, stderr)
		}
		if strings.Contains(args, "--json") {
			for line := range strings.Lines(stdout) {
				if !json.Valid([]byte(line)) {
					t.Errorf("%s: %s", args, line)
				}
			}
		}
		fmt.Fprintf(&b, "$ anteroom rooms %s\n%s\n", args, stdout)
	}
	back()
	golden(t, "rooms", b.String())
}

// What rooms get prints is what rooms apply takes.
func TestARoomThatIsPrintedCanBeApplied(t *testing.T) {
	r := shopOf(200)
	r.Message, r.OriginCommands = "a \"quoted\": #word\ttoo 😀", nil
	r.BypassRules = []config.BypassRule{{Expression: `ip.src in $office and http.host eq "a'b"`, Action: "bypass_waiting_room", Enabled: true}}
	r.IPLists = []config.IPList{{Name: "office", Items: []string{"192.0.2.0/24", "2001:db8::/32"}}}
	b := newBoard(r)
	at := b.port(t, "")
	stdout, _, _ := execute(t, t.Context(), "rooms", "get", "shop", "--admin", at)
	back := inDir(t, map[string]string{"shop.yaml": stdout})
	defer back()
	out, stderr, code := execute(t, t.Context(), "rooms", "apply", "-f", "shop.yaml", "--admin", at)
	if code != 0 || out != "room shop: unchanged\n" {
		t.Errorf("exit code %d, %s%s", code, out, stderr)
	}
}

func TestRoomsSayWhatIsWrong(t *testing.T) {
	b := newBoard(shopOf(200))
	at := b.port(t, "")
	guarded := newBoard(shopOf(200)).port(t, "opensesame-opensesame")
	meddled := newBoard(shopOf(200))
	meddled.meddle = func() { meddled.version++ }
	busy := meddled.port(t, "")
	slow := newBoard(shopOf(200))
	slow.pending = true
	late := slow.port(t, "")
	const putIt = "put it into the file of every node, as custom_page_html or custom_page_file, and say --without-pages here\n"
	defer inDir(t, map[string]string{
		"paged.yaml": "name: shop\ntotal_active_users: 5\ncustom_page_html: <p>\nevents: [{name: sale, event_start_time: 2026-12-01T10:00:00Z, event_end_time: 2026-12-01T12:00:00Z, custom_page_html: <p>}]\n",
		"bad.yaml":   "name: shop\ntotal_active_users: -1\nqueueing_metod: fifo\n", "none.yaml": "node: {id: x}\n", "refused.yaml": "{name: shop, total_active_users: 1, message: refuse}\n",
		"one.yaml": oneRoom, "token": "opensesame-opensesame\n", "empty": "",
	})()
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"apply", 2, "anteroom rooms apply: -f is missing; name a file with rooms, or - for standard input\n"},
		{"apply -f nope.yaml", 1, "anteroom rooms apply: open nope.yaml: no such file or directory\n"},
		{"apply -f none.yaml", 1, "anteroom rooms apply: none.yaml: there is no room in it; give one with its name, a list, or a configuration file\n"},
		{"apply -f bad.yaml --admin " + at, 1, "anteroom rooms apply: bad.yaml:2: rooms[0].total_active_users: -1; give 0 to 1000000000\n" +
			"anteroom rooms apply: bad.yaml:3: rooms[0].queueing_metod: unknown key; did you mean queueing_method?\n"},
		{"apply -f refused.yaml --admin " + at, 1, "anteroom rooms apply: room shop: message: not that one\nanteroom rooms apply: room shop: routes[0]: taken\n"},
		{"apply -f one.yaml --admin " + busy, 1, "anteroom rooms apply: room shop: somebody else has changed it meanwhile, and nothing was done; look at it and try again\n"},
		{"get", 2, "anteroom rooms get: 0 names are given; give that of one room, as in: anteroom rooms get shop\n"},
		{"reclaim a b", 2, "anteroom rooms reclaim: 2 names are given; give that of one node, as in: anteroom rooms reclaim node-3\n"},
		{"hold", 2, "anteroom rooms hold: no room is named; give its name, as in: anteroom rooms hold shop\n"},
		{"message", 2, "anteroom rooms message: give the name of a room, and the text as one word, as in: anteroom rooms message shop \"The harvest is in.\"\n"},
		{"message shop a b", 2, "anteroom rooms message: give the name of a room, and the text as one word, as in: anteroom rooms message shop \"The harvest is in.\"\n"},
		{"message shop a --clear", 2, "anteroom rooms message: --clear takes all messages back; give it without a text and --at\n"},
		{"message shop --at 5m", 2, "anteroom rooms message: --at is for a message; give its text\n"},
		{"message shop a --at ten", 2, "anteroom rooms message: --at \"ten\" is no point in time; give one with its zone, such as 2026-11-27T18:00:00Z or 2026-11-27T19:00:00+01:00; or how far it is off, such as 15m\n"},
		{"message nope a --admin " + at, 1, "anteroom rooms message: there is no room \"nope\" in the cluster; anteroom rooms list shows which there are\n"},
		{"message shop " + strings.Repeat("a", 501) + " --admin " + at, 1, "anteroom rooms message: room shop: messages[0].text: 501 bytes; give 1 to 500\n"},
		{"get nope --admin " + at, 1, "anteroom rooms get: there is no room \"nope\" in the cluster; anteroom rooms list shows which there are\n"},
		{"hold shop nope --admin " + at, 1, "anteroom rooms hold: there is no room \"nope\" in the cluster; anteroom rooms list shows which there are\n"},
		{"delete nope --admin " + at, 1, "anteroom rooms delete: there is no room \"nope\" in the cluster; anteroom rooms list shows which there are\n"},
		{"reclaim node-1 --admin " + at, 1, "anteroom rooms reclaim: node node-1: The node is in the waves. Stop it first (node_alive)\n"},
		{"list --admin " + guarded, 1, "anteroom rooms list: " + guarded + " asks for a token; give the node's security.admin_token as --token or in ANTEROOM_SECURITY_ADMIN_TOKEN\n"},
		{"hold shop --token-file token --admin " + guarded, 0, ""},
		{"hold shop --token-file empty --admin " + guarded, 1, "anteroom rooms hold: --token-file: it is empty; put security.admin_token into it\n"},
		{"drain shop --admin " + late, 0, ""},
		{"apply -f paged.yaml --admin " + at, 1, "anteroom rooms apply: room shop: custom_page_html: a page does not travel through the cluster; " + putIt +
			"anteroom rooms apply: room shop: events[0].custom_page_html: a page does not travel through the cluster; " + putIt},
		{"apply -f paged.yaml --without-pages --dry-run --admin " + at, 0, ""},
	} {
		stdout, stderr, code := execute(t, t.Context(), strings.Fields("rooms "+c.args)...)
		if code != c.code || stderr != c.want {
			t.Errorf("%s: exit code %d, output %q, errors\n%s, want\n%s", c.args, code, stdout, stderr, c.want)
		}
		if strings.Contains(c.args, late) && !strings.Contains(stdout, "not in force yet") {
			t.Errorf("%s: %s", c.args, stdout)
		}
	}
}

const cloudflareAnswer = `{"success":true,"errors":[],"result":[
 {"id":"699d98642c564d2e855e9661899b7252","created_on":"2024-01-01T05:20:00.12345Z","modified_on":"2024-01-01T05:20:00.12345Z",
  "name":"production_webinar","description":"Production - DO NOT MODIFY","host":"shop.example.com","path":"/shop/checkout",
  "additional_routes":[{"host":"shop2.example.com","path":"/shop2"},{"host":"shop3.example.com"}],"queue_all":true,"new_users_per_minute":200,"total_active_users":300,
  "session_duration":7,"disable_session_renewal":true,"json_response_enabled":true,"queueing_method":"random","queueing_status_code":202,
  "cookie_attributes":{"samesite":"none","secure":"always"},"cookie_suffix":"abcd","custom_page_html":"<p>\n{{waitTime}}: \"now\"</p>","default_template_language":"es-ES",
  "enabled_origin_commands":["revoke"],"suspended":false,"turnstile_mode":"invisible","turnstile_action":"log","next_event_start_time":"2026-12-01T00:00:00Z","future_key":1},
 {"name":"plain","host":"a.example.com","path":"/","total_active_users":200,"new_users_per_minute":200,"turnstile_mode":"off","queueing_method":"lifo"},
 {"name":"mended","host":"b.example.com","path":"/","total_active_users":200,"new_users_per_minute":200,"queueing_method":"FIFO","default_template_language":"ru-RU"}
]}`

func TestRoomsOfCloudflareAreTakenOver(t *testing.T) {
	back := inDir(t, map[string]string{"cloudflare.json": cloudflareAnswer, "bad.json": `{"name":"x"}`, "none.json": `{"result":[]}`, "text.json": "hello"})
	stdout, stderr, code := execute(t, t.Context(), "rooms", "import", "cloudflare.json")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	f := config.ParseRooms("out", []byte(stdout))
	if len(f.Errors) != 1 || f.Errors[0].Key != "rooms[1].queueing_method" || len(f.Config.Rooms) != 3 || f.Config.Rooms[0].CustomPageHTML != "<p>\n{{waitTime}}: \"now\"</p>" {
		t.Errorf("%v\n%+v", f.Err(), f.Config.Rooms)
	}
	asJSON, _, _ := execute(t, t.Context(), "rooms", "import", "cloudflare.json", "--json")
	if !json.Valid([]byte(asJSON)) {
		t.Errorf("%s", asJSON)
	}
	for name, want := range map[string]string{"bad.json": "it has no name or no host", "none.json": "no room", "text.json": "no JSON of a waiting room", "nope.json": "no such file"} {
		if _, stderr, code := execute(t, t.Context(), "rooms", "import", name); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %s", name, code, stderr)
		}
	}
	back()
	golden(t, "rooms-import", "$ anteroom rooms import cloudflare.json > rooms.yaml\n"+stderr+"$ cat rooms.yaml\n"+stdout)
}

func TestRoomsAreReadFromStandardInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(file, []byte(oneRoom), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	rooms, err := (&applying{file: "-"}).read(in)
	if err != nil || len(rooms) != 1 || rooms[0].TotalActiveUsers != 300 {
		t.Errorf("%+v, %v", rooms, err)
	}
}
