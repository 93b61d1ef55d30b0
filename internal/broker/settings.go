package broker

import (
	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/pqueue"
)

// settled is what this node knows of changes of settings, and who was told.
type settled struct {
	last uint64                     // counts the changes taken in here
	told map[eviction.Member]uint64 // up to which of them a member was sent all, and no break was heard of since
}

// configuration is how q is to be, for a shard or another member.
func (q *queue) configuration() pqueue.Command {
	return pqueue.Command{Op: pqueue.OpConfigure, Queue: q.c.Name, Limits: q.c.Limits, Settings: q.set}
}

// adopt takes in settings that may be newer. Who waits here and elsewhere asks again:
// more may go out now.
func (b *Broker) adopt(q *queue, l pqueue.Limits, s pqueue.Settings) {
	if !s.Newer(q.set) {
		return
	}
	was := q.c.Limits
	q.set = s
	b.takeTurns(q, s.FairKeys)
	q.c.Limits, q.c.Lease, q.c.PayloadMax, q.c.Interval, q.c.PerInterval = l, s.Lease, s.PayloadMax, s.Interval, s.PerInterval
	q.pacer.set(b.now.Boot, s.Interval, s.PerInterval, 3*b.c.Fresh)
	b.settled.last++
	q.setAt, q.wokeAt = b.settled.last, 0
	b.reshare(q, was)
	b.tellAskers(q)
}

// recallSettings takes in what a shard has of a queue's settings.
func (b *Broker) recallSettings(q *queue, s *shard) {
	if l, ok := s.state.Limits(q.c.Name); ok {
		b.adopt(q, l, s.state.SettingsOf(q.c.Name))
	}
}

// set takes in settings, and has them in the shard, if this node leads it, before the
// answer. A durable queue's are on no disk as long as its log is not open.
func (b *Broker) set(q *queue, c pqueue.Command, then func(pqueue.Result)) {
	s := &b.shards[q.c.Kind]
	if c.Settings.Stamp == 0 || !c.Settings.Valid() || !c.Limits.Valid() || c.Limits.DeadTo == c.Queue || s.state == nil {
		then(pqueue.Result{Code: pqueue.Invalid})
		return
	}
	b.adopt(q, c.Limits, c.Settings)
	switch {
	case s.leads:
		b.configureOne(s, q, then)
	case q.c.Kind == Replicated:
		then(pqueue.Result{}) // who leads has it in the log
	default:
		then(pqueue.Result{Code: pqueue.Unavailable})
	}
}

// Settings are those of q that no shard goes by, as a call of OpConfigure has them.
func (q Queue) Settings() pqueue.Settings {
	return pqueue.Settings{Lease: q.Lease, PayloadMax: q.PayloadMax, Interval: q.Interval, PerInterval: max(1, q.PerInterval), FairKeys: q.FairKeys}
}

// Stays reports whether a queue that this node knows is there also when nothing has been
// in it for long.
func (b *Broker) Stays(name string) bool {
	q := b.queue(name)
	return q != nil && (q.listed || q.set.Stamp != 0 || q.c.Kind != Memory)
}

// Use makes a queue that this node does not know, if it may.
func (b *Broker) Use(now Time, name string) {
	b.read(now)
	b.use(name)
}

// callConfigure changes a queue's settings at all nodes. Who is not there learns them
// with the first round that it is in.
func (b *Broker) callConfigure(c pqueue.Command, then func(Answer)) {
	q, code := b.use(c.Queue)
	if code == pqueue.OK && q.c.Kind == Replicated {
		if _, ok := b.leading(); !ok {
			code = b.leaderless()
		}
	}
	if code != pqueue.OK {
		then(Answer{Result: pqueue.Result{Code: code}})
		return
	}
	c.Settings.Stamp, c.Settings.By = max(uint64(max(0, b.now.Clock)), q.set.Stamp+1), string(b.self.Name)
	b.callAll(c, b.view.List, then)
}

// tellSettings sends m what it was not sent yet. Links are in order: whatever follows
// finds m with these settings.
func (b *Broker) tellSettings(m eviction.Member) {
	told := b.settled.told[m]
	if told == b.settled.last {
		return
	}
	for _, q := range b.queues {
		if q.setAt > told {
			b.send(Message{Kind: MsgRequest, To: m, Command: q.configuration()})
		}
	}
	b.settled.told[m] = b.settled.last
}

// SettingsOf returns those of a queue, and when it was that they came here, counted in
// changes.
func (b *Broker) SettingsOf(name string) (s pqueue.Settings, at uint64) {
	if q := b.queue(name); q != nil {
		return q.set, q.setAt
	}
	return s, 0
}

// InShard is what the shard of a queue, which this node leads, goes by. For those who
// check.
func (b *Broker) InShard(name string) (l pqueue.Limits, s pqueue.Settings, ok bool) {
	q := b.queue(name)
	if q == nil || !b.shards[q.c.Kind].leads {
		return l, s, false
	}
	l, ok = b.shards[q.c.Kind].state.Limits(name)
	return l, b.shards[q.c.Kind].state.SettingsOf(name), ok
}

// Changes counts the changes of settings that this node has taken in.
func (b *Broker) Changes() uint64 { return b.settled.last }
