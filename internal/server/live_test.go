package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// A member that gossip calls alive and that no message reaches: the others do
// without it as soon as it has missed waves for exclude_after. Its visitors are
// told why they wait, keep their places, and get in by way of the others. When
// the links carry again, it is one of them.
func TestMemberWithDeadLinksStopsNobody(t *testing.T) {
	r := newRig(t, 3)
	a, b, dead := r.three()
	passes := []string{a.enter(""), b.enter(""), dead.enter("")}
	waits := dead.visit("join", "", "")
	if waits.State != "waiting" || waits.Position != 1 {
		t.Fatalf("join = %+v", waits)
	}
	r.phase("the shop is full; one waits at %s", dead.id)

	dead.cut.Store(true)
	r.phase("cut the links of %s", dead.id)
	// Two seconds of exclude_after, the last failed wave, a few more.
	r.until("waves without it, and gossip with it", 6*time.Second, func() bool { return a.sees(3, 2) && b.sees(3, 2) })
	if s := a.cluster(); s.Grade != "primary" {
		t.Errorf("the others go on with grade %s", s.Grade)
	}
	r.until("the visitor told why there", 15*time.Second, func() bool {
		s := dead.visit("checkin", "ticket", waits.Ticket)
		if s.State != "waiting" || s.Ticket == "" || s.Position != 1 || s.Joined != waits.Joined {
			t.Fatalf("check-in at %s = %+v", dead.id, s)
		}
		return s.Paused == "on a side without a quorum" && dead.cluster().Waiting == s.Paused
	})
	if s := a.visit("checkin", "ticket", waits.Ticket); s.State != "waiting" || s.Joined != waits.Joined {
		t.Errorf("check-in at %s = %+v", a.id, s)
	}
	if status := a.browse(http.MethodPost, "/checkout", passes[0]); status != http.StatusOK {
		t.Errorf("checkout at %s: %d", a.id, status)
	}
	a.enter(waits.Ticket)

	dead.mend()
	r.phase("the links carry again")
	r.serving()
	// It knows who has taken the place over: whoever is in is told so, and nobody
	// comes in a second time.
	if s := dead.visit("leave", "ticket", waits.Ticket); s.Status != http.StatusOK || s.State != "admitted" || s.Pass == "" {
		t.Errorf("at %s the old copy of the ticket of one who is in gets %+v", dead.id, s)
	}
	dead.enter("")
	r.withinLimit()
}

// A node whose clock is two seconds off when it starts is left out: it gives out no
// places of its own and takes no part, and the others go on. One of them answers for
// who comes to it. Once its clock is right it is one of them.
func TestNodeWithAWrongClockStopsNobody(t *testing.T) {
	for _, off := range []time.Duration{2 * time.Second, -2 * time.Second} {
		t.Run(off.String(), func(t *testing.T) {
			r := newRig(t, 3)
			a, b, c := r.three()
			wrong := r.start(0, off)
			r.phase("start %s, %v off", wrong.id, off)
			r.until("four members", 10*time.Second, func() bool { return len(a.cluster().Members) == 4 && len(wrong.cluster().Members) == 4 })
			left := func() bool { return a.sees(4, 3) && b.sees(4, 3) && c.sees(4, 3) && wrong.cluster().Waiting != "" }
			r.stays("the others go on without it", 3*time.Second, left)
			side := map[bool]string{true: "2.0 s ahead of", false: "2.0 s behind"}[off > 0]
			want := "this node's clock is " + side + " the others': set it right (chrony, NTP); it is left out until then"
			status, text := wrong.readyz()
			r.phase("it says: %s", text)
			if n := strings.Count(wrong.log.String(), "level=WARN msg=\"not serving\""); status != http.StatusServiceUnavailable || text != want || wrong.cluster().Waiting != want || n != 1 {
				t.Errorf("/readyz: %d %s; want %s, and one line in the log, not %d", status, text, want, n)
			}
			if s := wrong.visit("join", "", ""); s.Status != http.StatusCreated { // another node answers for it
				t.Errorf("join there = %+v", s)
			}
			a.enter("")

			wrong.off.Store(0)
			r.phase("its clock is right")
			r.serving()
			wrong.enter("")
			r.withinLimit()
		})
	}
}

// The clock of the node that runs the waves goes two seconds ahead. It is one
// against two: they go on without it, and it stamps nothing and extends no pass. One of
// them answers for it, and who has a pass keeps it. When its clock is right, and no pass
// lives that it timed, it is back.
func TestCoordinatorWithAWrongClockStopsNobody(t *testing.T) {
	r := newRig(t, 3)
	a, b, c := r.three()
	leads := a
	for _, m := range r.nodes {
		if m.id == a.cluster().Coordinator {
			leads = m
		}
	}
	others := make([]*member, 0, 2)
	for _, m := range []*member{a, b, c} {
		if m != leads {
			others = append(others, m)
		}
	}
	pass := leads.enter("")
	others[0].enter("")

	leads.boot.Add(2_000_000)
	leads.off.Add(2_000_000)
	r.phase("the clocks of %s, which runs the waves, go 2 s ahead", leads.id)
	r.until("waves without it", 10*time.Second, func() bool {
		return others[0].sees(3, 2) && others[1].sees(3, 2) && leads.cluster().Quarantined
	})
	if s := leads.visit("join", "", ""); s.Status != http.StatusCreated {
		t.Errorf("join at %s = %+v", leads.id, s)
	}
	if s := leads.visit("refresh", "pass", pass); s.Status != http.StatusOK {
		t.Errorf("refresh at %s = %+v", leads.id, s)
	}
	others[0].enter("")

	leads.off.Add(-2_000_000)
	r.phase("its wall clock is right; it says: %s", leads.cluster().Waiting)
	r.serving()
	leads.enter("")
	r.withinLimit()
}
