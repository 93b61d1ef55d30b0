package server

import (
	"context"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/series"
)

// How often it is looked whether rooms have to be told how long their visits lasted, how
// often each is, and how far back that goes.
const (
	remindEvery = time.Second
	remindRoom  = 3600       // s
	remindFrom  = 32 * 86400 // s
)

// reminded is what a room was told last.
type reminded struct {
	terms uint32
	next  int64 // when it is told again, Unix seconds
}

// remind tells the rooms what their history has of visits, so that an estimate of how long
// people wait begins with that: after a start, each hour, when the terms of visits have
// changed, and as soon as a history that was too short is long enough.
func (h *past) remind(ctx context.Context) {
	told := make(map[string]reminded)
	next := time.NewTicker(remindEvery)
	defer next.Stop()
	for {
		s := h.s.loop.Snapshot()
		there := make(map[string]reminded, len(s.Rooms))
		for i := range s.Rooms {
			r := &s.Rooms[i].Room
			if r.Mode == eviction.Deleted {
				continue
			}
			was, now, terms := told[r.Name], h.now(), node.VisitTerms(r)
			if was.terms != terms || now >= was.next {
				visits, enough := h.kept.Past(r.Name, terms, now-remindFrom, now)
				if h.s.loop.Before(r.Name, terms, lasted(visits)) != nil {
					return // the node stops
				}
				if was = (reminded{terms, now + remindRoom}); enough > now {
					was.next = min(was.next, enough)
				}
			}
			there[r.Name] = was
		}
		told = there
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
	}
}

func lasted(visits series.Hist) (all []node.Lasted) {
	visits.Each(func(ms float64, n uint32) { all = append(all, node.Lasted{Age: int64(ms * 1000), N: float64(n)}) })
	return all
}
