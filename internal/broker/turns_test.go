package broker_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
)

// Of the queue "few" the keys take turns.
func newFair(t *testing.T, n int) *cluster {
	t.Helper()
	return newClusterOf(&cluster{t: t, few: true, fair: true}, n)
}

// drawn takes so many, one after the other at all nodes, and returns their ids.
func (c *cluster) drawn(n int) string {
	c.t.Helper()
	var all []string
	for i := range n {
		a := c.take(i%len(c.nodes), broker.Take{Queue: "few", Max: 1, For: fewMax})
		if len(a.Parts) != 1 {
			c.t.Fatalf("take %d of %d: %+v", i, n, a)
		}
		all = append(all, names(a)...)
		c.pass(broker.TickEvery)
	}
	return strings.Join(all, " ")
}

func TestKeysTakeTurns(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		c := newFair(t, nodes)
		put := func(key string, n int) {
			for i := range n {
				c.insertKey(i%nodes, fmt.Sprint(key, "-", i), key)
			}
		}
		put("noisy", 20)
		put("a", 2)
		put("", 3)
		if got, want := c.drawn(5), "noisy-0 a-0 -0 noisy-1 a-1"; got != want {
			t.Errorf("%d nodes: %s, want %s", nodes, got, want)
		}
		put("late", 2)
		if got, want := c.drawn(7), "-1 noisy-2 late-0 -2 noisy-3 late-1 noisy-4"; got != want {
			t.Errorf("%d nodes, with one that came late: %s, want %s", nodes, got, want)
		}
		c.insert(0, "few", "urgent", 0)
		c.insertKey(0, "light", "noisy")
		wantOK(t, c.do(0, broker.Call{Command: pqueue.Command{Op: pqueue.OpUpdate, Queue: "few", ID: "light", Fields: pqueue.FieldPriority, Priority: 7}}))
		if got, want := c.drawn(2), "noisy-5 urgent"; got != want {
			t.Errorf("%d nodes, priority 7 comes last: %s, want %s", nodes, got, want)
		}
		a := c.take(0, broker.Take{Queue: "few", Max: 100, For: fewMax})
		if got := names(a); len(got) != 15 || got[0] != "noisy-6" || got[14] != "light" {
			t.Errorf("%d nodes, all that is left: %v", nodes, got)
		}
	}
}

// What is given to a taker that has gone takes no turn.
func TestALeaseThatReachesNobodyGivesTheTurnBack(t *testing.T) {
	c := newFair(t, 3)
	at := c.insertKey(0, "a-0", "a").Node
	c.insertKey(0, "a-1", "a")
	c.insertKey(0, "b-0", "b")
	for i, h := range c.nodes {
		if h.m.Name != at {
			c.next++
			h.b.Take(c.now, broker.Take{ID: c.next, Queue: "few", Max: 1, For: fewMax, Within: 5_000_000})
			h.b.Forsake(c.now, c.next)
			c.settle()
			if got := c.nodes[i].b.Leased("few"); got != 0 {
				t.Fatalf("%d are leased", got)
			}
			break
		}
	}
	if got, want := c.drawn(3), "a-0 b-0 a-1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestKeysTakeTurnsFromWhenThatIsSet(t *testing.T) {
	c := newFair(t, 3)
	set := func(on bool) {
		t.Helper()
		is, _ := c.nodes[1].b.ConfigOf("few")
		s := is.Settings()
		s.FairKeys = on
		wantOK(t, c.do(1, broker.Call{Command: pqueue.Command{Op: pqueue.OpConfigure, Queue: "few", Limits: is.Limits, Settings: s}}))
	}
	for _, key := range []string{"a", "b"} {
		for i := range 6 {
			c.insertKey(0, fmt.Sprint(key, "-", i), key)
		}
	}
	set(false)
	if a := c.do(0, broker.Call{Command: pqueue.Command{Op: pqueue.OpInsert, Queue: "few", ID: "x", Key: "k"}}); a.Result.Code != pqueue.Invalid {
		t.Errorf("a key where there are none: %v", a.Result.Code)
	}
	if got, want := c.drawn(3), "a-0 a-1 a-2"; got != want {
		t.Errorf("without turns: %s, want %s", got, want)
	}
	set(true)
	if got := c.drawn(5); got != "a-3 b-0 a-4 b-1 a-5" && got != "b-0 a-3 b-1 a-4 b-2" {
		t.Errorf("with turns again, which begin anew: %s", got)
	}
}

// A lease on its way through a log holds up nobody of its key, and gives the turn back
// if the log does not take it. That keys take turns is in the log.
func TestTurnsGoOnWhileALogIsSlow(t *testing.T) {
	now := broker.Time{Boot: 1_000_000, Clock: 1_700_000_000_000_000}
	l := begin(t, now, nil)
	is, _ := l.b.ConfigOf("kept")
	s := is.Settings()
	s.FairKeys = true
	l.do(pqueue.Command{Op: pqueue.OpConfigure, Limits: is.Limits, Settings: s}, broker.Handle{})
	for _, key := range []string{"a", "b"} {
		for i := range 3 {
			l.do(pqueue.Command{Op: pqueue.OpInsert, ID: fmt.Sprintf("%s-%d", key, i), Key: key}, broker.Handle{})
		}
	}
	for id := range uint64(3) {
		l.b.Take(l.now, broker.Take{ID: 10 + id, Queue: "kept", Max: 1, Within: 5_000_000})
	}
	var out []broker.Proposal
	for _, p := range l.b.Ready().Proposals {
		if c, err := pqueue.DecodeCommand(p.Command); err == nil && c.Op == pqueue.OpLease {
			out = append(out, p)
		}
	}
	if len(out) != 3 {
		t.Fatalf("of three takes %d have an item on its way", len(out))
	}
	for i, p := range out {
		if i == 0 {
			l.b.Proposed(l.now, p.Token, nil, true, false)
			continue
		}
		l.log = append(l.log, p.Command)
		l.b.Proposed(l.now, p.Token, applied(l.t, l.b, l.now, broker.Durable, p.Command)[0], false, false)
	}
	l.run()
	l.now.Boot, l.now.Clock = l.now.Boot+20_000, l.now.Clock+20_000
	l.b.Tick(l.now) // whose lease was refused asks again
	if a := l.run(); len(a.Parts) != 1 || names(a)[0] != "a-0" {
		t.Errorf("after the log refused a-0: %+v", a)
	}
	again := begin(t, l.now, l.log)
	if c, _ := again.b.ConfigOf("kept"); !c.FairKeys {
		t.Error("the log does not say that keys take turns")
	}
	for _, want := range []string{"a-2", "b-1"} {
		if got := again.take().Result.Items[0].ID; got != want {
			t.Errorf("after a restart: %s, want %s", got, want)
		}
	}
}
