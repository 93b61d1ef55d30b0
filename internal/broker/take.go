package broker

import (
	"cmp"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// take is a Take under way. It asks for one item, and as long as there are
// more for two, four and so on. The answers to deleteMins that are under way
// together come from several nodes, each when it can, so what has come is put in
// its order in the end; and it does not end while some are under way, or a
// lighter item than those it has may be given to it too late, and go back.
type take struct {
	Take
	q       *queue
	until   int64 // boot time at which its caller has no use for it any more
	waits   int64 // boot time until which it waits for the first item
	got     []Part
	since   int64 // boot time at which its first item was asked for
	more    int64 // boot time until which it asks for more, once it has one
	late    int64 // and until which it waits for what it has asked for
	bytes   int
	ops     int         // under way
	burst   int         // asked for at once the last time
	dry     bool        // one of them found nothing
	busy    bool        // one of them came at a bad moment
	full    pqueue.Code // one of them found a disk that is full; OK: none
	paused  bool
	after   int64 // µs after which the root wants to be asked again
	parked  bool  // in q.waiters
	asking  bool  // parked, with an op under way
	retryAt int64 // boot time at which to ask again, whoever else waits; 0: in turn
	over    bool
}

// op is a deleteMin under way.
type op struct {
	take     *take
	lease    int64
	sent     int64 // boot time at which it was last sent on its way
	patience int64 // µs until it is sent again, if nothing else happens
}

const (
	opEvery      = 500_000   // µs between two looks at a deleteMin without an answer
	patienceMin  = 2_000_000 // µs until it is asked again; what is lost is lost with a round, mostly
	settleWithin = 150_000   // µs after an install in which "nothing waits" may be news that is still on its way
	retryEvery   = 10_000    // µs
	pollMin      = 20_000    // µs between two looks for an item while somebody waits
	pollMax      = 500_000
	burstMax     = 64      // waiters that ask at once
	wakeEvery    = 1_000   // µs between two wakes of a queue
	atOnceMax    = 128     // deleteMins of a take under way at once
	astrayMax    = 8       // of them, while items come from more than one node: each has to go where the last one sent the root
	takeMax      = 1000    // items
	takeBytesMax = 3 << 20 // of payloads in an answer
)

// EndWithin is how much longer than its Wait a Take that brings nothing goes on at
// most, in µs, for an answer that may be on its way.
const EndWithin = 500_000

// MoreFor is for how long a Take asks for more once it has an item, in µs; a
// quarter of its lease if that is less.
const MoreFor = 2_000_000

// Take begins a deleteMin. Ready brings the answer, exactly one, unless the
// caller takes its leave with Forsake.
func (b *Broker) Take(now Time, t Take) {
	b.read(now)
	defer b.steer()
	q, code := b.use(t.Queue)
	switch {
	case code != pqueue.OK:
	case t.Queue == "" || t.Max < 1 || t.Max > takeMax || t.For < 0 || t.For > q.c.Limits.LeaseMax || t.Wait < 0:
		code = pqueue.Invalid
	case len(b.view.List) == 0:
		code = pqueue.Unavailable
	case len(b.takes) >= b.c.CallsMax+b.c.WaitersMax || t.Wait > 0 && b.waiting >= b.c.WaitersMax:
		code = pqueue.Busy
	}
	if code != pqueue.OK {
		b.answer(Answer{ID: t.ID, Result: pqueue.Result{Code: code}})
		return
	}
	t.For = cmp.Or(t.For, q.c.Lease)
	k := &take{Take: t, q: q, until: b.now.Boot + t.Within, waits: b.now.Boot + t.Wait}
	if t.Wait > 0 {
		k.until = min(k.until, k.waits+EndWithin)
	}
	b.takes[t.ID] = k
	if t.Wait > 0 && len(q.waiters) > 0 {
		b.park(k) // others were here before
		return
	}
	b.issue(k, 1)
}

// Forsake gives up a take whose caller has gone. What it was given goes back.
func (b *Broker) Forsake(now Time, id uint64) {
	b.read(now)
	if k := b.takes[id]; k != nil {
		b.end(k)
		for _, p := range k.got {
			if m, ok := b.member(p.Node); ok {
				b.giveBack(m, k.q.c.Name, p.Result)
			}
		}
	}
	b.steer()
}

// issue sends n deleteMins on their way.
func (b *Broker) issue(k *take, n int) {
	k.burst, k.dry, k.busy, k.paused, k.after, k.retryAt = n, false, false, false, 0, 0
	k.full = pqueue.OK
	if len(k.got) == 0 {
		k.since = b.now.Boot
	}
	if k.parked {
		k.asking = true
		k.q.asking++
	}
	k.ops += n
	for range n {
		b.seq++
		b.ops[b.seq] = &op{k, k.For, b.now.Boot, patienceMin}
		b.opTimes = append(b.opTimes, timeout{b.now.Boot + opEvery, b.seq})
		b.deleteMin(k.q, b.own(b.seq, k.For))
	}
}

// own is a deleteMin of this node.
func (b *Broker) own(seq uint64, lease int64) heldOp {
	op := qpid.OpID{Caller: b.self.Name, Seq: seq}
	return heldOp{m: qpid.Message{Kind: qpid.MsgDeleteMin, From: b.self.Name, To: b.self.Name, Op: op}, lease: lease}
}

// onGranted takes in how a deleteMin has ended. An item that nobody waits for
// any more goes back at once, unless a caller may have it.
func (b *Broker) onGranted(from eviction.Member, queue string, seq uint64, r pqueue.Result, after int64) {
	o, given := b.ops[seq], r.Code == pqueue.OK && len(r.Items) == 1
	delete(b.ops, seq)
	if o == nil || o.take.over {
		if given && seq > b.delivered.forgotten && !b.delivered.has(seq, from, r) {
			b.stats.Returned++
			b.giveBack(from, queue, r)
		}
		return
	}
	k := o.take
	switch {
	case given && r.Until <= b.now.Clock: // it was too long on its way: the lease has lapsed
		k.busy = true
	case given:
		b.delivered.add(b.now.Boot, seq, from, r)
		if len(k.got) == 0 {
			// The first lease is not to be spent on looking for more.
			more := min(MoreFor, k.For/4)
			k.more, k.late = b.now.Boot+more, b.now.Boot+2*more
		}
		k.got = append(k.got, Part{from.Name, k.q.c.Kind, r})
		k.bytes += len(r.Items[0].Payload)
	case r.Code == pqueue.Empty || r.Code == pqueue.IsPaused:
		k.dry, k.paused, k.after = true, r.Code == pqueue.IsPaused, after
	case r.Code == pqueue.StorageFull || r.Code == pqueue.StorageDoubt:
		k.full = r.Code
	default:
		k.busy = true
	}
	k.ops--
	if k.ops > 0 {
		return
	}
	if k.asking {
		k.asking = false
		k.q.asking--
	}
	b.next(k)
}

// giveBack ends a lease that never reached its caller.
func (b *Broker) giveBack(to eviction.Member, queue string, r pqueue.Result) {
	c := pqueue.Command{Op: pqueue.OpRelease, Queue: queue, Number: r.Number, Lease: r.Lease}
	if to == b.self {
		b.serve(c, func(pqueue.Result) {})
		return
	}
	b.send(Message{Kind: MsgRequest, To: to, Command: c})
}

// next goes on with a take when all that it asked for has been answered. It ends
// short of what it was asked for when nothing waits any more, or when finding
// more takes too long: that a deleteMin came at a bad moment, or just after an
// install, says nothing about what there is.
func (b *Broker) next(k *take) {
	q := k.q
	unsettled := k.dry && !k.paused && k.after == 0 && b.now.Boot < q.since+settleWithin
	switch {
	case k.full != pqueue.OK && len(k.got) == 0:
		b.finish(k, k.full)
	case k.full != pqueue.OK || len(k.got) == k.Max || k.bytes >= takeBytesMax || len(k.got) > 0 && b.now.Boot >= k.more:
		b.finish(k, pqueue.OK)
	case !k.dry && !k.busy:
		b.issue(k, k.atOnce())
	case len(k.got) > 0 && !k.busy && !unsettled:
		b.finish(k, pqueue.OK)
	case b.now.Boot >= k.until && (k.busy || unsettled):
		b.finish(k, pqueue.Unavailable)
	case k.busy, unsettled:
		k.retryAt = b.now.Boot + retryEvery
		b.park(k)
	case b.now.Boot < k.waits:
		if q.burst = 1; k.after > 0 {
			q.pollAt = b.now.Boot + k.after
		}
		b.park(k)
	default:
		code := pqueue.Empty
		if why := b.unready(q); why != pqueue.OK {
			code = why // what waits is not known here
		}
		b.finish(k, code)
	}
}

// atOnce is how many deleteMins follow on k.burst that have all brought an item.
// Whatever they bring has to fit the answer.
func (k *take) atOnce() int {
	n, last := min(2*k.burst, atOnceMax), k.got[len(k.got)-k.burst:]
	if slices.ContainsFunc(last, func(p Part) bool { return p.Node != last[0].Node }) {
		n = min(n, astrayMax)
	}
	return min(n, 1+(takeBytesMax-k.bytes)/max(1, k.q.c.PayloadMax), k.Max-len(k.got))
}

// park has k wait for items.
func (b *Broker) park(k *take) {
	q := k.q
	if k.parked {
		return
	}
	k.parked = true
	b.waiting++
	if len(q.waiters) == 0 {
		q.backoff, q.burst = pollMin, 1
		q.pollAt = max(b.now.Boot+pollMin, q.pollAt)
	}
	q.waiters = append(q.waiters, k)
	b.activate(q)
	b.interested(q)
}

// finish answers a take. What has lapsed while it waited for more is not worth
// handing over.
func (b *Broker) finish(k *take, code pqueue.Code) {
	b.end(k)
	k.got = slices.DeleteFunc(k.got, func(p Part) bool { return p.Result.Until <= b.now.Clock })
	slices.SortFunc(k.got, func(p, o Part) int { return p.weight().Compare(o.weight()) })
	switch {
	case len(k.got) > 0:
		code = pqueue.OK
	case code == pqueue.OK:
		code = pqueue.Unavailable
	}
	a := Answer{ID: k.ID, Parts: k.got, Paused: k.paused}
	if len(k.got) == 0 && !k.paused {
		if a.Missing = b.unseen(k.q.c.Kind); len(a.Missing) > 0 && code == pqueue.Unavailable {
			code = pqueue.Empty // it is known who does not answer, and asking again does not help
		}
		a.Missing = lacking(a.Missing, b.outside(b.keepers(k.Queue)))
	}
	if len(k.got) > 0 || !k.paused {
		a.Missing = lacking(a.Missing, b.missedSince(k.q.c.Kind, k.since))
	}
	a.Result.Code = code
	b.answer(a)
	if len(k.got) > 0 && len(k.q.waiters) > 0 {
		k.q.burst = min(2*max(1, k.q.burst), burstMax)
		b.wake(k.q)
	}
}

// end takes k off the books. What is still to come goes back.
func (b *Broker) end(k *take) {
	k.over = true
	delete(b.takes, k.ID)
	if k.asking {
		k.asking = false
		k.q.asking--
	}
	if k.parked {
		k.parked = false
		b.waiting--
		i := slices.Index(k.q.waiters, k)
		k.q.waiters = slices.Delete(k.q.waiters, i, i+1)
	}
}

// wake has those who wait for items of q ask again, soon.
func (b *Broker) wake(q *queue) {
	if len(q.waiters) == 0 || q.awake {
		return
	}
	q.awake = true
	b.awake = append(b.awake, q)
}

// askAgain lets those ask who have been woken.
func (b *Broker) askAgain() {
	for len(b.awake) > 0 {
		q := b.awake[0]
		b.awake = b.awake[1:]
		q.awake = false
		q.backoff, q.pollAt = pollMin, b.now.Boot+pollMin
		b.askSome(q)
	}
}

// askSome has waiters ask, the longest waiting first.
func (b *Broker) askSome(q *queue) {
	for q.asking < max(1, q.burst) {
		i := slices.IndexFunc(q.waiters, func(k *take) bool { return !k.asking && k.retryAt == 0 })
		if i < 0 {
			return
		}
		k := q.waiters[i]
		b.issue(k, 1)
		if !k.asking && k.parked {
			return // it was answered at once, and found nothing
		}
	}
}

// tickTakes repeats deleteMins that were lost, and has takes look for items or
// end.
func (b *Broker) tickTakes() {
	for len(b.opTimes) > 0 && b.opTimes[0].at <= b.now.Boot {
		t := b.opTimes[0]
		b.opTimes = b.opTimes[1:]
		switch o := b.ops[t.seq]; {
		case o == nil:
		case o.take.over:
			delete(b.ops, t.seq)
		case len(o.take.got) > 0 && b.now.Boot >= o.take.late:
			delete(b.ops, t.seq)
			b.finish(o.take, pqueue.OK) // it has waited long enough for more
		case b.now.Boot >= o.take.until:
			delete(b.ops, t.seq)
			b.finish(o.take, pqueue.Unavailable)
		default:
			b.opTimes = append(b.opTimes, timeout{b.now.Boot + opEvery, t.seq})
			b.repeatOp(t.seq, o)
		}
	}
	b.tickActive()
}

// repeatOp asks again: some time after a round, before which messages were
// lost, and else with growing patience. A deleteMin that runs after a root which
// is always elsewhere is slow, and copies of it make it slower.
func (b *Broker) repeatOp(seq uint64, o *op) {
	made := b.round.madeAt
	lost := o.sent < made && b.now.Boot >= made+opEvery
	if o.take.q.q.Frozen() || !lost && b.now.Boot < o.sent+o.patience {
		return
	}
	o.sent = b.now.Boot
	o.patience *= 2
	b.stats.Repeated++
	b.deleteMin(o.take.q, b.own(seq, o.lease))
}

func (b *Broker) tickWaiters(q *queue) {
	for _, k := range slices.Clone(q.waiters) {
		switch {
		case k.over || k.asking:
		case len(k.got) > 0 && b.now.Boot >= k.more:
			b.finish(k, pqueue.OK)
		case b.now.Boot >= k.until && (k.busy || k.retryAt != 0):
			b.finish(k, pqueue.Unavailable)
		case k.retryAt != 0 && b.now.Boot >= k.retryAt:
			b.issue(k, 1)
		case k.retryAt == 0 && b.now.Boot >= k.waits:
			b.finish(k, pqueue.Empty)
		}
	}
	if len(q.waiters) > 0 && b.now.Boot >= q.pollAt {
		q.backoff = min(2*q.backoff, pollMax)
		q.pollAt = b.now.Boot + q.backoff
		b.askSome(q)
	}
}

// delivered remembers which leases this node has taken over for a caller, so
// that a second answer to a deleteMin that was asked again does not give back
// what the first one brought.
//
// A deleteMin may lie at a node that is paused for longer than anything is
// remembered here, or than this node lives. The lease that answers it then may be
// one that its caller works under, so it must not go back: it is left to lapse.
type delivered struct {
	leases    map[uint64]handed // by Seq of the deleteMin
	forgotten uint64            // Seq up to which what is not in leases may have been
	order     []timeout
}

type handed struct {
	from   eviction.Member
	number uint64
	lease  uint64
}

const (
	deliveredFor = 10_000_000 // µs
	deliveredMax = 200_000
)

func (d *delivered) add(now int64, seq uint64, from eviction.Member, r pqueue.Result) {
	if d.leases == nil {
		d.leases = make(map[uint64]handed)
	}
	for len(d.order) > 0 && (d.order[0].at <= now || len(d.order) >= deliveredMax) {
		d.forgotten = max(d.forgotten, d.order[0].seq)
		delete(d.leases, d.order[0].seq)
		d.order = d.order[1:]
	}
	d.leases[seq] = handed{from, r.Number, r.Lease}
	d.order = append(d.order, timeout{now + deliveredFor, seq})
}

func (d *delivered) has(seq uint64, from eviction.Member, r pqueue.Result) bool {
	return d.leases[seq] == handed{from, r.Number, r.Lease}
}
