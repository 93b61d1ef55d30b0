package broker

import (
	"hash/fnv"
	"maps"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// KeyLock is what travels of the right to lease items of a key. See package comment,
// Exclusive keys.
type KeyLock struct {
	Queue, Key string
	Seq        uint64 // tells what was asked for, and lent, from what was before
}

// keyring is this node's part of the exclusive keys of a queue that is not replicated.
//
// Invariant: over all nodes of a round, at most one leases items of a key: the home, or
// the one to which the home has lent it.
type keyring struct {
	on      bool
	here    map[string]*keyed
	lent    map[string]lent   // of keys at home here
	wants   map[string][]lent // who asks for one of them, the first one first
	asking  map[string]bool   // of here, keys of which the home was asked
	doubted map[string]bool   // of here, those in doubt
	unsure  bool              // keys came to be exclusive in the middle of the round
	shutAt  int64             // boot time until which no item with a key goes out; 0: they may
}

// keyed is a key of which there are items here.
type keyed struct {
	front   qpid.Weight // that may be leased, as far as this node's shard goes; zero: none
	in      bool        // front is in QPID, or on its way through the log
	leasing int         // leases on their way through the log
	doubt   int64       // boot time until which one of those may be given yet
	held    bool        // was lent here, in the round that is installed
	seq     uint64      // by which it was asked for; 0: it was not
	askedAt int64
}

// idle reports whether there is nothing to be known of k.
func (k *keyed) idle() bool {
	return k.front == (qpid.Weight{}) && !k.held && k.leasing == 0 && k.doubt == 0
}

type lent struct {
	to  eviction.Member
	seq uint64
}

// hearing is how far another member of the round has told this node which keys it has
// leases of.
type hearing struct {
	attempt uint64
	part    int64 // the next one
	askedAt int64
	whole   bool
}

const (
	keysAtOnce  = 100     // KeyLocks in a message
	keysAgain   = 100_000 // µs after which somebody is asked again who has not said anything
	keyWantsMax = 100_000 // keys of a queue that others ask for, at their home
)

// allSlots is how many slots a queue has that bounds only what is leased of a key. Of
// these the round knows whether any may be in use at nodes which are gone.
const allSlots = 1 << 30

// gates reports whether the nodes must agree on who leases items of a key. The leases of
// a replicated queue are all in one log.
func (q *queue) gates() bool { return q.c.Limits.Exclusive && q.c.Kind != Replicated }

// winner is the member of the list at which a key is at home.
func winner(queue, key string, list []eviction.Member) (best eviction.Member) {
	var most uint64
	for i, m := range list {
		h := fnv.New64a()
		for _, part := range []string{string(m.Name), queue, "key", key} {
			_, _ = h.Write([]byte(part)) // never fails
			_, _ = h.Write([]byte{0})
		}
		if score := mix(h.Sum64()); i == 0 || score > most {
			best, most = m, score
		}
	}
	return best
}

func (b *Broker) keyHome(q *queue, key string) eviction.Member {
	return winner(q.c.Name, key, b.round.list)
}

// came puts an item that may be leased into QPID, if its key is this node's to lease.
func (b *Broker) came(q *queue, key string, w qpid.Weight) {
	if key == "" || !q.gates() {
		q.q.Insert(w)
		return
	}
	k := q.keys.here[key]
	if k == nil {
		k = &keyed{}
		q.keys.here[key] = k
	}
	if k.front != (qpid.Weight{}) {
		if !w.Less(k.front) {
			return // the shard does not know yet that keys are exclusive
		}
		q.q.Remove(k.front)
	}
	k.front, k.in = w, false
	b.admit(q, key, k)
}

// left takes an item out of QPID.
func (b *Broker) left(q *queue, key string, w qpid.Weight) {
	q.q.Remove(w)
	if k := q.keys.here[key]; k != nil && key != "" && k.front == w {
		k.front, k.in = qpid.Weight{}, false
	}
}

// admit puts the first item of a key into QPID, or asks for the key first.
func (b *Broker) admit(q *queue, key string, k *keyed) {
	switch {
	case k.front == (qpid.Weight{}) || k.in || q.keys.shutAt != 0 || !b.round.installed():
	case b.keyHome(q, key) == b.self:
		if _, out := q.keys.lent[key]; !out {
			b.enter(q, k)
		}
	case k.held:
		b.enter(q, k)
	case k.seq == 0:
		b.seq++
		k.seq = b.seq
		q.keys.asking[key] = true
		b.wantKey(q, key, k)
	}
}

func (b *Broker) enter(q *queue, k *keyed) {
	k.in = true
	q.q.Insert(k.front)
	b.tellAskers(q)
}

// withdraw takes the first item of a key out of QPID.
func (b *Broker) withdraw(q *queue, k *keyed) {
	if k != nil && k.in {
		k.in = false
		q.q.Remove(k.front)
	}
}

// keyBusy reports whether an item of a key is leased here, or may be.
func (b *Broker) keyBusy(q *queue, key string) bool {
	if k := q.keys.here[key]; k != nil && (k.leasing > 0 || k.doubt > b.now.Boot) {
		return true
	}
	s := b.shards[q.c.Kind].state
	return s != nil && s.KeyLeased(q.c.Name, key)
}

// turn does what a change of a key's items here brings with it.
func (b *Broker) turn(q *queue, key string) {
	if key == "" || !q.gates() || !b.round.installed() || b.round.frozen {
		return
	}
	k := q.keys.here[key]
	busy := b.keyBusy(q, key)
	switch home := b.keyHome(q, key); {
	case home == b.self:
		b.lend(q, key)
	case k != nil && k.held && !busy && k.front == (qpid.Weight{}):
		b.sendKey(MsgKeyBack, home, q, key, k.seq)
		k.held, k.seq = false, 0
	}
	if k != nil && k.idle() {
		delete(q.keys.here, key)
		delete(q.keys.asking, key)
	}
}

// lend gives a key to the first who asks for it, if nobody has an item of it leased. The
// home comes last: what others have of the key was put before it was at home here.
func (b *Broker) lend(q *queue, key string) {
	wants := q.keys.wants[key]
	_, out := q.keys.lent[key]
	if len(wants) == 0 || out || b.round.frozen || !b.sure(q) || b.keyBusy(q, key) {
		return
	}
	q.keys.lent[key] = wants[0]
	if wants = wants[1:]; len(wants) > 0 {
		q.keys.wants[key] = wants
	} else {
		delete(q.keys.wants, key)
	}
	b.withdraw(q, q.keys.here[key])
	to := q.keys.lent[key]
	b.sendKey(MsgKeyLend, to.to, q, key, to.seq)
}

func (b *Broker) wantKey(q *queue, key string, k *keyed) {
	k.askedAt = b.now.Boot
	b.sendKey(MsgKeyWant, b.keyHome(q, key), q, key, k.seq)
}

func (b *Broker) sendKey(kind MsgKind, to eviction.Member, q *queue, key string, seq uint64) {
	b.send(Message{Kind: kind, To: to, Epoch: b.round.made, Keys: []KeyLock{{q.c.Name, key, seq}}})
}

// onKeys takes in what another member of the installed round says of keys.
func (b *Broker) onKeys(m Message) {
	r := &b.round
	if r.frozen || m.Epoch != r.made || !slices.Contains(r.list, m.From) {
		return // whatever it is, a round makes it good
	}
	if m.Kind == MsgKeyAsk {
		b.declare(m.From, m.Seq)
		if h := r.hearings[m.From]; h != nil && !h.whole && h.part == 0 {
			b.askKeys(m.From, h) // it was not in the round yet when it was asked
		}
		return
	}
	if m.Kind == MsgKeyHeld {
		b.onHeld(m)
		return
	}
	for _, l := range m.Keys {
		q := b.queue(l.Queue)
		if q == nil || !q.gates() {
			continue
		}
		switch home := b.keyHome(q, l.Key); {
		case m.Kind == MsgKeyLend:
			b.onLent(q, l, m.From)
		case home != b.self:
		case m.Kind == MsgKeyWant:
			b.onWant(q, l, m.From)
		default:
			b.onBack(q, l, m.From)
		}
		b.pump(q)
	}
}

func (b *Broker) onWant(q *queue, l KeyLock, from eviction.Member) {
	if has, ok := q.keys.lent[l.Key]; ok && has.to == from {
		if l.Seq > has.seq {
			q.keys.lent[l.Key] = lent{from, l.Seq}
			b.sendKey(MsgKeyLend, from, q, l.Key, l.Seq)
		}
		return
	}
	wants := q.keys.wants[l.Key]
	i := slices.IndexFunc(wants, func(w lent) bool { return w.to == from })
	switch {
	case i >= 0:
		wants[i].seq = max(wants[i].seq, l.Seq)
	case len(wants) == 0 && len(q.keys.wants) >= keyWantsMax:
		return // it asks again
	default:
		q.keys.wants[l.Key] = append(wants, lent{from, l.Seq})
	}
	b.lend(q, l.Key)
}

func (b *Broker) onLent(q *queue, l KeyLock, from eviction.Member) {
	k := q.keys.here[l.Key]
	switch {
	case k != nil && k.seq == l.Seq && k.held:
	case k == nil || k.seq != l.Seq || k.front == (qpid.Weight{}):
		if k != nil && k.seq == l.Seq {
			k.seq = 0
		}
		b.sendKey(MsgKeyBack, from, q, l.Key, l.Seq)
	default:
		k.held = true
		delete(q.keys.asking, l.Key)
		b.admit(q, l.Key, k)
	}
}

func (b *Broker) onBack(q *queue, l KeyLock, from eviction.Member) {
	if has, ok := q.keys.lent[l.Key]; !ok || has != (lent{from, l.Seq}) {
		return
	}
	delete(q.keys.lent, l.Key)
	b.lend(q, l.Key)
	if k := q.keys.here[l.Key]; k != nil {
		b.admit(q, l.Key, k)
	}
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
			b.withdraw(q, q.keys.here[l.Key])
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
				b.withdraw(q, k)
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
		b.withdraw(q, k)
		k.front = qpid.Weight{}
	}
	if s.state == nil || !s.leads {
		return
	}
	s.state.EachOffered(q.c.Name, func(i pqueue.Item) {
		if w := pqueue.WeightOf(i.Priority, i.Stamp, s.state.Salt(), i.Number); i.Key != "" {
			q.q.Remove(w)
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

// keyHeldBack reports whether the first item of q, at its root, may not go out just now
// for its key, and sees to the deleteMin if so.
func (b *Broker) keyHeldBack(q *queue, o heldOp) bool {
	first := q.q.Min()
	key := b.shards[q.c.Kind].state.KeyOf(q.c.Name, pqueue.NumberOf(first))
	if key == "" || !q.gates() {
		return false
	}
	k, home := q.keys.here[key], b.keyHome(q, key) == b.self
	_, out := q.keys.lent[key]
	switch {
	case q.slots.lost > 0:
		b.shut(q)
	case k == nil || k.front != first || !k.in || home && out || !home && !k.held:
	case home && !b.sure(q):
		b.hold(q, o)
		return true
	default:
		return false
	}
	q.q.Remove(first) // if it is to be there, it comes back when it may
	b.pump(q)
	b.deleteMin(q, o)
	return true
}

// granting notes that a lease of an item is on its way through the log, or, with its
// end, what became of it.
func (b *Broker) granting(q *queue, key string) {
	if key == "" || !q.gates() {
		return
	}
	k := q.keys.here[key]
	if k == nil {
		k = &keyed{}
		q.keys.here[key] = k
	}
	k.leasing++
}

func (b *Broker) granted(q *queue, key string, doubt int64) {
	k := q.keys.here[key]
	if key == "" || k == nil {
		return
	}
	k.leasing = max(0, k.leasing-1)
	if doubt > 0 {
		k.doubt = max(k.doubt, doubt)
		q.keys.doubted[key] = true
	}
	b.turn(q, key)
}

// shut takes all items with a key out of QPID, for as long as some of any key may be
// leased at nodes that are gone.
func (b *Broker) shut(q *queue) {
	q.keys.shutAt = max(q.slots.until, b.now.Boot+1)
	for _, key := range slices.Sorted(maps.Keys(q.keys.here)) {
		b.withdraw(q, q.keys.here[key])
	}
	b.pump(q)
}

// tickKeys does what time brings to keys.
func (b *Broker) tickKeys() {
	r := &b.round
	if r.frozen || !r.installed() {
		return
	}
	for _, m := range r.list {
		if h := r.hearings[m]; h != nil && !h.whole && b.now.Boot >= h.askedAt+keysAgain {
			b.askKeys(m, h)
		}
	}
	for _, q := range slices.Clone(b.shared) {
		if !q.gates() {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(q.keys.asking)) {
			switch k := q.keys.here[key]; {
			case k == nil || k.held || k.seq == 0 || k.front == (qpid.Weight{}):
				delete(q.keys.asking, key)
				if k != nil && !k.held {
					k.seq = 0
				}
			case b.now.Boot >= k.askedAt+keysAgain:
				b.wantKey(q, key, k)
			}
		}
		b.tickDoubts(q)
		if q.keys.shutAt != 0 && b.now.Boot >= q.keys.shutAt {
			q.keys.shutAt = 0
			for _, key := range slices.Sorted(maps.Keys(q.keys.here)) {
				b.admit(q, key, q.keys.here[key])
			}
		}
		b.pump(q)
	}
}

func (b *Broker) tickDoubts(q *queue) {
	for _, key := range slices.Sorted(maps.Keys(q.keys.doubted)) {
		if k := q.keys.here[key]; k == nil || k.doubt <= b.now.Boot {
			delete(q.keys.doubted, key)
			if k != nil {
				k.doubt = 0
			}
			b.turn(q, key)
		}
	}
}
