package queues

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// oracle knows what may be and what may not.
type oracle struct {
	w       *World
	err     error
	items   map[key]*item
	all     []*item // in the order in which they were first heard of
	grants  map[string][]int64
	given   map[string]bool        // leases that were seen, by receipt
	lost    map[qpid.NodeID]uint64 // the highest number of an item that may have been at a node when it crashed last
	last    map[string]pqueue.Item
	rounds  map[qpid.Epoch]begun
	gone    map[entry]int64 // what durable logs have given up, and when by the node's clock
	letters map[entry]int64 // items that came from a dead letter queue, and when
	hear    func(broker.Answer)
	purges  []*purge
}

// entry names a command of a durable log: an insert by its id, a lease by its
// item, a purge by its queue, all else by item and lease.
type entry struct {
	node          qpid.NodeID
	op            pqueue.Op
	id            string
	number, lease uint64
}

// begun is a round: when it began, of whom.
type begun struct {
	at   int64
	list []eviction.Member
}

// key names an item: the shard it is in, and its number there.
type key struct {
	queue  string
	handle broker.Handle
}

type item struct {
	key
	id      string
	put     bool // its insert was acknowledged
	life    uint64
	lease   *lease // the last one that reached a client
	began   int64  // when its insert did
	putAt   int64  // when that was
	acked   bool
	left    bool // may be gone: an ack of it is not answered
	fetched bool
	updated bool // its payload, and that was acknowledged
}

type lease struct {
	queue   string
	handle  broker.Handle
	item    *item
	number  uint64
	granted int64 // by the clock of the shard
	until   int64
	given   bool  // given back, or it may have been
	back    int64 // when, Unix µs at the earliest; 0: it was not
	own     bool  // with a delay of its own
	leases  uint32
	over    bool
}

func (o *oracle) init(w *World) {
	*o = oracle{w: w, items: map[key]*item{}, lost: map[qpid.NodeID]uint64{}, grants: map[string][]int64{}, given: map[string]bool{}, last: map[string]pqueue.Item{}, rounds: map[qpid.Epoch]begun{}, gone: map[entry]int64{}, letters: map[entry]int64{}}
}

func (o *oracle) fail(format string, args ...any) {
	if o.err == nil {
		o.err = fmt.Errorf("at %.3f s: "+format, append([]any{float64(o.w.now) / second}, args...)...)
	}
}

func (o *oracle) item(queue string, h broker.Handle, id string) *item {
	k := key{queue, h}
	i := o.items[k]
	if i == nil {
		i = &item{key: k, id: id}
		if h.Node != "" {
			i.life = o.w.node(h.Node).m.Boot
		}
		o.items[k] = i
		o.all = append(o.all, i)
	}
	return i
}

// inserted notes an acknowledged insert: the item must not be lost while its
// node lives.
func (o *oracle) inserted(c *client, a broker.Answer) {
	o.w.Reached.Inserted++
	if h := a.Handle; h.Kind == broker.Memory && h.Number <= o.lost[h.Node] {
		return // the answer was on its way when the node crashed
	}
	if a.Handle.Kind == broker.Durable && o.gone[entry{node: a.Handle.Node, op: pqueue.OpInsert, id: c.id}] > 0 {
		return // and what it says has been given up since
	}
	i := o.item(c.queue, a.Handle, c.id)
	i.put, i.began, i.putAt = true, c.began, o.w.now
}

// roots checks that no epoch has two roots of a queue.
func (o *oracle) roots() {
	for _, name := range []string{"q", "slow", "safe"} {
		type root struct {
			epoch qpid.Epoch
			by    eviction.Member
		}
		var found []root
		for _, n := range o.w.nodes {
			if !n.up {
				continue
			}
			if e, is := n.b.Root(name); is {
				for _, r := range found {
					if r.epoch == e {
						o.fail("queue %s has two roots in epoch %v: %v and %v", name, e, r.by, n.m)
					}
				}
				found = append(found, root{e, n.m})
			}
		}
	}
}

// sent looks at the rounds that begin, and at the grants that go to other nodes.
func (o *oracle) sent(m broker.Message) {
	switch {
	case m.Kind == broker.MsgGather:
		if _, known := o.rounds[m.Epoch]; !known {
			o.rounds[m.Epoch] = begun{o.w.now, m.List}
		}
	case m.Kind == broker.MsgGranted && m.Result.Code == pqueue.OK:
		again := o.given[o.receipt(m.Queue, m.From.Name, m.Result)] // a second copy of a deleteMin is told of the same lease
		o.grant(m.Queue, m.From.Name, m.Result)
		if c, ok := o.w.node(m.From.Name).b.ConfigOf(m.Queue); ok && c.Kind == broker.Memory && !again {
			o.first(m)
		}
	}
}

// first checks that a grant from memory overtakes no item that was there when the
// round began in which it is made, at any node that is in that round: those are
// known to all from its install on. One that was leased at any time may have come
// back since.
func (o *oracle) first(m broker.Message) {
	got, by := m.Result.Items[0], o.w.node(m.From.Name)
	epoch, _ := by.b.Root(m.Queue)
	r := o.rounds[epoch]
	if m.Result.Until-leaseFor-clockBase-by.skew <= r.at {
		return // it was made in an earlier round, for somebody who could not be told
	}
	for _, in := range r.list {
		n := o.w.node(in.Name)
		if !n.up || n.m != in {
			continue
		}
		lightest, ok := n.b.Lightest(m.Queue)
		i := o.items[key{m.Queue, broker.HandleOf(broker.Memory, in.Name, lightest.Number)}]
		if ok && i != nil && i.put && lightest.Lease == 0 && i.putAt < r.at && goesBefore(lightest, got) {
			o.fail("queue %s: %v lets %s (%d, %d) out to %v and overtakes %s at %v, which was there %d ms before the round", m.Queue, m.From,
				got.ID, got.Priority, got.Stamp, m.To, i.id, in, (r.at-i.putAt)/milli)
		}
	}
}

// receipt names a lease.
func (o *oracle) receipt(queue string, node qpid.NodeID, r pqueue.Result) string {
	return fmt.Sprint(queue, node, o.w.node(node).m.Boot, r.Number, r.Lease)
}

// grant checks the pace of a queue with an interval: every lease counts, also
// one that its caller never hears of.
func (o *oracle) grant(queue string, node qpid.NodeID, r pqueue.Result) {
	receipt := o.receipt(queue, node, r)
	again := o.given[receipt]
	o.given[receipt] = true
	if again || !strings.HasPrefix(queue, "slow") {
		return
	}
	at := r.Until - leaseFor - clockBase - o.w.node(node).skew
	g := o.grants[queue]
	i, _ := slices.BinarySearch(g, at)
	g = slices.Insert(g, i, at)
	o.grants[queue] = g
	short := int64(0)
	if queue == "slow/safe" {
		short = skewMax // of the nodes that have led its log, whose time it goes by
	}
	for last := max(i, slowMany); last <= i+slowMany && last < len(g); last++ {
		if span := g[last] - g[last-slowMany]; span < slowEvery-short {
			o.fail("queue %s lets %d items out within %d µs, at %d; %v has one", queue, slowMany+1, span, g[last], node)
		}
	}
}

// leased takes in an item that has come to a client.
func (o *oracle) leased(c *client, p broker.Part) *lease {
	n, queue := c.n, c.queue
	o.w.Reached.Leased++
	r := p.Result
	if len(r.Items) != 1 || strings.TrimPrefix(string(r.Items[0].Payload), updated) != r.Items[0].ID {
		o.fail("%v got %+v", n.m, r)
		return &lease{over: true}
	}
	if p.Node == n.m.Name {
		o.grant(queue, p.Node, r)
	}
	h := broker.HandleOf(p.Kind, p.Node, r.Number)
	i := o.item(queue, h, r.Items[0].ID)
	l := &lease{queue: queue, handle: h, item: i, number: r.Lease, granted: r.Until - c.lasts, until: r.Until, leases: r.Items[0].Attempts}
	l.given = h.Kind == broker.Durable && l.granted <= o.gone[entry{node: h.Node, op: pqueue.OpLease, number: h.Number}]
	old := i.lease
	switch {
	case i.acked:
		o.fail("%s of %s is acknowledged, and comes again at %v", i.id, queue, n.m)
	case old != nil && old.number == l.number:
		o.fail("%s of %s: one lease for two takes", i.id, queue)
	case old != nil && old.number > l.number:
		if l.until > old.granted { // it was longer on its way
			o.fail("%s of %s is leased until %d, and was again at %d", i.id, queue, l.until, old.granted)
		}
		l.over = true
		return l
	case old != nil && old.until > l.granted && !old.given:
		o.fail("%s of %s is leased until %d, and again at %d, to %v", i.id, queue, old.until, l.granted, n.m)
	case old != nil && old.until <= l.granted:
		o.w.Reached.Lapsed++
	}
	if old != nil {
		old.over = true
		o.waited(i, old, l)
	}
	o.letter(l)
	i.lease = l
	return l
}

// settling notes that an Ack or a Nack is on its way; settled, how it went.
func (o *oracle) settling(l *lease, op pqueue.Op) {
	if op == pqueue.OpAck {
		l.item.left = true
	} else {
		l.given, l.back = true, clockBase+o.w.now
	}
}

func (o *oracle) settled(l *lease, op pqueue.Op, c pqueue.Code) {
	switch {
	case c == pqueue.OK && o.gone[entry{node: l.handle.Node, op: op, number: l.handle.Number, lease: l.number}] > 0:
		l.given = true // and has been given up
	case op == pqueue.OpAck && c == pqueue.OK:
		l.item.acked = true
		o.w.Reached.Acked++
	case op == pqueue.OpAck && c != pqueue.Unavailable && c != pqueue.StorageDoubt:
		l.item.left = l.item.acked
	case op == pqueue.OpNack && c == pqueue.OK:
		l.over = true
	}
}

// crashed forgets what the memory of a node had.
func (o *oracle) crashed(n *node) {
	o.lost[n.m.Name] = uint64(n.time().Clock) // numbers go by the clock
	o.purgesEnd(n)
	for _, i := range o.all {
		if i.handle.Kind == broker.Memory && i.handle.Node == n.m.Name {
			i.put = false
			if i.lease != nil {
				i.lease.over = true
			}
		}
	}
}

// gaveUp allows for what the last entries of a durable log did, and which is not
// so any more: items may be gone that were put, come again that were acknowledged,
// or be leased to somebody else.
func (o *oracle) gaveUp(n *node, entries [][]byte) {
	for _, text := range entries {
		c, err := pqueue.DecodeCommand(text)
		if err != nil {
			o.fail("%v cannot read its log: %v", n.m, err)
			return
		}
		e := entry{node: n.m.Name, op: c.Op, number: c.Number, lease: c.Lease}
		switch c.Op {
		case pqueue.OpInsert:
			e.id, e.number = c.ID, 0
		case pqueue.OpLease:
			e.lease = 0
		case pqueue.OpPurge:
			e.id, e.number = c.Queue, 0
		default:
		}
		o.gone[e] = n.time().Clock
	}
	for _, i := range o.all {
		h := i.handle
		if h.Kind != broker.Durable || h.Node != n.m.Name {
			continue
		}
		put, purge := entry{node: h.Node, op: pqueue.OpInsert, id: i.id}, entry{node: h.Node, op: pqueue.OpPurge, id: i.queue}
		if o.gone[put] > 0 || o.gone[purge] > 0 {
			i.put = false
		}
		if i.acked && o.gone[entry{node: h.Node, op: pqueue.OpAck, number: h.Number, lease: i.lease.number}] > 0 {
			i.acked, i.left = false, true
		}
		if i.lease != nil && i.lease.granted <= o.gone[entry{node: h.Node, op: pqueue.OpLease, number: h.Number}] {
			i.lease.given = true
		}
	}
}

// names are those of all nodes, each of which has a vote.
func (w *World) names() []qpid.NodeID {
	var names []qpid.NodeID
	for _, n := range w.nodes {
		names = append(names, n.m.Name)
	}
	return names
}

// counted checks that an answer about all nodes hides none of them.
func (o *oracle) counted(c *client, a broker.Answer) {
	if a.Result.Code != pqueue.OK {
		return
	}
	for _, name := range o.w.names() {
		here := func(p broker.Part) bool { return p.Node == name }
		if !slices.ContainsFunc(a.Parts, here) && !slices.Contains(a.Missing, name) {
			o.fail("%v counts the items of all nodes but %s, and does not say so", c.n.m, name)
		}
	}
}

// ended checks that a deleteMin does not wait for longer than it was to.
func (o *oracle) ended(c *client, a broker.Answer) {
	took := o.w.now - max(c.began, c.n.woke)
	most := c.waits + broker.EndWithin + second // half of which is until it is looked at again
	if len(a.Parts) > 0 {
		most += leaseFor
	}
	if c.waits > 0 && took > most {
		o.fail("a deleteMin at %v, of %s, was to wait for %d ms, and has %d items after %d", c.n.m, c.queue, c.waits/milli, len(a.Parts), took/milli)
	}
}

// ordered checks that an answer has its items in their order, whatever happens
// around it.
func (o *oracle) ordered(queue string, parts []broker.Part) {
	for i := 1; i < len(parts); i++ {
		a, b := parts[i-1].Result, parts[i].Result
		if len(a.Items) == 1 && len(b.Items) == 1 && goesBefore(b.Items[0], a.Items[0]) {
			o.fail("queue %s: one answer has %s (%d, %d) after %s (%d, %d)", queue,
				b.Items[0].ID, b.Items[0].Priority, b.Items[0].Stamp, a.Items[0].ID, a.Items[0].Priority, a.Items[0].Stamp)
		}
	}
}

func goesBefore(a, b pqueue.Item) bool {
	return a.Priority < b.Priority || a.Priority == b.Priority && a.Stamp < b.Stamp
}

// shown checks what a Peek has shown just before these were taken, and whether it
// says that there are more.
func (o *oracle) shown(queue string, peek *broker.Answer, taken []broker.Part, more bool) {
	if peek != nil && peek.Result.Code == pqueue.Unavailable && strings.HasSuffix(queue, "safe") {
		return // it says so: this node heard of two leaders of the log in the wrong order
	}
	if peek == nil || len(peek.Parts) < len(taken) || more != (peek.More != qpid.Weight{}) {
		o.fail("queue %s at rest: before a take of %d, of all there are: %v, a peek shows %+v", queue, len(taken), !more, peek)
		return
	}
	for i, p := range taken {
		if was, is := peek.Parts[i].Result.Items[0], p.Result.Items[0]; was.Number != is.Number {
			o.fail("queue %s at rest: a peek shows %s in place %d, and a take brings %s", queue, was.ID, i, is.ID)
		}
	}
}

// drained takes in items of the end, which must come in order.
func (o *oracle) drained(queue string, parts []broker.Part) {
	for _, p := range parts {
		got := p.Result.Items[0]
		last, ok := o.last[queue]
		if ok && goesBefore(got, last) {
			o.fail("queue %s at rest: %s (%d, %d) comes after %s (%d, %d)", queue, got.ID, got.Priority, got.Stamp, last.ID, last.Priority, last.Stamp)
		}
		o.last[queue] = got
		i := o.item(queue, broker.HandleOf(p.Kind, p.Node, got.Number), got.ID)
		i.fetched = true
		o.swept(i, got.Payload)
	}
}

// end checks that nothing is lost and nobody forgotten.
func (o *oracle) end() {
	for _, i := range o.all {
		if i.put && !i.acked && !i.left && !i.fetched && !strings.HasPrefix(i.queue, "slow") && !isAgain(i.queue) && !o.mayBePurged(i) {
			o.fail("%s of %s (%v) was acknowledged, and is gone", i.id, i.queue, i.handle)
		}
	}
	for _, n := range o.w.nodes {
		for _, c := range n.waiting() {
			if o.w.now > c.until {
				o.fail("a call at %v is not answered: queue %s, operation %d", n.m, c.queue, c.op)
			}
		}
	}
}

// waiting returns the calls that are not answered, in their order.
func (n *node) waiting() []*client {
	var ids []uint64
	for id := range n.clients { // sorted below
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var all []*client
	for _, id := range ids {
		all = append(all, n.clients[id])
	}
	return all
}
