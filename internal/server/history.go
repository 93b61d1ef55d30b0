package server

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/peraddress"
	"github.com/anteroom/anteroom/internal/series"
	"github.com/anteroom/anteroom/internal/ticket"
)

// historyDir is where node.data keeps the minutes.
const historyDir = "history"

// past is how the rooms were: what this node has seen, and the minutes that it
// keeps of itself and of others.
type past struct {
	s       *Server
	live    *series.Live
	kept    *series.Kept
	peers   historyPeers
	reading chan struct{}      // has a token for each reading that may run
	pending chan series.Minute // that another node should keep as well
	mu      sync.Mutex
	failed  bool // the last minute could not be written
}

const (
	pendingMax  = 60 // minutes that wait until another node has them
	readingsMax = 4  // at a time
)

// buildHistory opens what is kept; nothing of it runs yet.
func (s *Server) buildHistory() error {
	h := &past{s: s, live: series.New(uint32(s.self.Boot)), reading: make(chan struct{}, readingsMax), pending: make(chan series.Minute, pendingMax)}
	dir := ""
	if s.store != nil {
		dir = s.store.Path(historyDir)
	}
	var err error
	if h.kept, err = series.NewKept(dir, s.log); err != nil {
		return err
	}
	h.peers = historyPeers{s: s}
	s.past = h
	return nil
}

// run takes a sample of each room every second, and hands on each minute.
func (h *past) run(ctx context.Context, all *errgroup.Group) {
	all.Go(func() error { h.sample(ctx); return nil })
	all.Go(func() error { h.handOn(ctx); return nil })
	all.Go(func() error { h.remind(ctx); return nil })
}

func (h *past) now() int64 { return h.s.o.Clock().Wall / 1e6 }

func (h *past) sample(ctx context.Context) {
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		for _, m := range h.live.Tick(h.now(), samplesOf(h.s.loop.Snapshot())) {
			h.keep(m)
		}
		next.Reset(time.Duration(1e6-h.s.o.Clock().Wall%1e6) * time.Microsecond) // the next whole second
	}
}

// keep writes down a minute, and gives it to another node. Where none takes them the
// oldest are given up: they are here all the same.
func (h *past) keep(m series.Minute) {
	h.write(m)
	for {
		select {
		case h.pending <- m:
			return
		default:
		}
		select {
		case <-h.pending:
		default:
		}
	}
}

func (h *past) write(m series.Minute) {
	err := errors.Join(h.kept.Add(string(h.s.self.Name), m), h.kept.Turn(m.At))
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil && !h.failed {
		h.s.log.Warn("history cannot be written; it is in memory until this node stops; free space in node.data or make it writable", "err", err)
	}
	h.failed = err != nil
}

// samplesOf is how the rooms are.
func samplesOf(s *loop.Snapshot) []series.Sample {
	all := make([]series.Sample, 0, len(s.Rooms))
	for i := range s.Rooms {
		r := &s.Rooms[i]
		if r.Room.Mode == eviction.Deleted {
			continue
		}
		all = append(all, series.Sample{
			Room: r.Room.Name, OnSite: r.OnSite, InLine: r.Queued, Called: r.Called, RoomOnSite: r.Active - r.Coming, RoomInLine: r.Total,
			Settings: series.Settings{Limit: uint32(max(0, r.Now.Target)), Rate: uint32(max(0, r.Now.NewPerMinute)), State: stateOf(s, r)},
		})
	}
	return all
}

func stateOf(s *loop.Snapshot, r *node.RoomStatus) series.State {
	switch {
	case r.Room.Mode == eviction.Held:
		return series.Held
	case !r.MayAdmit || s.Status.Waiting != "":
		return series.Paused
	case r.Room.Mode == eviction.Draining:
		return series.Draining
	case r.Now.Method == eviction.Passthrough:
		return series.Passthrough
	case r.Open:
		return series.Open
	}
	return series.Queueing
}

// admission counts what has happened to a visitor.
func (h *past) admission(at int64, a *node.Admission) {
	switch a.Event {
	case node.CalledIn:
		h.live.Count(a.Room, series.Calls, 1)
	case node.AdmittedQ:
		h.live.Admitted(a.Room, max(1, at-int64(a.Weight.Stamp)), a.OnSite)
	case node.AdmittedO:
		h.live.Admitted(a.Room, 0, a.OnSite)
	case node.Ended:
		h.live.Ended(a.Room, a.Visit, a.Early, a.Terms)
	case node.Dropped:
		h.live.Count(a.Room, series.DropOuts, 1)
	case node.Through:
		h.live.Admitted(a.Room, max(1, at-int64(a.Weight.Stamp)), a.OnSite)
	case node.TakenOver, node.WentOn, node.Given:
		h.live.Seen(a.Room, a.OnSite)
	case node.Parked:
		if a.NoShow {
			h.live.Count(a.Room, series.NoShows, 1)
		}
	default:
	}
}

// did counts what became of a request: a join, or one that its address is refused.
func (h *past) did(op ticket.Op, room string, a ticket.Answer, err error) {
	switch {
	case err != nil:
		h.refused(op, room, err)
	case op == ticket.Join:
		h.live.Count(room, series.Joins, 1)
		if a.State == ticket.Admitted && a.Pass.Home == (eviction.Account{}) { // without a slot, and nobody else hears of it
			h.live.Admitted(room, 0, 0)
		}
	default:
	}
}

func (h *past) refused(op ticket.Op, room string, err error) {
	if !h.live.Known(room) {
		return // or strangers could name as many as they like
	}
	var bound *peraddress.Error
	switch {
	case errors.As(err, &bound):
		h.live.Count(room, series.RefusedAddress, 1)
	case op != ticket.Join:
	case errors.Is(err, ticket.ErrQueueFull):
		h.live.Count(room, series.RefusedFull, 1)
	case errors.Is(err, ticket.ErrRejected):
		h.live.Count(room, series.RefusedClosed, 1)
	case errors.Is(err, ticket.ErrBusy), errors.Is(err, ticket.ErrUnavailable):
		h.live.Count(room, series.RefusedNode, 1)
	}
}

// leave keeps what there is of the minute that runs, here and at another node.
func (h *past) leave(ctx context.Context) {
	m, ok := h.live.Last()
	if !ok {
		return
	}
	m.Goodbye()
	h.write(m)
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for taken := h.handOver(ctx, m); taken && len(h.pending) > 0; { // what else there is
		taken = h.handOver(ctx, <-h.pending)
	}
}

func (h *past) close() {
	h.peers.close()
	if err := h.kept.Close(); err != nil {
		h.s.log.Warn("history", slog.Any("err", err))
	}
}
