package priorityqueue_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

func items(n int, f func(i int) *anteroomv1.NewItem) []*anteroomv1.NewItem {
	var all []*anteroomv1.NewItem
	for i := range n {
		all = append(all, f(i))
	}
	return all
}

func TestABatchHasAResultForEachInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, 3)
		c, ctx := nodes[0].client, t.Context()
		handle := put(t, nodes[1], "q", "old@n3", 0).GetHandle()
		in, err := c.InsertBatch(ctx, &anteroomv1.InsertBatchRequest{Queue: "q", Items: []*anteroomv1.NewItem{
			{Id: "a", Priority: 1},
			{Id: handle},
			{Id: "old@n3"},
			{Id: "large", Payload: make([]byte, 2<<10)},
			{Id: "timeless", Ttl: durationpb.New(-time.Second)},
			{Priority: 2},
			{Id: "a"},
		}})
		if err != nil || len(in.GetResults()) != 7 {
			t.Fatalf("%v, %v", in, err)
		}
		for i, reason := range []string{"", "request_invalid", "", "request_invalid", "request_invalid", "", ""} {
			r := in.GetResults()[i]
			if r.GetFailure().GetReason() != reason || (reason == "") != (r.GetInserted().GetHandle() != "") || r.GetInserted().GetExisted() != (i == 2 || i == 6) {
				t.Errorf("item %d: %v, want %q", i, r, reason)
			}
		}
		leases := take(t, nodes[2], &anteroomv1.DeleteMinRequest{Queue: "q", MaxItems: 3, Lease: durationpb.New(2 * time.Second), Wait: durationpb.New(5 * time.Second)})
		for len(leases) < 3 { // news of them was still on its way
			leases = append(leases, take(t, nodes[2], &anteroomv1.DeleteMinRequest{Queue: "q", Wait: durationpb.New(5 * time.Second)})...)
		}
		receipts := []string{leases[0].GetReceipt(), "nonsense", leases[1].GetReceipt()}
		ex, err := nodes[1].client.ExtendBatch(ctx, &anteroomv1.ExtendBatchRequest{Queue: "q", Receipts: receipts})
		if err != nil || len(ex.GetResults()) != 3 || ex.GetResults()[1].GetFailure().GetCode() != int32(codes.InvalidArgument) {
			t.Fatalf("%v, %v", ex, err)
		}
		for _, i := range []int{0, 2} {
			if until := ex.GetResults()[i].GetUntil(); !until.IsValid() || time.Until(until.AsTime()) < 20*time.Second {
				t.Errorf("extended for as long as the queue says: %v", ex.GetResults()[i])
			}
		}
		if _, err := c.Cancel(ctx, &anteroomv1.CancelRequest{Queue: "q", Id: leases[1].GetItem().GetId()}); err != nil {
			t.Fatal(err)
		}
		for range 2 { // it may be repeated
			acked, err := c.AckBatch(ctx, &anteroomv1.AckBatchRequest{Queue: "q", Receipts: append(receipts, leases[2].GetReceipt())})
			if err != nil || len(acked.GetResults()) != 4 {
				t.Fatalf("%v, %v", acked, err)
			}
			for i, reason := range []string{"", "request_invalid", "item_finished", ""} {
				if got := acked.GetResults()[i].GetFailure().GetReason(); got != reason {
					t.Errorf("ack %d: %q, want %q", i, got, reason)
				}
			}
		}
	})
}

// Extend without a time is Extend for the queue's own.
func TestExtendWithoutALeaseIsAsLongAsTheQueueSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, 2)
		put(t, nodes[0], "q", "a@n2", 0)
		l := take(t, nodes[0], &anteroomv1.DeleteMinRequest{Queue: "q", Lease: durationpb.New(2 * time.Second), Wait: durationpb.New(5 * time.Second)})[0]
		e, err := nodes[0].client.Extend(t.Context(), &anteroomv1.ExtendRequest{Queue: "q", Receipt: l.GetReceipt()})
		if err != nil || time.Until(e.GetUntil().AsTime()) < 20*time.Second {
			t.Errorf("%v, %v", e, err)
		}
	})
}

func TestABatchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, 1, "large")
		c, ctx := nodes[0].client, t.Context()
		for _, size := range [][2]int{{0, 0}, {1001, 0}, {4, 60 << 10}} {
			_, err := c.InsertBatch(ctx, &anteroomv1.InsertBatchRequest{Queue: "large", Items: items(size[0], func(int) *anteroomv1.NewItem {
				return &anteroomv1.NewItem{Payload: make([]byte, size[1])}
			})})
			refused(t, err, codes.InvalidArgument, "request_invalid")
		}
		_, err := c.AckBatch(ctx, &anteroomv1.AckBatchRequest{Queue: "large", Receipts: make([]string, 1001)})
		refused(t, err, codes.InvalidArgument, "request_invalid")
		_, err = c.ExtendBatch(ctx, &anteroomv1.ExtendBatchRequest{Queue: "no name", Receipts: make([]string, 1)})
		refused(t, err, codes.InvalidArgument, "request_invalid")
		a, err := c.InsertBatch(ctx, &anteroomv1.InsertBatchRequest{Queue: "q", Items: items(110, func(i int) *anteroomv1.NewItem { return &anteroomv1.NewItem{} })})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range a.GetResults() {
			full := r.GetFailure().GetReason() == "queue_full" && r.GetFailure().GetRetryDelay() != nil
			if full != (i >= 100) {
				t.Fatalf("of a queue of 100, item %d: %v", i, r)
			}
		}
	})
}

// Items of one batch that are kept at one node are in line in their order, though
// they come in the same microsecond, and from another node.
func TestABatchIsInLineInItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, 2, "large")
		for round := range 2 {
			in, err := nodes[round].client.InsertBatch(t.Context(), &anteroomv1.InsertBatchRequest{Queue: "large", Items: items(500, func(i int) *anteroomv1.NewItem {
				return &anteroomv1.NewItem{Id: fmt.Sprintf("%d-%03d@n1", round, i)}
			})})
			if err != nil || in.GetResults()[499].GetFailure() != nil {
				t.Fatalf("%v, %v", in.GetResults()[499], err)
			}
		}
		seen := 0
		for seen < 1000 {
			got := take(t, nodes[0], &anteroomv1.DeleteMinRequest{Queue: "large", MaxItems: 1000, Wait: durationpb.New(5 * time.Second)})
			if len(got) == 0 {
				t.Fatalf("%d came", seen)
			}
			for _, l := range got {
				if want := fmt.Sprintf("%d-%03d@n1", seen/500, seen%500); l.GetItem().GetId() != want {
					t.Fatalf("in place %d is %s, want %s", seen, l.GetItem().GetId(), want)
				}
				seen++
			}
		}
	})
}
