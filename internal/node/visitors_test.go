package node

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/anteroom/anteroom/qpid"
)

// Whatever comes and goes, people know exactly those who are there, everyone's
// record stays where it is, and a number leads to it.
func TestVisitorsAreAsAMapWouldHaveThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p visitors
		want := map[qpid.ItemID]*visitor{}
		few := rapid.Bool().Draw(t, "few ids") // so that they come back, and crowd few parts of the index
		for range 400 {
			id := qpid.ItemID{rapid.Byte().Draw(t, "id"), 1}
			if !few {
				id[9] = rapid.Byte().Draw(t, "more of it")
			}
			switch v := p.get(id); {
			case v != want[id]:
				t.Fatalf("visitor %x is at %p, want %p", id, v, want[id])
			case p.hashed(usedHash(id)) != v:
				t.Fatalf("the visitor whose id has the hash of %x is at %p, want %p", id, p.hashed(usedHash(id)), v)
			case v == nil:
				want[id] = p.add(visitor{id: id, stamp: uint64(id[0])})
			case rapid.IntRange(0, 2).Draw(t, "goes") > 0:
				delete(want, id)
				p.remove(v)
			}
			if p.len() != len(want) {
				t.Fatalf("%d people, want %d", p.len(), len(want))
			}
		}
		n := 0
		p.all(func(v *visitor) {
			n++
			if want[v.id] != v || p.get(v.id) != v || p.at(v.number) != v || v.stamp != uint64(v.id[0]) {
				t.Errorf("visitor %x, number %d: not the one who came", v.id, v.number)
			}
		})
		if n != len(want) {
			t.Errorf("%d of %d people shown", n, len(want))
		}
	})
}

func TestVisitorsOfACrowdThatHasGoneTakeNoMemory(t *testing.T) {
	var p visitors
	for i := range 1000 {
		p.add(visitor{id: qpid.ItemID{byte(i), byte(i >> 8)}})
	}
	for i := range 1000 {
		p.remove(p.get(qpid.ItemID{byte(i), byte(i >> 8)}))
	}
	if p.len() != 0 || p.chunks != nil || p.free != nil {
		t.Errorf("%d people, %d chunks, %d free records left", p.len(), len(p.chunks), len(p.free))
	}
}

func BenchmarkVisitors(b *testing.B) {
	const n = 1_000_000
	id := func(i int) qpid.ItemID {
		return qpid.ItemID{byte(i * 151), byte(i), byte(i >> 8), byte(i >> 16), byte(i >> 24), 1}
	}
	var p visitors
	for i := range n {
		p.add(visitor{id: id(i)})
	}
	b.Run("get", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if p.get(id(i*7919%n)) == nil {
				b.Fatal("somebody is missing")
			}
		}
	})
	b.Run("remove and add", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			v := p.get(id(i * 7919 % n))
			again := *v
			p.remove(v)
			p.add(again)
		}
	})
}
