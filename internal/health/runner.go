package health

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// probesMax bounds the probes of a node that are under way.
const probesMax = 64

// Runner asks the origins that fall to this node, again and again.
type Runner struct {
	probe  func(context.Context, *Check) Result
	tell   func(Report)
	places chan struct{}
	wake   chan struct{}

	results *prometheus.CounterVec
	took    *prometheus.GaugeVec

	mu     sync.Mutex
	wanted []Check
}

// NewRunner returns a runner without checks. It probes by that function, and tells
// of every result; both are called from many goroutines at once.
func NewRunner(probe func(context.Context, *Check) Result, tell func(Report)) *Runner {
	by := []string{"room", "check"}
	return &Runner{
		probe: probe, tell: tell, places: make(chan struct{}, probesMax), wake: make(chan struct{}, 1),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "anteroom_health_checks_total", Help: "Times that this node has looked at an origin, by what came of it: ok or failed.",
		}, append(by, "result")),
		took: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "anteroom_health_check_duration_seconds", Help: "How long the last look of this node at an origin took.",
		}, by),
	}
}

// Metrics are what the runner counts.
func (r *Runner) Metrics() []prometheus.Collector { return []prometheus.Collector{r.results, r.took} }

// Set says which checks fall to this node from now on. Those that are as they were
// go on.
func (r *Runner) Set(checks []Check) {
	r.mu.Lock()
	r.wanted = slices.Clone(checks)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// running is a check that is under way.
type running struct {
	check Check
	stop  context.CancelFunc
}

// Run runs the checks until ctx ends.
func (r *Runner) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	now := map[uint64]running{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		r.mu.Lock()
		wanted := r.wanted
		r.mu.Unlock()
		next := map[uint64]running{}
		for i := range wanted {
			sum := wanted[i].Sum()
			if is, ok := now[sum]; ok {
				next[sum] = is
				continue
			}
			own, stop := context.WithCancel(ctx)
			next[sum] = running{wanted[i], stop}
			all.Go(func() { r.repeat(own, &wanted[i]) })
		}
		for sum, old := range now {
			if _, ok := next[sum]; !ok {
				old.stop()
				r.forget(&old.check)
			}
		}
		now = next
	}
}

func (r *Runner) forget(c *Check) {
	which := prometheus.Labels{"room": c.Room, "check": c.Name}
	r.results.DeletePartialMatch(which)
	r.took.DeletePartialMatch(which)
}

// repeat asks at once, and then every interval, give or take a twentieth, so that
// the nodes do not go on asking at the same moment.
func (r *Runner) repeat(ctx context.Context, c *Check) {
	var trend Trend
	for {
		began := time.Now()
		select {
		case r.places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		got := r.probe(ctx, c)
		<-r.places
		if ctx.Err() != nil { // what it broke off says nothing
			return
		}
		trend.Add(got.OK, c.Up, c.Down)
		r.note(c, got)
		r.tell(Report{Room: c.Room, Check: c.Name, Sum: c.Sum(), Status: trend.Status, Reason: reason(got), Code: got.Code, Took: got.Took})
		spread := c.Interval / 20
		wait := time.NewTimer(c.Interval - spread + rand.N(2*spread+1) - time.Since(began))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
	}
}

func (r *Runner) note(c *Check, got Result) {
	result := "failed"
	if got.OK {
		result = "ok"
	}
	r.results.WithLabelValues(c.Room, c.Name, result).Inc()
	r.took.WithLabelValues(c.Room, c.Name).Set(got.Took.Seconds())
}

func reason(got Result) string {
	if got.OK {
		return NoFailures
	}
	return got.Reason
}
