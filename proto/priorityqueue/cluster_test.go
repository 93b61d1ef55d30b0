package priorityqueue_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/internal/queueloop"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
	"github.com/anteroom/anteroom/proto/auth"
	"github.com/anteroom/anteroom/proto/priorityqueue"
	"github.com/anteroom/anteroom/proto/queuelink"
	"github.com/anteroom/anteroom/proto/rpc"
	"github.com/anteroom/anteroom/qpid"
)

// node is a whole node's queues, in memory: the loop, the links and the service.
type node struct {
	m       eviction.Member
	at      *bufconn.Listener // programs come here
	peers   *bufconn.Listener
	loop    *queueloop.Loop
	links   *queuelink.Links
	service *priorityqueue.Server
	client  anteroomv1.PriorityQueueClient
}

type offered struct{ *queueloop.Loop }

func (o offered) Clock() int64 { return time.Now().UnixMicro() }

func (o offered) Watch(queue string) (priorityqueue.Watch, func(), pqueue.Code) {
	return o.Loop.Watch(queue)
}

// Send is that of the links, which are made after the loop.
func (n *node) Send(m broker.Message) { n.links.Send(m) }

// clock is the virtual one of the test: how busy the machine is plays no part.
func clock() broker.Time {
	now := time.Now().UnixMicro()
	return broker.Time{Boot: now, Clock: now}
}

// cluster runs n nodes that know each other, until the test is over. Their
// configuration lists the queues of that name, of many items.
func cluster(t *testing.T, n int, large ...string) []*node {
	t.Helper()
	var nodes []*node
	addresses := map[eviction.Member]string{}
	for i := range n {
		m := eviction.Member{Name: qpid.NodeID(fmt.Sprintf("n%d", i+1)), Boot: 1}
		addresses[m] = fmt.Sprint(i)
		nodes = append(nodes, &node{m: m, at: bufconn.Listen(1 << 20), peers: bufconn.Listen(1 << 20)})
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { stop(); running.Wait() })
	for _, n := range nodes {
		n.start(t, ctx, &running, large, func(ctx context.Context, address string) (net.Conn, error) {
			var i int
			_, _ = fmt.Sscan(address, &i)
			return nodes[i].peers.DialContext(ctx)
		})
		n.links.SetMembers(addresses)
	}
	var list []eviction.Member
	for _, n := range nodes {
		list = append(list, n.m)
	}
	running.Go(func() {
		for ctx.Err() == nil {
			for _, n := range nodes {
				n.loop.SetView(broker.View{List: list, Primary: true, At: clock().Boot})
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	for _, n := range nodes {
		for !n.loop.Snapshot().Ready {
			time.Sleep(time.Millisecond)
		}
	}
	return nodes
}

func (n *node) start(t *testing.T, ctx context.Context, running *sync.WaitGroup, large []string, dial func(context.Context, string) (net.Conn, error)) {
	t.Helper()
	q := broker.Queue{
		Limits: pqueue.Limits{ItemsMax: 100, BytesMax: 1 << 30, AttemptsMax: 5, DeadMax: 10, RememberMax: 100, Remember: 60_000_000, LeaseMax: 60_000_000},
		Lease:  30_000_000, PayloadMax: 1 << 10,
	}
	var listed []broker.Queue
	for _, name := range large {
		l := q
		l.Name, l.Limits.ItemsMax, l.PayloadMax = name, 100_000, 1<<16
		switch name {
		case "again":
			l.Limits.Backoff = pqueue.Backoff{Base: 60_000_000, Factor: 2000, Max: 3_600_000_000}
		case "imports":
			l.Limits.InFlightMax = 2
		case "mail":
			l.Limits.AttemptsMax, l.Limits.DeadTo = 1, "mail/failed"
		case "mail/failed":
			l.Limits.ItemsMax = 1
		}
		listed = append(listed, l)
	}
	var err error
	n.loop, err = queueloop.New(queueloop.Config{
		Links: n, Clock: clock, Broker: broker.Config{Self: n.m, CreateOnUse: true, OnUse: q, Queues: listed, QueuesMax: 5},
	})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := auth.GossipKey(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	n.links = queuelink.New(queuelink.Config{
		Self: n.m, Policy: policy, Dial: dial,
		Deliver: func(m ...broker.Message) { n.loop.Deliver(m...) }, Broke: func(m eviction.Member) { n.loop.Broke(m) },
	})
	n.service = priorityqueue.New(priorityqueue.Config{Queues: offered{n.loop}, Self: n.m.Name, Check: unlucky})
	server, _ := rpc.NewServer(rpc.Config{PriorityQueue: n.service})
	peers := rpc.NewPeers(rpc.PeersConfig{Policy: policy, Register: n.links.Register})
	running.Go(func() { _ = peers.Serve(n.peers) })
	running.Go(func() { _ = server.Serve(n.at) })
	running.Go(func() { _ = n.loop.Run(ctx) })
	running.Go(func() { _ = n.links.Run(ctx) })
	running.Go(func() {
		<-ctx.Done()
		n.service.Close()
		server.Stop()
		peers.Stop()
	})
	conn, err := grpc.NewClient("passthrough:///"+string(n.m.Name), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return n.at.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	n.client = anteroomv1.NewPriorityQueueClient(conn)
}

// unlucky stands for what makes no sense.
func unlucky(q broker.Queue) error {
	if q.Limits.ItemsMax == 13 {
		return errors.New("max_items: unlucky")
	}
	return nil
}

// later has what comes next be later than what was.
func later() { time.Sleep(time.Microsecond) }

func put(t *testing.T, n *node, queue, id string, priority uint32) *anteroomv1.InsertResponse {
	t.Helper()
	r, err := n.client.Insert(t.Context(), &anteroomv1.InsertRequest{Queue: queue, Id: id, Priority: priority, Payload: []byte(id)})
	if err != nil {
		t.Fatalf("insert %s: %v", id, err)
	}
	later()
	return r
}

func take(t *testing.T, n *node, r *anteroomv1.DeleteMinRequest) []*anteroomv1.Lease {
	t.Helper()
	a, err := n.client.DeleteMin(t.Context(), r)
	if err != nil {
		t.Fatalf("deleteMin: %v", err)
	}
	return a.GetLeases()
}

// refused wants an error of that reason, and whether it says when to try again.
func refused(t *testing.T, err error, code codes.Code, reason string) {
	t.Helper()
	got := ""
	for _, d := range status.Convert(err).Details() {
		if i, ok := d.(*errdetails.ErrorInfo); ok && i.GetDomain() == "anteroom" {
			got = i.GetReason()
		}
	}
	if status.Code(err) != code || got != reason {
		t.Errorf("got %v (%s), want %v (%s)", err, got, code, reason)
	}
}

func TestALifeOfItemsOverThreeNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, 3)
		ctx := t.Context()
		for i := range 12 {
			put(t, nodes[i%3], "jobs", fmt.Sprintf("job-%02d", i), uint32(i/4))
		}
		if r := put(t, nodes[2], "jobs", "job-00", 9); !r.GetExisted() || r.GetState() != anteroomv1.ItemState_ITEM_STATE_READY {
			t.Errorf("a repeated insert: %v", r)
		}
		p, err := nodes[0].client.Position(ctx, &anteroomv1.PositionRequest{Queue: "jobs", Id: "job-09"})
		if err != nil || p.GetPosition() != 10 || p.Bound == nil || p.GetBound() != 0 {
			t.Errorf("position: %v %v", p, err)
		}
		peek, err := nodes[1].client.Peek(ctx, &anteroomv1.PeekRequest{Queue: "jobs", MaxItems: 3})
		if err != nil || len(peek.GetItems()) != 3 || peek.GetItems()[0].GetId() != "job-00" {
			t.Errorf("peek: %v %v", peek, err)
		}
		var got []string
		for i := range 12 {
			l := take(t, nodes[i%3], &anteroomv1.DeleteMinRequest{Queue: "jobs", Wait: durationpb.New(5 * time.Second)})[0]
			got = append(got, l.GetItem().GetId())
			if i < 11 {
				if _, err := nodes[(i+1)%3].client.Ack(ctx, &anteroomv1.AckRequest{Queue: "jobs", Receipt: l.GetReceipt()}); err != nil {
					t.Fatalf("ack: %v", err)
				}
				continue
			}
			if e, err := nodes[0].client.Extend(ctx, &anteroomv1.ExtendRequest{Queue: "jobs", Receipt: l.GetReceipt(), Lease: durationpb.New(time.Minute)}); err != nil || !e.GetUntil().IsValid() {
				t.Errorf("extend: %v %v", e, err)
			}
			if n, err := nodes[0].client.Nack(ctx, &anteroomv1.NackRequest{Queue: "jobs", Receipt: l.GetReceipt(), Reason: "broken"}); err != nil || n.GetState() != anteroomv1.ItemState_ITEM_STATE_READY {
				t.Errorf("nack: %v %v", n, err)
			}
			_, err := nodes[0].client.Ack(ctx, &anteroomv1.AckRequest{Queue: "jobs", Receipt: l.GetReceipt()})
			if err != nil {
				t.Errorf("an ack of what nobody else took: %v", err)
			}
		}
		if !slices.IsSorted(got) {
			t.Errorf("order: %v", got)
		}
		s, err := nodes[0].client.Stats(ctx, &anteroomv1.StatsRequest{})
		if err != nil || len(s.GetQueues()) != 1 || s.GetQueues()[0].GetCounters().GetAcked() != 12 || s.GetQueues()[0].GetRoot() == "" || len(s.GetQueues()[0].GetNodes()) != 3 {
			t.Errorf("stats: %v %v", s, err)
		}
	})
}

func TestDeadLettersAreListedRequeuedAndDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, 2)
		ctx := t.Context()
		for _, id := range []string{"a@n1", "b@n2"} {
			put(t, nodes[0], "jobs", id, 0)
			for range 5 {
				l := take(t, nodes[0], &anteroomv1.DeleteMinRequest{Queue: "jobs", Wait: durationpb.New(5 * time.Second)})[0]
				if _, err := nodes[1].client.Nack(ctx, &anteroomv1.NackRequest{Queue: "jobs", Receipt: l.GetReceipt(), Reason: "no"}); err != nil {
					t.Fatal(err)
				}
			}
		}
		d, err := nodes[1].client.DeadLetters(ctx, &anteroomv1.DeadLettersRequest{Queue: "jobs"})
		if err != nil || len(d.GetItems()) != 2 || d.GetItems()[0].GetReason() != "no" {
			t.Fatalf("dead letters: %v %v", d, err)
		}
		if r, err := nodes[0].client.Requeue(ctx, &anteroomv1.RequeueRequest{Queue: "jobs", Ids: []string{d.GetItems()[1].GetHandle()}}); err != nil || r.GetRequeued() != 1 {
			t.Errorf("requeue: %v %v", r, err)
		}
		if r, err := nodes[0].client.DeleteDeadLetters(ctx, &anteroomv1.DeleteDeadLettersRequest{Queue: "jobs"}); err != nil || r.GetDeleted() != 1 {
			t.Errorf("delete: %v %v", r, err)
		}
		if l, err := nodes[0].client.Len(ctx, &anteroomv1.LenRequest{Queue: "jobs"}); err != nil || l.GetReady() != 1 || l.GetDead() != 0 {
			t.Errorf("len: %v %v", l, err)
		}
	})
}

func TestWhatCannotBeIsSaidClearly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, 1)
		c, ctx := nodes[0].client, t.Context()
		_, err := c.Insert(ctx, &anteroomv1.InsertRequest{Queue: "no such name!"})
		refused(t, err, codes.InvalidArgument, "request_invalid")
		_, err = c.Insert(ctx, &anteroomv1.InsertRequest{Queue: "q", Payload: make([]byte, 2000)})
		refused(t, err, codes.InvalidArgument, "request_invalid")
		_, err = c.Insert(ctx, &anteroomv1.InsertRequest{Queue: "q", Id: string(make([]byte, 300))})
		refused(t, err, codes.InvalidArgument, "request_invalid")
		_, err = c.Insert(ctx, &anteroomv1.InsertRequest{Queue: "q", Ttl: durationpb.New(-time.Second)})
		refused(t, err, codes.InvalidArgument, "request_invalid")
		_, err = c.Insert(ctx, &anteroomv1.InsertRequest{Queue: "q", NotBefore: &timestamppb.Timestamp{Nanos: -5}})
		refused(t, err, codes.InvalidArgument, "request_invalid")
		_, err = c.Ack(ctx, &anteroomv1.AckRequest{Queue: "q", Receipt: "nonsense"})
		refused(t, err, codes.InvalidArgument, "request_invalid")
		_, err = c.Len(ctx, &anteroomv1.LenRequest{Queue: "unheard-of"})
		refused(t, err, codes.NotFound, "queue_unknown")
		_, err = c.DeleteMin(ctx, &anteroomv1.DeleteMinRequest{Queue: "q", MaxItems: 5000})
		refused(t, err, codes.InvalidArgument, "request_invalid")
		_, err = c.DeleteMin(ctx, &anteroomv1.DeleteMinRequest{Queue: "q", Lease: durationpb.New(time.Hour)})
		refused(t, err, codes.InvalidArgument, "request_invalid")
		put(t, nodes[0], "q", "there", 0)
		_, err = c.Cancel(ctx, &anteroomv1.CancelRequest{Queue: "q", Id: "not there"})
		refused(t, err, codes.NotFound, "item_unknown")
		_, err = c.Cancel(ctx, &anteroomv1.CancelRequest{Queue: "q", Id: "m.1.elsewhere"}) // where no node ever was
		refused(t, err, codes.NotFound, "item_unknown")
		_, err = c.Ack(ctx, &anteroomv1.AckRequest{Queue: "q", Receipt: "1.m.1.elsewhere"})
		refused(t, err, codes.NotFound, "item_unknown")
		_, err = c.Len(ctx, &anteroomv1.LenRequest{Queue: strings.Repeat("q", 10_000)})
		refused(t, err, codes.InvalidArgument, "request_invalid")
		if said := len(status.Convert(err).Message()); said > 1000 {
			t.Errorf("an error of %d bytes, which many clients take for a broken header", said)
		}
		if _, err := c.Cancel(ctx, &anteroomv1.CancelRequest{Queue: "q", Id: "there"}); err != nil {
			t.Error(err)
		}
		_, err = c.Update(ctx, &anteroomv1.UpdateRequest{Queue: "q", Id: "there", Priority: proto.Uint32(3)})
		refused(t, err, codes.FailedPrecondition, "item_finished")
		if _, err := c.Drain(ctx, &anteroomv1.DrainRequest{Queue: "q"}); err != nil {
			t.Error(err)
		}
		_, err = c.Insert(ctx, &anteroomv1.InsertRequest{Queue: "q", Id: "late"})
		refused(t, err, codes.FailedPrecondition, "queue_draining")
		for i := range 100 {
			put(t, nodes[0], "full", fmt.Sprint(i), 0)
		}
		_, err = c.Insert(ctx, &anteroomv1.InsertRequest{Queue: "full"})
		refused(t, err, codes.ResourceExhausted, "queue_full")
		for i := range 5 {
			_, err = c.Insert(ctx, &anteroomv1.InsertRequest{Queue: fmt.Sprint("more-", i)})
		}
		refused(t, err, codes.ResourceExhausted, "too_many_queues")
	})
}

func TestPurgeSaysHowManyItHasDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, 2)
		for i := range 10 {
			put(t, nodes[i%2], "q", fmt.Sprint("i", i), 0)
		}
		l := take(t, nodes[0], &anteroomv1.DeleteMinRequest{Queue: "q", Wait: durationpb.New(5 * time.Second)})[0]
		a, err := nodes[1].client.Purge(t.Context(), &anteroomv1.PurgeRequest{Queue: "q"})
		if err != nil || a.GetPurged() != 9 || len(a.GetMissing()) > 0 {
			t.Fatalf("%v, %v", a, err)
		}
		if _, err := nodes[1].client.Ack(t.Context(), &anteroomv1.AckRequest{Queue: "q", Receipt: l.GetReceipt()}); err != nil {
			t.Errorf("whoever has an item is done with it: %v", err)
		}
		_, err = nodes[1].client.Purge(t.Context(), &anteroomv1.PurgeRequest{Queue: "none"})
		refused(t, err, codes.NotFound, "queue_unknown")
	})
}

func TestNoIDIsAnotherItemsHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, 2)
		first := put(t, nodes[0], "q", "first", 0)
		_, err := nodes[1].client.Insert(t.Context(), &anteroomv1.InsertRequest{Queue: "q", Id: first.GetHandle()})
		refused(t, err, codes.InvalidArgument, "request_invalid")
		if _, err := nodes[1].client.Cancel(t.Context(), &anteroomv1.CancelRequest{Queue: "q", Id: first.GetHandle()}); err != nil {
			t.Error(err)
		}
	})
}

func TestAnAckOfWhatWasCancelledFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, 1)
		put(t, nodes[0], "q", "a", 0)
		l := take(t, nodes[0], &anteroomv1.DeleteMinRequest{Queue: "q", Wait: durationpb.New(5 * time.Second)})[0]
		if _, err := nodes[0].client.Cancel(t.Context(), &anteroomv1.CancelRequest{Queue: "q", Id: "a"}); err != nil {
			t.Fatal(err)
		}
		_, err := nodes[0].client.Ack(t.Context(), &anteroomv1.AckRequest{Queue: "q", Receipt: l.GetReceipt()})
		refused(t, err, codes.FailedPrecondition, "item_finished")
	})
}

func TestLeaseThatWentToSomebodyElseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, 1)
		c, ctx := nodes[0].client, t.Context()
		put(t, nodes[0], "q", "a", 0)
		first := take(t, nodes[0], &anteroomv1.DeleteMinRequest{Queue: "q", Lease: durationpb.New(50 * time.Millisecond), Wait: durationpb.New(5 * time.Second)})
		for len(first) == 0 { // it lapsed on its way
			first = take(t, nodes[0], &anteroomv1.DeleteMinRequest{Queue: "q", Lease: durationpb.New(50 * time.Millisecond), Wait: durationpb.New(5 * time.Second)})
		}
		second := take(t, nodes[0], &anteroomv1.DeleteMinRequest{Queue: "q", Wait: durationpb.New(5 * time.Second)})
		if len(second) != 1 {
			t.Fatalf("it does not come again: %v", second)
		}
		_, err := c.Ack(ctx, &anteroomv1.AckRequest{Queue: "q", Receipt: first[0].GetReceipt()})
		refused(t, err, codes.FailedPrecondition, "lease_lost")
		if _, err := c.Ack(ctx, &anteroomv1.AckRequest{Queue: "q", Receipt: second[0].GetReceipt()}); err != nil {
			t.Error(err)
		}
	})
}

func TestWatchTellsOfAllNodesFromItsHeaderOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, 2)
		w, err := nodes[0].client.Watch(t.Context(), &anteroomv1.WatchRequest{Queue: "jobs"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Header(); err != nil {
			t.Fatal(err)
		}
		put(t, nodes[0], "jobs", "here@n1", 0)
		e, err := w.Recv()
		if err != nil || e.GetKind() != anteroomv1.WatchResponse_KIND_INSERTED || e.GetItem().GetId() != "here@n1" || e.GetNode() != "n1" {
			t.Fatalf("saw %v, %v", e, err)
		}
		if _, err := nodes[1].client.Pause(t.Context(), &anteroomv1.PauseRequest{Queue: "jobs"}); err != nil {
			t.Fatal(err)
		}
		if e, err = w.Recv(); err != nil || e.GetKind() != anteroomv1.WatchResponse_KIND_MODE || e.GetMode() != anteroomv1.QueueMode_QUEUE_MODE_PAUSED {
			t.Fatalf("saw %v, %v", e, err)
		}
		a, err := nodes[1].client.DeleteMin(t.Context(), &anteroomv1.DeleteMinRequest{Queue: "jobs"})
		if err != nil || !a.GetPaused() || len(a.GetLeases()) != 0 {
			t.Fatalf("deleteMin of a paused queue: %v %v", a, err)
		}
	})
}

func TestWhoeverWaitsIsToldThatTheNodeStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, 1)
		over := make(chan error, 1)
		go func() {
			_, err := nodes[0].client.DeleteMin(context.Background(), &anteroomv1.DeleteMinRequest{Queue: "q", Wait: durationpb.New(time.Minute)})
			over <- err
		}()
		for nodes[0].loop.Snapshot().Calls == 0 {
			time.Sleep(time.Millisecond)
		}
		nodes[0].service.Close()
		refused(t, <-over, codes.Unavailable, "unavailable")
	})
}
