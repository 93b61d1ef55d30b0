package pqueue

import (
	"maps"
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// KeyMax bounds the key of an item, in bytes.
const KeyMax = 256

// keyed is what a queue has of one key: its ready items, and how many are leased.
type keyed struct {
	Line
	leased int
}

// waits is how many ready items wait for another one of the key.
func (k *keyed) waits() int {
	n := 0
	if k.rest != nil {
		n = k.rest.Len()
	}
	if k.leased > 0 && k.first != (qpid.Weight{}) {
		n++
	}
	return n
}

// withKey changes what q has of i's key, if i has one.
func (q *queue) withKey(i *item, change func(*keyed)) {
	if i.key == "" {
		return
	}
	k := q.keys[i.key]
	if k == nil {
		k = &keyed{}
		q.keys[i.key] = k
	}
	q.waits -= k.waits()
	change(k)
	q.waits += k.waits()
	if k.leased == 0 && k.first == (qpid.Weight{}) {
		delete(q.keys, i.key)
	}
}

// inLine puts a ready item where the ready ones are, and outOfLine takes it away.
func (q *queue) inLine(i *item) {
	q.ready.Insert(i.weight())
	q.withKey(i, func(k *keyed) { k.Insert(i.weight()) })
}

func (q *queue) outOfLine(i *item) {
	q.ready.Delete(i.weight())
	q.withKey(i, func(k *keyed) { k.Delete(i.weight()) })
}

// countLeased counts the leased items, and those of i's key.
func (q *queue) countLeased(i *item, n int) {
	q.leased += n
	q.withKey(i, func(k *keyed) { k.leased += n })
}

// turn is the one item of a key that may be leased now: the first one that is ready, if
// none is leased. Zero: there is none.
func (q *queue) turn(key string) qpid.Weight {
	if k := q.keys[key]; k != nil && k.leased == 0 {
		return k.first
	}
	return (qpid.Weight{})
}

// exclusive reports whether the key of i is asked for.
func (q *queue) exclusive(i *item) bool { return i.key != "" && q.limits.Exclusive }

// offered reports whether i may be leased: it is ready, and no other item of its key is
// leased or goes before it.
func (q *queue) offered(i *item) bool {
	return i.state == Ready && (!q.exclusive(i) || q.turn(i.key) == i.weight())
}

// turned notes that another item of i's key may be leased now, or one may be no more.
func (q *queue) turned(i *item, was told) {
	if !was.keyed {
		return
	}
	now := q.turn(i.key)
	if was.turn == now {
		return
	}
	if was.turn != (qpid.Weight{}) && was.turn != was.weight {
		q.shard.changes = append(q.shard.changes, q.lined(was.turn, false))
	}
	if now != (qpid.Weight{}) && now != i.weight() {
		q.shard.changes = append(q.shard.changes, q.lined(now, true))
	}
}

// lined is a change of what may be leased, and of nothing else.
func (q *queue) lined(w qpid.Weight, offered bool) Change {
	c := Change{Queue: q.name, At: q.shard.now, Item: q.items[NumberOf(w)].copied(), Left: !offered, Came: offered, Out: w, In: w}
	c.Item.Payload = nil
	return c
}

// heed has q begin to ask for keys, or no more.
func (q *queue) heed(on bool) {
	if q.limits.Exclusive == on {
		return
	}
	q.limits.Exclusive = on
	if !q.shard.follow {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(q.keys)) {
		k := q.keys[key]
		if k.leased > 0 && k.first != (qpid.Weight{}) {
			q.shard.changes = append(q.shard.changes, q.lined(k.first, !on))
		}
		if k.rest != nil {
			k.rest.Ascend(func(w qpid.Weight) bool {
				q.shard.changes = append(q.shard.changes, q.lined(w, !on))
				return true
			})
		}
	}
}

// blocked is how many ready items wait for another one of their key.
func (q *queue) blocked() int {
	if !q.limits.Exclusive {
		return 0
	}
	return q.waits
}

// EachOffered calls fn with every item of a queue that may be leased, the first one
// first. fn must not change the shard.
func (s *Shard) EachOffered(name string, fn func(Item)) {
	q := s.byName[name]
	if q == nil {
		return
	}
	q.ready.Ascend(func(w qpid.Weight) bool {
		if i := q.items[NumberOf(w)]; q.offered(i) {
			fn(i.copied())
		}
		return true
	})
}

// Offered returns the item of that number if it may be leased.
func (s *Shard) Offered(name string, number uint64) (Item, bool) {
	if q := s.byName[name]; q != nil && q.items[number] != nil && q.offered(q.items[number]) {
		return q.items[number].copied(), true
	}
	return Item{}, false
}

// KeyOf is the key of an item; empty: it has none, or there is no such item.
func (s *Shard) KeyOf(name string, number uint64) string {
	if q := s.byName[name]; q != nil && q.items[number] != nil {
		return q.items[number].key
	}
	return ""
}

// KeyLeased reports whether an item of that key is leased.
func (s *Shard) KeyLeased(name, key string) bool {
	q := s.byName[name]
	return q != nil && q.keyLeased(key)
}

func (q *queue) keyLeased(key string) bool { return q.keys[key] != nil && q.keys[key].leased > 0 }

// LeasedKeys are those of which an item is leased, sorted.
func (s *Shard) LeasedKeys(name string) []string {
	q := s.byName[name]
	if q == nil || q.leased == 0 {
		return nil
	}
	var all []string
	for key, k := range q.keys { //puretest:sorted below
		if k.leased > 0 {
			all = append(all, key)
		}
	}
	slices.Sort(all)
	return all
}
