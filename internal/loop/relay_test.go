package loop_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// part cuts the link between two nodes, one way or both.
func (w *wires) part(from, to *loop.Loop, both bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, b := from.Snapshot().Status.Self, to.Snapshot().Status.Self
	w.cut[[2]eviction.Member{a, b}] = true
	w.cut[[2]eviction.Member{b, a}] = both
}

// The coordinator and a third node cannot hear each other, so that node is left out. It
// reaches the second one, which answers for it: who waits there is called in their turn,
// gets in, and stays in; and who comes there has a place.
func TestANodeThatIsLeftOutAsksAnotherForItsVisitors(t *testing.T) {
	for _, both := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w, l := start(t, 3, func(c *loop.Config) {
				c.Node.Rooms = []eviction.Room{{Name: "shop", Target: 1, Session: 20 * time.Second, QueueAll: true}}
			})
			ask := func(at int, q ticket.Request) ticket.Answer {
				t.Helper()
				a, err := l[at].Do(t.Context(), q)
				if err != nil {
					t.Fatalf("%v at %d: %v", q.Op, at, err)
				}
				return a
			}
			checkIn := func(at int, a ticket.Answer) ticket.Answer {
				t.Helper()
				return ask(at, ticket.Request{Op: ticket.CheckIn, Room: "shop", Ticket: a.Ticket})
			}
			leave := func(at int, a ticket.Answer) ticket.Answer {
				t.Helper()
				return ask(at, ticket.Request{Op: ticket.Leave, Room: "shop", Ticket: a.Ticket})
			}
			time.Sleep(2 * time.Second)
			inside := join(t, l[0], 1)
			for inside.State == ticket.Waiting {
				time.Sleep(100 * time.Millisecond)
				inside = checkIn(0, inside)
			}
			if inside.State == ticket.Called {
				inside = leave(0, inside)
			}
			first := join(t, l[2], 2)
			time.Sleep(500 * time.Millisecond)
			next := join(t, l[1], 3)

			w.part(l[0], l[2], both)
			began := time.Now()
			var late ticket.Answer
			for first.State != ticket.Called && time.Since(began) < 10*time.Second {
				time.Sleep(250 * time.Millisecond)
				first = checkIn(2, first)
				if next = checkIn(1, next); next.State != ticket.Waiting {
					t.Fatalf("the next one is %v", next.State)
				}
				if since := time.Since(began); since > 4500*time.Millisecond && late.Ticket.ID == (qpid.ItemID{}) {
					late = join(t, l[2], 4)
					ask(0, ticket.Request{Op: ticket.End, Room: "shop", Pass: inside.Pass})
				}
			}
			if first.State != ticket.Called || first.Ticket.Home != l[1].Snapshot().Status.Self && first.Ticket.Home != l[0].Snapshot().Status.Self {
				t.Fatalf("both ways %t: the first is %+v, want it called at another node", both, first)
			}
			if late.Position != 3 {
				t.Errorf("who came last is at %d, want 3", late.Position)
			}
			if waited := time.Since(began); waited > 7*time.Second {
				t.Errorf("called after %v", waited)
			}
			first = leave(2, first)
			for range 3 {
				time.Sleep(5 * time.Second)
				first = ask(2, ticket.Request{Op: ticket.Refresh, Room: "shop", Pass: first.Pass})
			}
			if left := first.Pass.Expires - time.Now().UnixMicro(); left < (19 * time.Second).Microseconds() {
				t.Errorf("the pass is good for %v more", time.Duration(left)*time.Microsecond)
			}
		})
	}
}

// Where nobody has a quorum nobody answers for others, and asking costs a request now and
// then, of which each is answered as before.
func TestASideWithoutAQuorumIsAskedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := start(t, 3, func(c *loop.Config) { c.Node.Rooms[0].Target = 0 })
		time.Sleep(2 * time.Second)
		a := join(t, l[1], 1)
		w.mu.Lock()
		w.down[l[0].Snapshot().Status.Self], w.down[l[2].Snapshot().Status.Self] = true, true
		w.mu.Unlock()
		time.Sleep(15 * time.Second)
		for range 20 {
			b, err := l[1].Do(t.Context(), ticket.Request{Op: ticket.CheckIn, Room: "shop", Ticket: a.Ticket})
			if err != nil || b.State != ticket.Waiting || b.Paused != ticket.PausedSplit {
				t.Fatalf("%+v, %v", b, err)
			}
		}
	})
}

func TestRelaysKeepToWhoAnswers(t *testing.T) {
	member := func(name string) eviction.Member { return eviction.Member{Name: qpid.NodeID(name), Boot: 1} }
	self, b, c := member("a"), member("b"), member("c")
	const exclude, at = 2_000_000, 2_000_001
	var r node.Relays
	r.See(1, eviction.NewView([]eviction.Peer{{Member: self, Start: 1}, {Member: b, Start: 2}, {Member: c, Start: 3}}))
	if m, ok := r.Pick(at-1, exclude, self); ok {
		t.Errorf("%v is asked as soon as it is heard of", m)
	}
	first, ok := r.Pick(at+500_000, exclude, self)
	if !ok || first == self {
		t.Fatalf("Pick = %v, %t", first, ok)
	}
	if m, ok := r.Pick(at+999_999, exclude, self); ok {
		t.Errorf("%v is tried before the time", m)
	}
	for _, c := range []struct{ at, told, want time.Duration }{{0, 3 * time.Second, time.Second}, {0, 400 * time.Millisecond, 400 * time.Millisecond}, {6 * time.Second, 3 * time.Second, 3 * time.Second}} {
		if got := r.Refresh(at-1+c.at.Microseconds(), c.told); got != c.want {
			t.Errorf("after a search of %v who was to ask in %v is told %v, want %v", c.at, c.told, got, c.want)
		}
	}
	r.Answered(first, false)
	second, ok := r.Pick(at+1_000_000, exclude, self)
	if !ok || second == self || second == first {
		t.Fatalf("%v is tried after %v", second, first)
	}
	r.Answered(second, true)
	for range 3 {
		if m, ok := r.Pick(at+1_000_001, exclude, self); !ok || m != second {
			t.Errorf("Pick = %v, want %v, which answers", m, second)
		}
	}
	r.See(at+1_000_002, eviction.NewView([]eviction.Peer{{Member: self, Start: 1}, {Member: first, Start: 2}}))
	if m, _ := r.Pick(at+2e6, exclude, self); m != first {
		t.Errorf("%v is asked when only %v is there", m, first)
	}
	r.See(at+2e6, nil)
	if m, ok := r.Pick(at+9e6, exclude, self); ok {
		t.Errorf("%v is asked where nobody is", m)
	}
}
