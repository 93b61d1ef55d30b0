package node

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// Places are kept, changed and removed at random, and are then those that a map has.
func TestKeptPlacesAreThoseOfAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		var k keptPlaces
		want := map[qpid.ItemID]eviction.Place{}
		ids := 1 + r.IntN(3000)
		for range 10_000 {
			id := numbered(r.IntN(ids))
			if r.IntN(5) < 2 {
				got, ok := k.take(id)
				if had, has := want[id]; ok != has || got != had {
					t.Fatalf("took %+v, %t; want %+v, %t", got, ok, had, has)
				}
				delete(want, id)
				continue
			}
			p := eviction.Place{
				ID: id, Stamp: r.Uint64(), Wave: r.Uint64(), Gen: r.Uint32(), Refresh: r.Uint32(), Missed: uint8(r.Uint32()), Slept: uint8(r.Uint32()), Hand: uint8(r.Uint32()),
				Anew: r.IntN(2) == 0, Entitled: r.IntN(2) == 0, Parked: r.IntN(2) == 0,
			}
			if r.IntN(3) == 0 {
				p.Past = eviction.Member{Name: "n", Boot: uint64(r.IntN(4))}
			}
			k.put(&p)
			want[id] = p
		}
		n := 0
		k.all(func(p *keptPlace) {
			n++
			if got := k.place(p); got != want[p.id] {
				t.Errorf("has %+v, want %+v", got, want[p.id])
			}
		})
		if n != len(want) || k.n != n {
			t.Errorf("has %d places, and says %d; want %d", n, k.n, len(want))
		}
		for id := range want {
			if k.get(id) == nil {
				t.Errorf("%x is not found", id)
			}
			k.take(id)
		}
		if k.n != 0 || k.chunks != nil {
			t.Errorf("%d places and %d chunks are left", k.n, len(k.chunks))
		}
	}
}

// BenchmarkKeptPlaces keeps a million places of one home. B/place is all the memory that
// takes at the node that keeps them.
func BenchmarkKeptPlaces(b *testing.B) {
	const n = 1_000_000
	memory := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		before := memory()
		var k keptPlaces
		for i := range n {
			k.put(&eviction.Place{ID: qpid.ItemID{byte(i * 151), byte(i), byte(i >> 8), byte(i >> 16), byte(i >> 24), 1}, Stamp: uint64(i)})
		}
		b.ReportMetric(float64(memory()-before)/n, "B/place")
		runtime.KeepAlive(&k)
	}
}
