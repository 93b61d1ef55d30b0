package main

import (
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/config"
)

const cloudflareRoom = `{"result":[{"id":"699d98642c564d2e855e9661899b7252","name":"shop","host":"shop.example.com","path":"/","total_active_users":300,
 "new_users_per_minute":200,"session_duration":5,"queueing_method":"fifo","next_event_prequeue_start_time":"2026-11-27T17:30:00Z","next_event_start_time":"2026-11-27T18:00:00Z"}]}`

// An answer to GET …/events, with the fields that its documentation has.
const cloudflareSale = `{"success":true,"errors":[],"messages":[],"result":[{"id":"25756b2dfe6e378a06b033b670413757","created_on":"2014-01-01T05:20:00.12345Z",
 "custom_page_html":"{{#waitTimeKnown}}\r\n{{waitTime}} mins {{/waitTimeKnown}}","description":"The big one","disable_session_renewal":null,
 "event_end_time":"2026-11-27T20:00:00Z","event_start_time":"2026-11-27T18:00:00Z","modified_on":"2014-01-01T05:20:00.12345Z","name":"sale",
 "new_users_per_minute":null,"prequeue_start_time":"2026-11-27T17:30:00Z","queueing_method":"random","session_duration":10,"shuffle_at_event_start":true,
 "suspended":false,"total_active_users":500,"turnstile_action":"log","turnstile_mode":"off"}]}`

const cloudflareExceptions = `[{"id":"25756b2dfe6e378a06b033b670413757","version":"1","action":"bypass_waiting_room","description":"assets",
 "expression":"starts_with(http.request.uri.path, \"/assets/\")","enabled":true,"last_updated":"2014-01-01T05:20:00.12345Z"},
 {"action":"bypass_waiting_room","expression":"cf.bot_management.score eq 1","enabled":false,"logging":{}}]`

func TestEventsAndRulesOfCloudflareAreTakenOver(t *testing.T) {
	inDir(t, map[string]string{"rooms.json": cloudflareRoom, "events.json": cloudflareSale, "rules.json": cloudflareExceptions, "text.json": "hello"})
	stdout, stderr, code := execute(t, t.Context(), strings.Fields("rooms import rooms.json --events shop=events.json --rules shop=rules.json")...)
	f := config.ParseRooms("out", []byte(stdout))
	if code != 0 || len(f.Config.Rooms) != 1 || len(f.Errors) != 1 || f.Errors[0].Key != "rooms[0].bypass_rules[1].expression" {
		t.Fatalf("exit code %d, %s\n%s\n%v", code, stderr, stdout, f.Err())
	}
	var got []string
	for _, e := range f.Config.Rooms[0].Events {
		got = append(got, e.Name, e.Description, e.PrequeueStartTime.String(), e.StartTime.String(), e.EndTime.String(), e.QueueingMethod, e.SessionDuration.String(), e.CustomPageHTML)
		if e.TotalActiveUsers != 500 || !e.ShuffleAtEventStart || e.Suspended || e.NewUsersPerMinute != 0 || e.DisableSessionRenewal != "" {
			t.Errorf("%+v", e)
		}
	}
	want := []string{"sale", "The big one", "2026-11-27T17:30:00Z", "2026-11-27T18:00:00Z", "2026-11-27T20:00:00Z", "random", "10m", "{{#waitTimeKnown}}\n{{waitTime}} mins {{/waitTimeKnown}}"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	want = []string{
		"shop: events[0].turnstile_action: there is no such check here",
		"shop: rules[1].logging: not known here",
		"shop: origin: Cloudflare knows the site by its DNS; add the site's address if anteroom is to pass visitors on, or leave it out behind another proxy",
		"rooms[0].bypass_rules[1].expression: taken over, but wrong here: column 1: cf.bot_management.score is not known here; docs/rules.md has the fields",
	}
	if diff := cmp.Diff(want[:3], strings.Split(strings.TrimSpace(stderr), "\n")[:3]); diff != "" || !strings.Contains(stderr, "rooms[0].bypass_rules[1].expression: taken over, but wrong here: ") {
		t.Errorf("left out (-want +got):\n%s\n%s", diff, stderr)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", 0, "events are another answer of the API, …/waiting_rooms/ID/events; add them with --events shop=FILE"},
		{"--events events.json", 2, "give the room and a file, such as shop=events.json"},
		{"--rules desk=rules.json", 1, `there is no room "desk" among the others`},
		{"--events shop=text.json", 1, "text.json: there is no list in it; give what Cloudflare's API answers to GET /zones/…/waiting_rooms/ID/events"},
		{"--events shop=nope.json", 1, "no such file"},
	} {
		if _, stderr, code := execute(t, t.Context(), strings.Fields("rooms import rooms.json "+c.args)...); code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit code %d, %s, want %q", c.args, code, stderr, c.want)
		}
	}
}

// FuzzCloudflareRooms takes over anything: what comes out is a file that can be
// read, though not all in it may be right.
func FuzzCloudflareRooms(f *testing.F) {
	f.Add(cloudflareRoom, cloudflareSale, cloudflareExceptions)
	f.Add(cloudflareAnswer, `{"result":[]}`, `[{"expression":1,"enabled":"no"}]`)
	f.Add(`{"name":1,"host":[],"additional_routes":[{"host":"*"}]}`, `[{"session_duration":{"a":1}}]`, `[null]`)
	f.Add(`{"name":"0","host":"A","custom_page_html":"<p>\r\n</p>\r"}`, `[{"name":"0","description":"\r"}]`, `[{"expression":"0\r"}]`)
	f.Fuzz(func(t *testing.T, rooms, events, rules string) {
		all, err := cloudflareRooms([]byte(rooms))
		if err != nil {
			return
		}
		for _, one := range all {
			for key, text := range map[string]string{"events": events, "rules": rules} {
				if list, err := listOf([]byte(text)); err == nil {
					one[key] = list
				}
			}
			room, _ := fromCloudflare(one)
			out, err := yaml.MarshalWithOptions(yaml.MapSlice{{Key: "rooms", Value: []yaml.MapSlice{room}}}, yaml.IndentSequence(true), yaml.UseLiteralStyleIfMultiline(true))
			if err != nil {
				t.Fatal(err)
			}
			if parsed := config.ParseRooms("out", out); len(parsed.Config.Rooms) != 1 {
				t.Errorf("%v\n%s", parsed.Err(), out)
			}
		}
	})
}
