package load

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Generator sends visitors. Make one for each run.
type Generator struct {
	c       Config
	targets []*target
	start   time.Time
	lanes   []*lane
	tallies []*tally

	numbered atomic.Int64  // visitors that were made
	pending  atomic.Int64  // of them, those who are on their way or will come
	gone     chan struct{} // closed when there are none
	done     atomic.Int64  // visitors, for whoever watches
	waiting  atomic.Int64  // likewise
}

// New returns a generator, or says what is wrong with c, with ErrConfig.
func New(c Config) (*Generator, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	g := &Generator{c: c, gone: make(chan struct{})}
	for _, text := range c.URLs {
		u, err := ParseURL(text)
		if err != nil {
			return nil, err
		}
		g.targets = append(g.targets, newTarget(&c, u))
	}
	return g, nil
}

// Done returns how many visitors have been where they wanted to go. It may be
// called while Run runs.
func (g *Generator) Done() int64 { return g.done.Load() }

// Waiting returns how many visitors are in line. It may be called while Run runs.
func (g *Generator) Waiting() int64 { return g.waiting.Load() }

// clock is µs since the start.
func (g *Generator) clock() int64 { return time.Since(g.start).Microseconds() }

// Run sends the visitors and returns when all have gone, when the time that
// Arrivals gives them is over, or when ctx ends.
func (g *Generator) Run(ctx context.Context) *Result {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	before := cpuTime()
	g.start = time.Now()
	for range min(g.c.Connections, 4*runtime.GOMAXPROCS(0)) {
		g.tallies = append(g.tallies, newTally())
	}
	var over []func()
	for i, t := range g.targets {
		l := newLane(t, g.clock)
		if g.c.Arrivals.Rate > 0 {
			l.next = g.openArrivals(i)
		}
		g.lanes, over = append(g.lanes, l), append(over, l.end)
	}
	g.firstArrivals()
	defer context.AfterFunc(ctx, func() {
		for _, end := range over {
			end()
		}
	})()
	var connections sync.WaitGroup
	for i := range g.c.Connections {
		connections.Go(func() { g.serve(ctx, i) })
	}
	stopped := g.wait(ctx)
	ended := g.clock()
	cancel()
	connections.Wait()
	return g.result(ended, stopped, cpuTime()-before)
}

// wait returns when all have gone, or time is up, and whether ctx has ended
// before.
func (g *Generator) wait(ctx context.Context) (stopped bool) {
	var up <-chan time.Time // nil: never
	if a := &g.c.Arrivals; a.Duration > 0 && a.Drain >= 0 {
		t := time.NewTimer(a.Duration + a.Drain)
		defer t.Stop()
		up = t.C
	}
	select {
	case <-g.gone:
		return false
	case <-up:
		return false
	case <-ctx.Done():
		return true
	}
}

// firstArrivals puts those into the lanes who come first: in the open model the
// first of each lane, who brings the next one along.
func (g *Generator) firstArrivals() {
	g.pending.Add(1) // until all are there
	if g.c.Arrivals.Rate > 0 {
		for _, l := range g.lanes {
			if v := l.next(); v != nil {
				l.put(v)
			}
		}
	} else {
		for range g.c.Arrivals.Concurrency {
			g.nextArrival()
		}
	}
	g.leave()
}

// nextArrival has the next visitor of the closed model come now.
func (g *Generator) nextArrival() {
	now := g.clock()
	if v := g.make(-1, now); v != nil {
		g.lanes[v.lane].put(v)
	}
}

// openArrivals makes the visitors of one lane, one after the other. The lanes'
// arrivals are Poisson processes, so those at all lanes together are one too.
func (g *Generator) openArrivals(lane int) func() *visitor {
	draw := rand.New(rand.NewPCG(g.c.Seed, 1<<63|uint64(lane)))
	apart := 1e6 * float64(len(g.targets)) / g.c.Arrivals.Rate // µs
	at := 0.0
	return func() *visitor {
		at += apart * draw.ExpFloat64()
		return g.make(lane, int64(at))
	}
}

// make makes one more visitor, if there is to be one at that time. A lane below
// zero means that of whose turn it is.
func (g *Generator) make(lane int, at int64) *visitor {
	a := &g.c.Arrivals
	if a.Duration > 0 && at >= a.Duration.Microseconds() {
		return nil
	}
	n := g.numbered.Add(1)
	if a.Users > 0 && n > int64(a.Users) {
		return nil
	}
	v := newVisitor(&g.c, int(n-1), at)
	if lane < 0 {
		lane = int(n-1) % len(g.targets)
	}
	v.lane = uint16(lane)
	g.pending.Add(1)
	return v
}

// leave counts that a visitor is on its way no more.
func (g *Generator) leave() {
	if g.pending.Add(-1) == 0 {
		close(g.gone)
	}
}

// serve is one connection: it serves whoever is due in its lane.
func (g *Generator) serve(ctx context.Context, i int) {
	l := g.lanes[i%len(g.lanes)]
	s := &server{g: g, t: g.tallies[i%len(g.tallies)], w: wire{ctx: ctx, dial: g.c.Dial, to: l.to}}
	defer s.w.shut()
	for v := l.take(); v != nil; v = l.take() {
		lane := v.lane
		for s.counted(v) {
			if ctx.Err() != nil || v.lane != lane || v.due > g.clock() {
				g.lanes[v.lane].put(v)
				v = nil
				break
			}
		}
		if v == nil {
			continue
		}
		if g.c.Arrivals.Rate == 0 && ctx.Err() == nil {
			g.nextArrival()
		}
		g.leave()
	}
	s.t.count(func() { s.t.counts.reconnects += s.w.lost })
}
