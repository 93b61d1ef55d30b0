package eviction

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/anteroom/anteroom/qpid"
	"pgregory.net/rapid"
)

func queueOf(ws []qpid.Weight) *qpid.Queue {
	q := qpid.NewQueue()
	for _, w := range ws {
		q.Insert(w)
	}
	return q
}

// A spread of 50 has many stamped in one microsecond.
func TestDigest(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, spread := range []uint64{1e12, 50} {
		for _, n := range []int{0, 1, 2, 255, 256, 257, 258, 259, 270, 1000, 100_000} {
			c := newCrowd(rng, []int{n}, spread)
			q := queueOf(c[0])
			d := digest(q)
			if len(d.Marks) > marks(n) || !d.valid() || d.Length != n {
				t.Errorf("a digest of %d weights has %d marks, in order: %v", n, len(d.Marks), d.valid())
			}
			for rank := 0; rank < n; rank += 1 + n/997 {
				key := keyOf(c[0][rank])
				for _, k := range []Key{key, key.next(), {key.Stamp, 0}} {
					want := float64(q.Rank(k.lightest()))
					got := d.rank(k)
					if want < exactMarks && got != want {
						t.Errorf("n=%d: rank of %d estimated as %v, want it exact", n, rank, got)
					}
					if math.Abs(got-want) > 0.05*want+1 {
						t.Errorf("n=%d: rank %v estimated as %v, more than a twentieth off", n, want, got)
					}
				}
			}
		}
	}
}

func (k Key) lightest() qpid.Weight {
	w := qpid.Weight{Stamp: k.Stamp}
	binary.BigEndian.PutUint32(w.ID[:], k.Tie)
	return w
}

// together merges the nodes' digests up the tree.
func (c crowd) together(fanout int) *Digest {
	var up func(i int) *Digest
	up = func(i int) *Digest {
		ds := []*Digest{digest(queueOf(c[i]))}
		first, end := children(i, fanout, len(c))
		for j := first; j < end; j++ {
			ds = append(ds, up(j))
		}
		return merged(ds)
	}
	return up(0)
}

// The digest of a room is as good as those of its nodes, however many they are: the
// first ones exactly, and of the others one in twenty off at the most.
func TestDigestsOfARoomAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, nodes := range []int{1, 2, 16, 256, 1000} {
		for _, spread := range []uint64{1e12, 500} {
			sizes := make([]int, nodes)
			for i := range sizes {
				sizes[i] = 20_000 / nodes
				if i%2 == 1 {
					sizes[i] = i % 7
				}
			}
			c := newCrowd(rng, sizes, spread)
			d := c.together(8)
			if !d.valid() || d.Length != c.total() || len(d.Marks) > marks(d.Length)+20 {
				t.Errorf("%d nodes: %d marks of %d tickets, in order: %v; %d wait", nodes, len(d.Marks), d.Length, d.valid(), c.total())
			}
			all := slices.Concat(c...)
			slices.SortFunc(all, qpid.Weight.Compare)
			worst := 0.0
			for rank, w := range all {
				off := math.Abs(d.rank(keyOf(w)) - float64(rank))
				if rank < exactMarks && off > 0 {
					t.Errorf("%d nodes: rank %d is off by %v", nodes, rank, off)
				}
				if rank >= exactMarks {
					worst = max(worst, off/float64(rank))
				}
			}
			if worst > 0.05 {
				t.Errorf("%d nodes: a rank is %.1f %% off", nodes, 100*worst)
			}
			t.Logf("%d nodes: %d marks, a rank is %.2f %% off at the most", nodes, len(d.Marks), 100*worst)
		}
	}
}

// Whatever the queues are, marks are in order, and of the first ones each is exact.
func TestMergedDigestsAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 200), 1, 12).Draw(t, "sizes")
		spread := rapid.SampledFrom([]uint64{1, 50, 1e9}).Draw(t, "spread")
		c := newCrowd(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), sizes, spread)
		d := c.together(rapid.IntRange(1, 8).Draw(t, "fanout"))
		if !d.valid() || d.Length != c.total() {
			t.Fatalf("of %d tickets: %+v", c.total(), d)
		}
		for i, m := range d.Marks {
			if i > 0 && i < exactMarks && m.Rank < exactMarks && m.Rank != d.Marks[i-1].Rank+1 {
				t.Fatalf("mark %d is at rank %d, after %d", i, m.Rank, d.Marks[i-1].Rank)
			}
		}
	})
}

func TestMarkRanksGrow(t *testing.T) {
	for rank := 0; rank < 1e6; rank = nextRank(rank) {
		next := nextRank(rank)
		if next <= rank || rank >= exactMarks && float64(next-rank-1) > 0.05*float64(rank) {
			t.Fatalf("after the mark at rank %d the next is at %d", rank, next)
		}
	}
}

// A wave that asked for no digest of a room says nothing of it: positions go by the one of before.
func TestARoomWithoutADigestKeepsTheOneOfBefore(t *testing.T) {
	n := NewNode(Config{}, Start{Self: Peer{Member: memberA}}, nil, Time{Boot: 1e12, Wall: 1e15})
	w := &wave{Gather: Gather{Rooms: []RoomGather{{Room: "hall"}, {Room: "shop", Digest: true}}}}
	w.sum.Rooms = []RoomReply{{Room: "hall"}, {Room: "shop"}}
	told := &Digest{Length: 1, Marks: []Mark{{Key: Key{Stamp: 1}}}}
	for i, d := range []*Digest{nil, told} {
		w.addDigest(i, d)
	}
	n.reply(w)
	if w.sum.Rooms[0].Digest != nil || w.sum.Rooms[1].Digest != told {
		t.Errorf("digests %+v and %+v, want none, and that of the one who told", w.sum.Rooms[0].Digest, w.sum.Rooms[1].Digest)
	}
}
