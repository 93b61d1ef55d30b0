package broker_test

import (
	"fmt"
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// Of the queue "few" two items may be leased at once, for five seconds at most.
const (
	fewMany = 2
	fewMax  = 5_000_000
	fresh   = 600_000
)

func settle(c *cluster, at int, op pqueue.Op, p broker.Part, lasts int64) broker.Answer {
	c.t.Helper()
	h := broker.HandleOf(p.Kind, p.Node, p.Result.Number)
	return c.do(at, broker.Call{Handle: h, Command: pqueue.Command{Op: op, Queue: "few", Lease: p.Result.Lease, For: lasts}})
}

func wantOK(t *testing.T, a broker.Answer) {
	t.Helper()
	if a.Result.Code != pqueue.OK {
		t.Fatalf("went %v: %+v", a.Result.Code, a)
	}
}

func TestASlotThatIsFreedIsUsedAtOnceAnywhere(t *testing.T) {
	c := newClusterOf(&cluster{t: t, few: true}, 4)
	for i := range 24 {
		c.insert(0, "few", fmt.Sprintf("i%02d@n%d", i, i*7%4+1), 0)
		c.now.Clock++
	}
	var held []broker.Part
	for len(held) < fewMany {
		held = append(held, c.take(len(held), broker.Take{Queue: "few", Max: 1, Wait: 1_000_000, For: fewMax}).Parts...)
	}
	if a := c.take(3, broker.Take{Queue: "few", Max: 5, For: fewMax}); len(a.Parts) != 0 || a.Result.Code != pqueue.Empty {
		t.Fatalf("with %d leased, another take gets %+v", fewMany, a)
	}
	for i := range 12 {
		at := i % 4
		id := c.begin(at, broker.Take{Queue: "few", Max: 1, Wait: 4_000_000, For: fewMax})
		c.pass(300_000)
		if a, over := c.nodes[at].answers[id]; over {
			t.Fatalf("with %d leased, a take that waits gets %+v", fewMany, a)
		}
		switch i % 3 {
		case 0:
			wantOK(t, settle(c, (at+1)%4, pqueue.OpAck, held[0], 0))
		case 1:
			wantOK(t, settle(c, (at+2)%4, pqueue.OpNack, held[0], 3_000_000))
		default:
			wantOK(t, c.do(at, broker.Call{Command: pqueue.Command{Op: pqueue.OpCancel, Queue: "few", ID: held[0].Result.Items[0].ID}}))
		}
		c.pass(50_000)
		a, over := c.nodes[at].answers[id]
		if !over || len(a.Parts) != 1 {
			t.Fatalf("50 ms after slot %d was freed, a take that waits for it has %+v", i, a)
		}
		held = append(held[1:], a.Parts...)
	}
}

// alone has a node that is cut off carry out a call by itself.
func alone(c *cluster, h *host, call broker.Call) (a broker.Answer) {
	c.t.Helper()
	c.next++
	call.ID = c.next
	h.b.Tick(c.now)
	h.b.Do(c.now, call)
	for _, got := range h.b.Ready().Answers {
		if got.ID == call.ID {
			return got
		}
	}
	c.t.Fatalf("%+v is not answered", call)
	return a
}

func TestALostNodeKeepsItsSlotsUntilItsLeasesHaveEnded(t *testing.T) {
	c := newClusterOf(&cluster{t: t, few: true}, 4)
	c.votes = []qpid.NodeID{"n1", "n2", "n3", "n4"}
	for i := range 200 {
		c.insert(0, "few", fmt.Sprintf("i%03d@n%d", i, min(i, 3)+1), 0)
		c.now.Clock++
	}
	first := c.take(0, broker.Take{Queue: "few", Max: 1, For: fewMax}).Parts
	if len(first) != 1 || first[0].Node != "n1" {
		t.Fatalf("the first item is not from n1: %+v", first)
	}
	c.pass(1_000_000)
	lost, until := c.now.Boot, int64(0)
	c.nodes[0].down = true // for the others; it goes on by itself
	extend := broker.Call{
		Handle:  broker.HandleOf(broker.Memory, "n1", first[0].Result.Number),
		Command: pqueue.Command{Op: pqueue.OpExtend, Queue: "few", Lease: first[0].Result.Lease, For: fewMax},
	}
	for c.now.Boot < lost+20_000_000 {
		if c.now.Boot < until || until == 0 {
			if a := alone(c, c.nodes[0], extend); a.Result.Code == pqueue.OK {
				until = c.now.Boot + a.Result.Until - c.now.Clock
			}
		}
		a := c.take(3, broker.Take{Queue: "few", Max: 3, For: 1_000_000, Wait: 1_000_000})
		switch n := len(a.Parts); {
		case n == fewMany && c.now.Boot < until:
			t.Fatalf("%d items are leased at the others, %d µs before the lease at the lost node ends", n, until-c.now.Boot)
		case n == fewMany && c.now.Boot > lost+fewMax+3*fresh+2_000_000:
			t.Fatalf("the slot of the lost node is free only after %d µs", c.now.Boot-lost)
		case n == fewMany:
			if until < lost+fewMax-500_000 {
				t.Fatalf("the lost node could extend its lease for %d µs only", until-lost)
			}
			return
		case n != 1:
			t.Fatalf("%d µs after the loss the other slot brings %+v", c.now.Boot-lost, a)
		}
		wantOK(t, settle(c, 3, pqueue.OpAck, a.Parts[0], 0))
		c.pass(100_000)
	}
	t.Fatal("the slot of the lost node is never free")
}

func TestARootThatIsLostAndComesBackBringsItsSlots(t *testing.T) {
	for _, back := range []bool{true, false} {
		c := newClusterOf(&cluster{t: t, few: true}, 3)
		c.votes = []qpid.NodeID{"n1", "n2", "n3"}
		c.insert(0, "few", "a@n1", 0) // so n1 is the root, and has all slots
		c.pass(100_000)
		lost := c.now.Boot
		c.nodes[0].down = true
		c.pass(1_000_000)
		c.insert(1, "few", "b@n2", 0)
		id := c.begin(2, broker.Take{Queue: "few", Max: 1, Wait: 20_000_000, For: 1_000_000})
		c.pass(3_000_000)
		if a, over := c.nodes[2].answers[id]; over {
			t.Fatalf("with all slots at a node that is gone: %+v", a)
		}
		most := lost + fewMax + 3*int64(fresh) + 1_500_000
		if back {
			c.nodes[0].down = false
			most = c.now.Boot + 1_500_000
		}
		for c.now.Boot < most && len(c.nodes[2].answers[id].Parts) == 0 {
			c.pass(broker.TickEvery)
		}
		if a := c.nodes[2].answers[id]; len(a.Parts) != 1 {
			t.Errorf("back: %v, after %d µs: %+v", back, c.now.Boot-lost, a)
		}
	}
}

func TestABoundThatIsChangedHoldsForWhatIsTakenThen(t *testing.T) {
	c := newClusterOf(&cluster{t: t, few: true}, 3)
	for i := range 12 {
		c.insert(0, "few", fmt.Sprintf("i%02d@n%d", i, i%3+1), 0)
		c.now.Clock++
	}
	set := func(at, most int) {
		t.Helper()
		is, _ := c.nodes[at].b.ConfigOf("few")
		is.Limits.InFlightMax, is.Limits.LeaseMax = most, 60_000_000
		wantOK(t, c.do(at, broker.Call{Command: pqueue.Command{Op: pqueue.OpConfigure, Queue: "few", Limits: is.Limits, Settings: is.Settings()}}))
		c.pass(1_000_000)
	}
	var held []broker.Part
	hold := func(want int) {
		t.Helper()
		for range 2 {
			for at := range 3 {
				held = append(held, c.take(at, broker.Take{Queue: "few", Max: 5, For: 60_000_000}).Parts...)
			}
		}
		if len(held) != want {
			t.Fatalf("%d are leased, want %d", len(held), want)
		}
	}
	ack := func() {
		t.Helper()
		wantOK(t, settle(c, 0, pqueue.OpAck, held[0], 0))
		held = held[1:]
		c.pass(50_000)
	}
	set(0, 4)
	hold(4)
	set(1, 1)
	ack()
	ack()
	ack()
	hold(1)
	ack()
	hold(1)
	set(2, 3)
	hold(3)
	set(0, 0)
	hold(8) // all that is left
}

// A node starts with a file in which the bound is another one, and learns in its first
// round what it is now: by then it has said how many slots it knows of.
func TestABoundThatANodeLearnsInItsFirstRoundHolds(t *testing.T) {
	c := newClusterOf(&cluster{t: t, few: true}, 2)
	is, _ := c.nodes[0].b.ConfigOf("few")
	is.Limits.InFlightMax = 6
	wantOK(t, c.do(0, broker.Call{Command: pqueue.Command{Op: pqueue.OpConfigure, Queue: "few", Limits: is.Limits, Settings: is.Settings()}}))
	c.pass(1_000_000)
	for i := range 8 {
		c.insert(0, "few", fmt.Sprint("i", i), 0)
	}
	c.start(eviction.Member{Name: "n3", Boot: 1})
	c.view()
	c.pass(1_000_000)
	held := 0
	for at := range c.nodes {
		held += len(c.take(at, broker.Take{Queue: "few", Max: 8, For: fewMax}).Parts)
	}
	if held != 6 {
		t.Errorf("%d are leased, and 6 may be", held)
	}
}
