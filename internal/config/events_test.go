package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/config"
)

func TestWrongEventsAreToldWithTheirLines(t *testing.T) {
	const times = "event_start_time: 2026-11-27T18:00:00Z, event_end_time: 2026-11-27T20:00:00Z"
	for _, c := range []struct{ text, want string }{
		{"[{name: sale, " + times + "}]", ""},
		{"[{name: a b, " + times + "}]", `events[0].name: "a b" is no name; give up to 64 letters, digits, - and _`},
		{"[{name: sale}]", "events[0].event_start_time: missing; give a point in time, such as 2026-11-27T18:00:00Z\n" +
			"events[0].event_end_time: missing; give a point in time, such as 2026-11-27T18:00:00Z"},
		{"[{name: sale, event_start_time: tomorrow, event_end_time: 2026-11-27T20:00:00Z}]", "events[0].event_start_time: " +
			"no point in time; give one with its zone, such as 2026-11-27T18:00:00Z or 2026-11-27T19:00:00+01:00"},
		{"[{name: sale, event_start_time: 2026-11-27T18:00:00Z, event_end_time: 2026-11-27T18:00:00Z}]", "events[0].event_end_time: " +
			"2026-11-27T18:00:00Z is not after the start, 2026-11-27T18:00:00Z; give a time at least 1m after it"},
		{"[{name: sale, prequeue_start_time: 2026-11-27T18:30:00Z, " + times + "}]", "events[0].prequeue_start_time: " +
			"2026-11-27T18:30:00Z is not before the start, 2026-11-27T18:00:00Z; give a time at least 5m before it"},
		{"[{name: sale, prequeue_start_time: 2026-11-27T17:59:00Z, " + times + "}]", "warning: events[0].prequeue_start_time: 1m before the start; 5m are usual, so that people can gather"},
		{"[{name: sale, shuffle_at_event_start: true, " + times + "}]", "events[0].shuffle_at_event_start: " +
			"there is no prequeue_start_time, so nobody gathers who could be shuffled; give one"},
		{
			"[{name: sale, " + times + "}, {name: sale, event_start_time: 2026-11-27T19:00:00Z, event_end_time: 2026-11-27T21:00:00Z}]",
			"events[1].name: \"sale\" is the name of events[0] too; give each its own",
		},
		{
			"[{name: sale, " + times + "}, {name: late, event_start_time: 2026-11-27T21:00:00+02:00, event_end_time: 2026-11-27T21:00:00Z}]",
			"events[1].event_start_time: from its pre-queue to its end it overlaps events[0]; give them one after the other",
		},
		{"[{name: sale, " + times + "}, {name: late, suspended: true, " + times + "}]", ""},
		{"[{name: sale, queueing_method: lifo, " + times + "}]", `events[0].queueing_method: "lifo"; give fifo, random, passthrough or reject`},
		{"[{name: sale, disable_session_renewal: no, " + times + "}]", "events[0].disable_session_renewal: neither true nor false; give one of them, or leave it out: as in the room"},
		{"[{name: sale, seed: 1, " + times + "}]", "events[0].seed: unknown key"},
		{"[" + strings.Repeat("{name: a, "+times+"},", 6) + "]", "events: 6 events; give at most 5. Those that are over can be removed"},
	} {
		f := parse("rooms: [{name: shop, total_active_users: 200, events: "+c.text+"}]\nnode: {data: d}\n", config.Options{})
		var got []string
		for _, p := range problems(f.Errors) {
			got = append(got, strings.TrimPrefix(p, "a.yaml:1: rooms[0]."))
		}
		for _, p := range problems(f.Warnings) {
			got = append(got, "warning: "+strings.TrimPrefix(p, "a.yaml:1: rooms[0]."))
		}
		text := strings.Join(got, "\n")
		if i := strings.Index(text, "; there are "); i > 0 {
			text = text[:i]
		}
		if diff := cmp.Diff(c.want, text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
	}
}

// A room that is shut, or open to all, needs no limit; an event in it that has
// people wait does.
func TestAnEventNeedsALimitOfItsRoomOrItsOwn(t *testing.T) {
	const times = "name: sale, event_start_time: 2026-11-27T18:00:00Z, event_end_time: 2026-11-27T20:00:00Z"
	const missing = "rooms[0].events[0].total_active_users: missing"
	for _, c := range []struct{ room, event, want string }{
		{"queueing_method: reject", "queueing_method: fifo", missing},
		{"queueing_method: passthrough", "queueing_method: random", missing},
		{"queueing_method: reject, total_active_users: 0", "queueing_method: fifo", "warning: rooms[0].events[0].total_active_users: the room's 0 lets nobody in"},
		{"queueing_method: reject", "queueing_method: fifo, total_active_users: 5", ""},
		{"queueing_method: reject, total_active_users: 5", "queueing_method: fifo", ""},
		{"queueing_method: reject", "queueing_method: passthrough", ""},
		{"queueing_method: reject", "queueing_method: fifo, suspended: true", ""},
		{"queueing_method: reject", "description: shut then too", ""},
		{"suspended: true", "queueing_method: fifo", ""},
		{"queueing_method: fifo", "queueing_method: random", "rooms[0].total_active_users: missing"}, // told once
	} {
		f := parse("rooms: [{name: shop, "+c.room+", events: [{"+times+", "+c.event+"}]}]\nnode: {data: d}\n", config.Options{})
		var got []string
		for _, p := range problems(f.Errors) {
			got = append(got, strings.TrimPrefix(p, "a.yaml:1: "))
		}
		for _, p := range problems(f.Warnings) {
			got = append(got, "warning: "+strings.TrimPrefix(p, "a.yaml:1: "))
		}
		if text := strings.Join(got, "\n"); c.want == "" && text != "" || !strings.HasPrefix(text, c.want) || strings.Contains(text, "\n") {
			t.Errorf("room %s, event %s: %q, want %q", c.room, c.event, text, c.want)
		}
	}
}

func TestEventsReachTheCore(t *testing.T) {
	f := parse(`
node: {data: d}
rooms:
  - name: shop
    total_active_users: 200
    events:
      - {name: late, event_start_time: 2026-11-28T18:00:00Z, event_end_time: 2026-11-28T20:00:00Z, disable_session_renewal: false}
      - {name: off, suspended: true, event_start_time: 2026-11-28T18:00:00Z, event_end_time: 2026-11-28T20:00:00Z}
      - name: sale
        prequeue_start_time: 2026-11-27T18:30:00+01:00
        event_start_time: 2026-11-27T18:00:00Z
        event_end_time: 2026-11-27T20:00:00Z
        shuffle_at_event_start: true
        total_active_users: 50
        new_users_per_minute: 600
        session_duration: 90s
        disable_session_renewal: true
        queueing_method: random
`, config.Options{})
	if f.Err() != nil {
		t.Fatal(f.Err())
	}
	at := func(day, hour, minute int) int64 {
		return time.Date(2026, 11, day, hour, minute, 0, 0, time.UTC).UnixMicro()
	}
	want := []eviction.Event{
		{
			Name: "sale", Prequeue: at(27, 17, 30), Start: at(27, 18, 0), End: at(27, 20, 0), Shuffle: true, Target: 50, NewPerMinute: 600,
			Session: 90 * time.Second, NoRenewal: true, Method: eviction.Random,
			Set: eviction.SetTarget | eviction.SetNewPerMinute | eviction.SetSession | eviction.SetNoRenewal | eviction.SetMethod,
		},
		{Name: "late", Prequeue: at(28, 18, 0), Start: at(28, 18, 0), End: at(28, 20, 0), Set: eviction.SetNoRenewal},
	}
	r := f.Config.Rooms[0].Eviction()
	if diff := cmp.Diff(want, r.Events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := r.Validate(); err != nil {
		t.Error(err)
	}
	f.Config.Rooms[0].Suspended = true
	if e := f.Config.Rooms[0].Eviction().Events; e != nil {
		t.Errorf("a suspended room has events: %v", e)
	}
}
