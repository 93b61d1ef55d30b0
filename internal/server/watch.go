package server

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/health"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/history"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/proto/rpc"
)

// admission writes down what has happened to a visitor.
func (s *Server) admission(a node.Admission) {
	at := time.Now().UnixMicro()
	s.past.admission(at, &a)
	if t, ok := s.tellings.cameTrue(at, &a); ok {
		s.past.live.CameTrue(a.Room, t)
		s.visitors.cameTrue(a.Room, t)
	}
	e := history.Of(at, s.self.Name, a)
	s.book.add(e)
	s.visitors.observe(e)
	s.traces.Observe(e)
	if s.o.Admission != nil {
		s.o.Admission(e)
	}
}

// toldWait hears of every answer about a place that is at this node.
func (s *Server) toldWait(a *ticket.Answer) { s.tellings.told(time.Now().UnixMicro(), a) }

// watch tells the log and the health service how the node is doing, until ctx
// ends.
func (s *Server) watch(ctx context.Context, h *health.Server) {
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	w := watcher{s: s, ready: because("not asked yet"), unseen: slices.Clone(s.c.Rooms), closed: make(map[string]opening)}
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		s.followRooms()
		s.samples.take(time.Now(), source{s}.Rooms)
		if w.serves() {
			rpc.Serving(h, w.ready == reason{})
		}
		w.waits(time.Now())
		w.calls()
		w.opens(time.Now())
		w.waves(&s.loop.Snapshot().Status)
		w.unseen = s.compareRooms(w.unseen)
	}
}

// watcher is what was told last.
type watcher struct {
	s       *Server
	served  bool
	ready   reason
	paused  reason // while ready
	grade   eviction.Grade
	leading bool
	unseen  []config.Room // of the file, not yet compared with the cluster's
	closed  map[string]opening
}

// serves tells whether visitors may come here, and reports whether that is new.
func (w *watcher) serves() bool {
	now := source{w.s}.ready()
	if now.key == w.ready.key {
		return false
	}
	switch w.ready = now; {
	case now == reason{}:
		w.served = true
		w.s.log.Info("serving")
	case now.fault || w.served && !w.s.leaving.Load():
		w.s.log.Warn("not serving", "why", now.text)
	default:
		w.s.log.Info("not serving", "why", now.text)
	}
	return true
}

// waits keeps since when the node calls nobody.
func (w *watcher) waits(now time.Time) {
	since := &w.s.waitingSince
	if (source{w.s}).waiting() == (reason{}) {
		since.Store(nil)
	} else if since.Load() == nil {
		now = now.UTC()
		since.Store(&now)
	}
}

// calls tells whether people are called, where visitors are served.
func (w *watcher) calls() {
	now := source{w.s}.waiting()
	if w.ready != (reason{}) {
		now = reason{} // why nobody is served was told
	}
	if now.key == w.paused.key {
		return
	}
	if w.paused = now; now != (reason{}) {
		w.s.log.Warn("nobody is called here; places and passes are kept", "why", now.text)
	} else if w.ready == (reason{}) {
		w.s.log.Info("people are called again")
	}
}

// opening is when a room lets people in, and since when that is known.
type opening struct {
	at, since time.Time
	told      bool
}

// opens warns of rooms that nobody enters for now because all slots may be in use, by
// passes that signing keys of before this start sealed, or those of a lost node: it may
// be the first start of all, and a site behind such a room looks broken for as long as
// the longest visit. At first the node knows of less.
func (w *watcher) opens(now time.Time) {
	if w.ready != (reason{}) {
		return
	}
	for _, r := range w.s.rooms {
		state, _ := w.s.queue().Room(r.Name)
		if state.HeldUntil == 0 {
			delete(w.closed, r.Name)
			continue
		}
		o, at := w.closed[r.Name], time.UnixMicro(state.HeldUntil)
		switch {
		case at.Sub(o.at).Abs() > time.Second:
			o = opening{at: at, since: now}
		case !o.told && now.Sub(o.since) > time.Second:
			o.told = true
			w.s.log.Warn("nobody goes in yet: whoever went in before this start, or by a node that is lost, may still be on the site; people may join the line",
				"room", r.Name, "opens", o.at.Format(time.RFC3339), "in", o.at.Sub(now).Round(time.Second))
		}
		w.closed[r.Name] = o
	}
}

func (w *watcher) waves(st *node.Status) {
	if st.Grade != w.grade {
		w.grade = st.Grade
		w.s.log.Info("wave", "grade", st.Grade.String(), "nodes", len(st.List), "epoch", st.Installed.Num)
	}
	if st.Leading == w.leading {
		return
	}
	if w.leading = st.Leading; w.leading {
		w.s.log.Info("this node runs the waves now")
	} else {
		w.s.log.Info("this node no longer runs the waves")
	}
}
