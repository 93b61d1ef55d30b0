package load

import (
	"maps"
	"sync"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// tally is what some of the connections have counted. Each shares one with a
// few others, which costs less than one for all, and less memory than one each.
type tally struct {
	mu          sync.Mutex
	latency     [kinds]*hdr.Histogram // µs; nil: nothing yet
	late        *hdr.Histogram        // µs from when a request was due until it was sent
	seconds     []second              // of the run
	errors      map[string]int64      // answers that were none, by what they were
	lost        map[string]int64      // visitors, by why
	calls       []call
	stays       []stay
	counts      counts
	calibration Calibration
}

// counts are of visitors, but for the last three.
type counts struct{ came, done, abandoned, returned, moved, retries, reconnects int64 }

// second is what happened within one.
type second struct {
	done     int32
	requests [kinds]int32
}

// call is somebody who was let in. Times without another unit are µs since the
// start.
type call struct {
	joined   int64 // Unix µs, by a node's clock
	entitled int64 // the turn had come by then: the same
	came     int64 // when the visitor wanted to join
	told     int64 // when it heard that it was called, or let in
	wave     uint64
	queued   bool
	hasWave  bool
}

// stay is from when until when a pass was held, µs since the start.
type stay struct{ from, to int64 }

// The bounds of the histograms: what is longer counts as the longest.
const (
	longest = 10 * 60 * 1_000_000 // µs
	digits  = 3
)

func newTally() *tally {
	return &tally{late: hdr.New(1, longest, digits), errors: map[string]int64{}, lost: map[string]int64{}}
}

func record(h *hdr.Histogram, micros int64) {
	_ = h.RecordValue(min(max(micros, 1), longest)) // within its bounds
}

// answered counts a request of kind k that ended at now.
func (t *tally) answered(k kind, now, took, late int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.latency[k] == nil {
		t.latency[k] = hdr.New(1, longest, digits)
	}
	record(t.latency[k], took)
	record(t.late, late)
	t.second(now).requests[k]++
}

// secondsMax bounds the course of a run that is kept: a day.
const secondsMax = 24 * 3600

func (t *tally) second(now int64) *second {
	i := min(int(now/1e6), secondsMax-1)
	for len(t.seconds) <= i {
		t.seconds = append(t.seconds, second{})
	}
	return &t.seconds[i]
}

// count changes what there is to count.
func (t *tally) count(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}

// namesMax bounds the kinds of errors: some of them a gateway can make up.
const namesMax = 100

// note counts one of what by its name. The lock is held.
func note(in map[string]int64, what string) {
	if _, ok := in[what]; !ok && len(in) >= namesMax {
		what = "others"
	}
	in[what]++
}

// add puts what other has counted into t.
func (t *tally) add(other *tally) {
	for k, h := range other.latency {
		switch {
		case h == nil:
		case t.latency[k] == nil:
			t.latency[k] = h
		default:
			t.latency[k].Merge(h)
		}
	}
	t.late.Merge(other.late)
	for i, s := range other.seconds {
		sum := t.second(int64(i) * 1e6)
		sum.done += s.done
		for k, n := range s.requests {
			sum.requests[k] += n
		}
	}
	for _, m := range []struct{ to, from map[string]int64 }{{t.errors, other.errors}, {t.lost, other.lost}} {
		for what, n := range maps.All(m.from) {
			m.to[what] += n
		}
	}
	t.calls, t.stays = append(t.calls, other.calls...), append(t.stays, other.stays...)
	t.calibration.merge(&other.calibration)
	a, b := &t.counts, &other.counts
	a.came, a.done, a.abandoned, a.returned = a.came+b.came, a.done+b.done, a.abandoned+b.abandoned, a.returned+b.returned
	a.moved, a.retries, a.reconnects = a.moved+b.moved, a.retries+b.retries, a.reconnects+b.reconnects
}
