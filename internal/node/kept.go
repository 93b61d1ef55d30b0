package node

import (
	"fmt"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// What other nodes have this one keep, to go on with it when they are lost. See copies.go
// for the other end.
//
// While a home is not in the waves no wave calls anybody after those who are kept of it
// (eviction.RoomNode.Keeps), until this node has gone on with them: when the home may be
// taken for lost, as when a browser asks here with a ticket of it. Should it be alive, it
// is told, as of any ticket that was taken over, before it calls anybody again.
//
// Invariant: kept is by member, one home of each.
type keptHome struct {
	member eviction.Member
	lane   uint64
	seq    uint64 // of the last batch
	heard  int64  // boot time of the last message down the lane, or at which it was in no wave for some time
	gone   int64  // boot time since which it may be taken for lost; 0: it may not
	late   bool   // for longer than goOnWithin: nobody waits for its people any more
	rooms  []keptRoom
}

type keptRoom struct {
	room   *room
	places keptPlaces
	order  []qpid.ItemID // of places: who waits by their keys, then the parked; nil: find out
	keying uint64        // of order
}

// members are those of a list, to be asked for one by one.
type members struct {
	list []eviction.Member
	set  map[eviction.Member]bool
}

// fewMembers are looked through as they are.
const fewMembers = 16

// has reports whether m is in list.
func (s *members) has(list []eviction.Member, m eviction.Member) bool {
	if len(list) <= fewMembers {
		return slices.Contains(list, m)
	}
	if len(s.list) != len(list) || &s.list[0] != &list[0] {
		*s = members{list, make(map[eviction.Member]bool, len(list))}
		for _, o := range list {
			s.set[o] = true
		}
	}
	return s.set[m]
}

// goOnMax is how many places a node goes on with between two inputs.
const goOnMax = 4096

// keptPlacesMax bounds the places of a room that are kept of one node, which it bounds
// itself by queue_max.
const keptPlacesMax = 1 << 23

// goOnWithin is for how long, in µs, a lost home's places may hold up everybody behind
// them, while this node cannot go on with them.
const goOnWithin = 5_000_000

// keptFor is for how long, in µs, what is kept of a lost home is not given up.
const keptFor = 600_000_000

// onCopies keeps places of a member, or forgets them. Of one that is not in the waves
// nothing is heard: this node may be going on with its places.
func (n *Node) onCopies(now eviction.Time, from eviction.Member, b *eviction.Copies) error {
	if !n.ev.Listed(from) || n.ev.Left() {
		return nil
	}
	i, known := slices.BinarySearchFunc(n.kept, from, func(h keptHome, m eviction.Member) int { return h.member.Compare(m) })
	if known && (b.Lane < n.kept[i].lane || b.Lane == n.kept[i].lane && b.Seq < n.kept[i].seq) {
		return nil // it is late
	}
	ack := &eviction.CopiesAck{Lane: b.Lane, Seq: b.Seq}
	again := known && b.Lane == n.kept[i].lane && b.Seq == n.kept[i].seq
	next := known && b.Lane == n.kept[i].lane && b.Seq == n.kept[i].seq+1
	switch {
	case again:
	case next || b.Seq == 1:
		for j := range b.Rooms {
			r, err := n.room(b.Rooms[j].Room)
			if err != nil {
				return nil // not here yet: it is said again
			}
			if next && n.kept[i].has(r)+len(b.Rooms[j].Places) > keptPlacesMax {
				return fmt.Errorf("node: %v has more than %d places kept of room %q", from, keptPlacesMax, r.name)
			}
		}
		switch {
		case !known:
			n.kept = slices.Insert(n.kept, i, keptHome{member: from, lane: b.Lane})
		case !next:
			n.kept[i] = keptHome{member: from, lane: b.Lane}
		}
		for j := range b.Rooms {
			n.kept[i].keep(n, &b.Rooms[j])
		}
		n.kept[i].seq = b.Seq
	default:
		ack.Unknown = true
		if known {
			n.kept = slices.Delete(n.kept, i, i+1)
		}
	}
	if !ack.Unknown {
		ack.Visits = 1 + n.keepVisits(now, from, b)
		n.kept[i].heard, n.kept[i].gone, n.kept[i].late = now.Boot, 0, false
	}
	n.out = append(n.out, eviction.Message{From: n.c.Self.Member, To: from, Body: ack})
	return nil
}

func (h *keptHome) of(r *room) *keptRoom {
	for i := range h.rooms {
		if h.rooms[i].room == r {
			return &h.rooms[i]
		}
	}
	return nil
}

func (h *keptHome) has(r *room) int {
	if k := h.of(r); k != nil {
		return k.places.n
	}
	return 0
}

func (h *keptHome) keep(n *Node, b *eviction.RoomCopies) {
	r, err := n.room(b.Room)
	if err != nil {
		return
	}
	k := h.of(r)
	if k == nil {
		h.rooms = append(h.rooms, keptRoom{room: r})
		k = &h.rooms[len(h.rooms)-1]
	}
	k.order = nil
	for i := range b.Places {
		k.places.put(&b.Places[i])
	}
	for _, id := range b.Gone {
		k.places.take(id)
	}
}

// sort puts the places in order, under the keys that the room's queue has by now.
func (k *keptRoom) sort() {
	keying := k.room.gate.Keying()
	if k.order != nil && k.keying == keying {
		return
	}
	k.keying = keying
	type keyed struct {
		key    qpid.Weight
		id     qpid.ItemID
		parked bool
	}
	all := make([]keyed, 0, k.places.n)
	k.places.all(func(p *keptPlace) {
		all = append(all, keyed{k.room.gate.Key(qpid.Weight{Stamp: p.stamp, ID: p.id}), p.id, p.is(keptParked)})
	})
	slices.SortFunc(all, func(a, b keyed) int {
		if a.parked != b.parked {
			if b.parked {
				return -1
			}
			return 1
		}
		return a.key.Compare(b.key)
	})
	k.order = make([]qpid.ItemID, len(all))
	for i := range all {
		k.order[i] = all[i].id
	}
}

// first is the stamp of the first of the places, but for the parked, 0 if there is none.
func (k *keptRoom) first() (least uint64) {
	gate := k.room.gate
	if k.order != nil && k.keying == gate.Keying() {
		for ; len(k.order) > 0; k.order = k.order[1:] {
			switch p := k.places.get(k.order[0]); {
			case p == nil:
			case p.is(keptParked):
				return 0
			default:
				return gate.Key(qpid.Weight{Stamp: p.stamp, ID: k.order[0]}).Stamp
			}
		}
		return 0
	}
	k.places.all(func(p *keptPlace) {
		if key := gate.Key(qpid.Weight{Stamp: p.stamp, ID: p.id}).Stamp; !p.is(keptParked) && (least == 0 || key < least) {
			least = key
		}
	})
	return least
}

// firstKept is the stamp of the first who is kept here of a node that is not in list, 0 if
// nobody is. See eviction.RoomNode.
func (r *room) firstKept(list []eviction.Member) (least uint64) {
	if r.broken != nil {
		return 0
	}
	for i := range r.node.kept {
		h := &r.node.kept[i]
		k := h.of(r)
		if h.late || k == nil || k.places.n == 0 || r.node.among.has(list, h.member) {
			continue
		}
		if first := k.first(); first > 0 && (least == 0 || first < least) {
			least = first
		}
	}
	return least
}

// goOn goes on with the places of homes that are lost, and forgets those of which it has
// not heard for so long, while they were in waves, that what it keeps of them cannot be right.
func (n *Node) goOn(now eviction.Time) {
	if now.Boot < n.goOnAt && !n.hasten {
		return
	}
	stale, list := 2*n.ev.LongestExclude(), n.ev.Members()
	stood := now.Boot-n.goOnAt > stale/4 // this node stood still, and has heard nothing of anybody
	n.goOnAt, n.hasten = now.Boot+n.c.Cluster.WithDefaults().Period.Microseconds()/4, false
	for i := range n.kept {
		if h := &n.kept[i]; stood || now.Boot-n.ev.SeenAt(h.member) > stale/4 {
			h.heard = now.Boot // nobody hears anything of it
		}
	}
	n.kept = slices.DeleteFunc(n.kept, func(h keptHome) bool { return n.among.has(list, h.member) && now.Boot-h.heard > stale })
	n.forgetVisits()
	if n.leaveBy != 0 || !n.ev.Clear() {
		return
	}
	left := goOnMax
	for i := 0; i < len(n.kept); i++ {
		if n.among.has(list, n.kept[i].member) || !n.ev.Gone(n.kept[i].member, now) {
			continue
		}
		h := &n.kept[i]
		if h.gone == 0 {
			h.gone = now.Boot
		}
		h.late = now.Boot-h.gone > goOnWithin
		home, rest := h.member, 0
		for j := range n.kept[i].rooms {
			k := &n.kept[i].rooms[j]
			if r := k.room; r.broken == nil && n.ev.Admits(r.gate, now) && n.ev.InTouch(r.gate, now) {
				left = r.goOnWith(now, home, left)
			}
			rest += n.kept[i].has(k.room)
			n.hasten = n.hasten || left == 0
		}
		if rest == 0 || now.Boot-n.kept[i].gone > keptFor {
			n.kept = slices.Delete(n.kept, i, i+1)
			i--
		}
	}
}

// goOnWith goes on with up to most places of home, the first ones first, and returns how
// many more it might.
func (r *room) goOnWith(now eviction.Time, home eviction.Member, most int) int {
	i, _ := slices.BinarySearchFunc(r.node.kept, home, func(h keptHome, m eviction.Member) int { return h.member.Compare(m) })
	k := r.node.kept[i].of(r)
	if k.places.n == 0 || most == 0 {
		return most
	}
	k.sort()
	for ; most > 0 && len(k.order) > 0 && r.broken == nil; most-- {
		id := k.order[0]
		p, ok := k.places.take(id)
		k.order = k.order[1:]
		if !ok {
			continue // whoever has it asked first
		}
		r.safely(now, func(now eviction.Time) { r.goOnAs(now, home, &p) })
	}
	r.node.ev.Urge(r.gate)
	r.node.carryOn(now)
	return most
}

// goOnAs goes on with one place of a lost home.
func (r *room) goOnAs(now eviction.Time, home eviction.Member, p *eviction.Place) {
	v, to := r.atHome(r.visitors.get(p.ID), p.Gen), r.moved.to[p.ID]
	switch {
	case to.until > now.Boot && to.gen >= p.Gen: // somebody else has gone on with it
		return
	case r.broken != nil, r.node.used.has(usedHash(p.ID)), v != nil && (v.gen >= p.Gen || v.stage > parked):
		return
	case v == nil:
		v = r.addPlace(now, p)
	}
	r.follow(v, home, p, now)
	r.record(WentOn, v.weight(), 0, qpid.Weight{})
	r.markKept(v)
	if heir := r.node.ev.Heir(v.id, v.stamp); heir != r.node.c.Self.Member && heir != (eviction.Member{}) {
		r.toTell(v, heir, now) // whom their browser may have been sent to
	}
}

// keptHere takes what is kept here of a place out of what is kept: whoever asks for it
// goes on with it sooner.
func (r *room) keptHere(id qpid.ItemID, home eviction.Member) (*eviction.Place, bool) {
	i, known := slices.BinarySearchFunc(r.node.kept, home, func(h keptHome, m eviction.Member) int { return h.member.Compare(m) })
	if !known {
		return nil, false
	}
	k := r.node.kept[i].of(r)
	if k == nil {
		return nil, false
	}
	p, ok := k.places.take(id)
	return &p, ok
}

// markKept entitles one whose turn came while a lost node had their place, by the wave
// that brought it.
func (r *room) markKept(v *visitor) {
	if key := r.gate.Key(v.weight()); r.byCut() && v.stage == queued && !r.gate.Cut().Value.Less(key) {
		r.mark(v, r.gate.WaveOf(key), key)
	}
}

// Keeps reports whether this node keeps the place of id for home, or has it: a simulator asks.
func (n *Node) Keeps(name string, home eviction.Member, id qpid.ItemID) bool {
	r, err := n.room(name)
	if err != nil {
		return false
	}
	if r.visitors.get(id) != nil {
		return true
	}
	for i := range n.kept {
		if n.kept[i].member == home {
			if k := n.kept[i].of(r); k != nil {
				return k.places.get(id) != nil
			}
		}
	}
	return false
}

// Lightest is the first in line here, ok if there is one: a simulator asks.
func (n *Node) Lightest(name string) (first qpid.Weight, ok bool) {
	r, err := n.room(name)
	if err != nil {
		return first, false
	}
	return r.gate.Queue.Min()
}

// Held returns until when slots here are used by passes of which this node knows no more, in pass
// time: a simulator asks.
func (n *Node) Held(name string) []int64 {
	r, err := n.room(name)
	if err != nil {
		return nil
	}
	return r.held
}

// Copied calls fn with everybody who waits here and whom an heir keeps, as far as this
// node knows: a simulator asks.
func (n *Node) Copied(name string, fn func(id qpid.ItemID, heir eviction.Member)) {
	r, err := n.room(name)
	if err != nil || r.bare == nil || r.unsure {
		return
	}
	r.visitors.all(func(v *visitor) {
		if v.stage == queued && r.copyOf(v).at > 0 {
			fn(v.id, n.copies.lanes[r.copyOf(v).at-1].heir)
		}
	})
}

// KeptBy is the heir that keeps the place of id, as far as this node knows, zero if nobody
// does: a simulator asks.
func (n *Node) KeptBy(name string, id qpid.ItemID) (heir eviction.Member) {
	r, err := n.room(name)
	if err != nil || r.bare == nil {
		return heir
	}
	if v := r.visitors.get(id); v != nil && v.stage <= parked {
		if at := r.copyOf(v).at; at > 0 {
			heir = n.copies.lanes[at-1].heir
		}
	}
	return heir
}

// FirstUnkept is the stamp under which the first waits here whom no heir keeps, as far as
// this node knows, eviction.Nobody if there is none: a simulator asks.
func (n *Node) FirstUnkept(name string) uint64 {
	first := uint64(eviction.Nobody)
	r, err := n.room(name)
	if err != nil || r.bare == nil {
		return first
	}
	r.visitors.all(func(v *visitor) {
		if v.stage == queued && r.copyOf(v).at == 0 {
			first = min(first, r.gate.Key(v.weight()).Stamp)
		}
	})
	return first
}

// keptCount counts the places of the room that are kept here.
func (r *room) keptCount() (n int) {
	for i := range r.node.kept {
		n += r.node.kept[i].has(r)
	}
	return n
}
