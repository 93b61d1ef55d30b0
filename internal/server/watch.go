package server

import (
	"context"
	"time"

	"google.golang.org/grpc/health"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/history"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/proto/rpc"
)

// admission writes down what has happened to a visitor.
func (s *Server) admission(a node.Admission) {
	e := history.Of(time.Now().UnixMicro(), s.self.Name, a)
	s.book.add(e)
	if s.o.Admission != nil {
		s.o.Admission(e)
	}
}

// watch tells the log and the health service how the node is doing, until ctx
// ends.
func (s *Server) watch(ctx context.Context, h *health.Server) {
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	served, ready, grade, leading := false, "not asked yet", eviction.NoGrade, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		s.followRooms()
		st := &s.loop.Snapshot().Status
		if now := (source{s}).Ready(); now != ready {
			switch ready = now; {
			case ready == "":
				served = true
				s.log.Info("serving")
			case served && !s.leaving.Load():
				s.log.Warn("not serving", "why", ready)
			default:
				s.log.Info("not serving", "why", ready)
			}
			rpc.Serving(h, ready == "")
		}
		if st.Grade != grade {
			grade = st.Grade
			s.log.Info("wave", "grade", grade.String(), "nodes", len(st.List), "epoch", st.Installed.Num)
		}
		if st.Leading != leading {
			if leading = st.Leading; leading {
				s.log.Info("this node runs the waves now")
			} else {
				s.log.Info("this node no longer runs the waves")
			}
		}
	}
}
