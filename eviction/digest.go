package eviction

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// Digest tells about where in a queue a ticket is, for positions: of one node's
// queue, or of those of a subtree together, however many nodes that is.
type Digest struct {
	Marks  []Mark // by stamp, and by rank
	Length int    // of the queue
}

// Mark says that about Rank tickets of the queue are lighter than any with this Key:
// exactly so many for the first exactMarks.
type Mark struct {
	Key
	Rank int
}

// Key is as much of a weight as a digest keeps: the stamp, and the first bytes of the
// id, which tell those apart whom two nodes have stamped in one microsecond.
type Key struct {
	Stamp uint64
	Tie   uint32
}

func keyOf(w qpid.Weight) Key { return Key{w.Stamp, binary.BigEndian.Uint32(w.ID[:])} }

func (k Key) compare(o Key) int {
	if c := cmp.Compare(k.Stamp, o.Stamp); c != 0 {
		return c
	}
	return cmp.Compare(k.Tie, o.Tie)
}

// next is the first key beyond k.
func (k Key) next() Key {
	if k.Tie == math.MaxUint32 {
		return Key{k.Stamp + 1, 0}
	}
	return Key{k.Stamp, k.Tie + 1}
}

// from is how far k is beyond o, in microseconds.
func (k Key) from(o Key) float64 {
	return float64(k.Stamp-o.Stamp) + (float64(k.Tie)-float64(o.Tie))/(1<<32)
}

// A digest has the first exactMarks tickets one by one, then each about a
// twenty-fifth further than the one before.
const (
	exactMarks = 256
	markStep   = 1.04
)

// digest samples a queue: the tickets at the ranks of marks, and the heaviest.
func digest(q *qpid.Queue) *Digest {
	d := &Digest{Length: q.Len()}
	for rank := 0; rank < d.Length; rank = nextRank(rank) {
		d.add(q, rank)
	}
	if last := d.Length - 1; last >= 0 && d.Marks[len(d.Marks)-1].Rank < last {
		d.add(q, last)
	}
	return d
}

func (d *Digest) add(q *qpid.Queue, rank int) {
	w, _ := q.Select(rank)
	if n := len(d.Marks); n == 0 || d.Marks[n-1].compare(keyOf(w)) < 0 {
		d.Marks = append(d.Marks, Mark{keyOf(w), rank})
	}
}

// nextRank is the rank of the mark after the one at rank.
func nextRank(rank int) int {
	if rank+1 < exactMarks {
		return rank + 1
	}
	return max(rank+1, int(float64(rank)*markStep))
}

// marks bounds the marks of a digest of a queue.
func marks(queued int) int {
	if queued <= exactMarks {
		return queued
	}
	return min(queued, exactMarks+1+int(1.2*math.Log(float64(queued)/exactMarks)/math.Log(markStep)))
}

// rank estimates how many tickets of the queue are lighter than any with this key.
func (d *Digest) rank(key Key) float64 {
	i, found := slices.BinarySearchFunc(d.Marks, key, func(m Mark, k Key) int { return m.compare(k) })
	switch {
	case i == len(d.Marks):
		return float64(d.Length)
	case found || i == 0:
		return float64(d.Marks[i].Rank)
	}
	lo, hi := d.Marks[i-1], d.Marks[i]
	at := key.from(lo.Key) / hi.from(lo.Key)
	return float64(lo.Rank) + 1 + at*float64(hi.Rank-lo.Rank-1)
}

// between estimates how many tickets of the queue are beyond from and lighter than to.
func (d *Digest) between(from, to qpid.Weight) float64 {
	return max(0, d.rank(keyOf(to))-d.rank(keyOf(from).next()))
}

// at returns the stamp of a mark that at least rank tickets are lighter than, about;
// false: the queue is not as long.
func (d *Digest) at(rank int) (stamp uint64, ok bool) {
	i, _ := slices.BinarySearchFunc(d.Marks, rank, func(m Mark, r int) int { return cmp.Compare(m.Rank, r) })
	if i == len(d.Marks) {
		return 0, false
	}
	return d.Marks[i].Stamp, true
}

// merged is the digest of all the queues together. All at once: what is interpolated
// again and again gets worse each time.
func merged(ds []*Digest) *Digest {
	if len(ds) == 1 {
		return ds[0]
	}
	var keys []Key
	all := &Digest{}
	for _, d := range ds {
		all.Length += d.Length
		for _, m := range d.Marks {
			keys = append(keys, m.Key)
		}
	}
	slices.SortFunc(keys, Key.compare)
	keys = slices.Compact(keys)
	ranks := make([]int, len(keys))
	for i, k := range keys {
		sum := 0.0
		for _, d := range ds {
			sum += d.rank(k)
		}
		ranks[i] = int(math.Round(sum))
		if i > 0 {
			ranks[i] = max(ranks[i], ranks[i-1])
		}
	}
	next := 0
	for i := range keys {
		last := i == len(keys)-1
		if ranks[i] >= next || last || ranks[i+1] > next {
			if n := len(all.Marks); n == 0 || all.Marks[n-1].Rank < ranks[i] {
				all.Marks = append(all.Marks, Mark{keys[i], ranks[i]})
				next = nextRank(ranks[i])
			}
		}
	}
	return all
}

// before returns the first mark with this stamp, counted from 1, or else the last one
// stamped before; 0: there is none.
func (d *Digest) before(stamp uint64) int {
	i, found := slices.BinarySearchFunc(d.Marks, stamp, func(m Mark, s uint64) int { return cmp.Compare(m.Stamp, s) })
	if found {
		i++
	}
	return i
}
