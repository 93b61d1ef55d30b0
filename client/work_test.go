package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/anteroom/anteroom/client"
)

func put(t *testing.T, q *client.Queue, n int) {
	t.Helper()
	for i := range n {
		if _, err := q.Put(t.Context(), client.New{ID: fmt.Sprintf("item-%02d", i)}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWorkAcknowledgesWhatIsDoneAndGivesBackWhatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, c, _ := newCluster(t, 2)
		q := c.Queue("jobs")
		put(t, q, 10)
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		done := map[string]uint32{}
		var now, most atomic.Int32
		err := q.Work(ctx, client.Worker{Concurrency: 3, Again: func(uint32) time.Duration { return time.Millisecond }},
			func(_ context.Context, l *client.Lease) error {
				most.Store(max(most.Load(), now.Add(1)))
				defer now.Add(-1)
				if l.ID == "item-04" && l.Attempts == 1 {
					return errors.New("not this time")
				}
				mu.Lock()
				defer mu.Unlock()
				if done[l.ID] = l.Attempts; len(done) == 10 {
					cancel()
				}
				return nil
			})
		if err != nil || len(done) != 10 || done["item-04"] != 2 || done["item-05"] != 1 {
			t.Errorf("Work = %v; done %v", err, done)
		}
		if most.Load() > 3 {
			t.Errorf("%d handlers at a time", most.Load())
		}
		if len(nodes[0].items) != 0 || !slices.Equal(nodes[0].nacked, []string{"not this time"}) {
			t.Errorf("left are %v; given back for %q", nodes[0].items, nodes[0].nacked)
		}
	})
}

func TestWorkKeepsTheLeaseOfALongHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, c, _ := newCluster(t, 1)
		q := c.Queue("jobs")
		put(t, q, 1)
		ctx, cancel := context.WithCancel(t.Context())
		err := q.Work(ctx, client.Worker{Concurrency: 2, Lease: 30 * time.Second}, func(ctx context.Context, _ *client.Lease) error {
			defer cancel()
			select {
			case <-time.After(5 * time.Minute):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		if err != nil || nodes[0].leases != 1 || len(nodes[0].acked) != 1 {
			t.Errorf("Work = %v; %d leases, %d acknowledged", err, nodes[0].leases, len(nodes[0].acked))
		}
	})
}

func TestHandlerHearsThatItsLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, c, _ := newCluster(t, 1)
		q := c.Queue("jobs")
		put(t, q, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var cause error
		err := q.Work(ctx, client.Worker{Lease: time.Minute}, func(ctx context.Context, l *client.Lease) error {
			defer cancel()
			if _, err := q.Cancel(t.Context(), l.ID); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		})
		if err != nil || !errors.Is(cause, client.ErrLeaseLost) || len(nodes[0].nacked) != 0 {
			t.Errorf("Work = %v; cause %v; given back %q", err, cause, nodes[0].nacked)
		}
	})
}

func TestLeaseThatCannotBeExtendedIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, c, _ := newCluster(t, 1)
		q := c.Queue("jobs")
		put(t, q, 1)
		nodes[0].before = func(op string) error {
			if op == "extend" {
				return refusal(codes.Unavailable, client.ErrUnavailable, 0)
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := q.Work(ctx, client.Worker{Lease: time.Minute}, func(ctx context.Context, _ *client.Lease) error {
			defer cancel()
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), client.ErrLeaseLost) {
				t.Errorf("cause %v", context.Cause(ctx))
			}
			return nil
		})
		if err != nil || len(nodes[0].acked) != 0 {
			t.Errorf("Work = %v; acknowledged %q", err, nodes[0].acked)
		}
	})
}

func TestWorkStopsWhenItsGraceIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, c, _ := newCluster(t, 1)
		q := c.Queue("jobs")
		put(t, q, 2)
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		err := q.Work(ctx, client.Worker{Grace: 50 * time.Second}, func(ctx context.Context, _ *client.Lease) error {
			cancel()
			<-ctx.Done()
			return fmt.Errorf("stopped: %w", ctx.Err())
		})
		if err != nil || time.Since(began) < 50*time.Second || nodes[0].leases != 1 || !slices.Equal(nodes[0].nacked, []string{"stopped: context canceled"}) {
			t.Errorf("Work = %v after %v; %d leases, given back for %q", err, time.Since(began), nodes[0].leases, nodes[0].nacked)
		}
	})
}

func TestWorkOutlastsAClusterThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, c, _ := newCluster(t, 2, client.WithPatience(20*time.Second))
		q := c.Queue("jobs")
		put(t, q, 1)
		var away atomic.Int32
		for _, n := range nodes {
			n.before = func(string) error {
				if away.Add(1) < 4 {
					return refusal(codes.NotFound, client.ErrQueueUnknown, 0)
				}
				return nil
			}
		}
		away.Store(2)
		ctx, cancel := context.WithCancel(t.Context())
		if err := q.Work(ctx, client.Worker{}, func(context.Context, *client.Lease) error {
			cancel()
			return nil
		}); err != nil || len(nodes[0].acked) != 1 {
			t.Errorf("Work = %v; acknowledged %q", err, nodes[0].acked)
		}
	})
}

func TestWorkEndsWhenItsRequestIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, c, _ := newCluster(t, 1)
		nodes[0].before = func(string) error { return refusal(codes.InvalidArgument, client.ErrInvalid, 0) }
		nothing := func(context.Context, *client.Lease) error { return nil }
		if err := c.Queue("no/such/name").Work(t.Context(), client.Worker{}, nothing); !errors.Is(err, client.ErrInvalid) {
			t.Errorf("Work = %v", err)
		}
		if err := c.Queue("jobs").Work(t.Context(), client.Worker{Lease: -1}, nothing); !errors.Is(err, client.ErrInvalid) {
			t.Errorf("Work with a negative lease = %v", err)
		}
	})
}
