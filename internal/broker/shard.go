package broker

import (
	"fmt"
	"slices"

	"github.com/anteroom/anteroom/internal/pqueue"
)

// shard is a pqueue.Shard at this node: the memory's, a log's that this node
// leads, or a log's that it follows.
type shard struct {
	kind    Kind
	logged  bool
	state   *pqueue.Shard // nil: there is none of this kind here
	leads   bool
	room    Room
	ticking bool  // a Tick is on its way through the log
	last    int64 // when the last insert came, Unix µs
	againAt int64 // boot time at which to configure it again, where that came to nothing; 0: it did not
}

// configureEvery is how soon that is, in µs.
const configureEvery = 500_000

// proposal is a command on its way through a log.
type proposal struct {
	kind Kind
	then func(pqueue.Result)
}

const proposalsMax = 20_000

// tickSteps bounds what one Tick of a shard does.
const tickSteps = 1000

// execute has a command carried out by the shard of that kind, through its log
// if it has one; then hears how it went.
func (b *Broker) execute(k Kind, c pqueue.Command, then func(pqueue.Result)) {
	s := &b.shards[k]
	c.Now = b.now.Clock
	if c.Op == pqueue.OpInsert {
		c.Now = max(c.Now, s.last+1) // so that those of one microsecond stay in their order
		s.last = c.Now
	}
	switch {
	case (s.state == nil || !s.leads) && s.room == RoomForNone:
		then(pqueue.Result{Code: pqueue.StorageFull})
	case s.state == nil || !s.leads:
		then(pqueue.Result{Code: pqueue.Unavailable})
	case c.Op.Reads():
		then(s.state.Apply(c))
	case s.room == RoomForNone, s.room == RoomToRemove && adds(c):
		then(pqueue.Result{Code: pqueue.StorageFull})
	case !s.logged:
		r := s.state.Apply(c)
		b.mirror(s)
		if c.Op == pqueue.OpConfigure {
			b.heeded(c.Queue, k)
		}
		then(r)
	case len(b.proposals) >= proposalsMax:
		then(pqueue.Result{Code: pqueue.Busy})
	default:
		text := c.Encode(nil)
		if _, err := pqueue.DecodeCommand(text); err != nil { // no replica could go on after it
			then(pqueue.Result{Code: pqueue.Invalid})
			return
		}
		b.seq++
		b.proposals[b.seq] = &proposal{k, then}
		b.out.Proposals = append(b.out.Proposals, Proposal{Kind: k, Token: b.seq, Command: text, Adds: adds(c)})
	}
}

// adds reports whether a command makes more of what is kept.
func adds(c pqueue.Command) bool { return c.Op == pqueue.OpInsert || c.Fields&pqueue.FieldPayload != 0 }

// mirror takes over into QPID what has changed in a shard.
func (b *Broker) mirror(s *shard) {
	for _, c := range s.state.Changes() {
		q := b.queue(c.Queue)
		if q == nil {
			if q = b.known(s, c.Queue); q == nil {
				continue
			}
		}
		if c.Left {
			b.left(q, c.Item.Key, c.Out)
		}
		if c.Came {
			b.came(q, c.Item.Key, c.In)
			b.tellAskers(q)
		}
		b.turn(q, c.Item.Key)
		b.pump(q)
		if c.Kind != 0 {
			b.tellWatchers(q, c)
		}
		if q.bounded() && c.Kind != pqueue.WasLeased {
			b.freed(q)
		}
	}
}

// known makes a queue that a shard has, and the configuration does not list any more.
func (b *Broker) known(s *shard, name string) *queue {
	if len(b.queues) >= 2*b.c.QueuesMax {
		return nil
	}
	c := b.c.OnUse
	c.Name, c.Kind = name, s.kind
	if l, ok := s.state.Limits(name); ok {
		c.Limits = l
		c.Limits.InFlightMax, c.Limits.Exclusive = 0, false // nobody else knows of it
	}
	return b.addQueue(c, false)
}

// Apply applies committed commands of a log, on whatever node, and returns a
// result for each. If one cannot be read, being of a newer version, none is applied:
// to go on without it would be to have other items than the other replicas.
func (b *Broker) Apply(now Time, k Kind, commands [][]byte) ([][]byte, error) {
	b.read(now)
	s := &b.shards[k]
	read := make([]pqueue.Command, len(commands))
	for i, text := range commands {
		var err error
		if read[i], err = pqueue.DecodeCommand(text); err != nil {
			return nil, err
		}
	}
	results := make([][]byte, len(commands))
	var configured []string
	for i, c := range read {
		r := pqueue.Result{Code: pqueue.Invalid}
		if s.state != nil {
			r = s.state.Apply(c)
			if q := b.queue(c.Queue); q != nil && q.c.Kind == k && c.Op == pqueue.OpConfigure {
				b.recallSettings(q, s)
				configured = append(configured, c.Queue)
			}
		}
		results[i] = r.Encode(nil)
	}
	if s.state != nil && s.leads {
		b.mirror(s)
	}
	for _, name := range configured {
		b.heeded(name, k)
	}
	return results, nil
}

// Snapshot is the whole shard of a log.
func (b *Broker) Snapshot(k Kind) []byte { return b.shards[k].state.Encode() }

// Size is what the shard of a log takes, in bytes.
func (b *Broker) Size(k Kind) int64 { return b.shards[k].state.Bytes() }

// Restore replaces the shard of a log.
func (b *Broker) Restore(now Time, k Kind, snapshot []byte) error {
	b.read(now)
	s := &b.shards[k]
	if s.state == nil || !s.logged {
		return fmt.Errorf("broker: there is no log of kind %v here", k)
	}
	state, err := pqueue.Restore(snapshot)
	if err != nil {
		return err
	}
	leads := s.leads
	b.lead(s, false)
	s.state = state
	b.lead(s, leads)
	return nil
}

// Leads says that this node leads a log from now on, after all that was
// committed before, or does so no more.
func (b *Broker) Leads(now Time, k Kind, leads bool) {
	b.read(now)
	if s := &b.shards[k]; s.state != nil && s.logged && s.leads != leads {
		b.lead(s, leads)
	}
	b.steer()
}

// SetRoom says what there is room for, where a log of this node's must write.
func (b *Broker) SetRoom(now Time, k Kind, r Room) {
	b.read(now)
	s := &b.shards[k]
	was := s.room
	if s.room = r; was != RoomForNone || r == RoomForNone || !s.leads {
		return
	}
	b.configure(s) // which may have failed meanwhile
	for _, q := range b.queues {
		if q.c.Kind == k {
			b.setMode(q)
			b.wake(q)
		}
	}
	b.steer()
}

// unready says why nothing can be known of a queue's items at this node, which it
// ought to know; OK: it can.
func (b *Broker) unready(q *queue) pqueue.Code {
	s := &b.shards[q.c.Kind]
	led := s.leads
	if q.c.Kind == Replicated {
		_, led = b.leading()
	}
	switch {
	case !s.logged || led:
		return pqueue.OK
	case s.room == RoomForNone:
		return pqueue.StorageFull
	case q.c.Kind == Durable:
		return pqueue.LogUnready
	default:
		return pqueue.OK // another node may lead its log, and this one has not heard of it yet
	}
}

// lead puts a shard's ready items into QPID, or takes them out.
func (b *Broker) lead(s *shard, leads bool) {
	s.leads, s.ticking = leads, false
	s.state.Follow(leads)
	for _, name := range s.state.Queues() {
		q := b.queue(name)
		if q == nil {
			if q = b.known(s, name); q == nil {
				continue
			}
		}
		if q.c.Kind != s.kind {
			continue // the configuration has made another kind of it; its old items stay where they are
		}
		b.recallSettings(q, s)
		s.state.EachOffered(name, func(i pqueue.Item) {
			w := pqueue.WeightOf(i.Priority, i.Stamp, s.state.Salt(), i.Number)
			if leads {
				b.came(q, i.Key, w)
			} else {
				b.left(q, i.Key, w)
			}
		})
		b.pump(q)
		if leads {
			b.adoptMode(q, s.state.ModeOf(name))
			b.setMode(q)
			b.tellAskers(q)
		}
	}
	if leads {
		b.configure(s)
		kept := func(q *queue) bool { return q.c.Kind == s.kind }
		b.round.need = b.round.need || b.round.installed() && slices.ContainsFunc(b.shared, kept) // now it is known what is leased here
	}
}

// configure makes the listed queues of a shard, and what of them has changed.
func (b *Broker) configure(s *shard) {
	for _, q := range b.queues {
		if (q.listed || q.set.Stamp != 0) && q.c.Kind == s.kind && !q.isIn(s) {
			b.configureOne(s, q, func(pqueue.Result) { b.setMode(q) })
		}
	}
}

// configureOne has the shard know how q is to be. If it is not told now, as where its
// log takes nothing, it is told again.
func (b *Broker) configureOne(s *shard, q *queue, then func(pqueue.Result)) {
	b.execute(s.kind, q.configuration(), func(r pqueue.Result) {
		if r.Code != pqueue.OK && r.Code != pqueue.Invalid {
			s.againAt = b.now.Boot + configureEvery
		}
		then(r)
	})
}

// isIn reports whether a shard has q as it is to be.
func (q *queue) isIn(s *shard) bool {
	has, ok := s.state.Limits(q.c.Name)
	return ok && has == q.c.Limits && s.state.SettingsOf(q.c.Name) == q.set
}

// tickShard does what time brings, in bounded steps.
func (b *Broker) tickShard(s *shard) {
	if s.state == nil || !s.leads {
		return
	}
	if s.againAt != 0 && b.now.Boot >= s.againAt {
		s.againAt = 0
		b.configure(s)
	}
	if s.ticking {
		return
	}
	if due, ok := s.state.NextDue(); s.logged && (!ok || due > b.now.Clock) {
		return
	}
	s.ticking = s.logged
	b.execute(s.kind, pqueue.Command{Op: pqueue.OpTick, Max: tickSteps}, func(pqueue.Result) { s.ticking = false })
}

// Proposed says how a proposal went: its result if it was applied here, and
// otherwise whether it may be applied yet, and whether it was for want of room.
func (b *Broker) Proposed(now Time, token uint64, result []byte, refused, full bool) {
	b.read(now)
	p := b.proposals[token]
	if p == nil {
		return
	}
	delete(b.proposals, token)
	r := pqueue.Result{Code: pqueue.Unavailable}
	full = full || b.shards[p.kind].room == RoomForNone
	switch decoded, err := pqueue.DecodeResult(result); {
	case refused && full:
		r.Code = pqueue.StorageFull
	case refused:
		r.Code = pqueue.LogUnready
	case result != nil && err == nil:
		r = decoded
	case full:
		r.Code = pqueue.StorageDoubt
	}
	p.then(r)
	b.steer()
}

// memory is what all items here take, in bytes.
func (b *Broker) memory() int64 {
	n := int64(0)
	for k := range b.shards {
		if b.shards[k].state != nil {
			n += b.shards[k].state.Bytes()
		}
	}
	return n
}
