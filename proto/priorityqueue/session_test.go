package priorityqueue_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
	"github.com/anteroom/anteroom/proto/priorityqueue"
)

type sessionStream = grpc.BidiStreamingClient[anteroomv1.SessionRequest, anteroomv1.SessionResponse]

func session(t *testing.T, n *node) sessionStream {
	t.Helper()
	s, err := n.client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// say sends a frame of calls, whose ids are from on.
func say(t *testing.T, s sessionStream, from uint64, calls ...*anteroomv1.SessionCall) {
	t.Helper()
	for i, c := range calls {
		c.Id = from + uint64(i)
	}
	if err := s.Send(&anteroomv1.SessionRequest{Calls: calls}); err != nil {
		t.Fatal(err)
	}
}

// hear returns n answers by the ids of their calls.
func hear(t *testing.T, s sessionStream, n int) map[uint64]*anteroomv1.SessionAnswer {
	t.Helper()
	all := map[uint64]*anteroomv1.SessionAnswer{}
	for len(all) < n {
		r, err := s.Recv()
		if err != nil {
			t.Fatalf("after %d of %d answers: %v", len(all), n, err)
		}
		for _, a := range r.GetAnswers() {
			if all[a.GetId()] != nil {
				t.Fatalf("two answers to %d", a.GetId())
			}
			all[a.GetId()] = a
		}
	}
	return all
}

func insertCall(queue, id string) *anteroomv1.SessionCall {
	return &anteroomv1.SessionCall{Call: &anteroomv1.SessionCall_Insert{Insert: &anteroomv1.InsertRequest{Queue: queue, Id: id}}}
}

func takeCall(queue string, wait time.Duration, most uint32) *anteroomv1.SessionCall {
	return &anteroomv1.SessionCall{Call: &anteroomv1.SessionCall_DeleteMin{DeleteMin: &anteroomv1.DeleteMinRequest{Queue: queue, Wait: durationpb.New(wait), MaxItems: most}}}
}

func ackCall(queue, receipt string) *anteroomv1.SessionCall {
	return &anteroomv1.SessionCall{Call: &anteroomv1.SessionCall_Ack{Ack: &anteroomv1.AckRequest{Queue: queue, Receipt: receipt}}}
}

// A session puts, takes, gives back, extends and acknowledges, at any node, and each call
// fails by itself and as it would alone.
func TestALifeOfItemsInASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, 3)
		s := session(t, nodes[0])
		say(t, s, 1, insertCall("jobs", "a"), insertCall("no name", "b"), &anteroomv1.SessionCall{}, takeCall("jobs", 0, 2), ackCall("jobs", "?"))
		is := hear(t, s, 5)
		if is[1].GetInsert().GetId() != "a" {
			t.Errorf("put: %v", is[1])
		}
		for id := uint64(2); id <= 5; id++ {
			if f := is[id].GetFailure(); f.GetCode() != int32(codes.InvalidArgument) || f.GetReason() != "request_invalid" {
				t.Errorf("call %d: %v, want request_invalid", id, is[id])
			}
		}
		say(t, s, 1, insertCall("jobs", "a"), takeCall("jobs", time.Minute, 1))
		is = hear(t, s, 2)
		if !is[1].GetInsert().GetExisted() || len(is[2].GetDeleteMin().GetLeases()) != 1 {
			t.Fatalf("a put again, and a take: %v", is)
		}
		receipt := is[2].GetDeleteMin().GetLeases()[0].GetReceipt()
		say(t, s, 7, &anteroomv1.SessionCall{Call: &anteroomv1.SessionCall_Extend{Extend: &anteroomv1.ExtendRequest{Queue: "jobs", Receipt: receipt}}})
		is = hear(t, s, 1)
		if is[7].GetExtend().GetUntil() == nil {
			t.Errorf("extend: %v", is)
		}
		say(t, s, 8, &anteroomv1.SessionCall{Call: &anteroomv1.SessionCall_Nack{Nack: &anteroomv1.NackRequest{Queue: "jobs", Receipt: receipt}}})
		is = hear(t, s, 1)
		if is[8].GetNack().GetState() != anteroomv1.ItemState_ITEM_STATE_READY {
			t.Errorf("nack: %v", is)
		}
		say(t, s, 10, takeCall("jobs", time.Minute, 1))
		is = hear(t, s, 1)
		if len(is[10].GetDeleteMin().GetLeases()) != 1 {
			t.Fatalf("a take of what was given back: %v", is)
		}
		say(t, s, 9, ackCall("jobs", receipt))
		if is := hear(t, s, 1); is[9].GetFailure().GetReason() != "lease_lost" {
			t.Errorf("ack of a lease before: %v", is)
		}
		receipt = is[10].GetDeleteMin().GetLeases()[0].GetReceipt()
		say(t, s, 11, ackCall("jobs", receipt))
		is = hear(t, s, 1)
		if is[11].GetAck() == nil {
			t.Errorf("ack: %v", is)
		}
		if err := s.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("the end: %v", err)
		}
	})
}

// A take waits without holding up other calls, ends when it is cancelled, and what comes
// after it is somebody else's. One who goes away leaves nothing leased.
func TestATakeInASessionMayBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, 1)
		s := session(t, nodes[0])
		say(t, s, 1, takeCall("jobs", time.Minute, 1), takeCall("other", time.Minute, 1), insertCall("elsewhere", "x"))
		if hear(t, s, 1)[3] == nil {
			t.Fatal("a put waits for a take before it")
		}
		if err := s.Send(&anteroomv1.SessionRequest{Cancelled: []uint64{1, 99}}); err != nil {
			t.Fatal(err)
		}
		if f := hear(t, s, 1)[1].GetFailure(); f.GetCode() != int32(codes.Canceled) {
			t.Errorf("a take that was cancelled: %v", f)
		}
		put(t, nodes[0], "jobs", "a", 1)
		if l := take(t, nodes[0], &anteroomv1.DeleteMinRequest{Queue: "jobs"}); len(l) != 1 {
			t.Errorf("%d leases, want that of a", len(l))
		}
		if err := s.CloseSend(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if hear(t, s, 1)[2].GetDeleteMin() == nil || time.Since(began) < 50*time.Second {
			t.Errorf("who says no more is not answered what they asked")
		}
	})
}

// A session without calls is ended by the node, and so is one that breaks the rules.
func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, 1)
		s := session(t, nodes[0])
		say(t, s, 1, insertCall("jobs", "a"))
		hear(t, s, 1)
		began := time.Now()
		if _, err := s.Recv(); !errors.Is(err, io.EOF) || time.Since(began) > 70*time.Second {
			t.Errorf("%v after %v, want an end within a minute or so", err, time.Since(began))
		}
		var many []*anteroomv1.SessionCall
		for range priorityqueue.SessionCalls + 1 {
			many = append(many, insertCall("jobs", "a"))
		}
		s = session(t, nodes[0])
		say(t, s, 1, many...)
		if _, err := s.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("too many calls in a frame: %v", err)
		}
		s = session(t, nodes[0])
		if err := s.Send(&anteroomv1.SessionRequest{Calls: []*anteroomv1.SessionCall{
			{Id: 1, Call: takeCall("jobs2", time.Minute, 1).GetCall()}, {Id: 1, Call: takeCall("jobs2", time.Minute, 1).GetCall()},
		}}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("two calls of one id: %v", err)
		}
		s = session(t, nodes[0])
		say(t, s, 1, takeCall("jobs3", time.Minute, 1))
		synctest.Wait()
		nodes[0].service.Close()
		if a := hear(t, s, 1)[1]; a == nil {
			t.Error("a take is not answered when the node stops")
		}
		if _, err := s.Recv(); status.Code(err) != codes.Unavailable {
			t.Errorf("a session of a node that stops: %v", err)
		}
	})
}

// counting counts the takes that were made, and brings a large answer to each.
type counting struct {
	priorityqueue.Queues
	takes *atomic.Int64
}

func (c counting) Begin(all []*broker.Ask) {
	for _, a := range all {
		c.takes.Add(1)
		a.Then(broker.Answer{Parts: []broker.Part{{Result: pqueue.Result{Items: []pqueue.Item{{Payload: make([]byte, 64<<10)}}}}}})
	}
}

func (c counting) Forget([]*broker.Ask) {}

// silent is a stream whose other side sends without end and reads nothing.
type silent struct {
	grpc.ServerStream
	ctx  context.Context
	next uint64
}

func (s *silent) Context() context.Context { return s.ctx }

func (s *silent) Recv() (*anteroomv1.SessionRequest, error) {
	if s.next >= 16*priorityqueue.SessionCalls { // far more than should be read
		<-s.ctx.Done()
	}
	if s.ctx.Err() != nil {
		return nil, s.ctx.Err()
	}
	r := &anteroomv1.SessionRequest{}
	for range priorityqueue.SessionCalls {
		s.next++
		c := takeCall("jobs", 0, 1)
		c.Id = s.next
		r.Calls = append(r.Calls, c)
	}
	return r, nil
}

func (s *silent) Send(*anteroomv1.SessionResponse) error {
	<-s.ctx.Done()
	return s.ctx.Err()
}

// Who sends without end and reads nothing has a bounded number of calls carried
// out: the node reads no further.
func TestWhoReadsNothingIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var takes atomic.Int64
		done := make(chan error)
		go func() {
			done <- priorityqueue.New(priorityqueue.Config{Queues: counting{takes: &takes}}).Session(&silent{ctx: ctx})
		}()
		time.Sleep(time.Hour)
		const most = 1<<20/(64<<10) + priorityqueue.SessionCalls
		if n := takes.Load(); n == 0 || n > most {
			t.Errorf("%d takes, want some, and at most %d", n, most)
		}
		cancel()
		if err := <-done; err == nil {
			t.Error("no error")
		}
	})
}

// Each call is asked whether it may be made, and has left when it is answered.
func TestCallsOfASessionAreAdmittedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var takes, under atomic.Int64
		allow := func(_ context.Context, method string, q any) (func(), error) {
			if method != anteroomv1.PriorityQueue_DeleteMin_FullMethodName || q.(*anteroomv1.DeleteMinRequest).GetQueue() != "jobs" {
				return nil, status.Error(codes.PermissionDenied, "no")
			}
			under.Add(1)
			return func() { under.Add(-1) }, nil
		}
		says := make(chan *anteroomv1.SessionRequest, 1)
		heard := make(chan *anteroomv1.SessionResponse, 9)
		done := make(chan error)
		go func() {
			done <- priorityqueue.New(priorityqueue.Config{Queues: counting{takes: &takes}, Allow: allow}).Session(&pipe{ctx: t.Context(), says: says, heard: heard})
		}()
		r := &anteroomv1.SessionRequest{Calls: []*anteroomv1.SessionCall{takeCall("jobs", 0, 1), takeCall("other", 0, 1), insertCall("jobs", "a")}}
		for i, c := range r.GetCalls() {
			c.Id = uint64(i)
		}
		says <- r
		close(says)
		if err := <-done; err != nil {
			t.Error(err)
		}
		close(heard)
		got := ""
		answers := map[uint64]*anteroomv1.SessionAnswer{}
		for h := range heard {
			for _, a := range h.GetAnswers() {
				answers[a.GetId()] = a
			}
		}
		for id := range uint64(3) {
			got += fmt.Sprint(codes.Code(answers[id].GetFailure().GetCode()), " ")
		}
		if got != "OK PermissionDenied PermissionDenied " || takes.Load() != 1 || under.Load() != 0 {
			t.Errorf("%s, %d takes, %d under way", got, takes.Load(), under.Load())
		}
	})
}

// pipe is a stream of a test.
type pipe struct {
	grpc.ServerStream
	ctx   context.Context
	says  <-chan *anteroomv1.SessionRequest
	heard chan<- *anteroomv1.SessionResponse
}

func (p *pipe) Context() context.Context { return p.ctx }

func (p *pipe) Recv() (*anteroomv1.SessionRequest, error) {
	if r, ok := <-p.says; ok {
		return r, nil
	}
	return nil, io.EOF
}

func (p *pipe) Send(r *anteroomv1.SessionResponse) error {
	p.heard <- r
	return nil
}

// stuck are queues that answer nothing.
type stuck struct {
	priorityqueue.Queues
	begun     []*broker.Ask
	forgotten []uint64
}

func (q *stuck) Begin(all []*broker.Ask) {
	for _, a := range all {
		q.begun = append(q.begun, a)
		a.ID = uint64(len(q.begun))
	}
}

func (q *stuck) Forget(all []*broker.Ask) {
	for _, a := range all {
		q.forgotten = append(q.forgotten, a.ID)
	}
	slices.Sort(q.forgotten)
}

// A call that is not answered in time is unavailable, and its caller has room for
// another one; a take goes on as long as its queue says. A stream that breaks forgets
// what is under way, and late answers are nobody's.
func TestCallsOfASessionTakeNoLongerThanOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		q := &stuck{}
		says, heard, done := make(chan *anteroomv1.SessionRequest, 1), make(chan *anteroomv1.SessionResponse, 9), make(chan error)
		go func() {
			done <- priorityqueue.New(priorityqueue.Config{Queues: q}).Session(&pipe{ctx: ctx, says: says, heard: heard})
		}()
		calls := []*anteroomv1.SessionCall{ackCall("jobs", "1.m.1.n1"), takeCall("jobs", time.Minute, 1), takeCall("jobs", time.Minute, 1)}
		for i, c := range calls {
			c.Id = uint64(i + 1)
		}
		says <- &anteroomv1.SessionRequest{Calls: calls}
		began := time.Now()
		r := <-heard
		if took := time.Since(began); took < 5*time.Second || took > 7*time.Second || len(r.GetAnswers()) != 1 ||
			r.GetAnswers()[0].GetId() != 1 || r.GetAnswers()[0].GetFailure().GetReason() != "unavailable" {
			t.Errorf("after %v: %v", took, r)
		}
		says <- &anteroomv1.SessionRequest{Cancelled: []uint64{1, 2}}
		r = <-heard
		if len(r.GetAnswers()) != 1 || r.GetAnswers()[0].GetId() != 2 || r.GetAnswers()[0].GetFailure().GetCode() != int32(codes.Canceled) {
			t.Errorf("a take that was cancelled: %v", r)
		}
		cancel()
		close(says)
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the end of a stream that breaks: %v", err)
		}
		if !slices.Equal(q.forgotten, []uint64{1, 2, 3}) {
			t.Errorf("forgotten: %v, want all", q.forgotten)
		}
		for _, a := range q.begun {
			a.Then(broker.Answer{})
		}
	})
}
