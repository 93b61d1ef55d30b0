package priorityqueue

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
	"github.com/anteroom/anteroom/qpid"
)

// Domain is the one of the ErrorInfo that every error carries.
const Domain = "anteroom"

// failure is what a caller is told of an error.
type failure struct {
	code   codes.Code
	reason string
	text   string
	retry  time.Duration // worth another try after this long; 0: not
}

// failures has one for every code that is an error.
func failures() map[pqueue.Code]failure {
	return map[pqueue.Code]failure{
		pqueue.QueueUnknown: {codes.NotFound, "queue_unknown", "no such queue", 0},
		pqueue.ItemUnknown:  {codes.NotFound, "item_unknown", "no such item; it may be long finished, or its node may have lost it", 0},
		pqueue.LeaseLost:    {codes.FailedPrecondition, "lease_lost", "the lease is over; somebody else may have the item", 0},
		pqueue.ItemFinished: {codes.FailedPrecondition, "item_finished", "the item is acknowledged, cancelled or expired", 0},
		pqueue.NotReady:     {codes.FailedPrecondition, "item_finished", "the item is no dead letter", 0},
		pqueue.IsDraining:   {codes.FailedPrecondition, "queue_draining", "the queue is being drained; nothing can be inserted until it is resumed", 0},
		pqueue.Full:         {codes.ResourceExhausted, "queue_full", "the queue is full, or its node's memory is", time.Second},
		pqueue.QueuesFull:   {codes.ResourceExhausted, "too_many_queues", "there are as many queues as a node may have", 10 * time.Second},
		pqueue.Busy:         {codes.ResourceExhausted, "too_many_requests", "too much to do just now", 100 * time.Millisecond},
		pqueue.Invalid:      {codes.InvalidArgument, "request_invalid", "out of the queue's bounds; see max_payload and lease_max of its configuration", 0},
		pqueue.LogUnready:   {codes.Unavailable, "unavailable", "the disk of a durable queue, or enough nodes of a replicated one, are not there just now; nothing was changed", 500 * time.Millisecond},
		pqueue.StorageFull:  {codes.ResourceExhausted, "storage_full", "a disk that keeps the queue is full; nothing was changed", 5 * time.Second},
		pqueue.StorageDoubt: {codes.ResourceExhausted, "storage_full", "a disk that keeps the queue is full, and it may have happened all the same: repeat it when there is room", 5 * time.Second},
		pqueue.Unavailable:  {codes.Unavailable, "unavailable", "a node that is needed for this does not answer, and it may have happened all the same", 500 * time.Millisecond},
	}
}

// verdict is the error of a code.
func (s *Server) verdict(c pqueue.Code) error {
	f, ok := failures()[c]
	if !ok {
		s.log.Error("a queue gave an answer that is no error and no success", slog.Int("code", int(c)))
		f = failure{codes.Internal, "internal", "something went wrong here", 0}
	}
	return f.status()
}

func (f failure) status() error {
	is, err := status.New(f.code, f.text).WithDetails(&errdetails.ErrorInfo{Reason: f.reason, Domain: Domain})
	if err == nil && f.retry > 0 {
		is, err = is.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(f.retry)})
	}
	if err != nil {
		panic("priorityqueue: an error does not encode: " + err.Error()) // two strings and a number
	}
	return is.Err()
}

// invalid is a request that says what is wrong with it.
func invalid(format string, args ...any) error {
	return failure{code: codes.InvalidArgument, reason: "request_invalid", text: fmt.Sprintf(format, args...)}.status()
}

// statusOf turns the error of a context into one that a caller may see.
func (s *Server) statusOf(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	return s.verdict(pqueue.Unavailable)
}

// durationMax is longer than anything here lasts.
const durationMax = 10 * 365 * 24 * time.Hour

// duration is d in microseconds; 0 if it is not set.
func duration(field string, d *durationpb.Duration) (int64, error) {
	if d == nil {
		return 0, nil
	}
	if err := d.CheckValid(); err != nil || d.AsDuration() < 0 || d.AsDuration() > durationMax {
		return 0, invalid("%s: no time from 0 to %v", field, durationMax)
	}
	return d.AsDuration().Microseconds(), nil
}

// moment is a time in Unix microseconds; nil if it is 0.
func moment(t int64) *timestamppb.Timestamp {
	if t == 0 {
		return nil
	}
	return timestamppb.New(time.UnixMicro(t))
}

func stateOf(s pqueue.State) anteroomv1.ItemState {
	switch s {
	case pqueue.Ready:
		return anteroomv1.ItemState_ITEM_STATE_READY
	case pqueue.Delayed:
		return anteroomv1.ItemState_ITEM_STATE_DELAYED
	case pqueue.Leased:
		return anteroomv1.ItemState_ITEM_STATE_LEASED
	case pqueue.Dead:
		return anteroomv1.ItemState_ITEM_STATE_DEAD
	case pqueue.Finished:
		return anteroomv1.ItemState_ITEM_STATE_FINISHED
	default:
		return anteroomv1.ItemState_ITEM_STATE_UNSPECIFIED
	}
}

func modeOf(m pqueue.Mode) anteroomv1.QueueMode {
	switch m {
	case pqueue.Paused:
		return anteroomv1.QueueMode_QUEUE_MODE_PAUSED
	case pqueue.Draining:
		return anteroomv1.QueueMode_QUEUE_MODE_DRAINING
	default:
		return anteroomv1.QueueMode_QUEUE_MODE_RUNNING
	}
}

func itemOf(queue string, h broker.Handle, i pqueue.Item) *anteroomv1.Item {
	if i.State == pqueue.Dead {
		i.Until = 0 // it is no lease's: when a dead letter is to go on
	}
	return &anteroomv1.Item{
		Queue: queue, Id: i.ID, Handle: h.String(), Priority: i.Priority, Payload: i.Payload, State: stateOf(i.State),
		InsertedAt: moment(i.Inserted), NotBefore: moment(i.NotBefore), ExpiresAt: moment(i.Expires), Attempts: i.Attempts,
		LeaseUntil: moment(i.Until), Reason: i.Reason, OriginQueue: i.Origin, Key: i.Key,
	}
}

// itemsOf are the items of a list.
func itemsOf(queue string, a broker.Answer) []*anteroomv1.Item {
	items := make([]*anteroomv1.Item, len(a.Parts))
	for n, p := range a.Parts {
		i := p.Result.Items[0]
		items[n] = itemOf(queue, broker.HandleOf(p.Kind, p.Node, i.Number), i)
	}
	return items
}

// tokenOf is a place in a list as callers are given it; empty: the end.
func tokenOf(w qpid.Weight) string {
	if w == (qpid.Weight{}) {
		return ""
	}
	return hex.EncodeToString(append(binary.BigEndian.AppendUint64(nil, w.Stamp), w.ID[:]...))
}

// placeOf reads what tokenOf made.
func placeOf(token string) (w qpid.Weight, ok bool) {
	if token == "" {
		return w, true
	}
	b, err := hex.DecodeString(token)
	if err != nil || len(b) != 8+len(w.ID) {
		return w, false
	}
	w.Stamp = binary.BigEndian.Uint64(b)
	copy(w.ID[:], b[8:])
	return w, true
}

// leases are the items that a DeleteMin brings.
func (s *Server) leases(queue string, a broker.Answer) *anteroomv1.DeleteMinResponse {
	r := &anteroomv1.DeleteMinResponse{Paused: a.Paused && len(a.Parts) == 0, Missing: missing(a)}
	for _, p := range a.Parts {
		i := p.Result.Items[0]
		h := broker.HandleOf(p.Kind, p.Node, i.Number)
		r.Leases = append(r.Leases, &anteroomv1.Lease{Item: itemOf(queue, h, i), Receipt: h.Receipt(i.Lease), Until: moment(i.Until)})
	}
	return r
}

func missing(a broker.Answer) []string {
	var names []string
	for _, n := range a.Missing {
		names = append(names, string(n))
	}
	return names
}

// changeOf is what a watcher is told; nil: nothing.
func changeOf(e broker.Seen) *anteroomv1.WatchResponse {
	kinds := map[pqueue.Kind]anteroomv1.WatchResponse_Kind{
		pqueue.WasInserted:  anteroomv1.WatchResponse_KIND_INSERTED,
		pqueue.WasLeased:    anteroomv1.WatchResponse_KIND_LEASED,
		pqueue.WasAcked:     anteroomv1.WatchResponse_KIND_ACKED,
		pqueue.WasNacked:    anteroomv1.WatchResponse_KIND_NACKED,
		pqueue.HasLapsed:    anteroomv1.WatchResponse_KIND_LAPSED,
		pqueue.WasCancelled: anteroomv1.WatchResponse_KIND_CANCELLED,
		pqueue.WasUpdated:   anteroomv1.WatchResponse_KIND_UPDATED,
		pqueue.HasExpired:   anteroomv1.WatchResponse_KIND_EXPIRED,
		pqueue.HasDied:      anteroomv1.WatchResponse_KIND_DIED,
		pqueue.WasRequeued:  anteroomv1.WatchResponse_KIND_REQUEUED,
		pqueue.WasExtended:  anteroomv1.WatchResponse_KIND_EXTENDED,
		pqueue.ModeChanged:  anteroomv1.WatchResponse_KIND_MODE,
	}
	k, ok := kinds[e.Change.Kind]
	if !ok {
		return nil
	}
	r := &anteroomv1.WatchResponse{Kind: k, At: moment(e.Change.At), Node: string(e.Node)}
	if k == anteroomv1.WatchResponse_KIND_MODE {
		r.Mode = modeOf(e.Change.Mode)
		return r
	}
	r.Item = itemOf(e.Change.Queue, broker.HandleOf(e.Kind, e.Node, e.Change.Item.Number), e.Change.Item)
	return r
}
