package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
	"github.com/anteroom/anteroom/proto/priorityqueue"
)

// queueNode answers as a node would that has one item in each state.
type queueNode struct {
	anteroomv1.UnimplementedPriorityQueueServer
	mu     sync.Mutex
	said   []string // what was asked for that changes something
	leases []*anteroomv1.Lease
	nacked chan string
}

func (n *queueNode) say(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.said = append(n.said, fmt.Sprintf(format, args...))
}

func instant(second int64) *timestamppb.Timestamp {
	return timestamppb.New(time.Unix(1795286356+second, 0))
}

func queued(id string, priority uint32, payload string) *anteroomv1.Item {
	return &anteroomv1.Item{
		Queue: "jobs", Id: id, Handle: "h-" + id, Priority: priority, Payload: []byte(payload), State: anteroomv1.ItemState_ITEM_STATE_READY, InsertedAt: instant(0),
	}
}

func refused(code codes.Code, reason, text string) error {
	s, err := grpcstatus.New(code, text).WithDetails(&errdetails.ErrorInfo{Domain: "anteroom", Reason: reason})
	if err != nil {
		panic(err)
	}
	return s.Err()
}

func (n *queueNode) Insert(_ context.Context, r *anteroomv1.InsertRequest) (*anteroomv1.InsertResponse, error) {
	switch r.GetQueue() {
	case "shut":
		return nil, refused(codes.FailedPrecondition, "queue_draining", "The queue is being drained.")
	case "full":
		return nil, refused(codes.ResourceExhausted, "queue_full", "The queue has 10 items, which is its max_items.")
	}
	key := ""
	if r.GetKey() != "" {
		key = " key " + r.GetKey()
	}
	n.say("put %q priority %d not before %v ttl %v%s", r.GetPayload(), r.GetPriority(), r.GetNotBefore().AsTime().Unix(), r.GetTtl().AsDuration(), key)
	a := &anteroomv1.InsertResponse{Id: r.GetId(), Handle: "h-" + r.GetId(), State: anteroomv1.ItemState_ITEM_STATE_READY}
	if r.GetId() == "old" {
		a.Existed, a.State = true, anteroomv1.ItemState_ITEM_STATE_LEASED
	}
	return a, nil
}

func (n *queueNode) InsertBatch(ctx context.Context, r *anteroomv1.InsertBatchRequest) (*anteroomv1.InsertBatchResponse, error) {
	a := &anteroomv1.InsertBatchResponse{}
	n.say("put a batch of %d", len(r.GetItems()))
	for _, i := range r.GetItems() {
		one, err := n.Insert(ctx, &anteroomv1.InsertRequest{Queue: r.GetQueue(), Id: i.GetId(), Payload: i.GetPayload(), Priority: i.GetPriority(), NotBefore: i.GetNotBefore(), Ttl: i.GetTtl(), Key: i.GetKey()})
		if string(i.GetPayload()) == "bad" {
			err = refused(codes.InvalidArgument, "request_invalid", "out of the queue's bounds")
		}
		result := &anteroomv1.InsertResult{Outcome: &anteroomv1.InsertResult_Inserted{Inserted: one}}
		if err != nil {
			result.Outcome = &anteroomv1.InsertResult_Failure{Failure: priorityqueue.FailureOf(err)}
		}
		a.Results = append(a.Results, result)
	}
	return a, nil
}

func (n *queueNode) AckBatch(ctx context.Context, r *anteroomv1.AckBatchRequest) (*anteroomv1.AckBatchResponse, error) {
	a := &anteroomv1.AckBatchResponse{}
	for _, receipt := range r.GetReceipts() {
		_, err := n.Ack(ctx, &anteroomv1.AckRequest{Queue: r.GetQueue(), Receipt: receipt})
		a.Results = append(a.Results, &anteroomv1.AckResult{Failure: priorityqueue.FailureOf(err)})
	}
	return a, nil
}

func (n *queueNode) ExtendBatch(ctx context.Context, r *anteroomv1.ExtendBatchRequest) (*anteroomv1.ExtendBatchResponse, error) {
	a := &anteroomv1.ExtendBatchResponse{}
	for _, receipt := range r.GetReceipts() {
		one, _ := n.Extend(ctx, &anteroomv1.ExtendRequest{Queue: r.GetQueue(), Receipt: receipt, Lease: r.GetLease()})
		a.Results = append(a.Results, &anteroomv1.ExtendResult{Outcome: &anteroomv1.ExtendResult_Until{Until: one.GetUntil()}})
	}
	return a, nil
}

func (n *queueNode) DeleteMin(ctx context.Context, r *anteroomv1.DeleteMinRequest) (*anteroomv1.DeleteMinResponse, error) {
	n.mu.Lock()
	give := n.leases[:min(len(n.leases), int(r.GetMaxItems()))]
	n.leases = n.leases[len(give):]
	n.mu.Unlock()
	if len(give) == 0 {
		select {
		case <-time.After(r.GetWait().AsDuration()):
		case <-ctx.Done():
		}
	}
	a := &anteroomv1.DeleteMinResponse{Leases: give, Paused: r.GetQueue() == "held"}
	if r.GetQueue() == "split" {
		a.Missing = []string{"node-3"}
	}
	return a, nil
}

func (n *queueNode) Ack(_ context.Context, r *anteroomv1.AckRequest) (*anteroomv1.AckResponse, error) {
	if r.GetReceipt() == "late" {
		return nil, refused(codes.FailedPrecondition, "lease_lost", "The lease lapsed at 18:39:16 UTC.")
	}
	n.say("ack %s", r.GetReceipt())
	return &anteroomv1.AckResponse{}, nil
}

func (n *queueNode) Nack(_ context.Context, r *anteroomv1.NackRequest) (*anteroomv1.NackResponse, error) {
	delay := "as the queue says"
	if r.GetDelay() != nil {
		delay = r.GetDelay().AsDuration().String()
	}
	n.say("nack %s %s %q", r.GetReceipt(), delay, r.GetReason())
	if n.nacked != nil {
		n.nacked <- r.GetReceipt()
	}
	return &anteroomv1.NackResponse{State: anteroomv1.ItemState_ITEM_STATE_DELAYED}, nil
}

func (n *queueNode) Extend(_ context.Context, r *anteroomv1.ExtendRequest) (*anteroomv1.ExtendResponse, error) {
	n.say("extend %s %v", r.GetReceipt(), r.GetLease().AsDuration())
	return &anteroomv1.ExtendResponse{Until: instant(300)}, nil
}

func (n *queueNode) Peek(_ context.Context, r *anteroomv1.PeekRequest) (*anteroomv1.PeekResponse, error) {
	if r.GetQueue() == "failed" {
		letter := queued("x", 0, "poison")
		letter.OriginQueue, letter.Key = "jobs", "customer 7"
		return &anteroomv1.PeekResponse{Items: []*anteroomv1.Item{letter, queued("y", 1, "two")}}, nil
	}
	nasty := queued("c", 7, "\x1b[31mtwo\nlines and then so many words that they do not fit into the table at all")
	nasty.Attempts, nasty.Reason = 2, "exit status 1"
	return &anteroomv1.PeekResponse{Items: []*anteroomv1.Item{queued("a", 0, "one"), queued("b", 5, "\xff\x00"), nasty}, Missing: []string{"node-3"}}, nil
}

func (n *queueNode) Len(_ context.Context, r *anteroomv1.LenRequest) (*anteroomv1.LenResponse, error) {
	if r.GetQueue() == "nope" {
		return nil, refused(codes.NotFound, "queue_unknown", "There is no queue of this name.")
	}
	return &anteroomv1.LenResponse{Ready: 3, Delayed: 1, Leased: 2, Dead: 1}, nil
}

func (n *queueNode) Position(_ context.Context, r *anteroomv1.PositionRequest) (*anteroomv1.PositionResponse, error) {
	exact, some := uint64(0), uint64(4)
	switch r.GetId() {
	case "a":
		return &anteroomv1.PositionResponse{Position: 1, Bound: &exact, State: anteroomv1.ItemState_ITEM_STATE_READY}, nil
	case "b":
		return &anteroomv1.PositionResponse{Position: 2, Bound: &some, State: anteroomv1.ItemState_ITEM_STATE_READY, Missing: []string{"node-3"}}, nil
	case "c":
		return &anteroomv1.PositionResponse{Position: 3, State: anteroomv1.ItemState_ITEM_STATE_READY, Missing: []string{"node-3"}}, nil
	case "d":
		return &anteroomv1.PositionResponse{State: anteroomv1.ItemState_ITEM_STATE_LEASED, Bound: &exact}, nil
	}
	return nil, refused(codes.NotFound, "item_unknown", "There is no item of this id.")
}

func (n *queueNode) Update(_ context.Context, r *anteroomv1.UpdateRequest) (*anteroomv1.UpdateResponse, error) {
	if r.Payload != nil || r.NotBefore != nil {
		n.say("update %s, priority given %v, %q, not before %v", r.GetId(), r.Priority != nil, r.GetPayload(), r.GetNotBefore().AsTime().Unix())
	}
	n.say("update %s %d", r.GetId(), r.GetPriority())
	return &anteroomv1.UpdateResponse{Item: queued(r.GetId(), r.GetPriority(), "")}, nil
}

func (n *queueNode) Cancel(_ context.Context, r *anteroomv1.CancelRequest) (*anteroomv1.CancelResponse, error) {
	n.say("cancel %s", r.GetId())
	return &anteroomv1.CancelResponse{State: anteroomv1.ItemState_ITEM_STATE_DELAYED}, nil
}

func (n *queueNode) Pause(context.Context, *anteroomv1.PauseRequest) (*anteroomv1.PauseResponse, error) {
	n.say("pause")
	return &anteroomv1.PauseResponse{Missing: []string{"node-3"}}, nil
}

func (n *queueNode) Resume(context.Context, *anteroomv1.ResumeRequest) (*anteroomv1.ResumeResponse, error) {
	n.say("resume")
	return &anteroomv1.ResumeResponse{}, nil
}

func (n *queueNode) Drain(context.Context, *anteroomv1.DrainRequest) (*anteroomv1.DrainResponse, error) {
	n.say("drain")
	return &anteroomv1.DrainResponse{}, nil
}

func (n *queueNode) Purge(_ context.Context, r *anteroomv1.PurgeRequest) (*anteroomv1.PurgeResponse, error) {
	n.say("purge %s", r.GetQueue())
	return &anteroomv1.PurgeResponse{Purged: 1200, Missing: []string{"node-3"}}, nil
}

func (n *queueNode) Configure(_ context.Context, r *anteroomv1.ConfigureRequest) (*anteroomv1.ConfigureResponse, error) {
	s := &anteroomv1.QueueSettings{
		MaxItems: new(uint32(1000)), MaxPayload: new(uint32(65536)), Lease: durationpb.New(30 * time.Second), LeaseMax: durationpb.New(12 * time.Hour),
		MaxAttempts: new(uint32(5)), DeadLettersMax: new(uint32(10_000)), DeadLetterQueue: new(""), Remember: durationpb.New(5 * time.Minute),
		RememberMax: new(uint32(100_000)), Interval: durationpb.New(0), PerInterval: new(uint32(1)), MaxInFlight: new(uint32(0)), ExclusiveKeys: new(false), FairKeys: new(false), BackoffBase: durationpb.New(0),
	}
	a := &anteroomv1.ConfigureResponse{Settings: s, Kind: "memory"}
	if r.GetSettings() == nil {
		return a, nil
	}
	n.say("configure %s %s", r.GetQueue(), strings.ReplaceAll(r.GetSettings().String(), "  ", " "))
	proto.Merge(s, r.GetSettings())
	a.ChangedAt, a.ChangedBy, a.Missing = instant(0), "node-1", []string{"node-3"}
	return a, nil
}

func (n *queueNode) Stats(_ context.Context, r *anteroomv1.StatsRequest) (*anteroomv1.StatsResponse, error) {
	jobs := &anteroomv1.QueueStats{
		Queue: "jobs", Kind: "memory", Mode: anteroomv1.QueueMode_QUEUE_MODE_RUNNING, Ready: 3, Delayed: 1, Leased: 2, Dead: 1, Bytes: 4096, Oldest: instant(0),
		Counters: &anteroomv1.QueueCounters{Inserted: 10, Leased: 6, Acked: 3, Nacked: 1, Lapsed: 1, Died: 1, Repeated: 2}, Root: "node-2", Waiters: 4, Blocked: 1,
		Nodes: []*anteroomv1.NodeShare{{Node: "node-1", Ready: 1, Leased: 2}, {Node: "node-2", Ready: 2}},
	}
	if r.GetQueue() != "" {
		return &anteroomv1.StatsResponse{Queues: []*anteroomv1.QueueStats{jobs}}, nil
	}
	mail := &anteroomv1.QueueStats{Queue: "mail/outgoing", Kind: "replicated", Mode: anteroomv1.QueueMode_QUEUE_MODE_PAUSED}
	return &anteroomv1.StatsResponse{Queues: []*anteroomv1.QueueStats{jobs, mail}}, nil
}

func (n *queueNode) Watch(_ *anteroomv1.WatchRequest, s grpc.ServerStreamingServer[anteroomv1.WatchResponse]) error {
	i := queued("a", 0, "")
	for _, e := range []*anteroomv1.WatchResponse{
		{Kind: anteroomv1.WatchResponse_KIND_INSERTED, Item: i, At: instant(1), Node: "node-1"},
		{Kind: anteroomv1.WatchResponse_KIND_LEASED, Item: i, At: instant(2), Node: "node-1", Missed: 3},
		{Kind: anteroomv1.WatchResponse_KIND_MODE, Mode: anteroomv1.QueueMode_QUEUE_MODE_PAUSED, At: instant(3), Node: "node-2"},
	} {
		if err := s.Send(e); err != nil {
			return err
		}
	}
	return refused(codes.InvalidArgument, "request_invalid", "That is all.")
}

func (n *queueNode) DeadLetters(_ context.Context, r *anteroomv1.DeadLettersRequest) (*anteroomv1.DeadLettersResponse, error) {
	i := queued("x", 0, "poison")
	i.State, i.Attempts, i.Reason = anteroomv1.ItemState_ITEM_STATE_DEAD, 5, "exit status 1"
	a := &anteroomv1.DeadLettersResponse{Items: []*anteroomv1.Item{i}}
	if r.GetMaxItems() == 1 {
		a.NextPageToken = "more"
	}
	return a, nil
}

func (n *queueNode) Requeue(_ context.Context, r *anteroomv1.RequeueRequest) (*anteroomv1.RequeueResponse, error) {
	n.say("requeue %q", r.GetIds())
	return &anteroomv1.RequeueResponse{Requeued: 1}, nil
}

func (n *queueNode) DeleteDeadLetters(_ context.Context, r *anteroomv1.DeleteDeadLettersRequest) (*anteroomv1.DeleteDeadLettersResponse, error) {
	n.say("delete %q", r.GetIds())
	return &anteroomv1.DeleteDeadLettersResponse{Deleted: 7, Missing: []string{"node-3"}}, nil
}

// asking runs the program against n.
func (n *queueNode) asking(t *testing.T) func(ctx context.Context, args ...string) (stdout, stderr string, code int) {
	l, s := bufconn.Listen(1<<16), grpc.NewServer()
	anteroomv1.RegisterPriorityQueueServer(s, n)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return func(ctx context.Context, args ...string) (string, string, int) {
		var out, errs bytes.Buffer
		p := &program{stdout: &out, stderr: &errs, now: func() time.Time { return time.Unix(1795286356, 0) }}
		p.dialer = func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }
		code := exitCode(p.run(ctx, args))
		return out.String(), errs.String(), code
	}
}

func lease(id string) *anteroomv1.Lease {
	i := queued(id, 5, "resize "+id)
	i.State, i.Attempts = anteroomv1.ItemState_ITEM_STATE_LEASED, 1
	return &anteroomv1.Lease{Item: i, Receipt: "r-" + id, Until: instant(30)}
}
