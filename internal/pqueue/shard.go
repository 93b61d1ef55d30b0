package pqueue

import (
	"cmp"
	"maps"
	"slices"
)

// Shard is a number of named queues. It is not safe for concurrent use.
type Shard struct {
	salt    uint32
	now     int64    // the latest time heard of
	next    uint64   // number of the next item
	lease   uint64   // number of the last lease
	queues  []*queue // by name
	byName  map[string]*queue
	due     dues[*item]
	forgets dues[*queue] // that remember finished items
	bytes   int64

	follow  bool
	changes []Change
}

// New returns a shard without queues. The salt tells shards apart where two
// items are equal in all else.
func New(salt uint32) *Shard {
	return &Shard{salt: salt, byName: make(map[string]*queue)}
}

// Follow has the shard keep its changes for Changes, or not.
func (s *Shard) Follow(on bool) { s.follow, s.changes = on, nil }

// Changes drains what has changed since it was last called.
func (s *Shard) Changes() []Change {
	c := s.changes
	s.changes = nil
	return c
}

// Bytes is what all items take, CostOfItem each included.
func (s *Shard) Bytes() int64 { return s.bytes }

// Now is the latest time the shard has heard of, Unix microseconds.
func (s *Shard) Now() int64 { return s.now }

// Queues returns the names of all queues, sorted.
func (s *Shard) Queues() []string {
	names := make([]string, len(s.queues))
	for i, q := range s.queues {
		names[i] = q.name
	}
	return names
}

// Limits returns those of a queue.
func (s *Shard) Limits(name string) (Limits, bool) {
	if q := s.byName[name]; q != nil {
		return q.limits, true
	}
	return Limits{}, false
}

// SettingsOf returns those of a queue.
func (s *Shard) SettingsOf(name string) Settings {
	if q := s.byName[name]; q != nil {
		return q.set
	}
	return Settings{}
}

// Leased is how many items of a queue are leased.
func (s *Shard) Leased(name string) int {
	if q := s.byName[name]; q != nil {
		return q.leased
	}
	return 0
}

// TakerOf is who had the last lease of an item.
func (s *Shard) TakerOf(name string, number uint64) Taker {
	if q := s.byName[name]; q != nil && q.items[number] != nil {
		return q.items[number].taker
	}
	return Taker{}
}

// Leases are the leased items of a queue, by number.
func (s *Shard) Leases(name string) []Item {
	q := s.byName[name]
	if q == nil {
		return nil
	}
	var all []Item
	for _, n := range slices.Sorted(maps.Keys(q.items)) {
		if i := q.items[n]; i.state == Leased {
			all = append(all, i.copied())
		}
	}
	return all
}

// ModeOf returns the mode of a queue.
func (s *Shard) ModeOf(name string) ModeSetting {
	if q := s.byName[name]; q != nil {
		return q.mode
	}
	return ModeSetting{}
}

// Apply carries out a command.
func (s *Shard) Apply(c Command) Result {
	if !c.Op.Reads() {
		s.now = max(s.now, c.Now)
	}
	switch c.Op {
	case OpConfigure:
		return s.configure(c)
	case OpTick:
		return Result{N: uint64(s.tick(c.Max))}
	case OpStats:
		return s.stats(c.Queue)
	default:
	}
	q := s.byName[c.Queue]
	if q == nil {
		return Result{Code: QueueUnknown}
	}
	switch c.Op {
	case OpInsert:
		return q.insert(c)
	case OpLease:
		return q.leaseOut(c)
	case OpAck, OpNack, OpRelease, OpExtend:
		return q.settle(c)
	case OpUpdate:
		return q.update(c)
	case OpCancel:
		return q.cancel(c)
	case OpMode:
		return q.setMode(c)
	case OpRequeue, OpBury:
		return q.raise(c)
	case OpForget:
		return s.forget(q)
	case OpPurge:
		return q.purge(c)
	case OpPeek:
		return q.list(q.ready, c)
	case OpFind:
		return q.show(c)
	case OpRank:
		return Result{N: uint64(q.ready.Rank(c.Weight))}
	case OpDead:
		return q.list(q.dead, c)
	default:
		return Result{Code: Invalid}
	}
}

func (s *Shard) configure(c Command) Result {
	l := c.Limits
	if c.Queue == "" || !l.Valid() || l.DeadTo == c.Queue || !c.Settings.Valid() {
		return Result{Code: Invalid}
	}
	q := s.byName[c.Queue]
	if q == nil {
		q = newQueue(s, c.Queue)
		s.queues = slices.Insert(s.queues, s.place(c.Queue), q)
		s.byName[c.Queue] = q
	}
	if q.set.Newer(c.Settings) { // as where a file speaks, or who has not heard of them
		return Result{}
	}
	was := q.limits
	q.set = c.Settings
	q.heed(l.Exclusive)
	if q.limits = l; l.DeadTo != was.DeadTo {
		q.forward()
	}
	q.trimDead()
	q.trimFinished()
	return Result{}
}

// place is where the queue of that name is among all of them, or would be.
func (s *Shard) place(name string) int {
	i, _ := slices.BinarySearchFunc(s.queues, name, func(q *queue, name string) int { return cmp.Compare(q.name, name) })
	return i
}

// bare reports whether nothing of q would be missed.
func (q *queue) bare() bool {
	return len(q.items) == 0 && q.finished.len() == 0 && q.mode.Mode == Running && q.set == Settings{}
}

// Bare reports whether OpForget has nothing against it.
func (s *Shard) Bare(name string) bool {
	q := s.byName[name]
	return q == nil || q.bare()
}

// forget drops a queue of which nothing would be missed, and says what it did.
func (s *Shard) forget(q *queue) Result {
	if !q.bare() {
		return Result{Code: Full}
	}
	delete(s.byName, q.name)
	i := s.place(q.name)
	s.queues = slices.Delete(s.queues, i, i+1)
	return Result{Stats: []Stats{q.stats()}}
}

// NextDue is when the next Tick has something to do, false if never.
func (s *Shard) NextDue() (int64, bool) {
	if len(s.due) == 0 {
		return 0, false
	}
	return s.due[0].due, true
}

// tick does what has become due, most steps at a time, the earliest first.
func (s *Shard) tick(most int) int {
	n := 0
	for ; n < most && len(s.due) > 0 && s.due[0].due <= s.now; n++ {
		i := s.due[0]
		i.queue.fallDue(i)
	}
	for len(s.forgets) > 0 && s.forgets[0].due <= s.now {
		s.forgets[0].trimFinished()
	}
	return n
}

func (s *Shard) stats(name string) Result {
	var r Result
	if name != "" {
		if q := s.byName[name]; q != nil {
			r.Stats = []Stats{q.stats()}
		}
		return r
	}
	for _, q := range s.queues {
		r.Stats = append(r.Stats, q.stats())
	}
	return r
}

func (q *queue) stats() Stats {
	st := Stats{
		Queue: q.name, Mode: q.mode, Ready: q.ready.Len(), Delayed: q.delayed.Len(), Leased: q.leased, Dead: q.dead.Len(),
		Bytes: q.bytes, Counters: q.counters, Blocked: q.blocked(),
	}
	if w, ok := q.ready.Min(); ok {
		st.Oldest = q.items[NumberOf(w)].inserted
	}
	return st
}

// Salt is part of the weights of all items.
func (s *Shard) Salt() uint32 { return s.salt }
