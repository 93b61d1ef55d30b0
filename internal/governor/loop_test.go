package governor_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/governor"
)

// plant is a site and its room in virtual time: people come in as the limit allows, ask
// once a second, stay a while and leave; nobody is thrown out. The origin answers so
// many a second, lets so many more wait, and fails the rest at once.
type plant struct {
	rng     *rand.Rand
	limit   int
	visit   int // ticks that a visit lasts, on average
	bears   int // answers a second
	waits   int // requests that may wait
	late    int // of those that wait more are slow
	backlog int
	leaves  []int // tick at which each person inside leaves
	bound   int
	total   governor.Figures
	watch   governor.Watch
}

const tick = 100 * time.Millisecond

// step plays a tenth of a second. One in ten people asks in it.
func (p *plant) step(n int, c governor.Config, governed bool) (now governor.Figures) {
	stay := p.leaves[:0]
	for _, at := range p.leaves {
		if at > n {
			stay = append(stay, at)
		}
	}
	limit := p.limit
	if p.bound > 0 {
		limit = p.bound
	}
	for p.leaves = stay; len(p.leaves) < limit; {
		p.leaves = append(p.leaves, n+1+int(p.rng.ExpFloat64()*float64(p.visit)))
	}
	for range p.leaves {
		if p.rng.IntN(10) > 0 {
			continue
		}
		now.Asked++
		now.Answered++
		switch {
		case p.backlog >= p.waits:
			now.Failed++
			continue
		case p.backlog > p.late:
			now.Slow++
		}
		p.backlog++
	}
	p.backlog = max(0, p.backlog-p.bears/10)
	p.total = p.total.Plus(now)
	at := time.Unix(0, 0).Add(time.Duration(n) * tick)
	p.watch.Hear("a", p.total, at)
	if j, over := p.watch.Close(c, at); over && governed {
		p.bound = c.Next(governor.Room{Limit: p.limit, Bound: p.bound, Inside: len(p.leaves)}, j.Verdict)
	}
	return now
}

// halves plays a minute of an origin that bears what the room may have, then two in
// which it bears half of that. It returns, from 30 s after that on, the share of the
// answers that failed, and of what the origin bears how much was used; and the most
// people inside at any time.
func halves(seed uint64, p plant, governed bool) (failed, used float64, most int) {
	p.rng = rand.New(rand.NewPCG(seed, 1))
	p.bears, p.limit = 1200, 1000
	c := governor.Config{Errors: 0.01}
	var sum governor.Figures
	served := 0
	for n := range 1800 {
		if n == 600 {
			p.bears /= 2
		}
		now := p.step(n, c, governed)
		most = max(most, len(p.leaves))
		if n >= 900 {
			sum = sum.Plus(now)
			served += int(now.Answered - now.Failed)
		}
	}
	return float64(sum.Failed) / float64(sum.Answered), float64(served) / (90 * float64(p.bears)), most
}

// queueing is an origin that gets slow before it fails.
func queueing(visit int) plant { return plant{visit: visit, waits: 400, late: 150} }

type named struct {
	name string
	p    plant
}

func origins() []named {
	return []named{
		{"visits of 5 s", queueing(50)},
		{"visits of 20 s", queueing(200)},
		{"visits of 40 s", queueing(400)},
		{"visits of 10 s, refused at once", plant{visit: 100, waits: 80, late: 80}},
	}
}

// TestAnOriginThatBearsHalfIsGivenHalf: its capacity falls by half under load.
func TestAnOriginThatBearsHalfIsGivenHalf(t *testing.T) {
	for _, c := range origins() {
		for seed := range uint64(3) {
			failed, used, most := halves(seed, c.p, true)
			if failed > 0.01 || used < 0.9 || most > 1000 {
				t.Errorf("%s, seed %d: %.2f %% failed, want at most 1; %.1f %% of what it bears was used, want at least 90; %d inside, want at most 1000",
					c.name, seed, 100*failed, 100*used, most)
			}
			if failed, _, _ = halves(seed, c.p, false); failed < 0.3 {
				t.Errorf("%s, seed %d: without a governor %.2f %% failed: the origin is not overloaded, and the test shows nothing", c.name, seed, 100*failed)
			}
		}
	}
}

// BenchmarkHalf prints the figures of the test.
func BenchmarkHalf(b *testing.B) {
	for _, c := range origins() {
		b.Run(c.name, func(b *testing.B) {
			var failed, used float64
			for b.Loop() {
				failed, used, _ = halves(1, c.p, true)
			}
			b.ReportMetric(100*failed, "%failed")
			b.ReportMetric(100*used, "%used")
		})
	}
}
