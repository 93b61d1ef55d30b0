package gateway

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Watch says what is counted of the requests to a room's origin.
type Watch struct {
	Slow   time.Duration // an answer that begins later is slow; 0: none is
	Header string        // of its answers, by which it says how loaded it is; empty: none
}

// Flow is what came of them, ever since the gateway began.
type Flow struct {
	Asked    uint64
	Answered uint64 // that are over, well or not
	Failed   uint64 // of them with a 5xx, or without an answer
	Slow     uint64
	Loads    uint64 // of them with the header
	Load     uint64 // the sum of what those say, in millionths
}

// flow counts it.
type flow struct{ asked, answered, failed, slow, loads, load atomic.Uint64 }

// Flow returns what came of the requests to the origin of a room with a Watch.
func (g *Gateway) Flow(room string) Flow {
	r := g.rooms.Load().byName[room]
	if r == nil || r.flow == nil {
		return Flow{}
	}
	f := r.flow
	answered := f.answered.Load() // before asked: else one could be over and never begun
	return Flow{f.asked.Load(), answered, f.failed.Load(), f.slow.Load(), f.loads.Load(), f.load.Load()}
}

// keepFlows goes on with what was counted of rooms that had a Watch, or an origin, before.
func (t *table) keepFlows(old *table) {
	for name, r := range t.byName {
		was := &Room{}
		if old != nil && old.byName[name] != nil {
			was = old.byName[name]
		}
		if r.Watch != nil {
			r.flow = cmp.Or(was.flow, new(flow))
		}
		if r.Origin != nil {
			r.answers = cmp.Or(was.answers, new(answers))
		}
	}
}

// asks counts a request to the origin that is over when the origin answers. One with
// a body is over when the visitor has sent it, and one that becomes a tunnel when the
// visitor likes: they are counted when there is an answer.
func (f *flow) asks() {
	if f != nil {
		f.asked.Add(1)
	}
}

// over counts what came of a request; status 0: nothing. Plain: it was counted when it
// began.
func (f *flow) over(w *Watch, plain bool, status int, took time.Duration) {
	if f == nil {
		return
	}
	if !plain {
		f.asked.Add(1)
	}
	if status == 0 || status >= http.StatusInternalServerError {
		f.failed.Add(1)
	}
	if plain && w.Slow > 0 && took > w.Slow {
		f.slow.Add(1)
	}
	f.answered.Add(1)
}

// says counts how loaded the origin says that it is, and takes the header out of its
// answer. What is no number from 0 to 100 says nothing.
func (f *flow) says(w *Watch, h http.Header) {
	if f == nil || w.Header == "" {
		return
	}
	said := h.Get(w.Header)
	h.Del(w.Header)
	load, err := strconv.ParseFloat(strings.TrimSpace(said), 64)
	if err == nil && load >= 0 && load <= 100 {
		f.loads.Add(1)
		f.load.Add(uint64(load * 1e6))
	}
}
