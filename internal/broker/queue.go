package broker

import (
	"cmp"
	"errors"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// queue is one named queue at one node: its part of the QPID network, and who
// waits for items here.
//
// Invariant: the items of q are the ready ones of the shard that this node
// leads, but for those whose lease is on its way through a log.
type queue struct {
	c       Queue
	listed  bool // in the configuration
	counted bool // in the tally by itself
	active  bool // in the broker's active
	q       *qpid.Node
	mode    pqueue.ModeSetting
	set     pqueue.Settings // zero: c is as the configuration says
	setAt   uint64          // which change here that was, see settled
	pacer   pacer
	slots   slots
	keys    keyring
	turns   turns
	touched bool  // messages of the installed round's tree have come or gone
	used    int64 // boot time
	filled  int64 // boot time at which something was in it when it was looked at; 0: it was not
	since   int64 // boot time of the last install

	held     []heldOp // deleteMins that wait for the end of a round, or for authority
	askers   interest // members at which somebody waits
	watchers interest // members at which somebody watches
	watched  bool     // somebody watches here
	told     int64    // boot time at which others last heard that somebody waits or watches here

	wokeAt  int64   // boot time at which others were last told of an item
	waiters []*take // that found nothing, longest first
	asking  int     // of them, with a deleteMin under way
	burst   int     // that may be
	awake   bool    // in the broker's awake
	pollAt  int64   // boot time at which the first of them asks again
	backoff int64   // µs

	tallied pqueue.Counters // what of this queue is in the tally of all others
}

// activate has ticks come to q for as long as somebody waits or watches here.
func (b *Broker) activate(q *queue) {
	if q.active {
		return
	}
	q.active = true
	i, _ := slices.BinarySearchFunc(b.active, q.c.Name, func(q *queue, name string) int { return cmp.Compare(q.c.Name, name) })
	b.active = slices.Insert(b.active, i, q)
}

// tickActive does what time brings to queues with somebody who waits or watches
// here. To the others it brings nothing.
func (b *Broker) tickActive() {
	for _, q := range slices.Clone(b.active) {
		b.tickHeld(q)
		if len(q.waiters) > 0 {
			b.tickWaiters(q)
		}
		if len(q.waiters) > 0 || q.watched {
			b.interested(q)
		}
	}
	b.active = slices.DeleteFunc(b.active, func(q *queue) bool {
		q.active = len(q.waiters) > 0 || len(q.held) > 0 || q.watched
		return !q.active
	})
}

// heldOp is a deleteMin at this node.
type heldOp struct {
	m     qpid.Message
	lease int64 // µs
	since int64 // boot time at which it was first held here; 0: it was not
}

// interest is which members want to hear of something.
type interest []interested

type interested struct {
	member eviction.Member
	until  int64 // boot time
}

func (in *interest) drop(m eviction.Member) {
	*in = slices.DeleteFunc(*in, func(i interested) bool { return i.member == m })
}

func (in *interest) add(m eviction.Member, until int64) {
	in.drop(m)
	*in = append(*in, interested{m, until})
}

// live returns those that have not run out.
func (in *interest) live(now int64) []eviction.Member {
	var live []eviction.Member
	for _, i := range *in {
		if i.until > now {
			live = append(live, i.member)
		}
	}
	return live
}

const (
	interestMax   = 10_000_000 // µs for which a member's interest is believed
	interestEvery = 2_000_000  // µs between two words of it
)

func (b *Broker) onQPID(m Message) error {
	q := b.queue(m.Queue)
	if q == nil {
		made, code := b.use(m.Queue)
		if code != pqueue.OK {
			b.round.need = b.round.need || m.QPID.Kind != qpid.MsgDeleteMin
			return errors.New("broker: no room for another queue")
		}
		q = made
	}
	m.QPID.From, m.QPID.To = m.From.Name, m.To.Name
	switch m.QPID.Kind {
	case qpid.MsgDeleteMin:
		b.deleteMin(q, heldOp{m: m.QPID, lease: m.For})
		return nil
	case qpid.MsgUpdate, qpid.MsgFindRoot:
	default:
		return errMessage
	}
	if m.QPID.Kind == qpid.MsgFindRoot && m.QPID.Epoch == b.round.made {
		q.pacer.merge(b.now.Boot, m.Pace)
		b.heardTurn(q, m.For)
	}
	q.touched, q.used = true, b.now.Boot
	err := q.q.Step(m.QPID)
	if q.q.Frozen() && !b.round.frozen {
		b.round.need = true
	}
	b.pump(q)
	return err
}

// deleteMin carries on with a deleteMin that has come to this node: grants an
// item if this is the root, and passes it on if it is not.
func (b *Broker) deleteMin(q *queue, o heldOp) {
	caller := o.m.Op.Caller
	switch grant, known := b.recent.find(o.m.Op); {
	case known && !grant.done:
		return // it is on its way through the log
	case known:
		b.repeat(q, grant.weight, o)
		return
	case q.q.Frozen():
		b.hold(q, o)
		return
	case q.q.IsRoot() && !b.inRound(caller) && (q.c.Kind != Replicated || q.q.Min().IsEmpty()):
		// What it and others have that this round goes on without is not known here, and may
		// go before all that is. Who leads a log knows all that are in it.
		b.grantedTo(caller, q, o.m.Op.Seq, pqueue.Result{Code: pqueue.Busy}, 0)
		return
	case q.q.IsRoot() && q.mode.Mode == pqueue.Paused:
		b.grantedTo(caller, q, o.m.Op.Seq, pqueue.Result{Code: pqueue.IsPaused}, 0)
		return
	case q.q.IsRoot() && !q.q.Min().IsEmpty() && b.heldBack(q, o):
		return
	}
	turn := b.letOut(q)
	if caller == b.self.Name && o.m.From == b.self.Name {
		q.q.DeleteMin(o.m.Op)
	} else if q.q.Step(o.m) != nil {
		b.stats.Refused++
	}
	b.stayed(q, turn)
	b.pumpWith(q, &o)
}

// heldBack reports whether the root may let nothing out just now, and sees to the
// deleteMin if so.
func (b *Broker) heldBack(q *queue, o heldOp) bool {
	after := int64(0)
	if q.bounded() && b.free(q) <= 0 {
		after = fullEvery
	}
	if q.c.Interval > 0 {
		after = max(after, q.pacer.next()-b.now.Boot)
	}
	switch {
	case after > 0:
		b.grantedTo(o.m.Op.Caller, q, o.m.Op.Seq, pqueue.Result{Code: pqueue.Empty}, after)
		return true
	case q.c.Interval == 0 && !q.shares():
		return false
	}
	if !b.authority() {
		b.hold(q, o) // until the coordinator has vouched
		return true
	}
	return b.keyHeldBack(q, o)
}

// hold keeps a deleteMin for a moment in which nothing can go out.
func (b *Broker) hold(q *queue, o heldOp) {
	if b.held >= pendingMax {
		b.grantedTo(o.m.Op.Caller, q, o.m.Op.Seq, pqueue.Result{Code: pqueue.Busy}, 0)
		return
	}
	o.since = cmp.Or(o.since, b.now.Boot)
	b.held++
	q.held = append(q.held, o)
	b.activate(q)
}

// tickHeld gives up waiting for a word of authority that does not come. A node
// without a quorum has one round after the other meanwhile.
func (b *Broker) tickHeld(q *queue) {
	if len(q.held) == 0 || q.q.Frozen() {
		return
	}
	var late []heldOp
	q.held = slices.DeleteFunc(q.held, func(o heldOp) bool {
		if b.now.Boot < o.since+b.c.Fresh {
			return false
		}
		late = append(late, o)
		return true
	})
	b.held -= len(late)
	for _, o := range late {
		b.grantedTo(o.m.Op.Caller, q, o.m.Op.Seq, pqueue.Result{Code: pqueue.Empty}, b.c.Fresh)
	}
}

// goOn handles the deleteMins that were held.
func (b *Broker) goOn(q *queue) {
	held := q.held
	q.held = nil
	b.held -= len(held)
	for _, o := range held {
		b.deleteMin(q, o)
	}
	if len(q.waiters) > 0 {
		b.wake(q)
	}
}

// pump does what q's QPID wants done.
func (b *Broker) pump(q *queue) { b.pumpWith(q, nil) }

func (b *Broker) pumpWith(q *queue, o *heldOp) {
	r := q.q.Ready()
	for _, taken := range r.Removed { // before the office of the root goes on, and this with it
		b.recent.add(taken.Op, taken.Weight)
		if q.c.Interval > 0 {
			q.pacer.grant(grantID(taken), b.now.Boot)
		}
		if o != nil {
			q.slots.leasing++
		}
	}
	for _, m := range r.Messages {
		to, ok := b.member(m.To)
		switch m.Kind {
		case qpid.MsgTaken:
			b.ended(q, qpid.Answer{Op: m.Op, Outcome: m.Outcome}, r.Removed)
			continue
		case qpid.MsgDeleteMin:
			if ok && o != nil {
				b.send(Message{Kind: MsgQPID, To: to, Queue: q.c.Name, QPID: m, For: o.lease})
			}
			continue
		default:
		}
		q.touched = true
		if !ok {
			b.round.need = true // the tree has a node that nobody knows
			continue
		}
		if m.Kind == qpid.MsgFindRoot && q.shares() {
			b.handOver(q, to)
		}
		out := Message{Kind: MsgQPID, To: to, Queue: q.c.Name, QPID: m}
		if m.Kind == qpid.MsgFindRoot && q.c.Interval > 0 {
			out.Pace = q.pacer.pace(b.now.Boot)
		}
		if m.Kind == qpid.MsgFindRoot && q.c.FairKeys {
			out.For = q.turns.last
		}
		b.send(out)
	}
	for _, a := range r.Answers {
		b.ended(q, a, r.Removed)
	}
	for _, taken := range r.Removed {
		if o != nil {
			b.grant(q, taken.Weight, *o)
		}
	}
}

// grantID tells one grant from another.
func grantID(r qpid.Removal) uint64 { return mix(pqueue.NumberOf(r.Weight) ^ r.Op.Seq<<20) }

// ended answers a deleteMin that took nothing. What one took goes through the
// shard first.
func (b *Broker) ended(q *queue, a qpid.Answer, removed []qpid.Removal) {
	switch a.Outcome {
	case qpid.NothingWaits:
		b.grantedTo(a.Op.Caller, q, a.Op.Seq, pqueue.Result{Code: pqueue.Empty}, 0)
	case qpid.Refused:
		b.grantedTo(a.Op.Caller, q, a.Op.Seq, pqueue.Result{Code: pqueue.Busy}, 0)
	case qpid.Taken:
		if !slices.ContainsFunc(removed, func(r qpid.Removal) bool { return r.Op == a.Op }) {
			b.grantedTo(a.Op.Caller, q, a.Op.Seq, pqueue.Result{Code: pqueue.Busy}, 0) // long ago; ask anew
		}
	}
}

// grant leases the item to the caller of a deleteMin, through its shard.
func (b *Broker) grant(q *queue, w qpid.Weight, o heldOp) {
	op, longest := o.m.Op, q.c.Limits.LeaseMax
	if l, ok := b.shards[q.c.Kind].state.Limits(q.c.Name); ok {
		longest = min(longest, l.LeaseMax) // settings may be on their way through the log
	}
	if q.shares() {
		longest = min(longest, q.slots.longest)
	}
	c := pqueue.Command{
		Op: pqueue.OpLease, Queue: q.c.Name, Number: pqueue.NumberOf(w), For: max(1, min(o.lease, longest)),
		Taker: pqueue.Taker{Node: string(op.Caller), Seq: op.Seq}, Lease: uint64(max(0, b.now.Clock)),
	}
	key := b.shards[q.c.Kind].state.KeyOf(q.c.Name, c.Number)
	b.granting(q, key)
	b.execute(q.c.Kind, c, func(r pqueue.Result) {
		q.slots.leasing--
		after, doubt := int64(0), int64(0)
		switch r.Code {
		case pqueue.OK:
			b.recent.finish(op)
		case pqueue.Unavailable, pqueue.StorageDoubt:
			if q.shares() {
				doubt = b.now.Boot + c.For + b.c.Fresh
				q.slots.doubts = append(q.slots.doubts, doubt)
			}
		case pqueue.AllLeased:
			r, after = pqueue.Result{Code: pqueue.Empty}, fullEvery
		default:
		}
		b.granted(q, key, doubt)
		if r.Code != pqueue.OK {
			b.recent.drop(op)
			b.mend(q, w)
			b.freed(q)
			if !slices.Contains([]pqueue.Code{pqueue.IsPaused, pqueue.StorageFull, pqueue.StorageDoubt, pqueue.Empty}, r.Code) {
				r = pqueue.Result{Code: pqueue.Busy} // somebody was quicker: ask anew
			}
		}
		b.grantedTo(op.Caller, q, op.Seq, r, after)
	})
}

// repeat answers a deleteMin again, as long as its lease stands.
func (b *Broker) repeat(q *queue, w qpid.Weight, o heldOp) {
	find := pqueue.Command{Op: pqueue.OpFind, Queue: q.c.Name, Number: pqueue.NumberOf(w)}
	if r := b.shards[q.c.Kind].state.Apply(find); r.State == pqueue.Leased {
		q.slots.leasing++
		b.grant(q, w, o) // the shard knows who has it: the same taker gets the same lease
		return
	}
	b.grantedTo(o.m.Op.Caller, q, o.m.Op.Seq, pqueue.Result{Code: pqueue.Busy}, 0)
}

// mend puts an item back into QPID whose lease came to nothing.
func (b *Broker) mend(q *queue, granted qpid.Weight) {
	s := &b.shards[q.c.Kind]
	if i, ok := s.state.Offered(q.c.Name, pqueue.NumberOf(granted)); ok && s.leads {
		w := pqueue.WeightOf(i.Priority, i.Stamp, s.state.Salt(), i.Number)
		b.left(q, i.Key, w)
		b.came(q, i.Key, w)
		q.turnBack(i.Key, w, pqueue.StampOf(granted))
		b.pump(q)
	}
}

// grantedTo tells the caller of a deleteMin how it has ended; after is when to
// ask again, 0: as the caller likes.
func (b *Broker) grantedTo(caller qpid.NodeID, q *queue, seq uint64, r pqueue.Result, after int64) {
	if caller == b.self.Name {
		b.onGranted(b.self, q.c.Name, seq, r, after)
		return
	}
	if to, ok := b.member(caller); ok {
		b.send(Message{Kind: MsgGranted, To: to, Queue: q.c.Name, Seq: seq, Result: r, For: after})
	}
}

// adoptMode takes in a mode that may be newer, also for what this node keeps.
func (b *Broker) adoptMode(q *queue, m pqueue.ModeSetting) {
	if !m.Newer(q.mode) {
		return
	}
	q.mode = m
	b.setMode(q)
	if m.Mode != pqueue.Paused {
		b.wake(q)
	}
}

// setMode has the queue's shard, if it is led here, know the mode.
func (b *Broker) setMode(q *queue) {
	s := &b.shards[q.c.Kind]
	if s.leads && q.mode.Newer(s.state.ModeOf(q.c.Name)) {
		b.execute(q.c.Kind, pqueue.Command{Op: pqueue.OpMode, Queue: q.c.Name, Mode: q.mode}, func(pqueue.Result) {})
	}
}

// recent remembers grants, so that a deleteMin which is asked again brings the
// same item.
type recent struct {
	byOp  map[qpid.OpID]recentGrant
	order []qpid.OpID // a ring
	at    int
}

type recentGrant struct {
	weight qpid.Weight
	done   bool // the lease is given
}

const recentMax = 8192

func (r *recent) find(op qpid.OpID) (recentGrant, bool) {
	g, ok := r.byOp[op]
	return g, ok
}

func (r *recent) add(op qpid.OpID, w qpid.Weight) {
	if r.byOp == nil {
		r.byOp = make(map[qpid.OpID]recentGrant)
	}
	if len(r.order) < recentMax {
		r.order = append(r.order, op)
	} else {
		delete(r.byOp, r.order[r.at])
		r.order[r.at] = op
		r.at = (r.at + 1) % recentMax
	}
	r.byOp[op] = recentGrant{weight: w}
}

func (r *recent) finish(op qpid.OpID) {
	if g, ok := r.byOp[op]; ok {
		g.done = true
		r.byOp[op] = g
	}
}

func (r *recent) drop(op qpid.OpID) { delete(r.byOp, op) }
