package series

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

const (
	roomsAll  = 100
	roomsBusy = 10
	// perMinute is how many people get in at each node of a busy room: in one of three
	// nodes 300 a minute, with a limit of some 1,500.
	perMinute = 100
)

// people are waits of those who get in in a minute, some 15 min and all alike, and
// visits of a few minutes at most 15, ms.
func people(rng *rand.Rand, at int64) (waits, visits int64) {
	mean := 900_000 * (1 + 0.5*math.Sin(float64(at)/3000))
	return int64(mean * (1 + 0.03*rng.NormFloat64())), int64(min(900_000, 180_000*math.Exp(rng.NormFloat64())))
}

// busyMinute is one of a busy room at a node.
func busyMinute(rng *rand.Rand, at int64) Row {
	r := Row{At: at, Up: 60, OnSite: uint64(60*500 - rng.IntN(100)), InLine: uint64(60 * (4000 + rng.IntN(500))), Called: uint64(rng.IntN(300)), Settings: Settings{1500, 0, Queueing}}
	r.OnSiteMost, r.InLineMost = 1500, uint32(12_000+rng.IntN(1000))
	n := uint32(perMinute - 10 + rng.IntN(20))
	for c := range r.Counts {
		r.Counts[c] = uint32(rng.IntN(30))
	}
	r.Counts[Joins], r.Counts[Calls], r.Counts[Admissions], r.Counts[WalkedIn] = n, n, n, 0
	for range n {
		wait, visit := people(rng, at)
		r.Waits.Record(wait)
		r.Visits.Record(visit)
	}
	return r
}

// What a node writes in a day, of itself and of the other node whose minutes it
// keeps, is a 32nd of what it writes in 32 days: idle rooms cost a row a day, and a
// busy one the same every hour.
func TestA32DayHistoryIsAtMost200MB(t *testing.T) {
	dir := t.TempDir()
	log, _ := told()
	k, err := NewKept(dir, log)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 0))
	const midnight = noon - noon%day
	for _, node := range []string{"node-1", "node-2"} {
		for at := int64(midnight); at < midnight+day; at += minute {
			m := Minute{At: at, Rows: []NamedRow{{self, Row{At: at, Up: 60}}}}
			for i := range roomsAll {
				name := fmt.Sprintf("room-%02d", i)
				switch {
				case i < roomsBusy:
					m.Rows = append(m.Rows, NamedRow{name, busyMinute(rng, at)})
				case at == midnight:
					m.Rows = append(m.Rows, NamedRow{name, Row{At: at, Up: 60, Settings: Settings{100, 0, Open}}})
				}
			}
			k.put(node, m)
		}
	}
	if err := k.Turn(midnight + day + hour); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.rows"))
	total := int64(0)
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	mb := float64(total) * 32 / 1e6
	t.Logf("a day of %d rooms, %d of them with %d people a minute, of this node and of one other: %.2f MB; 32 days: %.0f MB", roomsAll, roomsBusy, perMinute, float64(total)/1e6, mb)
	if mb > 200 {
		t.Errorf("32 days take %.0f MB, want at most 200", mb)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkMemory is a day of 100 rooms, ten of them busy, in steps of seconds and of
// ten, and in minutes without a disk.
func BenchmarkMemory(b *testing.B) {
	heap := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / 1e6
	}
	for _, rooms := range []int{roomsAll, 1000} {
		b.Run(fmt.Sprintf("rooms=%d", rooms), func(b *testing.B) {
			for b.Loop() {
				before := heap()
				live, log := New(1), slog.New(slog.DiscardHandler)
				k, err := NewKept("", log)
				if err != nil {
					b.Fatal(err)
				}
				rng := rand.New(rand.NewPCG(4, 0))
				samples := make([]Sample, rooms)
				for now := int64(noon); now < noon+day; now++ {
					for i := range samples {
						samples[i] = Sample{Room: fmt.Sprintf("room-%03d", i), Settings: Settings{1500, 0, Open}}
						if i >= roomsBusy {
							continue
						}
						samples[i].OnSite, samples[i].InLine = 490+rng.IntN(10), 4000+rng.IntN(500)
						for range (perMinute + rng.IntN(60)) / 60 {
							wait, visit := people(rng, now)
							live.Admitted(samples[i].Room, 1000*wait, 500)
							live.Ended(samples[i].Room, 1000*visit, true, 1)
						}
					}
					for _, m := range live.Tick(now+1, samples) {
						if err := k.Add("a", m); err != nil {
							b.Fatal(err)
						}
						if err := k.Turn(m.At); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(heap()-before, "MB")
				runtime.KeepAlive(live)
				runtime.KeepAlive(k)
			}
		})
	}
}

// BenchmarkThirtyDays reads 30 days of a busy room at three nodes, each from files of
// its own, in steps of an hour, and puts them together as the node does that is asked.
func BenchmarkThirtyDays(b *testing.B) {
	var nodes []*Kept
	span := Span{noon - 30*day, noon, hour}
	for n := range 3 {
		log := slog.New(slog.DiscardHandler)
		k, err := NewKept(b.TempDir(), log)
		if err != nil {
			b.Fatal(err)
		}
		nodes = append(nodes, k)
		rng := rand.New(rand.NewPCG(uint64(n), 0))
		for at := span.From; at < span.To; at += minute {
			k.put("a", Minute{At: at, Rows: []NamedRow{{self, Row{At: at, Up: 60}}, {"shop", busyMinute(rng, at)}}})
		}
		if err := k.Turn(span.To + hour); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		parts := make([][]byte, len(nodes))
		var all sync.WaitGroup
		for i, k := range nodes {
			all.Go(func() {
				for _, r := range Read(nil, k, "a", "shop", span, span.To) {
					parts[i] = AppendRow(parts[i], &r, span)
				}
			})
		}
		all.Wait()
		rows := make([]Row, span.Steps())
		for _, p := range parts {
			if err := Decode(p, span.From, span.Step, func(r *Row) bool { rows[(r.At-span.From)/span.Step].Beside(r); return true }); err != nil {
				b.Fatal(err)
			}
		}
		var sum Row
		for i := range rows {
			for _, p := range []float64{0.5, 0.75, 0.95} {
				_, _ = rows[i].Waits.Seconds(p), rows[i].Visits.Seconds(p)
			}
			sum.Merge(&rows[i])
		}
		if n := sum.Waits.Count(); n < 30*day/minute*3*perMinute*9/10 {
			b.Fatalf("%d waits", n)
		}
	}
}
