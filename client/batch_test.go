package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/anteroom/anteroom/client"
)

func news(n, size int) []client.New {
	var all []client.New
	for i := range n {
		all = append(all, client.New{ID: fmt.Sprintf("i%04d", i), Payload: make([]byte, size)})
	}
	return all
}

func TestPutAllGoesInAsManyCallsAsItTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			n, size int
			want    []int
		}{
			{0, 0, nil},
			{1, 0, []int{1}},
			{1001, 0, []int{1000, 1}},
			{5, 64 << 10, []int{2, 2, 1}}, // with their ids three are over 192 KiB
			{2, 192 << 10, []int{1, 1}},   // for the node to refuse
		} {
			nodes, cl, _ := newCluster(t, 1)
			results, err := cl.Queue("jobs").PutAll(t.Context(), news(c.n, c.size))
			if err != nil || len(results) != c.n || !slices.Equal(nodes[0].batches, c.want) {
				t.Errorf("%d of %d bytes: %v, %d results, batches of %v, want %v", c.n, c.size, err, len(results), nodes[0].batches, c.want)
			}
			for i, r := range results {
				if r.Err != nil || r.Handle != "h-"+r.ID || r.State != client.Ready || r.ID != fmt.Sprintf("i%04d", i) {
					t.Fatalf("result %d: %+v", i, r)
				}
			}
		}
	})
}

// What failed and may yet succeed is tried again, without the rest.
func TestPutAllTriesAgainWhatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, c, _ := newCluster(t, 1, client.WithPatience(300*time.Millisecond))
		calls := 0
		nodes[0].before = func(string) error {
			switch calls++; calls {
			case 2, 5:
				return refusal(codes.ResourceExhausted, client.ErrFull, time.Millisecond)
			case 3:
				return refusal(codes.FailedPrecondition, client.ErrDraining, 0)
			default:
				return nil
			}
		}
		results, err := c.Queue("jobs").PutAll(t.Context(), news(4, 1))
		if want := []int{4, 1, 1}; !slices.Equal(nodes[0].batches, want) {
			t.Errorf("batches of %v, want %v", nodes[0].batches, want)
		}
		for i, r := range results {
			if failed := i == 2; failed != errors.Is(r.Err, client.ErrDraining) || failed == (r.Err == nil) {
				t.Errorf("result %d: %+v", i, r)
			}
		}
		if !errors.Is(err, client.ErrDraining) {
			t.Errorf("and in all: %v", err)
		}
		nodes[0].before = func(string) error { return refusal(codes.ResourceExhausted, client.ErrFull, time.Millisecond) }
		results, err = c.Queue("jobs").PutAll(t.Context(), []client.New{{}, {}})
		if !errors.Is(err, client.ErrFull) || !errors.Is(results[0].Err, client.ErrFull) || !errors.Is(results[1].Err, client.ErrFull) || results[0].ID == "" {
			t.Errorf("a queue that stays full: %+v, %v", results, err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if results, err = c.Queue("jobs").PutAll(ended, []client.New{{}}); !errors.Is(err, context.Canceled) || !errors.Is(results[0].Err, context.Canceled) {
			t.Errorf("with a context that has ended: %+v, %v", results, err)
		}
	})
}

func TestABatchWhoseAnswerIsLostIsCarriedOutOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, c, _ := newCluster(t, 2)
		lost := map[string]bool{}
		for _, n := range nodes {
			n.after = func(op string) error {
				if len(op) < len("put batch") || lost[op] {
					return nil
				}
				lost[op] = true
				return refusal(codes.Unavailable, client.ErrUnavailable, time.Millisecond)
			}
		}
		q := c.Queue("jobs")
		results, err := q.PutAll(t.Context(), []client.New{{ID: "a"}, {ID: "b"}, {ID: "c"}})
		if err != nil || !results[0].Existed || len(nodes[0].items) != 3 {
			t.Fatalf("%+v, %v; there are %d", results, err, len(nodes[0].items))
		}
		taken, err := q.Take(t.Context(), client.Want{Items: 3, Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		var receipts []string
		for _, l := range taken.Leases {
			receipts = append(receipts, l.Receipt)
		}
		receipts = append(receipts, "of nobody")
		extended, err := q.ExtendAll(t.Context(), receipts, time.Hour)
		if !errors.Is(err, client.ErrLeaseLost) || extended[3].Err == nil || extended[0].Err != nil || time.Until(extended[0].Until) < 50*time.Minute {
			t.Errorf("extended %+v, %v", extended, err)
		}
		errs, err := q.AckAll(t.Context(), receipts)
		if !errors.Is(err, client.ErrLeaseLost) || !errors.Is(errs[3], client.ErrLeaseLost) || errs[0] != nil || errs[1] != nil || errs[2] != nil || len(nodes[0].items) != 0 {
			t.Errorf("acknowledged: %v, %v; %d are left", errs, err, len(nodes[0].items))
		}
	})
}
