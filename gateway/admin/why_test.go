package admin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway/admin"
)

// What stops the flow altogether is said before what merely limits it, and every
// sentence has its figures.
func TestWhySaysWhatLimitsTheFlow(t *testing.T) {
	now := time.Date(2026, 11, 27, 18, 0, 0, 0, time.UTC)
	later, before := now.Add(90*time.Second), now.Add(-time.Hour)
	told := map[admin.Code]bool{}
	for _, x := range []struct {
		does    string
		cluster admin.Cluster
		room    admin.Room
		code    admin.Code
		level   admin.Level
		text    string
	}{
		{
			"a node on a side",
			admin.Cluster{Grade: "side", Voters: []string{"a"}, Waiting: "no quorum", WaitingSince: &before},
			admin.Room{Mode: admin.Held},
			admin.NoMajority, admin.Broken, "This node sees no majority of the nodes since 17:00:00 UTC, so it calls nobody. Places and passes are kept.",
		},
		{
			"a node that waits for its cluster",
			admin.Cluster{Waiting: "waiting for 3 nodes"},
			admin.Room{},
			admin.NotServing, admin.Broken, "This node is not serving: waiting for 3 nodes.",
		},
		{
			"a room that this node has given up",
			admin.Cluster{},
			admin.Room{Mode: admin.Held, Here: admin.RoomHere{Broken: "a use is somebody's"}},
			admin.BrokenHere, admin.Broken,
			"This node has found the room not as it must be (a use is somebody's) and calls nobody in it until it is restarted. The other nodes go on.",
		},
		{"a room that is off", admin.Cluster{}, admin.Room{Suspended: true}, admin.Suspended, admin.Fine, "The room is suspended: everybody goes through, nothing is counted."},
		{"passthrough", admin.Cluster{}, admin.Room{QueueingMethod: "passthrough"}, admin.Passthrough, admin.Fine, "queueing_method is passthrough: everybody goes through."},
		{"reject", admin.Cluster{}, admin.Room{QueueingMethod: "reject"}, admin.Rejecting, admin.Stopped, "queueing_method is reject: nobody is let in."},
		{
			"a room that is held",
			admin.Cluster{},
			admin.Room{Mode: admin.Held, ModeBy: "token lou", ModeSince: &before, Queued: 12, TotalActiveUsers: 5},
			admin.HeldByHand, admin.Stopped, "Held by token lou since 17:00:00 UTC: nobody is called until it is released. 12 wait.",
		},
		{"a hold that this node did not hear of", admin.Cluster{}, admin.Room{Mode: admin.Held}, admin.HeldByHand, admin.Stopped, "Held: nobody is called until it is released. 0 wait."},
		{
			"an origin that is ill",
			admin.Cluster{},
			admin.Room{TotalActiveUsers: 50, Queued: 12, OriginHealth: "unhealthy", OriginHolds: true, OriginSince: &before, OriginReason: "front: Response code mismatch error, 503"},
			admin.Unhealthy, admin.Broken,
			"The origin is unhealthy since 17:00:00 UTC (front: Response code mismatch error, 503), and on_unhealthy is hold: nobody is called until it is well again. 12 wait.",
		},
		{
			"one that is ill in a room that is held as well",
			admin.Cluster{},
			admin.Room{TotalActiveUsers: 50, Mode: admin.Held, OriginHolds: true},
			admin.HeldByHand, admin.Stopped, "Held: nobody is called until it is released. 0 wait.",
		},
		{
			"a cold start",
			admin.Cluster{},
			admin.Room{HeldUntil: &later},
			admin.ColdStart, admin.Stopped, "Nobody is called until 18:01:30 UTC: after a start of everything, passes of before may still be good until then.",
		},
		{
			"before an event",
			admin.Cluster{},
			admin.Room{TotalActiveUsers: 5, Queued: 40, Event: &admin.Event{Name: "sale", Prequeue: before, StartsAt: later}},
			admin.BeforeStart, admin.Stopped, "The event sale opens at 18:01:30 UTC. 40 wait for it.",
		},
		{"a limit of 0", admin.Cluster{}, admin.Room{Queued: 3}, admin.LimitZero, admin.Stopped, "total_active_users is 0: everybody waits, 3 people now."},
		{
			"a limit that was lowered",
			admin.Cluster{},
			admin.Room{TotalActiveUsers: 5, Active: 7, Called: 1, Queued: 3},
			admin.OverLimit, admin.Stopped, "8 people are inside and the limit is 5: nobody is called until 3 have left.",
		},
		{"a room that has drained", admin.Cluster{}, admin.Room{TotalActiveUsers: 5, Mode: admin.Draining}, admin.Drained, admin.Stopped, "The room drains: nobody may join, and nobody waits."},
		{"queue_all", admin.Cluster{}, admin.Room{TotalActiveUsers: 5, QueueAll: true}, admin.QueueAll, admin.Fine, "queue_all sends everybody through the line, and nobody waits just now."},
		{"room for all", admin.Cluster{}, admin.Room{TotalActiveUsers: 5, Active: 1, Called: 1}, admin.NobodyWaits, admin.Fine, "Nobody waits: there is room for 3 more."},
		{"just full", admin.Cluster{}, admin.Room{TotalActiveUsers: 5, Active: 5}, admin.FullNow, admin.Fine, "Full, and nobody waits: 5 of 5 are inside, and whoever comes now waits."},
		{
			"slots that are gone",
			admin.Cluster{},
			admin.Room{TotalActiveUsers: 9, Active: 6, Queued: 3, SlotsMissing: 3, WholeAt: &later, NewUsersPerMinute: 60},
			admin.ByMissing, admin.Queued, "3 of 9 slots went with a lost node and are back at 18:01:30 UTC. The others are in use.",
		},
		{
			"the limit",
			admin.Cluster{},
			admin.Room{TotalActiveUsers: 5, Active: 4, Called: 1, Queued: 3, AdmittedPerMinute: 11.6, NewUsersPerMinute: 60},
			admin.ByLimit, admin.Queued, "total_active_users limits the flow: 5 of 5 are inside, and 12 a minute got in of late.",
		},
		{
			"the rate",
			admin.Cluster{},
			admin.Room{TotalActiveUsers: 5, Active: 4, Queued: 3, AdmittedPerMinute: 59.6, NewUsersPerMinute: 60},
			admin.ByRate, admin.Queued, "new_users_per_minute limits the flow: 60 a minute, 60 got in of late. 4 of 5 are inside.",
		},
		{"a wave to come", admin.Cluster{}, admin.Room{TotalActiveUsers: 5, Active: 4, Queued: 3}, admin.Calling, admin.Queued, "People are being called: there is room for 1 more, and 3 wait."},
		{
			"an event with a limit of its own",
			admin.Cluster{},
			admin.Room{TotalActiveUsers: 100, Active: 5, Queued: 3, Event: &admin.Event{Prequeue: before, StartsAt: before, TotalActiveUsers: 5}},
			admin.ByLimit, admin.Queued, "total_active_users limits the flow: 5 of 5 are inside, and 0 a minute got in of late.",
		},
		{
			"an origin that bears less",
			admin.Cluster{},
			admin.Room{
				TotalActiveUsers: 100, Active: 60, Queued: 7,
				Governed: &admin.Governed{Bound: 60, Since: &before, Verdict: "overloaded", Cause: "errors", Figure: 0.031},
			},
			admin.ByOrigin, admin.Queued, "The governor lets no more than 60 of the 100 of total_active_users in since 17:00:00 UTC: 3.1 % of the origin's answers fail, so fewer are let in. 60 are inside, 7 wait.",
		},
		{
			"one that bears less than those who are there",
			admin.Cluster{},
			admin.Room{TotalActiveUsers: 100, Active: 90, Queued: 7, Governed: &admin.Governed{Bound: 60, Verdict: "near", Cause: "latency", Figure: 0.04, Latency: 0.5}},
			admin.ByOrigin, admin.Queued, "The governor lets no more than 60 of the 100 of total_active_users in: 4.0 % of the origin's answers take longer than 500ms, so it stays there. 90 are inside, 7 wait.",
		},
		{
			"one that is about to call a few more",
			admin.Cluster{},
			admin.Room{TotalActiveUsers: 100, Active: 54, Queued: 7, Governed: &admin.Governed{Bound: 60, Verdict: "healthy"}},
			admin.ByOrigin, admin.Queued, "The governor lets no more than 60 of the 100 of total_active_users in: the origin bore it in the last seconds, so it is raised bit by bit. 54 are inside, 7 wait.",
		},
		{
			"a limit that was lowered below both",
			admin.Cluster{},
			admin.Room{TotalActiveUsers: 50, Active: 90, Queued: 7, Governed: &admin.Governed{Bound: 60, Verdict: "healthy"}},
			admin.OverLimit, admin.Stopped, "90 people are inside and the limit is 50: nobody is called until 40 have left.",
		},
		{
			"a governor that has nothing to do",
			admin.Cluster{},
			admin.Room{TotalActiveUsers: 50, Active: 50, Queued: 7, Governed: &admin.Governed{Verdict: "healthy"}},
			admin.ByLimit, admin.Queued, "total_active_users limits the flow: 50 of 50 are inside, and 0 a minute got in of late.",
		},
		{
			"an event that is over",
			admin.Cluster{},
			admin.Room{TotalActiveUsers: 100, Active: 5, Queued: 3, Event: &admin.Event{Prequeue: before, StartsAt: before, EndsAt: &now, TotalActiveUsers: 5}},
			admin.Calling, admin.Queued, "People are being called: there is room for 95 more, and 3 wait.",
		},
	} {
		if x.code == admin.BeforeStart {
			x.room.Event.TotalActiveUsers = x.room.TotalActiveUsers
		}
		got := admin.Why(&x.cluster, &x.room, now)
		if got.Code != x.code || got.Level != x.level || got.Text != x.text {
			t.Errorf("%s: %s, %s: %s\nwant %s, %s: %s", x.does, got.Code, got.Level, got.Text, x.code, x.level, x.text)
		}
		told[got.Code] = true
	}
	for code, text := range admin.Sentences() {
		if !told[code] || strings.TrimSpace(text) == "" {
			t.Errorf("%s is nowhere in the table, or has no words", code)
		}
	}
}
