package load

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

func TestALaneHandsOutTheLongestDueFirst(t *testing.T) {
	l := newLane(nil, func() int64 { return 1 << 40 })
	draw := rand.New(rand.NewPCG(1, 2))
	var want, got []int64
	for range 1000 {
		if v := (&visitor{due: draw.Int64N(500)}); draw.IntN(3) > 0 || len(l.due) == 0 {
			l.put(v)
			want = append(want, v.due)
			continue
		}
		first := slices.Min(want)
		if v := l.take(); v.due != first {
			t.Fatalf("took somebody due at %d, want %d", v.due, first)
		}
		want = slices.Delete(want, slices.Index(want, first), slices.Index(want, first)+1)
	}
	for len(l.due) > 0 {
		got = append(got, l.take().due)
	}
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("took %v, want %v", got, want)
	}
}

// However many wait for visitors, each is taken once, at its time; an earlier
// one than all who are there is not overlooked.
func TestALaneWaitsUntilSomebodyIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		clock := func() int64 { return time.Since(start).Microseconds() }
		l := newLane(nil, clock)
		var mu sync.Mutex
		late, taken := int64(0), 0
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				for v := l.take(); v != nil; v = l.take() {
					mu.Lock()
					taken, late = taken+1, max(late, clock()-v.due)
					mu.Unlock()
					time.Sleep(time.Millisecond) // its request
				}
			})
		}
		synctest.Wait()
		for _, due := range []time.Duration{time.Minute, time.Second, time.Second, 3 * time.Second, 10 * time.Millisecond, 2 * time.Hour} {
			l.put(&visitor{due: due.Microseconds()})
			synctest.Wait()
		}
		time.Sleep(3 * time.Hour)
		l.end()
		all.Wait()
		if taken != 6 || late > 0 {
			t.Errorf("%d were taken, the latest %d µs late, want 6 on time", taken, late)
		}
	})
}

// A waiting visitor costs its own words, its place in the heap, and its ticket.
func TestAWaitingVisitorIsSmall(t *testing.T) {
	const growth = 2 // a heap may be half full
	if size := unsafe.Sizeof(visitor{}) + growth*unsafe.Sizeof(entry{}); size > 200 {
		t.Errorf("a waiting visitor takes %d bytes", size)
	}
	v := visitor{}
	v.keep([]byte("a ticket"))
	if v.keep([]byte("a pass")); string(v.held) != "a pass" || cap(v.held) > 8 {
		t.Errorf("keeps %q in %d bytes", v.held, cap(v.held))
	}
}
