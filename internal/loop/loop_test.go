package loop_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// wires connects loops in memory. A loop that is down gets nothing.
type wires struct {
	mu   sync.Mutex
	to   map[eviction.Member]*loop.Loop
	down map[eviction.Member]bool
	cut  map[[2]eviction.Member]bool // from one to the other
	sent int
	stop func() // ends all loops and waits for them
}

func (w *wires) at(m eviction.Member) *loop.Loop {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down[m] {
		return nil
	}
	return w.to[m]
}

func (w *wires) Send(m eviction.Message) {
	w.mu.Lock()
	w.sent++
	w.mu.Unlock()
	if l := w.at(m.To); l != nil && w.at(m.From) != nil && !w.isCut(m.From, m.To) {
		l.Deliver(m)
	}
}

func (w *wires) isCut(from, to eviction.Member) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut[[2]eviction.Member{from, to}]
}

// of is w as one node has it, whose own requests stop where a link is cut.
func (w *wires) of(self eviction.Member) loop.Links { return end{w, self} }

type end struct {
	*wires
	self eviction.Member
}

func (e end) Forward(ctx context.Context, to eviction.Member, q ticket.Request) (ticket.Answer, error) {
	if e.isCut(e.self, to) || e.isCut(to, e.self) {
		return ticket.Answer{}, ticket.ErrUnavailable
	}
	return e.wires.Forward(ctx, to, q)
}

func (w *wires) Forward(ctx context.Context, to eviction.Member, q ticket.Request) (ticket.Answer, error) {
	switch l := w.at(to); {
	case l == nil:
		return ticket.Answer{}, ticket.ErrUnavailable
	case q.Relay != (eviction.Member{}):
		return l.Relay(ctx, q)
	default:
		return l.Local(ctx, q)
	}
}

func (w *wires) Hint(to eviction.Member, room string, id qpid.ItemID) {
	if l := w.at(to); l != nil {
		l.Hint(room, id)
	}
}

// start runs a cluster of loops in a bubble of virtual time until the test ends.
func start(t *testing.T, n int, change func(*loop.Config)) (*wires, []*loop.Loop) {
	w := &wires{to: map[eviction.Member]*loop.Loop{}, down: map[eviction.Member]bool{}, cut: map[[2]eviction.Member]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	var all []*loop.Loop
	var view []eviction.Peer
	var running sync.WaitGroup
	began := time.Now()
	for i := range n {
		self := eviction.Peer{Member: eviction.Member{Name: qpid.NodeID(rune('a' + i)), Boot: 1}, Start: time.Now().UnixMicro() + int64(i)}
		c := loop.Config{
			Node: node.Config{
				Self: self, Expect: n, Joins: n > 1,
				Rooms: []eviction.Room{{Name: "shop", Target: 2, Session: time.Minute}},
			},
			Links: w.of(self.Member), Logger: slog.New(slog.DiscardHandler),
			Clock: func() eviction.Time {
				return eviction.Time{Boot: time.Since(began).Microseconds() + 1e9, Wall: time.Now().UnixMicro()}
			},
		}
		if change != nil {
			change(&c)
		}
		l, err := loop.New(c)
		if err != nil {
			t.Fatal(err)
		}
		w.to[self.Member] = l
		all, view = append(all, l), append(view, self)
		running.Go(func() { _ = l.Run(ctx) })
	}
	for _, l := range all {
		l.SetView(eviction.NewView(view))
	}
	w.stop = func() { cancel(); running.Wait() }
	t.Cleanup(w.stop)
	return w, all
}

func join(t *testing.T, l *loop.Loop, id byte) ticket.Answer {
	t.Helper()
	a, err := l.Do(t.Context(), ticket.Request{Op: ticket.Join, Room: "shop", ID: qpid.ItemID{id}})
	if err != nil {
		t.Fatalf("join: %v", err)
	}
	return a
}

func TestVisitorWaitsIsCalledAndGetsInAtAnyNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l := start(t, 3, nil)
		time.Sleep(2 * time.Second)
		first, second := join(t, l[0], 1), join(t, l[1], 2)
		for a := first; a.State != ticket.Admitted; a = first {
			time.Sleep(100 * time.Millisecond)
			first, _ = l[0].Do(t.Context(), ticket.Request{Op: ticket.Leave, Room: "shop", Ticket: a.Ticket})
		}
		for a := second; a.State != ticket.Admitted; a = second {
			time.Sleep(100 * time.Millisecond)
			second, _ = l[2].Do(t.Context(), ticket.Request{Op: ticket.Leave, Room: "shop", Ticket: a.Ticket})
		}
		third := join(t, l[2], 3)
		if third.State != ticket.Waiting {
			t.Fatalf("a third person with room for two: %v", third.State)
		}
		woken, done := l[2].Called("shop", qpid.ItemID{3})
		defer done()
		if _, err := l[0].Do(t.Context(), ticket.Request{Op: ticket.End, Room: "shop", Pass: first.Pass}); err != nil {
			t.Fatalf("end: %v", err)
		}
		<-woken // or the bubble deadlocks
		a, err := l[1].Do(t.Context(), ticket.Request{Op: ticket.Leave, Room: "shop", Ticket: third.Ticket})
		if err != nil || a.State != ticket.Admitted {
			t.Errorf("leave elsewhere after the call: %v, %v", a.State, err)
		}
		time.Sleep(time.Second)
		if s := l[1].Snapshot(); s.Status.Grade != eviction.Unanimous || s.Rooms[0].Active != 2 {
			t.Errorf("snapshot: %v with %d on the site, want unanimous with 2", s.Status.Grade, s.Rooms[0].Active)
		}
	})
}

func TestVisitorKeepsTicketAndPassWhileTheirNodeDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := start(t, 3, nil)
		time.Sleep(2 * time.Second)
		var pass ticket.Pass
		var waiting ticket.Ticket
		held := []ticket.Answer{join(t, l[2], 1), join(t, l[2], 2), join(t, l[2], 3)}
		time.Sleep(2 * time.Second)
		for _, a := range held { // two are called, the third waits
			if a.State != ticket.Admitted {
				a, _ = l[2].Do(t.Context(), ticket.Request{Op: ticket.Leave, Room: "shop", Ticket: a.Ticket})
			}
			if a.State == ticket.Admitted {
				pass = a.Pass
			} else {
				waiting = a.Ticket
			}
		}
		w.mu.Lock()
		w.down[pass.Home.Member] = true
		w.mu.Unlock()
		ask := func(op ticket.Op) (ticket.Answer, error) {
			return l[0].Do(t.Context(), ticket.Request{Op: op, Room: "shop", Ticket: waiting, Pass: pass})
		}
		for _, op := range []ticket.Op{ticket.Visit, ticket.Refresh} {
			if a, err := ask(op); err != nil || a.Pass != pass {
				t.Errorf("%v: %v, %v; want the pass honoured", op, a, err)
			}
		}
		if a, err := ask(ticket.CheckIn); err != nil || a.Ticket != waiting || a.Paused == "" {
			t.Errorf("check-in: %+v, %v; want the same ticket", a, err)
		}
		for _, op := range []ticket.Op{ticket.Leave, ticket.Abandon, ticket.End} {
			if _, err := ask(op); !errors.Is(err, ticket.ErrUnavailable) {
				t.Errorf("%v: %v; want unavailable, for it was not done", op, err)
			}
		}
	})
}

// elsewhere answers forwarded requests with another node to ask, by the ticket that
// comes along.
type elsewhere struct {
	loop.Links
	asked []ticket.Request
	hops  int // until there is an answer
}

func (e *elsewhere) Forward(_ context.Context, _ eviction.Member, q ticket.Request) (ticket.Answer, error) {
	e.asked = append(e.asked, q)
	q.Ticket.Gen++
	if len(e.asked) < e.hops {
		return ticket.Answer{Forward: eviction.Member{Name: "z"}, Ticket: q.Ticket}, nil
	}
	return ticket.Answer{State: ticket.Waiting, Ticket: q.Ticket, Position: 7}, nil
}

// A place that moved on is asked for where each of its homes says, by the ticket
// that each of them gives, and not for ever.
func TestARequestGoesWhereThePlaceWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &elsewhere{}
		_, l := start(t, 2, func(c *loop.Config) { e.Links = c.Links; c.Links = e })
		time.Sleep(2 * time.Second)
		held := ticket.Ticket{Room: "shop", ID: qpid.ItemID{1}, Home: l[1].Snapshot().Status.Self}
		for _, hops := range []int{1, 2, ticket.HopsMax, ticket.HopsMax + 1} {
			e.asked, e.hops = nil, hops
			a, err := l[0].Do(t.Context(), ticket.Request{Op: ticket.CheckIn, Room: "shop", Ticket: held})
			most := min(hops, ticket.HopsMax)
			if err != nil || len(e.asked) != most || a.State != ticket.Waiting || (a.Position == 7) != (hops == most) {
				t.Errorf("%d homes: %d were asked, %+v, %v", hops, len(e.asked), a, err)
			}
			for i, q := range e.asked {
				if q.Ticket.Gen != uint32(i) {
					t.Errorf("home %d was asked with generation %d", i, q.Ticket.Gen)
				}
			}
		}
	})
}

func TestNothingIsSentBeforeTheRecordIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken sync.Mutex // held: the disk is full
		broken.Lock()
		save := func(*eviction.Record) error {
			if broken.TryLock() {
				broken.Unlock()
				return nil
			}
			return errors.New("disk full")
		}
		_, l := start(t, 3, func(c *loop.Config) { c.Node.Disk, c.Save = true, save })
		time.Sleep(3 * time.Second)
		for i := range l {
			if s := l[i].Snapshot(); s.Status.Grade >= eviction.Primary {
				t.Fatalf("node %d is %v while no node can write", i, s.Status.Grade)
			}
		}
		broken.Unlock()
		time.Sleep(3 * time.Second)
		if s := l[0].Snapshot(); s.Status.Grade != eviction.Unanimous {
			t.Errorf("%v after the disk is back, want unanimous", s.Status.Grade)
		}
	})
}

func TestOverloadIsTurnedAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		_, l := start(t, 1, func(c *loop.Config) {
			c.Messages, c.Requests = 4, 4
			c.Log = func(node.Admission) { <-stuck }
		})
		time.Sleep(2 * time.Second)
		answers := make(chan error, 16)
		for i := range cap(answers) {
			go func() {
				_, err := l[0].Do(t.Context(), ticket.Request{Op: ticket.Join, Room: "shop", ID: qpid.ItemID{byte(i + 1)}})
				answers <- err
			}()
			synctest.Wait()
		}
		for range 10 {
			l[0].Deliver(eviction.Message{Body: &eviction.Goodbye{}})
		}
		close(stuck)
		busy := 0
		for range cap(answers) {
			switch err := <-answers; {
			case errors.Is(err, ticket.ErrBusy):
				busy++
			case err != nil:
				t.Errorf("join: %v", err)
			}
		}
		if messages, requests := l[0].Shed(); busy == 0 || messages == 0 || int(requests) != busy {
			t.Errorf("shed %d messages and %d requests, %d were told so", messages, requests, busy)
		}
	})
}

func TestStoppedLoopAnswersUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := start(t, 1, nil)
		w.stop()
		if _, err := l[0].Do(t.Context(), ticket.Request{Op: ticket.Join, Room: "shop"}); !errors.Is(err, ticket.ErrUnavailable) {
			t.Errorf("join: %v, want unavailable", err)
		}
		if err := l[0].Goodbye(); !errors.Is(err, ticket.ErrUnavailable) {
			t.Errorf("goodbye: %v, want unavailable", err)
		}
	})
}

// cable loses messages while it is cut.
type cable struct {
	loop.Links
	cut *atomic.Bool
}

func (c cable) Send(m eviction.Message) {
	if !c.cut.Load() {
		c.Links.Send(m)
	}
}

// A loop that waits for others takes other settings, one that was in a wave does
// not.
func TestAdoptBeforeTheFirstWaveOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := eviction.Config{Lease: 5 * time.Second}
		var cut atomic.Bool
		cut.Store(true) // before the first of them sends anything
		_, l := start(t, 2, func(c *loop.Config) { c.Links = cable{c.Links, &cut} })
		time.Sleep(2 * time.Second)
		for _, one := range l {
			if err := one.Adopt(settings); err != nil {
				t.Fatal(err)
			}
		}
		cut.Store(false)
		time.Sleep(3 * time.Second)
		for _, one := range l {
			s := one.Snapshot()
			if left := time.Duration(s.Status.LeaseUntil-s.At.Boot) * time.Microsecond; left <= 0 || left > settings.Lease {
				t.Errorf("%v has a lease of %v, want at most %v", s.Status.Self, left, settings.Lease)
			}
			if err := one.Adopt(eviction.Config{}); !errors.Is(err, eviction.ErrSettled) {
				t.Errorf("%v after a wave: %v, want ErrSettled", s.Status.Self, err)
			}
		}
	})
}

// A node that has to wait for the processor between two readings of its clocks, or while
// it does what they lead to, is no reason for its pass time to stand still: items of a queue
// that are put at two nodes one after the other are in line by it.
func TestPassTimeIsRightWhereTheNodeIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Bool
		_, all := start(t, 1, func(c *loop.Config) {
			read := c.Clock
			c.Clock = func() eviction.Time {
				now := read()
				if slow.Load() {
					time.Sleep(20 * time.Millisecond)
				}
				return now
			}
		})
		for range 100 {
			slow.Store(true)
			time.Sleep(33 * time.Millisecond)
			slow.Store(false)
			if got, want := all[0].PassTime(), time.Now().UnixMicro(); got != want {
				t.Fatalf("pass time is %d µs behind", want-got)
			}
		}
	})
}
