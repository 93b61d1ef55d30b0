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
		b.put(q, key, w)
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
		b.drop(q, key, k.front)
	}
	k.front, k.in = w, false
	b.admit(q, key, k)
}

// left takes an item out of QPID.
func (b *Broker) left(q *queue, key string, w qpid.Weight) {
	b.drop(q, key, w)
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
			b.enter(q, key, k)
		}
	case k.held:
		b.enter(q, key, k)
	case k.seq == 0:
		b.seq++
		k.seq = b.seq
		q.keys.asking[key] = true
		b.wantKey(q, key, k)
	}
}

func (b *Broker) enter(q *queue, key string, k *keyed) {
	k.in = true
	b.put(q, key, k.front)
	b.tellAskers(q)
}

// withdraw takes the first item of a key out of QPID.
func (b *Broker) withdraw(q *queue, key string, k *keyed) {
	if k != nil && k.in {
		k.in = false
		b.drop(q, key, k.front)
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
	b.withdraw(q, key, q.keys.here[key])
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

// keyHeldBack reports whether the first item of q, at its root, may not go out just now
// for its key, and sees to the deleteMin if so.
func (b *Broker) keyHeldBack(q *queue, o heldOp) bool {
	key := b.shards[q.c.Kind].state.KeyOf(q.c.Name, pqueue.NumberOf(q.q.Min()))
	if key == "" || !q.gates() {
		return false
	}
	first := q.inLine(key, q.q.Min())
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
	b.drop(q, key, first) // if it is to be there, it comes back when it may
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
		b.withdraw(q, key, q.keys.here[key])
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
