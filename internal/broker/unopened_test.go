package broker_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// withDisks are nodes with a durable queue, "kept", whose logs the test is.
func withDisks(t *testing.T, n int) *cluster {
	t.Helper()
	c := &cluster{t: t, now: broker.Time{Boot: 1_000_000, Clock: 1_700_000_000_000_000}}
	for i := range n {
		m := eviction.Member{Name: qpid.NodeID(fmt.Sprintf("n%d", i+1)), Boot: 1}
		conf := config(m)
		conf.Queues = append(conf.Queues, broker.Queue{Name: "kept", Kind: broker.Durable, Limits: bounds(), Lease: 30_000_000, PayloadMax: 1 << 16})
		conf.Logs = []broker.Kind{broker.Durable}
		b, err := broker.New(conf, c.now)
		if err != nil {
			t.Fatal(err)
		}
		c.nodes = append(c.nodes, &host{m: m, b: b, answers: map[uint64]broker.Answer{}})
	}
	return c
}

// log delivers all messages, and has each log take what its node gives it.
func (c *cluster) log() {
	for again := true; again; {
		again = false
		for _, h := range c.nodes {
			r := h.b.Ready()
			for _, m := range r.Messages {
				c.deliver(m)
			}
			for _, a := range r.Answers {
				h.answers[a.ID] = a
			}
			for _, p := range r.Proposals {
				h.b.Proposed(c.now, p.Token, applied(c.t, h.b, c.now, p.Kind, p.Command)[0], false, false)
			}
			again = again || len(r.Messages)+len(r.Proposals) > 0
		}
	}
}

// A node that started without room for its log may have items. Nobody who asks is
// told that there are none.
func TestANodeWhoseLogIsNotOpenIsMissing(t *testing.T) {
	c := withDisks(t, 3)
	c.nodes[0].b.Leads(c.now, broker.Durable, true)
	c.nodes[1].b.Leads(c.now, broker.Durable, true)
	c.nodes[2].b.SetRoom(c.now, broker.Durable, broker.RoomForNone)
	ask := func(what string, call func(b *broker.Broker, id uint64)) broker.Answer {
		t.Helper()
		c.next++
		h := c.nodes[0]
		call(h.b, c.next)
		for range 300 {
			c.now.Boot += broker.TickEvery
			c.now.Clock += broker.TickEvery
			for _, h := range c.nodes {
				h.b.Tick(c.now)
			}
			c.log()
			if a, ok := h.answers[c.next]; ok {
				return a
			}
		}
		t.Fatalf("%s: no answer", what)
		return broker.Answer{}
	}
	do := func(command pqueue.Command) func(*broker.Broker, uint64) {
		command.Queue = "kept"
		return func(b *broker.Broker, id uint64) {
			b.Do(c.now, broker.Call{ID: id, Command: command, Within: 2_000_000})
		}
	}
	take := func(b *broker.Broker, id uint64) {
		b.Take(c.now, broker.Take{ID: id, Queue: "kept", Max: 1, Within: 2_000_000})
	}
	var list []eviction.Member
	for _, h := range c.nodes {
		list = append(list, h.m)
	}
	view := func() {
		for _, h := range c.nodes {
			h.b.SetView(c.now, broker.View{List: list, Primary: true, At: c.now.Boot})
		}
		c.log()
	}
	view()
	for range 200 {
		ask("settle", do(pqueue.Command{Op: pqueue.OpFind, ID: "nothing"}))
		view()
	}
	gone := []qpid.NodeID{"n3"}
	if a := ask("put", do(pqueue.Command{Op: pqueue.OpInsert, ID: "here@n1"})); a.Result.Code != pqueue.OK {
		t.Fatalf("put: %+v", a)
	}
	if a := ask("take", take); len(a.Parts) != 1 || !slices.Equal(a.Missing, gone) {
		t.Errorf("a take that finds one: %+v, want n3 missing", a)
	}
	for what, call := range map[string]func(*broker.Broker, uint64){
		"take": take, "len": do(pqueue.Command{Op: pqueue.OpStats}), "peek": do(pqueue.Command{Op: pqueue.OpPeek, Max: 1}),
	} {
		if a := ask(what, call); !slices.Equal(a.Missing, gone) {
			t.Errorf("%s: %+v, want n3 missing", what, a)
		}
	}
	if a := ask("put", do(pqueue.Command{Op: pqueue.OpInsert, ID: "waits@n1"})); a.Result.Code != pqueue.OK {
		t.Fatalf("put: %+v", a)
	}
	if a := ask("position", do(pqueue.Command{Op: pqueue.OpRank, ID: "waits@n1"})); !slices.Equal(a.Missing, gone) {
		t.Errorf("position: %+v, want n3 missing", a)
	}
	c.nodes[2].b.SetRoom(c.now, broker.Durable, broker.RoomForAll)
	c.nodes[2].b.Leads(c.now, broker.Durable, true)
	for range 100 {
		ask("settle", do(pqueue.Command{Op: pqueue.OpFind, ID: "nothing"}))
		view()
	}
	ask("take", take)
	for what, call := range map[string]func(*broker.Broker, uint64){
		"take": take, "len": do(pqueue.Command{Op: pqueue.OpStats}), "peek": do(pqueue.Command{Op: pqueue.OpPeek, Max: 1}),
	} {
		if a := ask(what, call); len(a.Missing) > 0 || a.Result.Code != pqueue.OK && a.Result.Code != pqueue.Empty {
			t.Errorf("%s, once its log is open: %+v", what, a)
		}
	}
}
