package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/config"
)

const severalRooms = `
rooms:
  - name: shop
    routes: [{host: shop.example.com}]
    origin: http://127.0.0.1:9000
    total_active_users: 200
    session_duration: 90s
    survivor_after: 0
    message: "a \"b\": #c\td 😀"
    ip_lists: [{name: office, items: [192.0.2.0/24]}]
    bypass_rules: [{expression: 'ip.src in $office and http.host eq "a''b"'}, {expression: 'http.host eq "x"', enabled: false, description: "off"}]
    cookie_attributes: {samesite: none}
    enabled_origin_commands: []
    events: [{name: sale, event_start_time: "2036-11-27T18:00:00+01:00", event_end_time: "2036-11-27T20:00:00+01:00"}]
  - {name: news, total_active_users: 5, queueing_method: random}
`

// A room of a file, sent as JSON, is the same room, and so is one that is printed.
func TestARoomIsTheSameInJSONAndYAML(t *testing.T) {
	f := config.ParseRooms("a.yaml", []byte(severalRooms))
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	for _, want := range f.Config.Rooms {
		got, problems := config.ParseRoom(want.JSON(), config.RoomOptions{Prefix: "/_anteroom"})
		if len(problems) > 0 {
			t.Errorf("%s: %v", want.Name, problems)
		}
		if d := config.Changes(want, got); len(d) > 0 {
			t.Errorf("%s as JSON: %v", want.Name, d)
		}
		again := config.ParseRooms("b.yaml", []byte(want.YAML()))
		if again.Err() != nil || len(again.Config.Rooms) != 1 {
			t.Fatalf("%s: %v\n%s", want.Name, again.Err(), want.YAML())
		}
		if d := config.Changes(want, again.Config.Rooms[0]); len(d) > 0 {
			t.Errorf("%s as YAML: %v", want.Name, d)
		}
	}
}

func TestRoomsAreFoundInWhatThereIs(t *testing.T) {
	for text, want := range map[string]string{
		"name: shop\ntotal_active_users: 1\n":                                      "shop",
		"{\"name\": \"shop\", \"total_active_users\": 1}":                          "shop",
		"- {name: a, total_active_users: 1}\n- {name: b, total_active_users: 1}\n": "a b",
		"node: {id: x}\nrooms: [{name: a, total_active_users: 1}]\n":               "a",
		"node: {id: x}\n": "",
		"":                "",
		"- &a {name: a, total_active_users: 1}\n- {<<: *a, name: b}\n": "a b",
	} {
		f := config.ParseRooms("x", []byte(text))
		var names []string
		for _, r := range f.Config.Rooms {
			names = append(names, r.Name)
		}
		if got := strings.Join(names, " "); got != want || f.Err() != nil {
			t.Errorf("%q: %q, %v; want %q", text, got, f.Err(), want)
		}
	}
	for text, want := range map[string]string{
		"name: shop\ntotal_active_users: x\n": "x:2: rooms[0].total_active_users: not a whole number; give one such as 200",
		"- {name: a}\n":                       "x:1: rooms[0].total_active_users: missing; give how many people may be on the site at a time, about 75 % of what it can bear",
		"shop":                                "x:1: is text; give keys with values: node, cluster, security, prefix, trusted_proxies, country_header, admin_hosts, rooms, queueing, queues",
		"a: [":                                "x:1: not YAML",
	} {
		if err := config.ParseRooms("x", []byte(text)).Err(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestARoomIsComparedWithTheOthersOfTheCluster(t *testing.T) {
	others := config.ParseRooms("a.yaml", []byte(severalRooms)).Config.Rooms
	for body, want := range map[string][]string{
		`{"total_active_users":1,"routes":[{"host":"SHOP.example.com."}]}`:                          {"routes[0]: SHOP.example.com./ is that of the room shop too; give each route to one room"},
		`{"total_active_users":1,"cookie_suffix":"news"}`:                                           {`cookie_suffix: "news" is that of the room news too, so their cookies would replace each other; give each room its own`},
		`{"total_active_users":1,"routes":[{"host":"shop.example.com","path":"/blog"}],"queued":7}`: nil,
	} {
		_, problems := config.ParseRoom([]byte(body), config.RoomOptions{Name: "blog", Prefix: "/_anteroom", Others: others, Ignore: []string{"queued"}})
		var got []string
		for _, p := range problems {
			got = append(got, p.Key+": "+p.Text)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", body, d)
		}
	}
}

func FuzzParseRoom(f *testing.F) {
	for _, r := range config.ParseRooms("a.yaml", []byte(severalRooms)).Config.Rooms {
		f.Add(r.JSON())
	}
	f.Add([]byte(`{"message":"\ud83d\ude00\u0000\/","name":null,"routes":[null,{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, problems := config.ParseRoom(text, config.RoomOptions{Name: "shop", Prefix: "/_anteroom"})
		if len(problems) > 0 {
			return
		}
		again, problems := config.ParseRoom(r.JSON(), config.RoomOptions{Prefix: "/_anteroom"})
		if len(problems) > 0 {
			t.Fatalf("%s became %s, which is refused: %v", text, r.JSON(), problems)
		}
		if d := config.Changes(r, again); len(d) > 0 {
			t.Fatalf("%s: %v", text, d)
		}
	})
}
