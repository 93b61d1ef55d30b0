package simtest

import (
	"time"

	"github.com/anteroom/anteroom/internal/fairness"
)

// Result is what a run did.
type Result struct {
	Hash      uint64        // of the trace
	Simulated time.Duration // until the run was over
	Events    uint64
	Messages  []Count // between nodes, by kind
	Requests  []Count // of visitors, by operation
	Reached   []Count // every goal, also those never reached
	Rooms     []RoomResult
	Came      int  // visitors
	Served    int  // visitors who were let in
	Stuck     bool // the quorum was lost for good, so nobody was let in after the faults
}

// Count is how often something happened.
type Count struct {
	Name string
	N    int64
}

// RoomResult is one room's part of a Result.
type RoomResult struct {
	Name         string
	Admissions   []fairness.Admission // everybody called or let in, in order of joining attempts
	OverLimitMax int                  // most visitors beyond the limit at any instant
	ActiveMax    int                  // most visitors on the site or called at any instant
}

func (w *world) result() Result {
	r := Result{
		Hash: w.trace.hash, Simulated: micros(w.now), Events: w.agenda.seq, Came: w.crowd.came, Served: w.crowd.served,
		Stuck: w.reached.n[reachStuck] > 0,
	}
	for k := range msgKinds {
		r.Messages = append(r.Messages, Count{k.String(), w.wires.counts[k]})
	}
	for o := range ops {
		r.Requests = append(r.Requests, Count{o.String(), w.checker.ops[o]})
	}
	for g := range goals {
		r.Reached = append(r.Reached, Count{g.String(), w.reached.n[g]})
	}
	for i := range w.checker.rooms {
		c := &w.checker.rooms[i]
		r.Rooms = append(r.Rooms, RoomResult{
			Name: c.name, Admissions: w.admissions(uint8(i)), OverLimitMax: c.over, ActiveMax: c.activeMax,
		})
	}
	return r
}

// admissions lists who was called or walked in.
func (w *world) admissions(room uint8) []fairness.Admission {
	n := 0
	for i := range w.crowd.tickets {
		if t := &w.crowd.tickets[i]; t.room == room && t.calledAt != 0 {
			n++
		}
	}
	as := make([]fairness.Admission, 0, n)
	for i := range w.crowd.tickets {
		t := &w.crowd.tickets[i]
		if t.room != room || t.calledAt == 0 {
			continue
		}
		a := fairness.Admission{JoinedAt: t.joined, EntitledAt: t.calledAt, CalledAt: t.calledAt, Open: t.open}
		a.Joined.Stamp, a.Joined.ID = t.stamp, t.id
		if !t.open {
			a.EntitledAt, a.Entitled = t.entitledAt, fairness.Order{Epoch: t.epoch, Key: t.key}
		}
		as = append(as, a)
	}
	return as
}
