package client_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/anteroom/anteroom/client"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestItemsAreTakenByPriorityAndGoneWhenAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, _ := newCluster(t, 3)
		q := c.Queue("jobs")
		for _, n := range []client.New{{ID: "late", Priority: 7}, {ID: "a", Payload: []byte("pay")}, {ID: "b"}} {
			if _, err := q.Put(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		taken, err := q.Take(t.Context(), client.Want{Items: 2, Lease: time.Minute})
		if err != nil || len(taken.Leases) != 2 || taken.Leases[0].ID != "a" || taken.Leases[1].ID != "b" {
			t.Fatalf("Take = %+v, %v", taken, err)
		}
		if l := taken.Leases[0]; string(l.Payload) != "pay" || l.Attempts != 1 || l.State != client.Leased || time.Until(l.Until) < 50*time.Second {
			t.Errorf("first lease = %+v", l)
		}
		for _, l := range taken.Leases {
			if err := l.Ack(t.Context()); err != nil {
				t.Error(err)
			}
		}
		rest, err := q.Peek(t.Context(), 10)
		if err != nil || len(rest.Items) != 1 || rest.Items[0].ID != "late" || !slices.Equal(rest.Missing, []string{"node-9"}) {
			t.Errorf("Peek = %+v, %v", rest, err)
		}
	})
}

func TestChangeSendsWhatIsSetAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, _ := newCluster(t, 1)
		q, none := c.Queue("jobs"), uint32(0)
		if _, err := q.Put(t.Context(), client.New{ID: "a", Priority: 5, Payload: []byte("old")}); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(1_900_000_000, 0)
		for _, step := range []struct {
			change   client.Change
			priority uint32
			payload  string
		}{
			{client.Change{Payload: []byte("new")}, 5, "new"},
			{client.Change{NotBefore: at}, 5, "new"},
			{client.Change{Priority: &none, Payload: []byte{}}, 0, ""},
		} {
			i, err := q.Change(t.Context(), "a", step.change)
			if err != nil || i.Priority != step.priority || string(i.Payload) != step.payload || !step.change.NotBefore.IsZero() && !i.NotBefore.Equal(at) {
				t.Errorf("%+v: %+v, %v", step.change, i, err)
			}
		}
		if i, err := q.Update(t.Context(), "a", 7); err != nil || i.Priority != 7 || !i.NotBefore.Equal(at) {
			t.Errorf("%+v, %v", i, err)
		}
		if _, err := q.Change(t.Context(), "a", client.Change{}); !errors.Is(err, client.ErrInvalid) {
			t.Errorf("a change of nothing: %v", err)
		}
	})
}

func TestPurgeSaysHowManyAndWhoIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, _ := newCluster(t, 1)
		q := c.Queue("jobs")
		for range 3 {
			if _, err := q.Put(t.Context(), client.New{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := q.Take(t.Context(), client.Want{}); err != nil {
			t.Fatal(err)
		}
		if n, missing, err := q.Purge(t.Context()); n != 2 || !slices.Equal(missing, []string{"node-9"}) || err != nil {
			t.Errorf("%d, %v, %v", n, missing, err)
		}
	})
}

func TestPeekGoesOnUntilItHasAllThatItWasAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, _ := newCluster(t, 1)
		q := c.Queue("jobs")
		for i := range 7 {
			if _, err := q.Put(t.Context(), client.New{ID: fmt.Sprint(i), Priority: uint32(i)}); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range []int{0, 5, 6, 7, 100} {
			l, err := q.Peek(t.Context(), n)
			if want := min(max(1, n), 7); err != nil || len(l.Items) != want || l.Items[want-1].ID != fmt.Sprint(want-1) || l.More != (want < 7) || len(l.Missing) != 1 {
				t.Errorf("Peek(%d) = %+v, %v", n, l, err)
			}
		}
	})
}

func TestPutWhoseAnswerIsLostIsPutOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, c, _ := newCluster(t, 2)
		lost := 0
		for _, n := range nodes {
			n.after = func(string) error {
				lost++
				if lost < 3 {
					return status.Error(codes.Unavailable, "transport is closing")
				}
				return nil
			}
		}
		p, err := c.Queue("jobs").Put(t.Context(), client.New{Payload: []byte("x")})
		if err != nil || !p.Existed || len(p.ID) != 32 || lost != 3 {
			t.Errorf("Put = %+v, %v after %d answers", p, err, lost)
		}
		if n := len(nodes[0].items); n != 1 {
			t.Errorf("%d items are in the queue", n)
		}
	})
}

func TestNackWhoseAnswerIsLostSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, c, _ := newCluster(t, 1)
		q := c.Queue("jobs")
		if _, err := q.Put(t.Context(), client.New{}); err != nil {
			t.Fatal(err)
		}
		taken, err := q.Take(t.Context(), client.Want{})
		if err != nil {
			t.Fatal(err)
		}
		lose := true
		nodes[0].after = func(string) error {
			if lose {
				lose = false
				return status.Error(codes.Unavailable, "transport is closing")
			}
			return nil
		}
		if state, err := q.Nack(t.Context(), taken.Leases[0].Receipt, time.Minute, "no"); err != nil || state != "" {
			t.Errorf("Nack = %q, %v", state, err)
		}
		if _, err := q.Nack(t.Context(), taken.Leases[0].Receipt, time.Minute, "no"); !errors.Is(err, client.ErrLeaseLost) {
			t.Errorf("second Nack: %v", err)
		}
	})
}

func TestAnotherNodeAnswersWhenOneIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, c, kill := newCluster(t, 3)
		q := c.Queue("jobs")
		asked := ""
		for _, n := range nodes {
			n.before = func(string) error {
				asked = n.name
				return nil
			}
		}
		if _, err := q.Put(t.Context(), client.New{}); err != nil {
			t.Fatal(err)
		}
		first := asked
		kill(int(first[5] - '1'))
		for range 3 {
			if _, err := q.Len(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if asked == first {
			t.Errorf("%s answers, and was killed", asked)
		}
	})
}

func TestNodeThatSaysNothingIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, c, _ := newCluster(t, 2, client.WithTry(50*time.Millisecond))
		stuck := make(chan struct{})
		defer close(stuck)
		asked := make(chan string, 10)
		for _, n := range nodes {
			n.before = func(string) error {
				asked <- n.name
				if len(asked) == 1 {
					<-stuck
				}
				return nil
			}
		}
		if _, err := c.Queue("jobs").Len(t.Context()); err != nil {
			t.Fatal(err)
		}
		if a, b := <-asked, <-asked; a == b {
			t.Errorf("%s was asked twice", a)
		}
	})
}

func TestNodesSayWhenToTryAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, c, _ := newCluster(t, 1)
		tries := 0
		nodes[0].before = func(string) error {
			tries++
			if tries == 1 {
				return refusal(codes.ResourceExhausted, client.ErrFull, 120*time.Millisecond)
			}
			return nil
		}
		began := time.Now()
		if _, err := c.Queue("jobs").Put(t.Context(), client.New{}); err != nil || tries != 2 {
			t.Fatalf("%v after %d tries", err, tries)
		}
		if took := time.Since(began); took < 120*time.Millisecond {
			t.Errorf("tried again after %v", took)
		}
	})
}

func TestErrorsThatNoTryMendsComeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, c, _ := newCluster(t, 2)
		for _, reason := range []client.Reason{
			client.ErrQueueUnknown, client.ErrItemUnknown, client.ErrItemFinished, client.ErrLeaseLost, client.ErrDraining,
			client.ErrTooManyQueues, client.ErrInvalid,
		} {
			tries := 0
			for _, n := range nodes {
				n.before = func(string) error {
					tries++
					return refusal(codes.FailedPrecondition, reason, 0)
				}
			}
			err := c.Queue("jobs").Ack(t.Context(), "r")
			var e *client.Error
			if !errors.Is(err, reason) || !errors.As(err, &e) || e.Op != "ack" || e.Queue != "jobs" || tries != 1 {
				t.Errorf("%s: %v after %d tries", reason, err, tries)
			}
			if errors.Is(err, client.ErrFull) || !strings.Contains(err.Error(), "ack jobs: as asked ("+string(reason)+")") {
				t.Errorf("%s: %v", reason, err)
			}
		}
	})
}

func TestPatienceAndContextEndTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, c, _ := newCluster(t, 2, client.WithPatience(60*time.Millisecond))
		for _, n := range nodes {
			n.before = func(string) error { return refusal(codes.Unavailable, client.ErrUnavailable, 0) }
		}
		_, err := c.Queue("jobs").Len(t.Context())
		if !errors.Is(err, client.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Len with no node: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		nodes[0].before = func(string) error {
			cancel()
			return refusal(codes.Unavailable, client.ErrUnavailable, time.Hour)
		}
		nodes[1].before = nodes[0].before
		if _, err := c.Queue("jobs").Len(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Len with a context that is cancelled: %v", err)
		}
	})
}

// putting puts items until it is told to stop, since nothing says when a watch
// has begun.
func putting(t *testing.T, q *client.Queue) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var putter sync.WaitGroup
	putter.Go(func() {
		for ctx.Err() == nil {
			_, _ = q.Put(ctx, client.New{})
			time.Sleep(5 * time.Millisecond)
		}
	})
	return func() {
		cancel()
		putter.Wait()
	}
}

func TestWatchGoesOnAtAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, c, kill := newCluster(t, 2, client.WithPatience(5*time.Second))
		q := c.Queue("jobs")
		asked := make(chan string, 100)
		for _, n := range nodes {
			n.before = func(op string) error {
				if op == "watch" {
					asked <- n.name
				}
				return nil
			}
		}
		defer putting(t, q)()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		stage := 0
		for e, err := range q.Watch(ctx) {
			switch {
			case stage == 2 && errors.Is(err, context.Canceled):
				stage = 3
			case err != nil:
				t.Fatalf("stage %d: %v", stage, err)
			case e.Kind != "inserted" || e.Item == nil || e.Item.State != client.Ready || e.Node != "node-1":
				t.Errorf("event = %+v", e)
			case stage == 0 && !e.Broken:
				stage = 1
				kill(int((<-asked)[5] - '1'))
			case stage == 1 && e.Broken:
				stage = 2
				cancel()
			}
		}
		if stage != 3 {
			t.Errorf("ended at stage %d", stage)
		}
	})
}

func TestWatchEndsWithTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, _ := newCluster(t, 1)
		q := c.Queue("jobs")
		defer putting(t, q)()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, err := range q.Watch(ctx) {
			if err != nil {
				t.Error(err)
			}
			break
		}
	})
}

func TestDialSaysWhatIsWrong(t *testing.T) {
	for want, f := range map[string]func() (*client.Client, error){
		"no address":            func() (*client.Client, error) { return client.Dial(nil) },
		"give host:port":        func() (*client.Client, error) { return client.Dial([]string{"10.0.0.1"}) },
		"no certificate in PEM": func() (*client.Client, error) { return client.Dial([]string{"a:1"}, client.WithCA([]byte("x"))) },
		"WithToken: empty":      func() (*client.Client, error) { return client.Dial([]string{"127.0.0.1:1"}, client.WithToken("")) },
		"give times above 0":    func() (*client.Client, error) { return client.Dial([]string{"a:1"}, client.WithTry(-1)) },
	} {
		if _, err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A token goes to no other machine in clear, whatever the address looks like.
func TestATokenIsNotSentInClear(t *testing.T) {
	secret := client.WithToken("anteroom_sesame")
	for _, address := range []string{"10.0.0.1:7002", "node-1:7002", "localhost.example.com:7002", "0.0.0.0:7002", "[fd00::1]:7002", "dns:///10.0.0.1:7002", "passthrough:///node-1", "dns:///localhost"} {
		_, err := client.Dial([]string{"127.0.0.1:7002", address}, secret)
		if err == nil || !strings.Contains(err.Error(), "a token is not sent there without TLS") || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v", address, err)
		}
		c, err := client.Dial([]string{address}, secret, client.WithTLS(&tls.Config{}))
		if err != nil {
			t.Errorf("%s with TLS: %v", address, err)
			continue
		}
		_ = c.Close()
	}
	for _, address := range []string{"127.0.0.1:7002", "127.8.8.8:7002", "[::1]:7002", "localhost:7002", "unix:///run/x", "dns:///127.0.0.1:7002"} {
		c, err := client.Dial([]string{address}, secret)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if text := fmt.Sprintf("%v %+v", c, c); strings.Contains(text, "sesame") {
			t.Errorf("printed, a client shows its token: %s", text)
		}
		_ = c.Close()
	}
}

func TestEveryCallBringsTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan []string, 1)
		l, s := bufconn.Listen(1<<16), grpc.NewServer(grpc.ChainUnaryInterceptor(func(ctx context.Context, _ any, _ *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
			got <- metadata.ValueFromIncomingContext(ctx, "authorization")
			return nil, status.Error(codes.PermissionDenied, "not you")
		}))
		anteroomv1.RegisterPriorityQueueServer(s, &anteroomv1.UnimplementedPriorityQueueServer{})
		go func() { _ = s.Serve(l) }()
		defer s.Stop()
		dialer := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) })
		c, err := client.Dial([]string{"127.0.0.1:7002"}, client.WithToken("anteroom_sesame"), client.WithGRPC(dialer))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		_, err = c.Queue("jobs").Put(t.Context(), client.New{})
		if err == nil || strings.Contains(err.Error(), "sesame") {
			t.Errorf("Put = %v", err)
		}
		if values := <-got; len(values) != 1 || values[0] != "Bearer anteroom_sesame" {
			t.Errorf("authorization: %q", values)
		}
	})
}
