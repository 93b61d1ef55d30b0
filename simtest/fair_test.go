package simtest

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// chiSquare compares a square table, in which every row and every column has the
// same sum, with one of equal numbers. It returns by how many standard deviations
// the statistic is beyond what chance makes of it.
func chiSquare(table [][]int) float64 {
	n, total, sum := len(table), 0, 0.0
	for _, row := range table {
		for _, x := range row {
			total += x
		}
	}
	want := float64(total) / float64(n*n)
	for _, row := range table {
		for _, x := range row {
			sum += (float64(x) - want) * (float64(x) - want) / want
		}
	}
	free := float64((n - 1) * (n - 1))
	return (sum - free) / math.Sqrt(2*free)
}

// unfair is how far beyond chance a table has to be to fail. Seeds are fixed, so
// that a run either always passes or never does.
const unfair = 5

// 10,000 draws of 20 tickets: whatever a ticket's id, it gets every place as
// often as every other.
func TestDrawsAreFair(t *testing.T) {
	const tickets, draws = 20, 10_000
	table := make([][]int, tickets)
	for i := range table {
		table[i] = make([]int, tickets)
	}
	for d := range draws {
		type lot struct {
			place  uint64
			ticket int
		}
		lots := make([]lot, tickets)
		for i := range lots {
			id := [16]byte{byte(i * 256 / tickets), 1, 2, byte(i)}
			lots[i] = lot{eviction.Shuffled([32]byte{byte(d), byte(d >> 8), 7}, 1_800_000_000_000_000, id), i}
		}
		slices.SortFunc(lots, func(a, b lot) int { return cmp.Compare(a.place, b.place) })
		for place, l := range lots {
			table[l.ticket][place]++
		}
	}
	if far := chiSquare(table); far > unfair {
		t.Errorf("%.1f standard deviations from a fair draw", far)
	}
}

// Visitors who gathered before an event, in rooms with a draw at every wave and in
// ones with a shuffle: when somebody came says nothing about their turn. 10,000
// visitors in 25 rooms of 4 nodes, by tenths of their coming and of their turn.
func TestRandomRoomsAreFair(t *testing.T) {
	runs := 25
	if testing.Short() {
		runs = 5
	}
	for _, shuffle := range []bool{false, true} {
		name := map[bool]string{false: "random", true: "shuffle"}[shuffle]
		t.Run(name, func(t *testing.T) {
			table := make([][]int, 10)
			for i := range table {
				table[i] = make([]int, 10)
			}
			for seed := range runs {
				countTurns(t, uint64(seed), shuffle, table)
			}
			if far := chiSquare(table); far > unfair {
				t.Errorf("%.1f standard deviations from a fair draw: %v", far, table)
			}
		})
	}
}

func countTurns(t *testing.T, seed uint64, shuffle bool, table [][]int) {
	const visitors = 400
	o := short(4)
	o.Seed, o.Rooms[0].Target = seed, 40
	o.Load.Browse = Range{200 * time.Millisecond, 200 * time.Millisecond}
	e := from(2*time.Second, 6*time.Second, time.Hour, eviction.Event{Shuffle: shuffle, Seed: [32]byte{byte(seed), 3}})
	if !shuffle {
		o.Rooms[0].Method = eviction.Random
	}
	o.Rooms[0].Events = []eviction.Event{e}
	s := founded(t, o)
	s.run(3*time.Second - micros(s.now))
	s.arriveOver(none, visitors, time.Second)
	s.run(6*time.Second - micros(s.now))
	s.finish()
	var all []*place
	for i := range s.crowd.tickets {
		if tk := &s.crowd.tickets[i]; tk.epoch > 0 {
			all = append(all, tk)
		}
	}
	if len(all) != visitors {
		t.Fatalf("%d of %d had their turn", len(all), visitors)
	}
	slices.SortFunc(all, func(a, b *place) int { return cmp.Compare(a.stamp, b.stamp) })
	came := map[*place]int{}
	for i, tk := range all {
		came[tk] = i
	}
	slices.SortFunc(all, func(a, b *place) int { return cmp.Or(cmp.Compare(a.epoch, b.epoch), a.key.Compare(b.key)) })
	for i, tk := range all {
		table[came[tk]*10/visitors][i*10/visitors]++
	}
}
