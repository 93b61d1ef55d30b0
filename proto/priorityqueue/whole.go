package priorityqueue

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

// The calls on a queue as a whole: all nodes are asked, and their answers put
// together.

// Peek shows the first items that are ready.
func (s *Server) Peek(ctx context.Context, r *anteroomv1.PeekRequest) (*anteroomv1.PeekResponse, error) {
	a, err := s.list(ctx, pqueue.OpPeek, r.GetQueue(), max(1, r.GetMaxItems()), r.GetPageToken())
	if err != nil {
		return nil, err
	}
	return &anteroomv1.PeekResponse{Items: itemsOf(r.GetQueue(), a), Missing: missing(a), NextPageToken: tokenOf(a.More)}, nil
}

// DeadLetters lists dead letters.
func (s *Server) DeadLetters(ctx context.Context, r *anteroomv1.DeadLettersRequest) (*anteroomv1.DeadLettersResponse, error) {
	a, err := s.list(ctx, pqueue.OpDead, r.GetQueue(), cmp.Or(r.GetMaxItems(), 100), r.GetPageToken())
	if err != nil {
		return nil, err
	}
	return &anteroomv1.DeadLettersResponse{Items: itemsOf(r.GetQueue(), a), Missing: missing(a), NextPageToken: tokenOf(a.More)}, nil
}

func (s *Server) list(ctx context.Context, op pqueue.Op, queue string, most uint32, token string) (broker.Answer, error) {
	if most > itemsMax {
		return broker.Answer{}, invalid("max_items: %d; give %d at most", most, itemsMax)
	}
	after, ok := placeOf(token)
	if !ok {
		return broker.Answer{}, invalid("page_token: not one that this service has given out; give the next_page_token of an answer, or none")
	}
	return s.do(ctx, broker.Call{Command: pqueue.Command{Op: op, Queue: queue, Max: int(most), Weight: after}})
}

// Len counts the items of a queue.
func (s *Server) Len(ctx context.Context, r *anteroomv1.LenRequest) (*anteroomv1.LenResponse, error) {
	if err := checkQueue(r.GetQueue()); err != nil {
		return nil, err
	}
	all, missing, err := s.stats(ctx, r.GetQueue())
	if err != nil {
		return nil, err
	}
	q := all[0]
	return &anteroomv1.LenResponse{Ready: q.GetReady(), Delayed: q.GetDelayed(), Leased: q.GetLeased(), Dead: q.GetDead(), Missing: missing}, nil
}

// Stats says what queues do and have done.
func (s *Server) Stats(ctx context.Context, r *anteroomv1.StatsRequest) (*anteroomv1.StatsResponse, error) {
	all, missing, err := s.stats(ctx, r.GetQueue())
	if err != nil {
		return nil, err
	}
	return &anteroomv1.StatsResponse{Queues: all, Missing: missing}, nil
}

// stats asks all nodes about a queue, or all queues. One that nobody knows is an
// error.
func (s *Server) stats(ctx context.Context, queue string) ([]*anteroomv1.QueueStats, []string, error) {
	a, err := s.do(ctx, broker.Call{Command: pqueue.Command{Op: pqueue.OpStats, Queue: queue}})
	if err != nil {
		return nil, nil, err
	}
	var all []*anteroomv1.QueueStats
	for _, p := range a.Parts {
		for _, st := range p.Result.Stats {
			i, ok := slices.BinarySearchFunc(all, st.Queue, func(q *anteroomv1.QueueStats, name string) int { return cmp.Compare(q.GetQueue(), name) })
			if !ok {
				all = slices.Insert(all, i, &anteroomv1.QueueStats{Queue: st.Queue, Counters: &anteroomv1.QueueCounters{}})
			}
			add(all[i], string(p.Node), st)
		}
	}
	if queue != "" && len(all) == 0 {
		return nil, nil, s.verdict(pqueue.QueueUnknown)
	}
	return all, missing(a), nil
}

// add counts one node's share into q.
func add(q *anteroomv1.QueueStats, node string, st pqueue.Stats) {
	q.Mode, q.Kind = modeOf(st.Mode.Mode), st.Kind
	q.Ready += uint64(st.Ready)
	q.Delayed += uint64(st.Delayed)
	q.Leased += uint64(st.Leased)
	q.Dead += uint64(st.Dead)
	q.Blocked += uint64(st.Blocked)
	q.Bytes += uint64(st.Bytes)
	q.Waiters += uint64(st.Waiters)
	if st.Oldest != 0 && (q.Oldest == nil || st.Oldest < q.GetOldest().AsTime().UnixMicro()) {
		q.Oldest = moment(st.Oldest)
	}
	if st.Root {
		q.Root = node
	}
	c, n := q.GetCounters(), st.Counters
	c.Inserted += n.Inserted
	c.Leased += n.Leased
	c.Acked += n.Acked
	c.Nacked += n.Nacked
	c.Lapsed += n.Lapsed
	c.Cancelled += n.Cancelled
	c.Expired += n.Expired
	c.Died += n.Died
	c.Repeated += n.Repeated
	q.Nodes = append(q.Nodes, &anteroomv1.NodeShare{Node: node, Ready: uint64(st.Ready), Leased: uint64(st.Leased)})
}

// Pause holds a queue.
func (s *Server) Pause(ctx context.Context, r *anteroomv1.PauseRequest) (*anteroomv1.PauseResponse, error) {
	missing, err := s.setMode(ctx, r.GetQueue(), pqueue.Paused)
	if err != nil {
		return nil, err
	}
	return &anteroomv1.PauseResponse{Missing: missing}, nil
}

// Resume undoes Pause and Drain.
func (s *Server) Resume(ctx context.Context, r *anteroomv1.ResumeRequest) (*anteroomv1.ResumeResponse, error) {
	missing, err := s.setMode(ctx, r.GetQueue(), pqueue.Running)
	if err != nil {
		return nil, err
	}
	return &anteroomv1.ResumeResponse{Missing: missing}, nil
}

// Drain lets a queue run empty.
func (s *Server) Drain(ctx context.Context, r *anteroomv1.DrainRequest) (*anteroomv1.DrainResponse, error) {
	missing, err := s.setMode(ctx, r.GetQueue(), pqueue.Draining)
	if err != nil {
		return nil, err
	}
	return &anteroomv1.DrainResponse{Missing: missing}, nil
}

func (s *Server) setMode(ctx context.Context, queue string, m pqueue.Mode) ([]string, error) {
	a, err := s.do(ctx, broker.Call{Command: pqueue.Command{Op: pqueue.OpMode, Queue: queue, Mode: pqueue.ModeSetting{Mode: m}}})
	return missing(a), err
}

// Purge drops all that is ready or delayed.
func (s *Server) Purge(ctx context.Context, r *anteroomv1.PurgeRequest) (*anteroomv1.PurgeResponse, error) {
	a, err := s.do(ctx, broker.Call{Command: pqueue.Command{Op: pqueue.OpPurge, Queue: r.GetQueue()}})
	if err != nil {
		return nil, err
	}
	return &anteroomv1.PurgeResponse{Purged: a.Result.N, Missing: missing(a)}, nil
}

// Requeue puts dead letters back in line.
func (s *Server) Requeue(ctx context.Context, r *anteroomv1.RequeueRequest) (*anteroomv1.RequeueResponse, error) {
	n, missing, err := s.raise(ctx, pqueue.OpRequeue, r.GetQueue(), r.GetIds())
	if err != nil {
		return nil, err
	}
	return &anteroomv1.RequeueResponse{Requeued: n, Missing: missing}, nil
}

// DeleteDeadLetters drops dead letters.
func (s *Server) DeleteDeadLetters(ctx context.Context, r *anteroomv1.DeleteDeadLettersRequest) (*anteroomv1.DeleteDeadLettersResponse, error) {
	n, missing, err := s.raise(ctx, pqueue.OpBury, r.GetQueue(), r.GetIds())
	if err != nil {
		return nil, err
	}
	return &anteroomv1.DeleteDeadLettersResponse{Deleted: n, Missing: missing}, nil
}

// raise does op to the dead letters of these ids, or to all.
func (s *Server) raise(ctx context.Context, op pqueue.Op, queue string, ids []string) (n uint64, lost []string, err error) {
	if len(ids) > idsMax {
		return 0, nil, invalid("ids: %d; give %d at most", len(ids), idsMax)
	}
	if len(ids) == 0 {
		a, err := s.do(ctx, broker.Call{Command: pqueue.Command{Op: op, Queue: queue}})
		return a.Result.N, missing(a), err
	}
	for _, id := range ids {
		c, err := named(op, queue, id)
		if err != nil {
			return n, nil, err
		}
		a, err := s.do(ctx, c)
		if err != nil && a.Result.Code != pqueue.NotReady { // that one is no dead letter any more
			return n, nil, err
		}
		n += a.Result.N
	}
	return n, nil, nil
}

// Watch streams what happens to the items of a queue.
func (s *Server) Watch(r *anteroomv1.WatchRequest, out grpc.ServerStreamingServer[anteroomv1.WatchResponse]) error {
	if err := checkQueue(r.GetQueue()); err != nil {
		return err
	}
	w, done, code := s.c.Queues.Watch(r.GetQueue())
	if code != pqueue.OK {
		return s.verdict(code)
	}
	defer done()
	if err := out.SendHeader(metadata.MD{}); err != nil { // so that the caller knows it has begun
		return err
	}
	for {
		select {
		case <-out.Context().Done():
			return s.statusOf(out.Context().Err())
		case <-s.closing:
			return s.verdict(pqueue.Unavailable)
		case e, ok := <-w.Events():
			if !ok {
				return s.verdict(pqueue.Unavailable)
			}
			if told := changeOf(e); told != nil {
				told.Missed = w.Missed()
				if err := out.Send(told); err != nil {
					return err
				}
			}
		}
	}
}
