package broker_test

import (
	"fmt"
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// Of the queue "few" one item of a key may be leased at once, and any number in all.
func newKeyed(t *testing.T, n int) *cluster {
	t.Helper()
	return newClusterOf(&cluster{t: t, few: true, keys: true}, n)
}

func (c *cluster) insertKey(at int, id, key string) broker.Handle {
	c.t.Helper()
	a := c.do(at, broker.Call{Command: pqueue.Command{Op: pqueue.OpInsert, Queue: "few", ID: id, Key: key, Payload: []byte(id)}})
	wantOK(c.t, a)
	c.now.Clock++
	return a.Handle
}

func keyOf(p broker.Part) string { return p.Result.Items[0].Key }

// A node that joins becomes the home of keys whose items are elsewhere, some of them
// leased. All items come, and never two of a key at once.
func TestAKeyIsLeasedOnceAtATimeWhileItsHomeMoves(t *testing.T) {
	c := newKeyed(t, 3)
	const keys, each = 20, 3
	at, split := map[string]qpid.NodeID{}, 0
	put := func(round int) {
		for i := range keys * each {
			key := fmt.Sprint("k", i%keys)
			h := c.insertKey(i%len(c.nodes), fmt.Sprintf("%d-%02d", round, i), key)
			if was, ok := at[key]; ok && was != h.Node {
				split++
			}
			at[key] = h.Node
		}
	}
	put(1)
	held, came := map[string]broker.Part{}, 0
	takeAll := func() {
		for node := range c.nodes {
			for _, p := range c.take(node, broker.Take{Queue: "few", Max: 7, For: fewMax}).Parts {
				if other, twice := held[keyOf(p)]; twice {
					t.Fatalf("%s and %s of %s are leased at once", p.Result.Items[0].ID, other.Result.Items[0].ID, keyOf(p))
				}
				held[keyOf(p)] = p
				came++
			}
		}
	}
	takeAll()
	if came != keys {
		t.Fatalf("of %d keys %d items are leased", keys, came)
	}
	c.start(eviction.Member{Name: "n4", Boot: 1})
	c.view()
	c.pass(200_000)
	put(2)
	if split == 0 {
		t.Fatal("no key has items at two nodes")
	}
	for turn := range 200 {
		takeAll()
		for i := range keys { // some at a time
			key := fmt.Sprint("k", i)
			if p, ok := held[key]; ok && (i+turn)%3 == 0 {
				wantOK(t, settle(c, i%4, pqueue.OpAck, p, 0))
				delete(held, key)
			}
		}
		c.pass(20_000)
		if came == 2*keys*each {
			return
		}
	}
	t.Fatalf("%d of %d items come", came, 2*keys*each)
}

// A new home lets nothing out of a key before it has heard who leases what of it.
func TestAHomeWaitsUntilItHasHeardWhichKeysAreLeased(t *testing.T) {
	c := newKeyed(t, 3)
	const keys = 20
	for i := range keys {
		c.insertKey(0, fmt.Sprintf("i%02d", i), fmt.Sprint("k", i))
	}
	held := c.take(0, broker.Take{Queue: "few", Max: keys, For: fewMax}).Parts
	if len(held) != keys {
		t.Fatalf("%d of %d items", len(held), keys)
	}
	c.loses = func(m broker.Message) bool { return m.Kind == broker.MsgKeyHeld && m.To.Name == "n4" }
	c.start(eviction.Member{Name: "n4", Boot: 1})
	c.view()
	c.pass(200_000)
	moved := -1
	for i, p := range held {
		if h := c.insertKey(0, fmt.Sprintf("j%02d", i), keyOf(p)); h.Node == "n4" {
			moved = i
		}
	}
	if moved < 0 {
		t.Fatal("no key has its home at the node that has joined")
	}
	if a := c.take(1, broker.Take{Queue: "few", Max: keys, For: fewMax}); len(a.Parts) > 0 {
		t.Fatalf("with one of each key leased: %v", names(a))
	}
	c.loses = nil
	c.pass(1_000_000)
	if a := c.take(1, broker.Take{Queue: "few", Max: keys, For: fewMax}); len(a.Parts) > 0 {
		t.Fatalf("with one of each key leased, and all heard: %v", names(a))
	}
	wantOK(t, settle(c, 2, pqueue.OpAck, held[moved], 0))
	c.pass(100_000)
	if a := c.take(1, broker.Take{Queue: "few", Max: keys, For: fewMax}); len(a.Parts) != 1 || keyOf(a.Parts[0]) != keyOf(held[moved]) {
		t.Errorf("one of %s is acknowledged: %v", keyOf(held[moved]), names(a))
	}
}

// Nobody knows which keys a lost node leases, so none goes out until it is back, or its
// leases have ended. What has no key goes on.
func TestKeysWaitForANodeThatIsGone(t *testing.T) {
	for _, back := range []bool{true, false} {
		c := newKeyed(t, 3)
		c.votes = []qpid.NodeID{"n1", "n2", "n3"}
		for i := range 12 {
			c.insertKey(0, fmt.Sprintf("i%02d", i), fmt.Sprint("k", i))
		}
		all := c.take(0, broker.Take{Queue: "few", Max: 12, For: fewMax}).Parts
		gone := -1
		for i, p := range all { // somebody who leases, and may be the root or not
			if p.Node == "n2" {
				gone = i
			} else {
				wantOK(t, settle(c, 0, pqueue.OpAck, p, 0))
			}
		}
		if gone < 0 || len(all) != 12 {
			t.Fatalf("%d leases, none at n2", len(all))
		}
		key := keyOf(all[gone])
		c.pass(500_000)
		lost := c.now.Boot
		c.nodes[1].down = true
		c.pass(1_000_000)
		c.insertKey(0, "again", key)
		c.insert(0, "few", "plain", 9)
		a := c.take(2, broker.Take{Queue: "few", Max: 2, For: 1_000_000, Wait: 1_000_000})
		if got := names(a); len(got) != 1 || got[0] != "plain" {
			t.Fatalf("%d µs after the loss: %v", c.now.Boot-lost, got)
		}
		wantOK(t, settle(c, 2, pqueue.OpAck, a.Parts[0], 0))
		id := c.begin(2, broker.Take{Queue: "few", Max: 1, Wait: 20_000_000, For: 1_000_000})
		most := lost + fewMax + 3*int64(fresh) + 2_000_000
		if back {
			c.pass(1_000_000)
			wantNone(c, 2, id)
			c.nodes[1].down = false
			c.pass(500_000)
			wantNone(c, 2, id) // it is known now, and leased there
			wantOK(t, settle(c, 0, pqueue.OpAck, all[gone], 0))
			most = c.now.Boot + 300_000
		}
		for c.now.Boot < most && len(c.nodes[2].answers[id].Parts) == 0 {
			if !back && c.now.Boot < lost+fewMax {
				wantNone(c, 2, id)
			}
			c.pass(broker.TickEvery)
		}
		if got := c.nodes[2].answers[id]; len(got.Parts) != 1 || keyOf(got.Parts[0]) != key {
			t.Errorf("back: %v, after %d µs: %+v", back, c.now.Boot-lost, got)
		}
	}
}

func wantNone(c *cluster, at int, id uint64) {
	c.t.Helper()
	if a, over := c.nodes[at].answers[id]; over {
		c.t.Fatalf("a take that waits gets %+v", a)
	}
}

func TestKeysAreExclusiveFromWhenThatIsSet(t *testing.T) {
	c := newKeyed(t, 3)
	set := func(at int, on bool) {
		t.Helper()
		is, _ := c.nodes[at].b.ConfigOf("few")
		is.Limits.Exclusive = on
		wantOK(t, c.do(at, broker.Call{Command: pqueue.Command{Op: pqueue.OpConfigure, Queue: "few", Limits: is.Limits, Settings: is.Settings()}}))
		c.pass(1_000_000)
	}
	for i := range 9 {
		c.insertKey(i%3, fmt.Sprint("i", i), "k")
	}
	var held []broker.Part
	hold := func(want int) {
		t.Helper()
		for at := range 3 {
			held = append(held, c.take(at, broker.Take{Queue: "few", Max: 2, For: fewMax}).Parts...)
		}
		if len(held) != want {
			t.Fatalf("%d are leased, want %d", len(held), want)
		}
	}
	ack := func(n int) {
		t.Helper()
		for range n {
			wantOK(t, settle(c, 0, pqueue.OpAck, held[0], 0))
			held = held[1:]
		}
		c.pass(50_000)
	}
	hold(1)
	set(1, false)
	hold(7)
	set(2, true)
	ack(6)
	hold(1)
	ack(1)
	hold(1)
	if a := c.do(0, broker.Call{Command: pqueue.Command{Op: pqueue.OpInsert, Queue: "other", ID: "x", Key: "k"}}); a.Result.Code != pqueue.Invalid {
		t.Errorf("a key in a queue without exclusive keys: %v", a.Result.Code)
	}
}

// Items that a log takes before it hears that keys are exclusive come and go: the first
// one of the key that is left goes out.
func TestKeysComeToBeExclusiveWhileItemsAreOnTheirWay(t *testing.T) {
	l := begin(t, broker.Time{Boot: 1_000_000, Clock: 1_700_000_000_000_000}, nil)
	set := func(on bool) {
		is, _ := l.b.ConfigOf("kept")
		is.Limits.Exclusive, is.FairKeys = on, true
		l.b.Do(l.now, broker.Call{ID: 3, Command: pqueue.Command{Op: pqueue.OpConfigure, Queue: "kept", Limits: is.Limits, Settings: is.Settings()}})
	}
	set(false)
	l.run()
	for _, id := range []string{"a@n1", "b@n1"} {
		l.do(pqueue.Command{Op: pqueue.OpInsert, ID: id, Key: "k", Priority: 5}, broker.Handle{})
	}
	light := pqueue.Command{Op: pqueue.OpInsert, Queue: "kept", ID: "light@n1", Key: "k"}
	l.b.Do(l.now, broker.Call{ID: 4, Command: light})
	l.b.Do(l.now, broker.Call{ID: 5, Command: pqueue.Command{Op: pqueue.OpCancel, Queue: "kept", ID: "light@n1"}})
	set(true)
	l.run()
	for range 300 { // until who may be anywhere has been in a round
		l.now.Boot, l.now.Clock = l.now.Boot+broker.TickEvery, l.now.Clock+broker.TickEvery
		if l.now.Boot%200_000 == 0 {
			l.b.SetView(l.now, broker.View{List: []eviction.Member{l.self}, Primary: true, At: l.now.Boot})
		}
		l.b.Tick(l.now)
		l.run()
	}
	if got := l.take().Result.Items[0].ID; got != "a@n1" {
		t.Errorf("took %s", got)
	}
}
