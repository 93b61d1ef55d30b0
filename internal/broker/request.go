package broker

import (
	"cmp"
	"maps"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// request is a command that another member, or this one, has been asked for.
type request struct {
	to   eviction.Member
	then func(pqueue.Result)
}

// answerWithin is how long a member is given for an answer, in µs.
const answerWithin = 3_000_000

// timeout is when something is given up, or asked again. Lists of them are in
// the order of time.
type timeout struct {
	at  int64 // boot time
	seq uint64
}

// ask has another member carry out a command; then hears how it went, once.
func (b *Broker) ask(to eviction.Member, c pqueue.Command, then func(pqueue.Result)) {
	if to == b.self {
		b.serve(c, then)
		return
	}
	if !slices.Contains(b.view.List, to) {
		then(pqueue.Result{Code: pqueue.Unavailable})
		return
	}
	b.seq++
	b.requests[b.seq] = &request{to, then}
	b.timeouts = append(b.timeouts, timeout{b.now.Boot + answerWithin, b.seq})
	b.send(Message{Kind: MsgRequest, To: to, Seq: b.seq, Command: c})
}

func (b *Broker) onRequest(m Message) {
	b.serve(m.Command, func(r pqueue.Result) {
		if m.Seq != 0 {
			b.send(Message{Kind: MsgResponse, To: m.From, Seq: m.Seq, Result: r})
		}
	})
}

func (b *Broker) onResponse(from eviction.Member, seq uint64, r pqueue.Result) {
	if q := b.requests[seq]; q != nil && q.to == from {
		delete(b.requests, seq)
		q.then(r)
	}
}

// expire gives up requests that are not answered.
func (b *Broker) expire() {
	for len(b.timeouts) > 0 && b.timeouts[0].at <= b.now.Boot {
		b.unanswered(b.timeouts[0].seq)
		b.timeouts = b.timeouts[1:]
	}
}

// fail gives up all that m was asked for.
func (b *Broker) fail(m eviction.Member) {
	for _, seq := range slices.Sorted(maps.Keys(b.requests)) {
		if q := b.requests[seq]; q != nil && q.to == m {
			b.unanswered(seq)
		}
	}
}

func (b *Broker) unanswered(seq uint64) {
	if q := b.requests[seq]; q != nil {
		delete(b.requests, seq)
		q.then(pqueue.Result{Code: pqueue.Unavailable})
	}
}

// serve carries out a command for whoever asks, with the shard of this node.
func (b *Broker) serve(c pqueue.Command, then func(pqueue.Result)) {
	if c.Op == pqueue.OpStats {
		then(b.stat(c.Queue))
		return
	}
	q := b.queue(c.Queue)
	if q == nil && (c.Op == pqueue.OpInsert || c.Op == pqueue.OpConfigure || c.Op == pqueue.OpMode && c.Mode.Mode != pqueue.Running) {
		made, code := b.use(c.Queue)
		if code != pqueue.OK {
			then(pqueue.Result{Code: code})
			return
		}
		q = made
	}
	if q == nil {
		then(pqueue.Result{Code: pqueue.QueueUnknown})
		return
	}
	q.used = b.now.Boot
	switch c.Op {
	case pqueue.OpMode:
		b.adoptMode(q, c.Mode)
		then(pqueue.Result{})
	case pqueue.OpConfigure:
		b.set(q, c, then)
	case pqueue.OpInsert:
		b.insert(q, c, then)
	case pqueue.OpUpdate:
		if code := b.fits(q, c); code != pqueue.OK {
			then(pqueue.Result{Code: code})
			return
		}
		b.execute(q.c.Kind, c, then)
	case pqueue.OpExtend:
		c.For = cmp.Or(c.For, q.c.Lease)
		if most := b.extendMax(q); c.For > most && c.For <= q.c.Limits.LeaseMax {
			c.For = most
		}
		if c.For <= 0 && q.shares() {
			then(pqueue.Result{Code: pqueue.Unavailable}) // the others may do without this node
			return
		}
		b.execute(q.c.Kind, c, then)
	case pqueue.OpPurge:
		c.Max = min(c.Max, b.c.PurgeSteps)
		b.execute(q.c.Kind, c, then)
	case pqueue.OpRelease:
		b.execute(q.c.Kind, c, func(r pqueue.Result) {
			b.released(q, c.Number)
			then(r)
		})
	case pqueue.OpAck, pqueue.OpNack, pqueue.OpCancel, pqueue.OpRequeue, pqueue.OpBury,
		pqueue.OpPeek, pqueue.OpFind, pqueue.OpRank, pqueue.OpDead:
		b.execute(q.c.Kind, c, then)
	default: // nobody asks another node for the rest
		then(pqueue.Result{Code: pqueue.Invalid})
	}
}

// insert puts an item into this node's shard of q, and makes the queue there first if
// it must.
func (b *Broker) insert(q *queue, c pqueue.Command, then func(pqueue.Result)) {
	s := &b.shards[q.c.Kind]
	if code := b.fits(q, c); code != pqueue.OK {
		then(pqueue.Result{Code: code})
		return
	}
	if _, ok := s.state.Limits(q.c.Name); !ok {
		b.configureOne(s, q, func(pqueue.Result) {})
		b.setMode(q)
	}
	b.execute(q.c.Kind, c, then)
}

// fits says whether there is room for the payload of c.
func (b *Broker) fits(q *queue, c pqueue.Command) pqueue.Code {
	switch {
	case len(c.Payload) > q.c.PayloadMax:
		return pqueue.Invalid
	case len(c.Payload) > 0 && b.memory()+int64(len(c.Payload)) > b.c.MemoryMax:
		return pqueue.Full
	default:
		return pqueue.OK
	}
}

// purge has m drop what it has of a queue now, a part of it in each Tick, as the
// node has other things to do as well. First m is only asked what that is: if a
// message of a purge comes late, or twice, it drops nothing that is younger.
func (b *Broker) purge(m eviction.Member, c pqueue.Command, then func(pqueue.Result)) {
	c.Max, c.Number = 0, 0
	dropped := uint64(0)
	var step func()
	step = func() {
		b.ask(m, c, func(r pqueue.Result) {
			dropped += r.N
			if r.Code == pqueue.OK && r.Exists {
				c.Max, c.Number = b.c.PurgeSteps, r.Number
				b.purging = append(b.purging, step)
				return
			}
			r.N = dropped
			then(r)
		})
	}
	step()
}

// tickPurges goes on with what purge has begun.
func (b *Broker) tickPurges() {
	steps := b.purging
	b.purging = nil
	for _, step := range steps {
		step()
	}
}

// scatter asks all members; then hears what each said, and who did not.
func (b *Broker) scatter(to []eviction.Member, c pqueue.Command, then func(parts []Part, missing []qpid.NodeID)) {
	left := len(to)
	if left == 0 {
		then(nil, nil)
		return
	}
	var parts []Part
	var missing []qpid.NodeID
	ask := b.ask
	if c.Op == pqueue.OpPurge {
		ask = b.purge
	}
	for _, m := range to {
		ask(m, c, func(r pqueue.Result) {
			if r.Code == pqueue.Unavailable {
				missing = append(missing, m.Name)
			} else {
				parts = append(parts, Part{m.Name, b.kindOf(c.Queue), r})
			}
			left--
			if left == 0 {
				then(parts, missing)
			}
		})
	}
}
