package client_test

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/anteroom/anteroom/client"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
	"github.com/anteroom/anteroom/proto/priorityqueue"
)

// cluster is a slow, obvious stand-in for the service: one sorted slice that all
// nodes share.
type cluster struct {
	mu      sync.Mutex
	items   []*anteroomv1.Item
	leases  int
	changed chan struct{}
	watched []chan *anteroomv1.WatchResponse
	acked   []string
	nacked  []string
	batches []int // how many items each had
}

// peer is one node of it.
type peer struct {
	anteroomv1.UnimplementedPriorityQueueServer
	*cluster
	name string
	// before is asked at each call, and may refuse it.
	before func(op string) error
	// after may lose the answer of a call that was carried out.
	after func(op string) error
	// session is asked at each session, and may refuse it.
	session func() error
}

func (p *peer) Session(s grpc.BidiStreamingServer[anteroomv1.SessionRequest, anteroomv1.SessionResponse]) error {
	if p.session != nil {
		if err := p.session(); err != nil {
			return err
		}
	}
	var running sync.WaitGroup
	defer running.Wait()
	var mu sync.Mutex // of Send
	for {
		r, err := s.Recv()
		if err != nil {
			return err
		}
		for _, c := range r.GetCalls() {
			running.Go(func() {
				a := p.answer(s.Context(), c)
				mu.Lock()
				defer mu.Unlock()
				_ = s.Send(&anteroomv1.SessionResponse{Answers: []*anteroomv1.SessionAnswer{a}})
			})
		}
	}
}

// answer makes a call of a session, which goes on when it is cancelled.
func (p *peer) answer(ctx context.Context, c *anteroomv1.SessionCall) *anteroomv1.SessionAnswer {
	a := &anteroomv1.SessionAnswer{Id: c.GetId()}
	var err error
	switch q := c.GetCall().(type) {
	case *anteroomv1.SessionCall_Insert:
		var r anteroomv1.SessionAnswer_Insert
		r.Insert, err = p.Insert(ctx, q.Insert)
		a.Answer = &r
	case *anteroomv1.SessionCall_DeleteMin:
		var r anteroomv1.SessionAnswer_DeleteMin
		r.DeleteMin, err = p.DeleteMin(ctx, q.DeleteMin)
		a.Answer = &r
	case *anteroomv1.SessionCall_Ack:
		var r anteroomv1.SessionAnswer_Ack
		r.Ack, err = p.Ack(ctx, q.Ack)
		a.Answer = &r
	case *anteroomv1.SessionCall_Nack:
		var r anteroomv1.SessionAnswer_Nack
		r.Nack, err = p.Nack(ctx, q.Nack)
		a.Answer = &r
	case *anteroomv1.SessionCall_Extend:
		var r anteroomv1.SessionAnswer_Extend
		r.Extend, err = p.Extend(ctx, q.Extend)
		a.Answer = &r
	}
	if err != nil {
		a.Answer = &anteroomv1.SessionAnswer_Failure{Failure: priorityqueue.FailureOf(err)}
	}
	return a
}

func refusal(code codes.Code, reason client.Reason, again time.Duration) error {
	d := []protoadapt.MessageV1{&errdetails.ErrorInfo{Domain: "anteroom", Reason: string(reason)}}
	if again > 0 {
		d = append(d, &errdetails.RetryInfo{RetryDelay: durationpb.New(again)})
	}
	s, err := status.New(code, "as asked").WithDetails(d...)
	if err != nil {
		panic(err)
	}
	return s.Err()
}

// do is one call: refused, or carried out and perhaps not answered.
func (p *peer) do(op string, f func() error) error {
	if p.before != nil {
		if err := p.before(op); err != nil {
			return err
		}
	}
	p.mu.Lock()
	err := f()
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()
	if err == nil && p.after != nil {
		err = p.after(op)
	}
	return err
}

func (c *cluster) tell(kind anteroomv1.WatchResponse_Kind, i *anteroomv1.Item) {
	for _, w := range c.watched {
		w <- &anteroomv1.WatchResponse{Kind: kind, Item: proto.CloneOf(i), At: timestamppb.Now(), Node: "node-1"}
	}
}

func (p *peer) Configure(_ context.Context, r *anteroomv1.ConfigureRequest) (a *anteroomv1.ConfigureResponse, err error) {
	err = p.do("configure", func() error {
		a = &anteroomv1.ConfigureResponse{Settings: &anteroomv1.QueueSettings{}, Kind: "durable"}
		if r.GetSettings() != nil {
			proto.Merge(a.GetSettings(), r.GetSettings())
			a.ChangedAt, a.ChangedBy, a.Missing = timestamppb.New(time.Unix(7, 0)), "node-1", []string{"node-2"}
		}
		return nil
	})
	return a, err
}

func (p *peer) Insert(_ context.Context, r *anteroomv1.InsertRequest) (a *anteroomv1.InsertResponse, err error) {
	err = p.do("put", func() error {
		if i := p.find(r.GetId()); i != nil {
			a = &anteroomv1.InsertResponse{Id: i.GetId(), Handle: i.GetHandle(), Existed: true, State: i.GetState()}
			return nil
		}
		i := &anteroomv1.Item{
			Queue: r.GetQueue(), Id: r.GetId(), Handle: "h-" + r.GetId(), Priority: r.GetPriority(), Payload: r.GetPayload(),
			State: anteroomv1.ItemState_ITEM_STATE_READY, InsertedAt: timestamppb.Now(),
		}
		p.items = append(p.items, i)
		slices.SortStableFunc(p.items, func(a, b *anteroomv1.Item) int { return cmp.Compare(a.GetPriority(), b.GetPriority()) })
		p.tell(anteroomv1.WatchResponse_KIND_INSERTED, i)
		a = &anteroomv1.InsertResponse{Id: i.GetId(), Handle: i.GetHandle(), State: i.GetState()}
		return nil
	})
	return a, err
}

// batch counts a call with n items. Each is a call of its own, too, and may be
// refused; then the answer to all may be lost.
func (p *peer) batch(op string, n int, one func(i int) error) (failures []*anteroomv1.Failure, err error) {
	p.mu.Lock()
	p.batches = append(p.batches, n)
	p.mu.Unlock()
	for i := range n {
		failures = append(failures, priorityqueue.FailureOf(one(i)))
	}
	if p.after != nil {
		err = p.after(op + " batch")
	}
	return failures, err
}

func (p *peer) InsertBatch(ctx context.Context, r *anteroomv1.InsertBatchRequest) (*anteroomv1.InsertBatchResponse, error) {
	a := &anteroomv1.InsertBatchResponse{}
	failures, err := p.batch("put", len(r.GetItems()), func(i int) error {
		n := r.GetItems()[i]
		one, err := p.Insert(ctx, &anteroomv1.InsertRequest{Queue: r.GetQueue(), Id: n.GetId(), Priority: n.GetPriority(), Payload: n.GetPayload()})
		a.Results = append(a.Results, &anteroomv1.InsertResult{Outcome: &anteroomv1.InsertResult_Inserted{Inserted: one}})
		return err
	})
	for i, f := range failures {
		if f != nil {
			a.Results[i].Outcome = &anteroomv1.InsertResult_Failure{Failure: f}
		}
	}
	return a, err
}

func (p *peer) AckBatch(ctx context.Context, r *anteroomv1.AckBatchRequest) (*anteroomv1.AckBatchResponse, error) {
	a := &anteroomv1.AckBatchResponse{}
	failures, err := p.batch("ack", len(r.GetReceipts()), func(i int) error {
		_, err := p.Ack(ctx, &anteroomv1.AckRequest{Queue: r.GetQueue(), Receipt: r.GetReceipts()[i]})
		return err
	})
	for _, f := range failures {
		a.Results = append(a.Results, &anteroomv1.AckResult{Failure: f})
	}
	return a, err
}

func (p *peer) ExtendBatch(ctx context.Context, r *anteroomv1.ExtendBatchRequest) (*anteroomv1.ExtendBatchResponse, error) {
	a := &anteroomv1.ExtendBatchResponse{}
	failures, err := p.batch("extend", len(r.GetReceipts()), func(i int) error {
		one, err := p.Extend(ctx, &anteroomv1.ExtendRequest{Queue: r.GetQueue(), Receipt: r.GetReceipts()[i], Lease: r.GetLease()})
		a.Results = append(a.Results, &anteroomv1.ExtendResult{Outcome: &anteroomv1.ExtendResult_Until{Until: one.GetUntil()}})
		return err
	})
	for i, f := range failures {
		if f != nil {
			a.Results[i].Outcome = &anteroomv1.ExtendResult_Failure{Failure: f}
		}
	}
	return a, err
}

// find returns an item by its id, its handle, or the receipt of its lease.
func (c *cluster) find(name string) *anteroomv1.Item {
	for _, i := range c.items {
		if name == i.GetId() || name == i.GetHandle() || strings.HasPrefix(name, i.GetHandle()) && name == receipt(i) {
			return i
		}
	}
	return nil
}

func receipt(i *anteroomv1.Item) string { return fmt.Sprintf("%s/%d", i.GetHandle(), i.GetAttempts()) }

func (p *peer) DeleteMin(ctx context.Context, r *anteroomv1.DeleteMinRequest) (a *anteroomv1.DeleteMinResponse, err error) {
	until := time.Now().Add(r.GetWait().AsDuration())
	for {
		err = p.do("take", func() error {
			a = &anteroomv1.DeleteMinResponse{}
			lease := time.Now().Add(cmp.Or(r.GetLease().AsDuration(), time.Minute))
			for _, i := range p.items {
				lapsed := i.GetState() == anteroomv1.ItemState_ITEM_STATE_LEASED && i.GetLeaseUntil().AsTime().Before(time.Now())
				delayed := i.GetNotBefore().AsTime().After(time.Now())
				if (i.GetState() != anteroomv1.ItemState_ITEM_STATE_LEASED || lapsed) && !delayed && len(a.Leases) < int(max(1, r.GetMaxItems())) {
					i.State, i.LeaseUntil = anteroomv1.ItemState_ITEM_STATE_LEASED, timestamppb.New(lease)
					i.Attempts++
					p.leases++
					a.Leases = append(a.Leases, &anteroomv1.Lease{Item: proto.CloneOf(i), Receipt: receipt(i), Until: i.LeaseUntil})
				}
			}
			return nil
		})
		p.mu.Lock()
		changed := p.changed
		p.mu.Unlock()
		left := min(time.Until(until), 10*time.Millisecond) // leases lapse
		if err != nil || len(a.GetLeases()) > 0 || left <= 0 {
			return a, err
		}
		select {
		case <-changed:
		case <-time.After(left):
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}

// held runs f on the item of a lease.
func (p *peer) held(op, receipt string, f func(*anteroomv1.Item)) error {
	return p.do(op, func() error {
		i := p.find(receipt)
		switch {
		case i == nil && slices.Contains(p.acked, receipt) && op == "ack":
			return nil
		case i == nil, i.GetState() != anteroomv1.ItemState_ITEM_STATE_LEASED:
			return refusal(codes.FailedPrecondition, client.ErrLeaseLost, 0)
		}
		f(i)
		return nil
	})
}

func (p *peer) Ack(_ context.Context, r *anteroomv1.AckRequest) (*anteroomv1.AckResponse, error) {
	return &anteroomv1.AckResponse{}, p.held("ack", r.GetReceipt(), func(i *anteroomv1.Item) {
		p.acked = append(p.acked, r.GetReceipt())
		p.items = slices.DeleteFunc(p.items, func(o *anteroomv1.Item) bool { return o == i })
	})
}

func (p *peer) Nack(_ context.Context, r *anteroomv1.NackRequest) (*anteroomv1.NackResponse, error) {
	return &anteroomv1.NackResponse{State: anteroomv1.ItemState_ITEM_STATE_DELAYED}, p.held("nack", r.GetReceipt(), func(i *anteroomv1.Item) {
		p.nacked = append(p.nacked, r.GetReason())
		i.State = anteroomv1.ItemState_ITEM_STATE_DELAYED
		i.NotBefore = timestamppb.New(time.Now().Add(r.GetDelay().AsDuration()))
	})
}

func (p *peer) Extend(_ context.Context, r *anteroomv1.ExtendRequest) (*anteroomv1.ExtendResponse, error) {
	a := &anteroomv1.ExtendResponse{Until: timestamppb.New(time.Now().Add(r.GetLease().AsDuration()))}
	return a, p.held("extend", r.GetReceipt(), func(i *anteroomv1.Item) { i.LeaseUntil = a.Until })
}

func (p *peer) Update(_ context.Context, r *anteroomv1.UpdateRequest) (*anteroomv1.UpdateResponse, error) {
	a := &anteroomv1.UpdateResponse{}
	return a, p.do("update", func() error {
		i := p.find(r.GetId())
		if r.Priority != nil {
			i.Priority = r.GetPriority()
		}
		if r.Payload != nil {
			i.Payload = r.GetPayload()
		}
		if r.GetNotBefore() != nil {
			i.NotBefore = r.GetNotBefore()
		}
		a.Item = proto.CloneOf(i)
		return nil
	})
}

func (p *peer) Cancel(_ context.Context, r *anteroomv1.CancelRequest) (a *anteroomv1.CancelResponse, err error) {
	return &anteroomv1.CancelResponse{State: anteroomv1.ItemState_ITEM_STATE_LEASED}, p.do("cancel", func() error {
		p.items = slices.DeleteFunc(p.items, func(i *anteroomv1.Item) bool { return i.GetId() == r.GetId() })
		return nil
	})
}

func (p *peer) Peek(_ context.Context, r *anteroomv1.PeekRequest) (a *anteroomv1.PeekResponse, err error) {
	a = &anteroomv1.PeekResponse{Missing: []string{"node-9"}}
	return a, p.do("peek", func() error {
		from, _ := strconv.Atoi(r.GetPageToken())
		for _, i := range p.items[from:min(len(p.items), from+min(2, int(r.GetMaxItems())))] { // two fill an answer
			a.Items = append(a.Items, proto.CloneOf(i))
		}
		if to := from + len(a.Items); to < len(p.items) {
			a.NextPageToken = strconv.Itoa(to)
		}
		return nil
	})
}

func (p *peer) Len(context.Context, *anteroomv1.LenRequest) (*anteroomv1.LenResponse, error) {
	a := &anteroomv1.LenResponse{}
	return a, p.do("len", func() error {
		a.Ready = uint64(len(p.items))
		return nil
	})
}

func (p *peer) Purge(context.Context, *anteroomv1.PurgeRequest) (*anteroomv1.PurgeResponse, error) {
	a := &anteroomv1.PurgeResponse{Missing: []string{"node-9"}}
	return a, p.do("purge", func() error {
		n := len(p.items)
		p.items = slices.DeleteFunc(p.items, func(i *anteroomv1.Item) bool { return i.GetState() != anteroomv1.ItemState_ITEM_STATE_LEASED })
		a.Purged = uint64(n - len(p.items))
		return nil
	})
}

func (p *peer) Watch(_ *anteroomv1.WatchRequest, s grpc.ServerStreamingServer[anteroomv1.WatchResponse]) error {
	mine := make(chan *anteroomv1.WatchResponse, 100)
	if err := p.do("watch", func() error {
		p.watched = append(p.watched, mine)
		return nil
	}); err != nil {
		return err
	}
	for {
		select {
		case e := <-mine:
			if err := s.Send(e); err != nil {
				return err
			}
		case <-s.Context().Done():
			return s.Context().Err()
		}
	}
}

// newCluster returns nodes of the stand-in, a client of them, and what makes one
// vanish.
func newCluster(t testing.TB, n int, o ...client.Option) (peers []*peer, c *client.Client, kill func(i int)) {
	t.Helper()
	peers, c, servers, err := standIn(n, o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		for _, s := range servers {
			s.Stop()
		}
	})
	return peers, c, func(i int) { servers[i].Stop() }
}

func standIn(n int, o ...client.Option) (peers []*peer, c *client.Client, servers []*grpc.Server, err error) {
	shared := &cluster{changed: make(chan struct{})}
	listeners := map[string]*bufconn.Listener{}
	var addresses []string
	for i := range n {
		p := &peer{cluster: shared, name: fmt.Sprintf("node-%d", i+1)}
		l, s := bufconn.Listen(1<<16), grpc.NewServer()
		anteroomv1.RegisterPriorityQueueServer(s, p)
		go func() { _ = s.Serve(l) }()
		peers, servers = append(peers, p), append(servers, s)
		listeners[p.name], addresses = l, append(addresses, "passthrough:///"+p.name)
	}
	dialer := func(ctx context.Context, name string) (net.Conn, error) { return listeners[name].DialContext(ctx) }
	c, err = client.Dial(addresses, append([]client.Option{client.WithGRPC(grpc.WithContextDialer(dialer))}, o...)...)
	return peers, c, servers, err
}

// dial is what the examples call in place of client.Dial, so that they need no
// network.
func dial() (*client.Client, func()) {
	_, c, servers, err := standIn(3)
	if err != nil {
		panic(err)
	}
	return c, func() {
		_ = c.Close()
		for _, s := range servers {
			s.Stop()
		}
	}
}
