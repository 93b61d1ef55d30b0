package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/fairness"
)

// shown is a node as its admin port shows it.
type shown struct {
	cluster admin.Cluster
	rooms   []admin.Room
	health  []admin.RoomHealth
	slots   []admin.NodeSlots
	asked   func() // at each look at the cluster; nil: nothing
}

func (s *shown) Cluster() admin.Cluster {
	if s.asked != nil {
		s.asked()
	}
	return s.cluster
}
func (s *shown) Rooms() []admin.Room                          { return s.rooms }
func (s *shown) Fairness(string) (r fairness.Report, ok bool) { return r, false }
func (s *shown) Health() []admin.RoomHealth                   { return s.health }
func (s *shown) Ready() string                                { return s.cluster.Waiting }

// spread is how the slots of shown are over the nodes.
type spread struct {
	admin.Historian
	of *shown
}

func (s spread) Slots(context.Context, string) []admin.NodeSlots { return s.of.slots }

// adminPort serves s and returns its address, which no golden file may have in it.
func adminPort(t *testing.T, s *shown, token string) string {
	t.Helper()
	port := httptest.NewServer(admin.New(admin.Config{Source: s, Historian: spread{of: s}, Token: token}))
	t.Cleanup(port.Close)
	return port.URL
}

func healthy() *shown {
	up := func(ago time.Duration) time.Time { return time.Unix(0, 0).Add(-ago) }
	return &shown{
		cluster: admin.Cluster{
			Node: "node-2", Epoch: 1234, Coordinator: "node-1", Grade: "primary", Voters: []string{"node-1", "node-2", "node-3"}, Warnings: []string{"a proxy is not listed"},
			Members: []admin.Member{
				{Name: "node-1", Address: "10.0.0.1:7001", Started: up(50 * time.Hour), InWave: true, RoundTrip: 0.00123},
				{Name: "node-2", Address: "10.0.0.2:7001", Started: up(90 * time.Minute), InWave: true, Parent: "node-1"},
				{Name: "node-3", Address: "10.0.0.3:7001", Started: up(8 * time.Second), RoundTrip: 0.0271},
			},
		},
		rooms: []admin.Room{
			{Name: "shop", TotalActiveUsers: 200, Active: 188, Called: 12, Queued: 3456, AdmittedPerMinute: 41.7, EstimatedWaitSeconds: 4973},
			{Name: "news", TotalActiveUsers: 1000, Active: 3, Open: true},
			{Name: "blog", Suspended: true},
		},
		slots: []admin.NodeSlots{
			{Node: "node-1", Answers: true, SlotsOwned: 640, Queued: 1800, KeptElsewhere: 1800}, {Node: "node-2", Answers: true, SlotsOwned: 560, Queued: 1656, KeptElsewhere: 1633}, {Node: "node-3"},
		},
		health: []admin.RoomHealth{
			{
				Room: "shop", Status: "unhealthy", Answers: &admin.OriginAnswers{Count: 1204, Failed: 37, NoAnswer: 2, FailedPercent: 3.1, P50: 0.0213, P95: 0.43, P99: 1.25},
				Checks: []admin.CheckHealth{{Name: "back", Status: "healthy"}, {Name: "front", Status: "unhealthy", Reason: "Response code mismatch error", ActualCode: 503}},
			},
			{Room: "news", Status: "unknown", Answers: &admin.OriginAnswers{Count: 3, P50: 0.0004, P95: 0.0004, P99: 0.0004}},
			{Room: "blog", Status: "healthy", Checks: []admin.CheckHealth{{Name: "front", Status: "healthy"}}},
		},
	}
}

func TestStatus(t *testing.T) {
	side, lost, off, out := healthy(), healthy(), healthy(), healthy()
	side.cluster.Grade, side.cluster.Waiting = "side", "on a side without a quorum"
	counted := time.Date(2026, 11, 21, 14, 2, 0, 0, time.Local)
	side.rooms[0].Paused, side.rooms[0].CountedAt = side.cluster.Waiting, &counted
	lost.cluster = admin.Cluster{Node: "node-4", Grade: "none", Waiting: "waiting for a cluster to join", Members: []admin.Member{{Name: "node-4", Started: time.Unix(-3, 0)}}}
	lost.rooms, lost.health = nil, nil
	off.cluster.Grade, off.cluster.Quarantined, off.cluster.Waiting = "side", true, "its clock is off; it waits to be measured again"
	off.rooms = off.rooms[:1]
	out.cluster.Waiting, out.cluster.Relay = "on a side without a quorum", "node-3"
	var b strings.Builder
	for _, c := range []struct {
		name string
		node *shown
		args string
	}{
		{"healthy", healthy(), ""},
		{"a side without a quorum", side, ""},
		{"not part of a cluster", lost, ""},
		{"a clock that is off", off, ""},
		{"left out, and another answers its visitors", out, ""},
		{"as JSON", lost, " --json"},
	} {
		stdout, stderr, code := execute(t, t.Context(), strings.Fields("status --admin "+adminPort(t, c.node, "")+c.args)...)
		if code != 0 || stderr != "" {
			t.Errorf("%s: exit code %d, errors %q", c.name, code, stderr)
		}
		b.WriteString("# " + c.name + "\n$ anteroom status" + c.args + "\n" + stdout + "\n")
	}
	golden(t, "status", b.String())
}

// Ctrl-C ends a watch quietly, whenever it comes.
func TestStatusWatchGoesOnUntilItIsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	node, looks := healthy(), 0
	node.asked = func() {
		looks++
		if looks == 3 {
			cancel()
		}
	}
	stdout, stderr, code := execute(t, ctx, "status", "--watch", "--every", "100ms", "--json", "--admin", adminPort(t, node, ""))
	if n := strings.Count(stdout, "\n"); code != 0 || stderr != "" || n < 2 || n > 3 {
		t.Errorf("exit code %d, errors %q, %d looks; want two or three, and no error", code, stderr, n)
	}
}

// A watch says by how many people a line has grown since the last look, or shrunk.
func TestStatusWatchShowsATrend(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	node, looks := healthy(), 0
	node.asked = func() {
		switch looks++; looks {
		case 2:
			node.rooms[0].Queued -= 56
		case 3:
			cancel()
		}
	}
	stdout, stderr, code := execute(t, ctx, "status", "--watch", "--every", "100ms", "--admin", adminPort(t, node, ""))
	first, second, _ := strings.Cut(stdout, "3456")
	if code != 0 || stderr != "" || strings.Contains(first, "(") || !strings.Contains(second, "3400 (-56)") {
		t.Errorf("exit code %d, errors %q:\n%s", code, stderr, stdout)
	}
}

func TestStatusWaitsForTheCluster(t *testing.T) {
	node, looks := healthy(), 0
	members := node.cluster.Members
	for i := range members {
		members[i].InWave = true
	}
	node.cluster.Waiting = "waiting for 3 nodes to start a cluster together"
	node.asked = func() {
		if looks++; looks == 3 {
			node.cluster.Waiting = ""
		}
	}
	at := adminPort(t, node, "")
	if stdout, stderr, code := execute(t, t.Context(), "status", "--wait", "--admin", at); code != 0 || looks < 3 || !strings.Contains(stdout, " sees 3 nodes") {
		t.Errorf("exit code %d after %d looks, %q, errors %q", code, looks, stdout, stderr)
	}
	node.rooms = []admin.Room{{Name: "shop", TotalActiveUsers: 3}}
	node.asked = func() {
		if looks++; looks == 8 {
			node.rooms[0].Open = true
		}
	}
	if stdout, _, code := execute(t, t.Context(), "status", "--wait", "--admin", at); code != 0 || looks < 8 || !strings.Contains(stdout, " open\n") {
		t.Errorf("exit code %d after %d looks, %q", code, looks, stdout)
	}
	node.asked = nil
	members[0].InWave = false
	if _, stderr, code := execute(t, t.Context(), "status", "--wait=100ms", "--admin", at); code != 1 || !strings.Contains(stderr, "is not serving: 2 of 3 nodes are in its waves") {
		t.Errorf("exit code %d, errors %q", code, stderr)
	}
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	if _, stderr, code := execute(t, t.Context(), "status", "--wait=100ms", "--admin", closed.URL); code != 1 || !strings.Contains(stderr, "after 100ms: no node answers at ") {
		t.Errorf("exit code %d, errors %q", code, stderr)
	}
}

func TestStatusSaysWhatToDo(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer other.Close()
	guarded := adminPort(t, healthy(), "opensesame-opensesame")
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"--admin " + closed.URL, "no node answers at " + closed.URL + ": nothing listens there; is the node running", 1},
		{"--admin " + other.URL, "is not the admin port of a node", 1},
		{"--admin " + guarded, "asks for a token; give the node's security.admin_token as --token", 1},
		{"--admin " + guarded + " --token wrong-wrong-wrong", "asks for a token, and it is not the one given", 1},
		{"--admin " + guarded + " --token opensesame-opensesame", "", 0},
		{"--admin " + strings.TrimPrefix(guarded, "http://") + " --token opensesame-opensesame", "", 0},
		{"--watch --every 0s", "--every 0s; give a time of at least 100ms", 2},
		{"--watch --every -1s", "--every -1s; give a time of at least 100ms", 2},
		{"node-1", `unknown command "node-1"`, 2},
	} {
		_, stderr, code := execute(t, t.Context(), strings.Fields("status "+c.args)...)
		if code != c.code || !strings.Contains(stderr, c.want) || c.want == "" && stderr != "" || strings.Contains(stderr, "opensesame") {
			t.Errorf("status %s: exit code %d, errors %q; want %d, %q", c.args, code, stderr, c.code, c.want)
		}
	}
}
