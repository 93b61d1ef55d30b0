package node

import (
	"encoding/binary"
	"math/bits"

	"github.com/anteroom/anteroom/qpid"
)

// visitors are those of a room, by id. There may be millions of them, for
// hours, so nothing here is a pointer that the garbage collector would follow,
// and nothing is moved or copied as a whole when one more comes.
//
// The records lie in chunks that stay where they are: a *visitor is good until
// that visitor is removed, and then the next who comes may get its record. The
// index is an open-addressing hash table, of record numbers alone, with linear
// probing. It is cut into parts that grow one at a time.
type visitors struct {
	chunks []*[chunkLen]visitor
	free   []uint32 // numbers of removed records
	n      int
	index  [1 << partBits]part
}

// part is the index of the ids whose hash begins with its number.
// Invariant: at most three quarters of cells are taken.
type part struct {
	cells []uint32 // 1 + record number; 0: empty
	n     int
}

const (
	chunkLen = 128 // records, 10 KiB
	partBits = 6
	cellsMin = 8
)

func (p *visitors) len() int { return p.n }

// at returns the record of that number, nil if there is none. It may be one that
// was removed.
func (p *visitors) at(number uint32) *visitor {
	if chunk := int(number / chunkLen); chunk < len(p.chunks) {
		return &p.chunks[chunk][number%chunkLen]
	}
	return nil
}

// get returns the visitor with that id, nil if there is none.
func (p *visitors) get(id qpid.ItemID) *visitor {
	h := hashOf(id)
	cells := p.index[h>>(64-partBits)].cells
	if len(cells) == 0 {
		return nil
	}
	for i := int(h) & (len(cells) - 1); cells[i] != 0; i = (i + 1) & (len(cells) - 1) {
		if v := p.at(cells[i] - 1); v.id == id {
			return v
		}
	}
	return nil
}

// hashed returns the visitor whose id has that usedHash, nil if there is none.
func (p *visitors) hashed(h uint64) *visitor {
	cells := p.index[h>>(64-partBits)].cells
	if len(cells) == 0 {
		return nil
	}
	for i := int(h) & (len(cells) - 1); cells[i] != 0; i = (i + 1) & (len(cells) - 1) {
		if v := p.at(cells[i] - 1); usedHash(v.id) == h {
			return v
		}
	}
	return nil
}

// add takes in v, whose id nobody else has.
func (p *visitors) add(v visitor) *visitor {
	if last := len(p.free) - 1; last >= 0 {
		v.number, p.free = p.free[last], p.free[:last]
	} else {
		v.number = uint32(p.n)
		if p.n == len(p.chunks)*chunkLen {
			p.chunks = append(p.chunks, new([chunkLen]visitor))
		}
	}
	h := hashOf(v.id)
	p.index[h>>(64-partBits)].add(h, v.number, p.hashAt)
	p.n++
	at := p.at(v.number)
	*at = v
	return at
}

// remove forgets v. Its record keeps nothing that could be taken for somebody.
func (p *visitors) remove(v *visitor) {
	h := hashOf(v.id)
	p.index[h>>(64-partBits)].remove(h, v.number, p.hashAt)
	p.n--
	if p.n == 0 {
		*p = visitors{} // a crowd has gone: so does its memory
		return
	}
	number := v.number
	*v = visitor{number: number, slot: gone}
	p.free = append(p.free, number)
}

// all calls fn for everyone, in an order that is the same whenever the same was
// done before. fn must not add or remove anybody.
func (p *visitors) all(fn func(*visitor)) {
	for i := range p.records() {
		if v := p.at(i); v.slot != gone {
			fn(v)
		}
	}
}

// records is how many records there are, of visitors and of removed ones: by number.
func (p *visitors) records() uint32 { return uint32(p.n + len(p.free)) }

func (p *visitors) hashAt(number uint32) uint64 { return hashOf(p.at(number).id) }

// add notes a record whose id has hash h; hashAt has those of all records.
func (t *part) add(h uint64, number uint32, hashAt func(uint32) uint64) {
	t.n++
	if t.n > len(t.cells)/4*3 {
		old := t.cells
		t.cells = make([]uint32, max(cellsMin, 2*len(old)))
		for _, cell := range old {
			if cell != 0 {
				t.put(hashAt(cell-1), cell-1)
			}
		}
	}
	t.put(h, number)
}

// remove forgets a record that was added.
func (t *part) remove(h uint64, number uint32, hashAt func(uint32) uint64) {
	mask := len(t.cells) - 1
	hole := int(h) & mask
	for t.cells[hole] != number+1 {
		hole = (hole + 1) & mask
	}
	// Whoever stands behind the hole, up to the next empty cell, moves up unless
	// that would put it before the cell where the search for it begins.
	for i := (hole + 1) & mask; t.cells[i] != 0; i = (i + 1) & mask {
		home := int(hashAt(t.cells[i]-1)) & mask
		if (i-home)&mask >= (i-hole)&mask {
			t.cells[hole], hole = t.cells[i], i
		}
	}
	t.cells[hole] = 0
	t.n--
}

// put notes a record in the first empty cell from where the search for it begins.
func (t *part) put(h uint64, number uint32) {
	mask := len(t.cells) - 1
	i := int(h) & mask
	for t.cells[i] != 0 {
		i = (i + 1) & mask
	}
	t.cells[i] = number + 1
}

// hashOf spreads ids. They are random, so that nobody can choose them to collide,
// but for those of tests.
func hashOf(id qpid.ItemID) uint64 {
	hi, lo := bits.Mul64(binary.LittleEndian.Uint64(id[:8])^0x9e3779b97f4a7c15, binary.LittleEndian.Uint64(id[8:])^0xbf58476d1ce4e5b9)
	return (hi ^ lo) * 0x94d049bb133111eb
}
