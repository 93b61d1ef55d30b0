package broker

import (
	"maps"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// hearing is how far another member of the round has told this node which keys it has
// leases of.
type hearing struct {
	attempt uint64
	part    int64 // the next one
	askedAt int64
	whole   bool
}

// sure reports whether this node knows all leases of the keys that are at home here, as
// far as they are at members of the round.
func (b *Broker) sure(q *queue) bool {
	if q.keys.unsure {
		return false
	}
	for _, m := range b.round.list {
		if h := b.round.hearings[m]; m != b.self && (h == nil || !h.whole) {
			return false
		}
	}
	return true
}

// askKeys has a member say which keys that are at home here it has leases of. What it
// says to the same question twice is the same up to when it was heard.
func (b *Broker) askKeys(m eviction.Member, h *hearing) {
	if h.attempt == 0 || h.part > 0 {
		for _, q := range b.shared {
			maps.DeleteFunc(q.keys.lent, func(_ string, l lent) bool { return l.to == m }) //puretest:sorted none depends on another
		}
		b.seq++
		h.attempt, h.part = b.seq, 0
	}
	h.askedAt = b.now.Boot
	b.send(Message{Kind: MsgKeyAsk, To: m, Epoch: b.round.made, Seq: h.attempt})
}

// declare says which keys of another home this node leases.
func (b *Broker) declare(to eviction.Member, attempt uint64) {
	var all []KeyLock
	for _, q := range b.shared {
		for _, key := range slices.Sorted(maps.Keys(q.keys.here)) {
			if k := q.keys.here[key]; k.held && b.keyHome(q, key) == to {
				all = append(all, KeyLock{q.c.Name, key, k.seq})
			}
		}
	}
	for part := int64(0); ; part++ {
		n := min(len(all), keysAtOnce)
		b.send(Message{Kind: MsgKeyHeld, To: to, Epoch: b.round.made, Seq: attempt, For: part, Whole: n == len(all), Keys: all[:n]})
		if all = all[n:]; len(all) == 0 {
			return
		}
	}
}

func (b *Broker) onHeld(m Message) {
	h := b.round.hearings[m.From]
	if h == nil || h.whole || m.Seq != h.attempt || m.For != h.part {
		return
	}
	h.part, h.whole = h.part+1, m.Whole
	for _, l := range m.Keys {
		if q := b.queue(l.Queue); q != nil && q.gates() {
			q.keys.lent[l.Key] = lent{m.From, l.Seq}
			b.withdraw(q, l.Key, q.keys.here[l.Key])
			b.pump(q)
		}
	}
	if !m.Whole {
		return
	}
	for _, q := range slices.Clone(b.shared) {
		if !q.gates() || !b.sure(q) {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(q.keys.wants)) {
			b.lend(q, key)
		}
		b.pump(q)
		b.goOn(q)
	}
}

// rekey begins a round: of what was lent, that holds on of which an item is leased.
func (b *Broker) rekey() {
	r := &b.round
	r.hearings = nil
	gated := false
	for _, q := range b.shared {
		if !q.gates() {
			continue
		}
		gated = true
		ring := &q.keys
		ring.lent, ring.wants, ring.asking = map[string]lent{}, map[string][]lent{}, map[string]bool{}
		ring.unsure, ring.shutAt = false, 0
		for _, key := range b.keysHere(q) {
			k := ring.here[key]
			foreign, busy := b.keyHome(q, key) != b.self, b.keyBusy(q, key)
			if foreign && busy && k == nil {
				k = &keyed{}
				ring.here[key] = k
			}
			if k == nil {
				continue
			}
			k.held, k.seq = foreign && busy, 0
			if k.idle() {
				delete(ring.here, key)
				continue
			}
			if k.held {
				b.seq++
				k.seq = b.seq
			} else if foreign {
				b.withdraw(q, key, k)
			}
			b.admit(q, key, k)
		}
	}
	if !gated {
		return
	}
	r.hearings = map[eviction.Member]*hearing{}
	for _, m := range r.list {
		if m != b.self {
			r.hearings[m] = &hearing{}
			b.askKeys(m, r.hearings[m])
		}
	}
}

// keysHere are all keys of which there is anything here.
func (b *Broker) keysHere(q *queue) []string {
	all := slices.Collect(maps.Keys(q.keys.here)) //puretest:sorted below
	if s := b.shards[q.c.Kind].state; s != nil {
		all = append(all, s.LeasedKeys(q.c.Name)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// regate has QPID know those items of q that may go out, now that keys are exclusive, or
// are no more, here or in the shard. Who leases what is known with the next round.
func (b *Broker) regate(q *queue) {
	s := &b.shards[q.c.Kind]
	ring := &q.keys
	if ring.on != q.gates() {
		*ring = keyring{on: q.gates(), here: map[string]*keyed{}, lent: map[string]lent{}, wants: map[string][]lent{}, asking: map[string]bool{}, doubted: map[string]bool{}, unsure: true}
	}
	for _, key := range slices.Sorted(maps.Keys(ring.here)) {
		k := ring.here[key]
		b.withdraw(q, key, k)
		k.front = qpid.Weight{}
	}
	if s.state == nil || !s.leads {
		return
	}
	s.state.EachOffered(q.c.Name, func(i pqueue.Item) {
		if w := pqueue.WeightOf(i.Priority, i.Stamp, s.state.Salt(), i.Number); i.Key != "" {
			b.drop(q, i.Key, w)
			b.came(q, i.Key, w)
		}
	})
	b.pump(q)
}

// heeded has q go by what its shard of that kind makes of keys now.
func (b *Broker) heeded(name string, kind Kind) {
	if q := b.queue(name); q != nil && q.c.Kind == kind && q.gates() {
		b.regate(q)
	}
}
