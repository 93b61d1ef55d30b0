package broker_test

import (
	"fmt"
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// cluster is a few brokers whose messages arrive at once, in order.
type cluster struct {
	t     *testing.T
	now   broker.Time
	nodes []*host
	next  uint64
	cut   func(from, to eviction.Member) bool // loses what goes there
	heard func(broker.Message)                // sees what goes anywhere
	loses func(broker.Message) bool           // such a message
	minor bool                                // those that are up are no quorum
	votes []qpid.NodeID
	few   bool // there is the queue of that name
	keys  bool // which has exclusive keys, and no other bound
	fair  bool // whose keys take turns, and which has no bound
}

type host struct {
	m       eviction.Member
	b       *broker.Broker
	down    bool
	answers map[uint64]broker.Answer
	seen    []broker.Seen
}

func bounds() pqueue.Limits {
	return pqueue.Limits{
		ItemsMax: 100_000, BytesMax: 1 << 30, AttemptsMax: 5, DeadMax: 100, RememberMax: 1000, Remember: 60_000_000, LeaseMax: 3_600_000_000,
	}
}

func config(m eviction.Member) broker.Config {
	q := broker.Queue{Limits: bounds(), Lease: 30_000_000, PayloadMax: 1 << 16}
	slow := q
	slow.Name, slow.Interval, slow.PerInterval = "slow", 1_000_000, 2
	return broker.Config{Self: m, CreateOnUse: true, OnUse: q, Queues: []broker.Queue{slow}, QueuesMax: 20, PurgeSteps: 100}
}

func newCluster(t *testing.T, n int) *cluster {
	t.Helper()
	return newClusterOf(&cluster{t: t}, n)
}

// newClusterOf starts the nodes of c.
func newClusterOf(c *cluster, n int) *cluster {
	c.now = broker.Time{Boot: 1_000_000, Clock: 1_700_000_000_000_000}
	for i := range n {
		c.start(eviction.Member{Name: qpid.NodeID(fmt.Sprintf("n%d", i+1)), Boot: 1})
	}
	c.view()
	c.pass(1_000_000)
	return c
}

func (c *cluster) start(m eviction.Member) *host {
	c.t.Helper()
	all := config(m)
	if c.few {
		few := all.OnUse
		few.Name, few.Limits.AttemptsMax, few.Limits.InFlightMax, few.Limits.LeaseMax, few.Lease = "few", 0, fewMany, fewMax, fewMax
		if c.keys {
			few.Limits.InFlightMax, few.Limits.Exclusive = 0, true
		}
		if c.fair {
			few.Limits.InFlightMax, few.FairKeys = 0, true
		}
		all.Queues = append(all.Queues, few)
	}
	b, err := broker.New(all, c.now)
	if err != nil {
		c.t.Fatal(err)
	}
	h := &host{m: m, b: b, answers: map[uint64]broker.Answer{}}
	c.nodes = append(c.nodes, h)
	return h
}

// view is the wave of all that are up.
func (c *cluster) view() {
	var list []eviction.Member
	for _, h := range c.nodes {
		if !h.down {
			list = append(list, h.m)
		}
	}
	for _, h := range c.nodes {
		if !h.down {
			h.b.SetView(c.now, broker.View{List: list, Primary: !c.minor, At: c.now.Boot, Voters: c.votes})
		}
	}
	c.settle()
}

// settle delivers all messages, through the codec.
func (c *cluster) settle() {
	for again := true; again; {
		again = false
		for _, h := range c.nodes {
			if h.down {
				continue
			}
			r := h.b.Ready()
			for _, a := range r.Answers {
				if _, twice := h.answers[a.ID]; twice {
					c.t.Fatalf("%v answered call %d twice", h.m, a.ID)
				}
				h.answers[a.ID] = a
			}
			h.seen = append(h.seen, r.Seen...)
			for _, m := range r.Messages {
				again = true
				c.deliver(m)
			}
		}
	}
}

func (c *cluster) deliver(m broker.Message) {
	got, err := broker.Decode(m.Encode())
	if err != nil {
		c.t.Fatalf("%+v: %v", m, err)
	}
	got.From, got.To = m.From, m.To
	if c.heard != nil {
		c.heard(got)
	}
	if c.loses != nil && c.loses(got) {
		return
	}
	for _, h := range c.nodes {
		if h.m == m.To && !h.down && (c.cut == nil || !c.cut(m.From, m.To)) {
			if err := h.b.Step(c.now, got); err != nil {
				c.t.Fatalf("%+v: %v", got, err)
			}
		}
	}
}

// pass lets time go by, with a wave every 200 ms.
func (c *cluster) pass(d int64) {
	for end := c.now.Boot + d; c.now.Boot < end; {
		c.now.Boot += broker.TickEvery
		c.now.Clock += broker.TickEvery
		if c.now.Boot%200_000 == 0 {
			c.view()
		}
		for _, h := range c.nodes {
			if !h.down {
				h.b.Tick(c.now)
			}
		}
		c.settle()
	}
}

func (c *cluster) do(at int, call broker.Call) broker.Answer {
	c.t.Helper()
	c.next++
	call.ID = c.next
	h := c.nodes[at]
	h.b.Do(c.now, call)
	c.settle()
	for range 1000 {
		if a, ok := h.answers[call.ID]; ok {
			return a
		}
		c.pass(broker.TickEvery)
	}
	c.t.Fatalf("%+v is never answered", call)
	return broker.Answer{}
}

func (c *cluster) begin(at int, k broker.Take) uint64 {
	c.next++
	k.ID, k.Within = c.next, k.Wait+5_000_000
	c.nodes[at].b.Take(c.now, k)
	c.settle()
	return k.ID
}

func (c *cluster) take(at int, k broker.Take) broker.Answer {
	c.t.Helper()
	id := c.begin(at, k)
	for range 10_000 {
		if a, ok := c.nodes[at].answers[id]; ok {
			return a
		}
		c.pass(broker.TickEvery)
	}
	c.t.Fatalf("%+v is never answered", k)
	return broker.Answer{}
}

func (c *cluster) insert(at int, queue, id string, priority uint32) broker.Handle {
	c.t.Helper()
	a := c.do(at, broker.Call{Command: pqueue.Command{Op: pqueue.OpInsert, Queue: queue, ID: id, Priority: priority, Payload: []byte(id)}})
	if a.Result.Code != pqueue.OK {
		c.t.Fatalf("insert %s: %+v", id, a)
	}
	return a.Handle
}

func names(a broker.Answer) []string {
	all := []string{}
	for _, p := range a.Parts {
		for _, i := range p.Result.Items {
			all = append(all, i.ID)
		}
	}
	return all
}
