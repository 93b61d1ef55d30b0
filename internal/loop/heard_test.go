package loop_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// crowded has two people on the site and a third who waits at node 2.
func crowded(t *testing.T, l []*loop.Loop) (in []ticket.Answer, waits ticket.Answer) {
	t.Helper()
	for id := byte(1); id <= 2; id++ {
		a := join(t, l[0], id)
		for a.State != ticket.Admitted {
			time.Sleep(100 * time.Millisecond)
			if next, err := l[0].Do(t.Context(), ticket.Request{Op: ticket.Leave, Room: "shop", Ticket: a.Ticket}); err == nil {
				a = next
			}
		}
		in = append(in, a)
	}
	if waits = join(t, l[2], 3); waits.State != ticket.Waiting || waits.Ticket.Home != l[2].Snapshot().Status.Self {
		t.Fatalf("a third person with room for two: %+v", waits)
	}
	return in, waits
}

func checkIn(t *testing.T, l *loop.Loop, held ticket.Ticket) ticket.Answer {
	t.Helper()
	a, err := l.Do(t.Context(), ticket.Request{Op: ticket.CheckIn, Room: "shop", Ticket: held})
	if err != nil {
		t.Fatalf("check-in: %v", err)
	}
	return a
}

// wokenWithin fails the test if a watch hears of nothing, or too late.
func wokenWithin(t *testing.T, woken <-chan struct{}, within time.Duration, of string) {
	t.Helper()
	began := time.Now()
	select {
	case <-woken:
		t.Logf("%s is heard of after %v", of, time.Since(began))
	case <-time.After(within):
		t.Fatalf("%s is not heard of within %v", of, within)
	}
}

// Whoever watches at another node than that of the place hears of the call as soon as
// a check-in there has said so, and again of what comes after it.
func TestACallIsHeardAtTheNodeOfTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l := start(t, 3, nil)
		time.Sleep(2 * time.Second)
		in, waits := crowded(t, l)
		woken, done := l[1].Called("shop", qpid.ItemID{3})
		defer done()
		a := checkIn(t, l[1], waits.Ticket)
		if _, err := l[0].Do(t.Context(), ticket.Request{Op: ticket.End, Room: "shop", Pass: in[0].Pass}); err != nil {
			t.Fatal(err)
		}
		wokenWithin(t, woken, 300*time.Millisecond, "the call")
		if a = checkIn(t, l[1], a.Ticket); a.State != ticket.Called {
			t.Fatalf("check-in after that: %+v", a)
		}
		if _, err := l[0].Do(t.Context(), ticket.Request{Op: ticket.Leave, Room: "shop", Ticket: a.Ticket}); err != nil {
			t.Fatal(err)
		}
		wokenWithin(t, woken, 100*time.Millisecond, "going in elsewhere")
		if a = checkIn(t, l[1], a.Ticket); a.State != ticket.Admitted {
			t.Errorf("check-in after that: %+v", a)
		}
		for i := range l {
			if n := l[i].Listened(); n != 0 {
				t.Errorf("node %d has %d tickets to tell of, of somebody who is in", i, n)
			}
		}
	})
}

// A place that goes to another node when its own leaves is looked for there at once,
// and the call is heard of as before.
func TestAWatchFollowsThePlaceOfANodeThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l := start(t, 3, nil)
		time.Sleep(2 * time.Second)
		in, waits := crowded(t, l)
		woken, done := l[1].Called("shop", qpid.ItemID{3})
		defer done()
		a := checkIn(t, l[1], waits.Ticket)
		if err := l[2].Goodbye(); err != nil {
			t.Fatal(err)
		}
		wokenWithin(t, woken, time.Second, "the leave")
		if a = checkIn(t, l[1], a.Ticket); a.Ticket.Home == waits.Ticket.Home {
			t.Fatalf("the place is where it was: %+v", a)
		}
		if _, err := l[0].Do(t.Context(), ticket.Request{Op: ticket.End, Room: "shop", Pass: in[0].Pass}); err != nil {
			t.Fatal(err)
		}
		ended := time.Now()
		for a.State == ticket.Waiting { // two nodes may tell of the leave: the one that goes, and the next home
			wokenWithin(t, woken, time.Second-time.Since(ended), "the call")
			a = checkIn(t, l[1], a.Ticket)
		}
		if a.State != ticket.Called {
			t.Errorf("check-in after that: %+v", a)
		}
	})
}

// deaf drops hints and counts them.
type deaf struct {
	loop.Links
	hints *atomic.Int64
}

func (d deaf) Hint(eviction.Member, string, qpid.ItemID) { d.hints.Add(1) }

// A hint that is lost costs the time until the next check-in, and nothing else. Where
// nobody watches none is sent and nothing is kept.
func TestALostHintCostsThePollOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hints atomic.Int64
		_, l := start(t, 3, func(c *loop.Config) { c.Links = deaf{c.Links, &hints} })
		time.Sleep(2 * time.Second)
		in, waits := crowded(t, l)
		a := checkIn(t, l[1], waits.Ticket)
		if n := l[2].Listened(); n != 0 {
			t.Errorf("%d tickets to tell of while nobody watches", n)
		}
		_, done := l[1].Called("shop", qpid.ItemID{3})
		defer done()
		a = checkIn(t, l[1], a.Ticket)
		if n := l[2].Listened(); n != 1 || hints.Load() != 0 {
			t.Errorf("%d tickets to tell of while one is watched, %d hints", n, hints.Load())
		}
		if _, err := l[0].Do(t.Context(), ticket.Request{Op: ticket.End, Room: "shop", Pass: in[0].Pass}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(a.Refresh)
		if a = checkIn(t, l[1], a.Ticket); a.State != ticket.Called || hints.Load() != 1 {
			t.Errorf("after a lost hint: %+v, %d hints", a, hints.Load())
		}
	})
}

// What happens while a check-in is answered is told of, too.
func TestAListenerIsNotedBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var home atomic.Pointer[loop.Loop]
		var noted atomic.Int64
		_, l := start(t, 3, func(c *loop.Config) {
			c.Told = func(*ticket.Answer) {
				if l := home.Load(); l != nil {
					noted.Store(int64(l.Listened()))
				}
			}
		})
		time.Sleep(2 * time.Second)
		_, waits := crowded(t, l)
		_, done := l[1].Called("shop", qpid.ItemID{3})
		defer done()
		home.Store(l[2])
		if checkIn(t, l[1], waits.Ticket); noted.Load() != 1 {
			t.Errorf("%d tickets to tell of when the answer was given, want 1", noted.Load())
		}
	})
}
