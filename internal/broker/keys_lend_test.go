package broker_test

import (
	"fmt"
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// moved is a key whose home is n4, which has joined: of what was put before, an item is
// ready at its old home, and another one comes later there.
type moved struct {
	key         string
	old         qpid.NodeID
	early, late string // ids
}

const lateAfter = 3_000_000 // µs until the late items are ready

// aMovedKey has a node join, and an item of the key be leased at its new home.
func (c *cluster) aMovedKey() (moved, broker.Part) {
	c.t.Helper()
	var all []moved
	for i := range 20 {
		m := moved{key: fmt.Sprint("k", i), early: fmt.Sprintf("early%02d", i), late: fmt.Sprintf("late%02d", i)}
		m.old = c.insertKey(0, m.early, m.key).Node
		wantOK(c.t, c.do(0, broker.Call{Command: pqueue.Command{
			Op: pqueue.OpInsert, Queue: "few", ID: m.late, Key: m.key, NotBefore: c.now.Clock + lateAfter, Payload: []byte(m.late),
		}}))
		all = append(all, m)
	}
	first := c.take(0, broker.Take{Queue: "few", Max: len(all), For: fewMax}).Parts
	if len(first) != len(all) {
		c.t.Fatalf("%d of %d keys are leased", len(first), len(all))
	}
	c.start(eviction.Member{Name: "n4", Boot: 1})
	c.view()
	c.pass(200_000)
	for i, m := range all {
		if h := c.insertKey(0, fmt.Sprintf("new%02d", i), m.key); h.Node != "n4" {
			continue
		}
		for _, p := range first { // the early one is back in line once the new one is leased
			if keyOf(p) == m.key {
				wantOK(c.t, settle(c, 0, pqueue.OpNack, p, 300_000))
			}
		}
		c.pass(20_000)
		a := c.take(3, broker.Take{Queue: "few", Max: 1, For: fewMax})
		if len(a.Parts) != 1 || keyOf(a.Parts[0]) != m.key || a.Parts[0].Node != "n4" {
			c.t.Fatalf("of %s at its new home: %+v", m.key, a)
		}
		c.pass(400_000)
		return m, a.Parts[0]
	}
	c.t.Fatal("no key has its home at the node that has joined")
	return moved{}, broker.Part{}
}

// A node asks a key's home again and again, and the home lends the key once.
func TestAKeyThatIsAskedForOftenIsLentOnce(t *testing.T) {
	c := newKeyed(t, 3)
	wants, lends := 0, 0
	c.heard = func(m broker.Message) {
		switch m.Kind {
		case broker.MsgKeyWant:
			wants++
		case broker.MsgKeyLend:
			lends++
		default:
		}
	}
	m, held := c.aMovedKey()
	c.pass(1_000_000)
	if wants < 5 || lends > 0 {
		t.Fatalf("while an item of %s is leased at its home, it is asked for %d times and lent %d times", m.key, wants, lends)
	}
	wantOK(t, settle(c, 0, pqueue.OpAck, held, 0))
	c.pass(200_000)
	a := c.take(1, broker.Take{Queue: "few", Max: 1, For: fewMax})
	if got := names(a); len(got) != 1 || got[0] != m.early {
		t.Fatalf("once that is acknowledged: %v, want %s", got, m.early)
	}
	wantOK(t, settle(c, 0, pqueue.OpAck, a.Parts[0], 0))
	c.pass(200_000)
	if lends != 1 {
		t.Errorf("%s was asked for %d times, and lent %d times", m.key, wants, lends)
	}
}

// What the home has lent is for another item than the one that is there by now: it is
// asked for anew, and lends it anew.
func TestAKeyIsLentAnewToWhoAsksForItAnew(t *testing.T) {
	c := newKeyed(t, 3)
	m, held := c.aMovedKey()
	lost := 0
	c.loses = func(is broker.Message) bool {
		if is.Kind == broker.MsgKeyLend && lost == 0 {
			lost++
			return true
		}
		return false
	}
	wantOK(t, settle(c, 0, pqueue.OpAck, held, 0))
	c.pass(200_000)
	if lost != 1 {
		t.Fatalf("%d words of lending %s are lost", lost, m.key)
	}
	wantOK(t, c.do(0, broker.Call{Command: pqueue.Command{Op: pqueue.OpCancel, Queue: "few", ID: m.early}}))
	c.pass(lateAfter)
	a := c.take(1, broker.Take{Queue: "few", Max: 100, For: fewMax})
	for _, p := range a.Parts {
		if p.Result.Items[0].ID == m.late {
			return
		}
	}
	t.Errorf("%s does not come, but %v", m.late, names(a))
}

// Keys come to be exclusive, and the next round does not begin: who leases what is not
// known, so nothing of a key goes out at its home.
func TestNothingOfAKeyGoesOutBeforeARoundHasCounted(t *testing.T) {
	c := newClusterOf(&cluster{t: t, few: true}, 3)
	set := func(queue string, change func(*pqueue.Limits, *pqueue.Settings)) {
		t.Helper()
		is, _ := c.nodes[0].b.ConfigOf(queue)
		s := is.Settings()
		change(&is.Limits, &s)
		wantOK(t, c.do(0, broker.Call{Command: pqueue.Command{Op: pqueue.OpConfigure, Queue: queue, Limits: is.Limits, Settings: s}}))
	}
	exclusive := func(l *pqueue.Limits, _ *pqueue.Settings) { l.Exclusive = true }
	c.insert(0, "other", "x", 0)
	set("other", exclusive) // so members say which keys they lease
	set("few", func(l *pqueue.Limits, s *pqueue.Settings) { l.InFlightMax, s.FairKeys = 60, true })
	c.pass(1_000_000)
	const keys = 20
	for i := range keys {
		c.insertKey(0, fmt.Sprintf("i%02d", i), fmt.Sprint("k", i))
	}
	held := map[string]broker.Part{}
	for _, p := range c.take(0, broker.Take{Queue: "few", Max: keys, For: fewMax}).Parts {
		held[keyOf(p)] = p
	}
	c.start(eviction.Member{Name: "n4", Boot: 1})
	c.view()
	c.pass(1_000_000)
	c.insert(0, "few", "plain@n4", 0)
	if a := c.take(3, broker.Take{Queue: "few", Max: 1, For: fewMax, Wait: 1_000_000}); len(a.Parts) != 1 || a.Parts[0].Node != "n4" {
		t.Fatalf("the one without a key: %+v", a) // with a lease it has itself vouched for all the time
	}
	key := ""
	for i := range keys {
		k := fmt.Sprint("k", i)
		h := c.insertKey(0, fmt.Sprintf("j%02d", i), k)
		if h.Node == "n4" {
			key = k
			break
		}
		wantOK(t, c.do(0, broker.Call{Command: pqueue.Command{Op: pqueue.OpCancel, Queue: "few", ID: fmt.Sprintf("j%02d", i)}}))
	}
	if key == "" || len(held) != keys {
		t.Fatalf("%d keys are leased, and %q has its home at the node that has joined", len(held), key)
	}
	c.insert(0, "few", "stays@n4", 9) // and so does the office of the root
	c.pass(300_000)
	c.loses = func(m broker.Message) bool { return m.Kind == broker.MsgGather && m.To.Name == "n4" }
	set("few", exclusive)
	id := c.begin(3, broker.Take{Queue: "few", Max: 1, For: fewMax, Wait: 4_000_000})
	c.pass(400_000)
	wantNone(c, 3, id)
	wantOK(t, c.do(3, broker.Call{Command: pqueue.Command{Op: pqueue.OpCancel, Queue: "few", ID: "stays@n4"}}))
	c.loses = nil
	c.pass(1_000_000)
	wantNone(c, 3, id) // it has heard that another one is leased
	wantOK(t, settle(c, 0, pqueue.OpAck, held[key], 0))
	c.pass(200_000)
	if a := c.nodes[3].answers[id]; len(a.Parts) != 1 || keyOf(a.Parts[0]) != key {
		t.Errorf("that is acknowledged: %+v", a)
	}
}
