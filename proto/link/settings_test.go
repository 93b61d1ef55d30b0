package link_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/link"
)

// with returns an end that has settings.
func (w *wires) with(t *testing.T, name, terms string) *end {
	t.Helper()
	e := w.start(t, member(name, 1), nil)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.terms, e.ring = terms, []byte(name)
	return e
}

// Nodes with other settings are refused in both directions: no message gets
// through, no keys do, and each log has the words of the other side, once for
// each link.
func TestNodesWithOtherSettingsGetNothingThrough(t *testing.T) {
	bubble(t, func(t *testing.T, w *wires) {
		a, b, other := w.with(t, "a", "5s"), w.with(t, "b", "5s"), w.with(t, "x", "10s")
		meet(a, b, other)
		for range 10 {
			time.Sleep(time.Second)
			a.urge(b, "good")
			a.urge(other, "bad")
			other.urge(a, "bad")
		}
		soon()
		if n := len(b.rooms()); n != 10 || len(a.rooms()) != 0 || len(other.rooms()) != 0 {
			t.Errorf("%d, %d and %d messages came, want 10 at b alone", n, len(a.rooms()), len(other.rooms()))
		}
		for _, pair := range [][2]*end{{a, other}, {other, a}} {
			if s := pair[0].about(t, pair[1].self); s.Up || s.Receiving || s.Dropped != 10 {
				t.Errorf("%v about %v: %+v; want no link", pair[0].self, pair[1].self, s)
			}
		}
		if a.keys() != "ab" || other.keys() != "x" {
			t.Errorf("keys %q and %q went round, want those of a and b", a.keys(), other.keys())
		}
		a.stop()
		other.stop()
		for _, told := range []struct {
			by    *end
			text  string
			times int
		}{
			{a, "the lease is 10s here and 5s at a (FailedPrecondition)", 1},
			{other, "the lease is 5s here and 10s at x (FailedPrecondition)", 2},
		} {
			if n := strings.Count(told.by.log.String(), told.text); n != told.times {
				t.Errorf("the log of %v has %q %d times, want %d:\n%s", told.by.self, told.text, n, told.times, told.by.log)
			}
		}
	})
}

// Of two nodes one has no settings, as of an older version: that is different.
func TestNodeWithoutSettingsIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *wires) {
		e := w.with(t, "b", "5s")
		to := &peerv1.Member{Name: "b", Boot: 1}
		if err := say(t, w.raw(t, e), hello(&peerv1.Member{Name: "x", Boot: 9}, to), frame(1, "p")); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("the stream ended with %v, want FailedPrecondition", err)
		}
		synctest.Wait()
		if len(e.rooms()) != 0 || len(e.Stats()) != 0 {
			t.Errorf("delivered %v, remembered %+v", e.rooms(), e.Stats())
		}
	})
}

// A node that takes over the others' settings says so in a new Hello, also to
// those with whom it had agreed before.
func TestSettingsThatChangeTakeForceOnAllLinks(t *testing.T) {
	bubble(t, func(t *testing.T, w *wires) {
		first, second, a := w.with(t, "x", "10s"), w.with(t, "y", "10s"), w.with(t, "a", "5s")
		first.adopts = true
		meet(first, second)
		soon()
		if !first.about(t, second.self).Up || !first.about(t, second.self).Receiving {
			t.Fatal("no link between equals")
		}
		meet(first, a)
		meet(first, second, a)
		time.Sleep(3 * time.Second)
		a.urge(first, "to x")
		first.urge(a, "from x")
		second.urge(first, "from y")
		soon()
		if diff := cmp.Diff([]string{"to x"}, first.rooms()); diff != "" {
			t.Errorf("x, which has taken over the settings of a, got (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"from x"}, a.rooms()); diff != "" {
			t.Errorf("a got (-want +got):\n%s", diff)
		}
		if s := first.about(t, second.self); s.Up || s.Receiving {
			t.Errorf("x and y still have the link on which they agreed before: %+v", s)
		}
	})
}

// Offset goes by the wall clock that the links were given.
func TestOffsetIsThatOfTheNodesClock(t *testing.T) {
	bubble(t, func(t *testing.T, w *wires) {
		late := func(c *link.Config) { c.Wall = func() time.Time { return time.Now().Add(-2 * time.Second) } }
		a, b := w.start(t, member("a", 1), nil), w.start(t, member("b", 1), late)
		meet(a, b)
		time.Sleep(3 * time.Second)
		if x, y := a.about(t, b.self).Offset, b.about(t, a.self).Offset; x != -2*time.Second || y != 2*time.Second {
			t.Errorf("offsets %v and %v, want -2s and 2s", x, y)
		}
	})
}
