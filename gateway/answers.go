package gateway

import (
	"net/http"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Answers are what came of the requests that a node passed on to a room's origin in the
// last four to five minutes.
type Answers struct {
	Count, Failed    int64
	NoAnswer, Server int64         // of those that failed: without an answer, with a 5xx
	P50, P95, P99    time.Duration // until they began, or it was clear that they would not come
}

// answersFor is how long each part of what is remembered lasts, of which there are so many.
const (
	answersFor   = time.Minute
	answersParts = 5
)

// answersUnit is the finest difference of times that is told, answersMax the longest time.
const answersUnit, answersMax = 100 * time.Microsecond, 5 * time.Minute

// answers remembers them. What is older than the oldest part is overwritten.
type answers struct {
	mu    sync.Mutex
	parts [answersParts]answersPart
}

type answersPart struct {
	number           int64                   // minutes since 1970
	took             *hdrhistogram.Histogram // in answersUnit, two significant digits; nil: nothing ever
	noAnswer, server int64
}

// add takes in an answer; status 0: none came.
func (a *answers) add(now time.Time, status int, took time.Duration) {
	number := now.UnixNano() / int64(answersFor)
	a.mu.Lock()
	defer a.mu.Unlock()
	p := &a.parts[number%answersParts]
	switch {
	case p.took == nil:
		*p = answersPart{number: number, took: newTimes()}
	case p.number != number:
		p.took.Reset()
		*p = answersPart{number: number, took: p.took}
	}
	_ = p.took.RecordValue(int64((min(took, answersMax)-1)/answersUnit) + 1) // a part of a unit as a whole: that is in its range
	switch {
	case status == 0:
		p.noAnswer++
	case status >= http.StatusInternalServerError:
		p.server++
	}
}

func newTimes() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(answersMax/answersUnit), 2) }

// of puts together what is not too old.
func (a *answers) of(now time.Time) (all Answers) {
	number := now.UnixNano() / int64(answersFor)
	took := newTimes()
	a.mu.Lock()
	for i := range a.parts {
		if p := &a.parts[i]; p.took != nil && number-p.number < answersParts {
			took.Merge(p.took)
			all.NoAnswer, all.Server = all.NoAnswer+p.noAnswer, all.Server+p.server
		}
	}
	a.mu.Unlock()
	all.Count, all.Failed = took.TotalCount(), all.NoAnswer+all.Server
	at := func(percent float64) time.Duration { return time.Duration(took.ValueAtQuantile(percent)) * answersUnit }
	if all.Count > 0 {
		all.P50, all.P95, all.P99 = at(50), at(95), at(99)
	}
	return all
}

// Answers returns what the origin of a room has answered of late; false: there is none,
// or nobody has asked it for anything.
func (g *Gateway) Answers(room string) (Answers, bool) {
	r := g.rooms.Load().byName[room]
	if r == nil || r.answers == nil {
		return Answers{}, false
	}
	all := r.answers.of(time.Now())
	return all, all.Count > 0
}
