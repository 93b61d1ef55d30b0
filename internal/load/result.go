package load

import (
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Result is what a run has shown, as --json and report.json have it. Times are
// in seconds.
type Result struct {
	Room        string    `json:"room"`
	URLs        []string  `json:"urls"`
	Began       time.Time `json:"began"`
	Seconds     float64   `json:"seconds"` // until the last visitor had gone
	Model       string    `json:"model"`   // closed or open
	Users       int       `json:"users,omitempty"`
	Concurrency int       `json:"concurrency,omitempty"`
	Rate        float64   `json:"rate,omitempty"`
	Connections int       `json:"connections"`
	Stopped     bool      `json:"stopped,omitempty"` // somebody did, before the end

	VisitorsPerSecond float64          `json:"visitors_per_second"` // done
	Visitors          Visitors         `json:"visitors"`
	Requests          map[string]Kind  `json:"requests"`
	Late              Quantiles        `json:"late_seconds"` // how much later than meant requests were sent: the generator's own lag
	Retries           int64            `json:"retries"`
	Reconnects        int64            `json:"reconnects"`
	Errors            map[string]int64 `json:"errors"` // answers, and what was none, by what it was
	Lost              map[string]int64 `json:"lost"`   // visitors, by why
	CPUSeconds        float64          `json:"cpu_seconds"`

	HeldMost  int         `json:"passes_held_max"`     // at a time, at least so many
	Unordered int         `json:"called_without_wave"` // nobody said in which wave: they are not in the order of the report
	Report    Report      `json:"report"`
	Estimates Calibration `json:"estimates"` // how true they were
	Course    []Second    `json:"course"`

	waits, arrivals []float64 // of those who queued
}

// Visitors is what became of people.
type Visitors struct {
	Came      int64 `json:"came"`
	Done      int64 `json:"done"`      // were let in, and have left
	Abandoned int64 `json:"abandoned"` // gave up waiting
	Lost      int64 `json:"lost"`      // were not let in, or sent away before they were done
	Waiting   int64 `json:"waiting"`   // still, when the run was over
	OnSite    int64 `json:"on_site"`   // the same
	Returned  int64 `json:"returned"`  // came back
	Moved     int64 `json:"moved"`     // went over to another gateway
}

// Kind is one kind of request.
type Kind struct {
	Count     int64     `json:"count"`
	PerSecond float64   `json:"per_second"`
	Latency   Quantiles `json:"latency_seconds"`
}

// Quantiles of a time, in seconds.
type Quantiles struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
}

// Second is what happened within one second of the run.
type Second struct {
	Second   int              `json:"second"`
	Done     int32            `json:"done"`
	Requests map[string]int32 `json:"requests"`
}

// Kinds are the names of the kinds of requests, in the order of a visit.
func Kinds() []string {
	all := make([]string, kinds)
	for k := range kinds {
		all[k] = k.String()
	}
	return all
}

// result sums up a run that ended at ended.
func (g *Generator) result(ended int64, stopped bool, cpu time.Duration) *Result {
	sum := newTally()
	for _, t := range g.tallies {
		sum.add(t)
	}
	seconds := max(1e-6, float64(ended)/1e6)
	n, a := &sum.counts, &g.c.Arrivals
	r := &Result{
		Room: g.c.Room, Began: g.start.UTC(), Seconds: seconds, Model: "closed", Users: a.Users, Concurrency: a.Concurrency,
		Connections: g.c.Connections, Stopped: stopped, VisitorsPerSecond: float64(n.done) / seconds,
		Visitors: Visitors{Came: n.came, Done: n.done, Abandoned: n.abandoned, Returned: n.returned, Moved: n.moved},
		Requests: map[string]Kind{}, Late: quantiles(sum.late), Retries: n.retries, Reconnects: n.reconnects,
		Errors: sum.errors, Lost: sum.lost, CPUSeconds: cpu.Seconds(),
	}
	for _, t := range g.targets {
		r.URLs = append(r.URLs, t.url)
	}
	if a.Rate > 0 {
		r.Model, r.Rate, r.Concurrency = "open", a.Rate, 0
	}
	for _, lost := range sum.lost {
		r.Visitors.Lost += lost
	}
	for k, h := range sum.latency {
		if h != nil {
			r.Requests[kind(k).String()] = Kind{h.TotalCount(), float64(h.TotalCount()) / seconds, quantiles(h)}
		}
	}
	sum.stays = append(sum.stays, g.remain(ended, r)...)
	r.HeldMost = heldMost(sum.stays)
	r.Report, r.Unordered = measure(sum.calls, r.HeldMost, g.c.Limit)
	r.Estimates = sum.calibration
	r.course(sum, ended)
	return r
}

// remain counts those who have not gone, and returns for how long the passes
// were held that are left.
func (g *Generator) remain(ended int64, r *Result) (stays []stay) {
	for _, l := range g.lanes {
		for _, e := range l.due {
			switch v := e.v; {
			case !v.started: // would have come later
			case v.since != 0:
				r.Visitors.OnSite++
				stays = append(stays, stay{v.since, min(ended, v.good)})
			default:
				r.Visitors.Waiting++
			}
		}
	}
	return stays
}

// course keeps what the plots show.
func (r *Result) course(sum *tally, ended int64) {
	r.Course = []Second{}
	for i, s := range sum.seconds {
		if int64(i)*1e6 > ended {
			break
		}
		requests := map[string]int32{}
		for k, n := range s.requests {
			if n > 0 {
				requests[kind(k).String()] = n
			}
		}
		r.Course = append(r.Course, Second{i, s.done, requests})
	}
	var first int64 // to join
	for i, c := range sum.calls {
		if i == 0 || c.joined < first {
			first = c.joined
		}
	}
	for _, c := range sum.calls {
		if c.queued {
			r.arrivals = append(r.arrivals, float64(c.joined-first)/1e6)
			r.waits = append(r.waits, float64(max(0, c.told-c.came))/1e6)
		}
	}
}

func quantiles(h *hdr.Histogram) Quantiles {
	if h.TotalCount() == 0 {
		return Quantiles{}
	}
	at := func(percent float64) float64 { return float64(h.ValueAtQuantile(percent)) / 1e6 }
	return Quantiles{at(50), at(90), at(99), at(99.9), float64(h.Max()) / 1e6}
}
