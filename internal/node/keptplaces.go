package node

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// keptPlaces are the places of a room that are kept of one home, by id. There may be as
// many as there are visitors, and they are kept in the same manner.
type keptPlaces struct {
	chunks []*[chunkLen]keptPlace
	free   []uint32 // numbers of removed records
	n      int
	index  [1 << keptBits]part
	pasts  []eviction.Member // that places name; few do
}

// keptBits is fewer than visitors have: there are as many of these for each home.
const keptBits = 4

// keptPlace is a Place.
type keptPlace struct {
	id           qpid.ItemID
	stamp, wave  uint64
	gen, refresh uint32
	past         uint32 // 1 + its number in pasts; 0: none, as of almost all
	missed       uint8
	slept        uint8
	hand         uint8
	flags        keptFlags
}

type keptFlags uint8

const (
	keptAnew keptFlags = 1 << iota
	keptEntitled
	keptParked
	keptRemoved // nobody's record
)

func (p *keptPlace) is(f keptFlags) bool { return p.flags&f != 0 }

func (k *keptPlaces) at(number uint32) *keptPlace { return &k.chunks[number/chunkLen][number%chunkLen] }

func (k *keptPlaces) hashAt(number uint32) uint64 { return hashOf(k.at(number).id) }

// find returns the number of the record of id.
func (k *keptPlaces) find(id qpid.ItemID) (number uint32, ok bool) {
	h := hashOf(id)
	cells := k.index[h>>(64-keptBits)].cells
	if len(cells) == 0 {
		return 0, false
	}
	for i := int(h) & (len(cells) - 1); cells[i] != 0; i = (i + 1) & (len(cells) - 1) {
		if k.at(cells[i]-1).id == id {
			return cells[i] - 1, true
		}
	}
	return 0, false
}

// get returns the place of id, nil if there is none. It is good until that is removed.
func (k *keptPlaces) get(id qpid.ItemID) *keptPlace {
	if number, ok := k.find(id); ok {
		return k.at(number)
	}
	return nil
}

// put keeps p, instead of what was kept of it before.
func (k *keptPlaces) put(p *eviction.Place) {
	number, known := k.find(p.ID)
	last := len(k.free) - 1
	switch {
	case known:
	case last >= 0:
		number, k.free = k.free[last], k.free[:last]
	default:
		number = uint32(k.n)
		if k.n == len(k.chunks)*chunkLen {
			k.chunks = append(k.chunks, new([chunkLen]keptPlace))
		}
	}
	*k.at(number) = k.of(p)
	if !known {
		h := hashOf(p.ID)
		k.index[h>>(64-keptBits)].add(h, number, k.hashAt)
		k.n++
	}
}

// take removes the place of id and returns what it was.
func (k *keptPlaces) take(id qpid.ItemID) (p eviction.Place, ok bool) {
	number, ok := k.find(id)
	if !ok {
		return p, false
	}
	at := k.at(number)
	p = k.place(at)
	h := hashOf(id)
	k.index[h>>(64-keptBits)].remove(h, number, k.hashAt)
	k.n--
	if k.n == 0 {
		*k = keptPlaces{}
		return p, true
	}
	*at = keptPlace{flags: keptRemoved}
	k.free = append(k.free, number)
	return p, true
}

// all calls fn for every place, which must not change what is kept.
func (k *keptPlaces) all(fn func(*keptPlace)) {
	for i := range uint32(k.n + len(k.free)) {
		if p := k.at(i); !p.is(keptRemoved) {
			fn(p)
		}
	}
}

func (k *keptPlaces) of(p *eviction.Place) keptPlace {
	kept := keptPlace{id: p.ID, stamp: p.Stamp, wave: p.Wave, gen: p.Gen, refresh: p.Refresh, missed: p.Missed, slept: p.Slept, hand: p.Hand}
	for _, f := range []struct {
		is   bool
		flag keptFlags
	}{{p.Anew, keptAnew}, {p.Entitled, keptEntitled}, {p.Parked, keptParked}} {
		if f.is {
			kept.flags |= f.flag
		}
	}
	if p.Past != (eviction.Member{}) {
		i := slices.Index(k.pasts, p.Past)
		if i < 0 {
			i, k.pasts = len(k.pasts), append(k.pasts, p.Past)
		}
		kept.past = uint32(i + 1)
	}
	return kept
}

func (k *keptPlaces) place(p *keptPlace) eviction.Place {
	place := eviction.Place{
		ID: p.id, Stamp: p.stamp, Gen: p.gen, Refresh: p.refresh, Missed: p.missed, Slept: p.slept, Wave: p.wave, Hand: p.hand,
		Anew: p.is(keptAnew), Entitled: p.is(keptEntitled), Parked: p.is(keptParked),
	}
	if p.past > 0 {
		place.Past = k.pasts[p.past-1]
	}
	return place
}
