package server

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/governor"
	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/internal/node"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
)

// outflow has the rooms with outflow: adaptive follow what their origins bear. Every
// node tells the others what came of its own requests, and judges what came of all;
// the one that runs the waves sets the bound, which goes with them to everybody.
type outflow struct {
	s       *Server
	flow    func(room string) gateway.Flow
	tell    func(key string, n *peerv1.Notice)
	windows *prometheus.CounterVec

	mu    sync.Mutex
	rooms map[string]*adaptive // by name
}

// adaptive is a room whose flow follows its origin.
type adaptive struct {
	config  governor.Config
	latency time.Duration
	watch   governor.Watch
	last    governor.Judgement
	told    governor.Figures // to the others
	since   time.Time        // there is a bound since then; zero: there is none
	free    time.Time        // since when there is none; zero: that was told
}

const (
	outflowEvery = 500 * time.Millisecond
	// calmFor is how long a room must have been without a bound until that is news: an
	// origin that bears just what the limit allows is bounded again and again.
	calmFor = time.Minute
)

func (s *Server) buildOutflow() {
	s.outflow = &outflow{
		s: s, rooms: map[string]*adaptive{},
		flow: func(room string) gateway.Flow { return s.gateway.Flow(room) },
		tell: func(key string, n *peerv1.Notice) { s.notices.Tell(key, n) },
		windows: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "anteroom_governor_windows_total",
			Help: "Windows over which an origin was judged by what came of the requests to it, by the verdict: healthy, near, overloaded or unknown. Each node judges.",
		}, []string{"room", "verdict"}),
	}
	s.metrics.MustRegister(s.outflow.windows)
}

// watchOf is what the gateway counts of a room.
func watchOf(c config.Room) *gateway.Watch {
	if c.Outflow != config.Adaptive || c.Suspended {
		return nil
	}
	return &gateway.Watch{Slow: time.Duration(c.Governor.Latency), Header: c.Governor.LoadHeader}
}

// follow takes in the rooms that the cluster runs with.
func (o *outflow) follow(all []eviction.Room) {
	o.mu.Lock()
	defer o.mu.Unlock()
	next := map[string]*adaptive{}
	for _, r := range all {
		c, err := configOf(r)
		if err != nil || r.Mode == eviction.Deleted || watchOf(c) == nil {
			continue
		}
		a := o.rooms[r.Name]
		if a == nil {
			a = &adaptive{last: governor.Judgement{Verdict: governor.Unknown}}
		}
		a.config = governor.Config{Floor: c.Governor.Floor, Errors: float64(c.Governor.ErrorPercent) / 100}
		a.latency = time.Duration(c.Governor.Latency)
		next[r.Name] = a
	}
	for name := range o.rooms {
		if next[name] == nil {
			o.windows.DeletePartialMatch(prometheus.Labels{"room": name})
		}
	}
	o.rooms = next
}

// hear takes in what came of another node's requests.
func (o *outflow) hear(from eviction.Member, p *peerv1.OriginFigures, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a := o.rooms[p.GetRoom()]; a != nil {
		a.watch.Hear(lifeOf(from), governor.Figures{
			Asked: p.GetAsked(), Answered: p.GetAnswered(), Failed: p.GetFailed(), Slow: p.GetSlow(), Loads: p.GetLoads(), Load: p.GetLoad(),
		}, now)
	}
}

// lifeOf names one life of a node: the next one counts from zero.
func lifeOf(m eviction.Member) string { return string(m.Name) + "/" + strconv.FormatUint(m.Boot, 10) }

func (o *outflow) run(ctx context.Context) {
	every := time.NewTicker(outflowEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-every.C:
			o.look(now, o.s.loop.Snapshot())
		}
	}
}

// look counts, judges, and sets the bounds if that is this node's to do.
func (o *outflow) look(now time.Time, snapshot *loop.Snapshot) {
	for i := range snapshot.Rooms {
		r := &snapshot.Rooms[i]
		o.mu.Lock()
		a := o.rooms[r.Room.Name]
		bound := 0
		if a != nil {
			bound = o.judge(now, a, r)
		}
		o.mu.Unlock()
		if st := &snapshot.Status; bound != r.Bound && st.Leading && st.Grade >= eviction.Side {
			_ = o.s.loop.Govern(r.Room.Name, bound) // a loop that has ended calls nobody
		}
	}
}

// judge returns the bound that a room should have. The caller holds o.mu.
func (o *outflow) judge(now time.Time, a *adaptive, r *node.RoomStatus) int {
	name := r.Room.Name
	f := governor.Figures(o.flow(name))
	a.watch.Hear(lifeOf(o.s.self.Member), f, now)
	if f != a.told {
		a.told = f
		o.tell("origin/"+name, &peerv1.Notice{Kind: &peerv1.Notice_Origin{Origin: &peerv1.OriginFigures{
			Room: name, Asked: f.Asked, Answered: f.Answered, Failed: f.Failed, Slow: f.Slow, Loads: f.Loads, Load: f.Load,
		}}})
	}
	o.note(now, a, r)
	j, over := a.watch.Close(a.config, now)
	if !over {
		return r.Bound
	}
	a.last = j
	o.windows.WithLabelValues(name, string(j.Verdict)).Inc()
	return a.config.Next(governor.Room{Limit: o.limit(r), Bound: r.Bound, Inside: r.Active}, j.Verdict)
}

// note remembers since when a room has a bound, and tells operators when it gets one,
// and when it has had none for a while. The caller holds o.mu.
func (o *outflow) note(now time.Time, a *adaptive, r *node.RoomStatus) {
	limit := strconv.Itoa(o.limit(r))
	tell := func(action string, changes ...admin.Change) {
		o.s.audits.add(admin.AuditEntry{At: now.UTC(), Who: "governor", Action: action, Room: r.Room.Name, Changes: changes})
	}
	switch {
	case r.Bound > 0 && a.since.IsZero():
		a.since = now
		tell("lower", admin.Change{Key: "governed_limit", From: limit, To: strconv.Itoa(r.Bound)}, admin.Change{Key: "because", To: governedOf(a, r).Reason()})
	case r.Bound > 0:
		a.free = time.Time{}
	case a.since.IsZero():
	case a.free.IsZero():
		a.free = now
	case now.Sub(a.free) >= calmFor:
		a.since, a.free = time.Time{}, time.Time{}
		tell("lift", admin.Change{Key: "governed_limit", To: limit})
	}
}

// limit is the room's, as configured, at this moment.
func (o *outflow) limit(r *node.RoomStatus) int {
	return r.Room.At(uint64(o.s.loop.PassTime())).Target
}

// governed is what the room's bound is, and why; nil: its outflow is fixed.
func (o *outflow) governed(r *node.RoomStatus) *admin.Governed {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a := o.rooms[r.Room.Name]; a != nil {
		return governedOf(a, r)
	}
	return nil
}

func governedOf(a *adaptive, r *node.RoomStatus) *admin.Governed {
	g := &admin.Governed{Bound: r.Bound, Verdict: string(a.last.Verdict), Cause: string(a.last.Cause), Figure: a.last.Figure, Latency: a.latency.Seconds()}
	if !a.since.IsZero() && r.Bound > 0 {
		at := a.since.UTC()
		g.Since = &at
	}
	g.Text = g.Reason()
	return g
}
