package eviction

import (
	"strings"
	"testing"
	"time"
)

func TestConfigValidate(t *testing.T) {
	tests := []struct {
		name string
		c    Config
		want []string // parts of the error, one per line
	}{
		{"the defaults", Config{}, nil},
		{"a lease shorter than two detections", Config{Lease: 3 * time.Second}, []string{"cluster.lease: 3s is shorter than two detections; make it at least 2 × exclude_after = 4s"}},
		{"detection within a period", Config{Period: 1500 * time.Millisecond}, []string{"cluster.exclude_after"}},
		{"urgent slower than usual", Config{Urgent: time.Second}, []string{"cluster.urgent"}},
		{"urgent as usual", Config{Urgent: Config{}.WithDefaults().Period}, nil},
		{"no tree", Config{Fanout: -1}, []string{"cluster.fanout"}},
		{"one sample", Config{Samples: 1}, []string{"samples 1"}},
		{
			"everything at once",
			Config{Deadline: -1, MaxSkew: -time.Second, Lease: time.Second, Fanout: -3, Exact: -1},
			[]string{"cluster.deadline", "cluster.max_skew: -1s is negative", "two detections", "a quiet room", "cluster.fanout", "exact -1"},
		},
	}
	for _, test := range tests {
		checkErrors(t, test.name, test.c.Validate(), test.want)
	}
}

func TestRoomValidate(t *testing.T) {
	good := Room{Name: "shop", Target: 10, Session: time.Minute}
	tests := []struct {
		name   string
		change func(*Room)
		want   []string
	}{
		{"nothing wrong", func(*Room) {}, nil},
		{"the limits", func(r *Room) { r.Target, r.NewPerMinute, r.Survivor = 0, 0, SurvivorAuto }, nil},
		{"negative target", func(r *Room) { r.Target = -1 }, []string{"total_active_users: -1"}},
		{"the upper limits", func(r *Room) { r.Target, r.NewPerMinute = visitorsMax, visitorsMax }, nil},
		{"target beyond them", func(r *Room) { r.Target = visitorsMax + 1 }, []string{"total_active_users"}},
		{"rate beyond them", func(r *Room) { r.NewPerMinute = visitorsMax + 1 }, []string{"new_users_per_minute"}},
		{"target that overflows sums", func(r *Room) { r.Target = 1 << 62 }, []string{"total_active_users"}},
		{"rate that overflows products", func(r *Room) { r.NewPerMinute = 1 << 62 }, []string{"new_users_per_minute"}},
		{"tickets that expire between check-ins", func(r *Room) { r.TicketTTL, r.Refresh = time.Second, time.Minute }, []string{"ticket_ttl: 1s is shorter"}},
		{"random by deleteMin", func(r *Room) { r.Method, r.Algorithm = Random, ByQPID }, []string{"random needs algorithm cut"}},
		{"unknown method", func(r *Room) { r.Method = 9 }, []string{"unknown"}},
		{
			"everything at once",
			func(r *Room) {
				*r = Room{Target: -1, NewPerMinute: -2, Session: -3, Survivor: -4, QueueMax: -5, OnPartition: 6}
			},
			[]string{"name: empty", "total_active_users", "new_users_per_minute", "session_duration", "survivor_after", "queue_max", "on_partition"},
		},
	}
	for _, test := range tests {
		r := good
		test.change(&r)
		checkErrors(t, test.name, r.Validate(), test.want)
	}
}

func checkErrors(t *testing.T, name string, err error, want []string) {
	t.Helper()
	if (err == nil) != (want == nil) {
		t.Errorf("%s: %v, want errors %q", name, err, want)
		return
	}
	if err == nil {
		return
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Errorf("%s: %d errors, want %d:\n%v", name, len(lines), len(want), err)
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: no error says %q:\n%v", name, part, err)
		}
	}
}
