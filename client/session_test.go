package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/anteroom/anteroom/client"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

// Calls go in one session; by themselves where the node knows none, and where the
// program wants it so.
func TestCallsShareASession(t *testing.T) {
	for what, test := range map[string]struct {
		options  []client.Option
		session  func() error
		sessions int64
		alone    bool
	}{
		"in a session":       {sessions: 1},
		"without":            {options: []client.Option{client.WithoutSession()}, alone: true},
		"a node of before":   {session: func() error { return status.Error(codes.Unimplemented, "unknown method Session") }, sessions: 1, alone: true},
		"one that broke off": {sessions: 2},
	} {
		t.Run(what, func(t *testing.T) {
			var sessions, calls atomic.Int64
			seen := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, q, a any, c *grpc.ClientConn, f grpc.UnaryInvoker, o ...grpc.CallOption) error {
				calls.Add(1)
				return f(ctx, method, q, a, c, o...)
			})
			peers, c, _ := newCluster(t, 1, append(test.options, client.WithGRPC(seen))...)
			peers[0].session = func() error {
				if n := sessions.Add(1); what == "one that broke off" && n == 1 {
					return status.Error(codes.Unavailable, "not now")
				}
				if test.session != nil {
					return test.session()
				}
				return nil
			}
			q := c.Queue("jobs")
			lives(t, q, 3)
			if sessions.Load() != test.sessions || (calls.Load() > 0) != test.alone {
				t.Errorf("%d sessions and %d calls, want %d sessions, and calls of their own: %v", sessions.Load(), calls.Load(), test.sessions, test.alone)
			}
		})
	}
}

// lives puts, takes, extends, gives back and acknowledges n items.
func lives(t *testing.T, q *client.Queue, n int) {
	t.Helper()
	ctx := t.Context()
	for i := range n {
		if p, err := q.Put(ctx, client.New{ID: fmt.Sprint(i)}); err != nil || p.Existed || p.Handle == "" {
			t.Fatalf("put: %+v, %v", p, err)
		}
	}
	for i := range n {
		got, err := q.Take(ctx, client.Want{Lease: time.Minute})
		if err != nil || len(got.Leases) != 1 || got.Leases[0].ID != fmt.Sprint(i) {
			t.Fatalf("take: %+v, %v, want item %d", got, err, i)
		}
		l := got.Leases[0]
		if err := l.Extend(ctx, time.Hour); err != nil {
			t.Errorf("extend: %v", err)
		}
		if i == n-1 {
			if s, err := q.Nack(ctx, l.Receipt, client.AtOnce, "no"); err != nil || s != client.Delayed {
				t.Errorf("nack: %v, %v", s, err)
			}
			continue
		}
		if err := l.Ack(ctx); err != nil {
			t.Errorf("ack: %v", err)
		}
		if err := q.Ack(ctx, "none"); !errors.Is(err, client.ErrLeaseLost) {
			t.Errorf("ack of nothing: %v", err)
		}
	}
}

// More callers than a session carries at a time are answered all the same, and none of
// the waiting holds up an acknowledgement.
func TestManyWaitInASession(t *testing.T) {
	_, c, _ := newCluster(t, 1)
	q := c.Queue("jobs")
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range 600 {
		waiting.Go(func() {
			if _, err := q.Take(ctx, client.Want{Wait: time.Minute}); !errors.Is(err, context.Canceled) {
				t.Errorf("take: %v", err)
			}
		})
	}
	for range 100 {
		if err := q.Ack(t.Context(), "none"); !errors.Is(err, client.ErrLeaseLost) {
			t.Errorf("ack: %v", err)
		}
	}
	cancel()
	waiting.Wait()
}

// A session that breaks when a call was carried out, and not answered, leaves it as a broken
// call does: it is made again, and nothing is there twice.
func TestAPutIsMadeAgainWhenItsSessionBreaks(t *testing.T) {
	peers, c, kill := newCluster(t, 2)
	for i, p := range peers {
		var once sync.Once
		p.after = func(op string) error {
			var err error
			if op == "put" {
				once.Do(func() {
					if i == 0 {
						go kill(0)
						time.Sleep(50 * time.Millisecond)
					}
					err = status.Error(codes.Unavailable, "lost")
				})
			}
			return err
		}
	}
	q := c.Queue("jobs")
	var putting sync.WaitGroup
	for i := range 20 {
		putting.Go(func() {
			if _, err := q.Put(t.Context(), client.New{ID: fmt.Sprint(i)}); err != nil {
				t.Errorf("put: %v", err)
			}
		})
	}
	putting.Wait()
	if n, err := q.Len(t.Context()); err != nil || n.Ready != 20 {
		t.Errorf("%+v items, %v, want 20", n, err)
	}
}

// Who waits no more may do what they like with the payload: what is written later is what
// it was.
func TestAPayloadIsTheCallersAgainWhenAPutReturns(t *testing.T) {
	var seen []*anteroomv1.SessionRequest
	var mu sync.Mutex
	entered := make(chan struct{}, 1000)
	slow := grpc.WithChainStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, begin grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := begin(ctx, d, c, method, o...)
		return sent{s, func(m any) {
			entered <- struct{}{}
			mu.Lock() // not before the caller has gone
			defer mu.Unlock()
			seen = append(seen, proto.CloneOf(m.(*anteroomv1.SessionRequest)))
		}}, err
	})
	_, c, _ := newCluster(t, 1, client.WithGRPC(slow))
	ctx, cancel := context.WithCancel(t.Context())
	payload := []byte("before")
	mu.Lock()
	put := make(chan error)
	go func() {
		_, err := c.Queue("jobs").Put(ctx, client.New{Payload: payload})
		put <- err
	}()
	<-entered
	cancel()
	if err := <-put; !errors.Is(err, context.Canceled) {
		t.Errorf("put: %v", err)
	}
	copy(payload, "after!")
	mu.Unlock()
	if err := c.Queue("jobs").Ack(t.Context(), "none"); !errors.Is(err, client.ErrLeaseLost) {
		t.Errorf("ack: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	text, err := proto.Marshal(seen[0])
	var read anteroomv1.SessionRequest
	if err == nil {
		err = proto.Unmarshal(text, &read)
	}
	if err != nil || len(read.GetCalls()) != 1 || string(read.GetCalls()[0].GetInsert().GetPayload()) != "before" {
		t.Errorf("what was written: %v, %v, want the payload of before", &read, err)
	}
}

// sent is a stream of which somebody sees what is sent.
type sent struct {
	grpc.ClientStream
	see func(m any)
}

func (s sent) SendMsg(m any) error {
	s.see(m)
	return s.ClientStream.SendMsg(m)
}
