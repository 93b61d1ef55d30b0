package priorityqueue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

func TestOneItemOfAKeyIsLeasedAtATime(t *testing.T) {
	nodes, ctx := cluster(t, 3, "accounts"), t.Context()
	insert := func(at int, id, key string) error {
		_, err := nodes[at].client.Insert(ctx, &anteroomv1.InsertRequest{Queue: "accounts", Id: id, Key: key})
		return err
	}
	if err := insert(0, "a0", "a"); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "exclusive_keys") {
		t.Errorf("a key in a queue without exclusive keys: %v", err)
	}
	set, err := nodes[0].client.Configure(ctx, &anteroomv1.ConfigureRequest{Queue: "accounts", Settings: &anteroomv1.QueueSettings{ExclusiveKeys: new(true)}})
	if err != nil || !set.GetSettings().GetExclusiveKeys() {
		t.Fatalf("set: %v, %v", set, err)
	}
	if err := insert(0, "x", strings.Repeat("k", 257)); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a key of 257 bytes: %v", err)
	}
	for i := range 3 {
		if err := insert(0, fmt.Sprint("a", i), "a"); err != nil {
			t.Fatal(err)
		}
	}
	batch, err := nodes[1].client.InsertBatch(ctx, &anteroomv1.InsertBatchRequest{Queue: "accounts", Items: []*anteroomv1.NewItem{{Id: "b0", Key: "b"}, {Id: "b1", Key: "b"}, {Id: "plain"}}})
	if err != nil || batch.GetResults()[2].GetInserted() == nil {
		t.Fatalf("batch: %v, %v", batch, err)
	}
	wait := durationpb.New(30 * time.Second)
	held := map[string]*anteroomv1.Lease{}
	for len(held) < 3 {
		for _, l := range take(t, nodes[len(held)%3], &anteroomv1.DeleteMinRequest{Queue: "accounts", MaxItems: 6, Wait: wait}) {
			if held[l.GetItem().GetKey()] != nil {
				t.Fatalf("two of %q at once: %v", l.GetItem().GetKey(), l)
			}
			held[l.GetItem().GetKey()] = l
		}
	}
	stats, err := nodes[2].client.Stats(ctx, &anteroomv1.StatsRequest{Queue: "accounts"})
	if err != nil || stats.GetQueues()[0].GetBlocked() != 3 {
		t.Errorf("stats with three leased: %v, %v", stats, err)
	}
	if _, err := nodes[1].client.Ack(ctx, &anteroomv1.AckRequest{Queue: "accounts", Receipt: held["a"].GetReceipt()}); err != nil {
		t.Fatal(err)
	}
	if next := take(t, nodes[2], &anteroomv1.DeleteMinRequest{Queue: "accounts", MaxItems: 6, Wait: wait}); len(next) != 1 || next[0].GetItem().GetId() != "a1" {
		t.Errorf("the first of a is acknowledged, and a take gets %v", next)
	}
}

func TestKeysTakeTurns(t *testing.T) {
	nodes, ctx := cluster(t, 3, "letters"), t.Context()
	set, err := nodes[2].client.Configure(ctx, &anteroomv1.ConfigureRequest{Queue: "letters", Settings: &anteroomv1.QueueSettings{FairKeys: new(true)}})
	if err != nil || !set.GetSettings().GetFairKeys() {
		t.Fatalf("set: %v, %v", set, err)
	}
	var items []*anteroomv1.NewItem
	for i := range 20 {
		items = append(items, &anteroomv1.NewItem{Id: fmt.Sprintf("noisy-%02d", i), Key: "noisy"})
	}
	items = append(items, &anteroomv1.NewItem{Id: "quiet", Key: "quiet"})
	if _, err := nodes[0].client.InsertBatch(ctx, &anteroomv1.InsertBatchRequest{Queue: "letters", Items: items}); err != nil {
		t.Fatal(err)
	}
	first := ""
	for i := range 21 {
		got := take(t, nodes[i%3], &anteroomv1.DeleteMinRequest{Queue: "letters", Wait: durationpb.New(30 * time.Second)})
		if len(got) != 1 {
			t.Fatalf("take %d: %v", i, got)
		}
		if first += got[0].GetItem().GetId() + " "; i == 1 && first != "noisy-00 quiet " && first != "quiet noisy-00 " {
			t.Errorf("the first two, of two keys: %s", first)
		}
	}
	if !strings.HasSuffix(first, "noisy-17 noisy-18 noisy-19 ") {
		t.Errorf("all of them, in the order of their keys: %s", first)
	}
}
