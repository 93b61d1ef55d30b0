package priorityqueue_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

func TestNoMoreThanMaxInFlightAreLeasedAtOnce(t *testing.T) {
	nodes := cluster(t, 3, "imports")
	for i := range 6 {
		put(t, nodes[0], "imports", fmt.Sprintf("i%d@n%d", i, i%3+1), 5)
	}
	wait := durationpb.New(30 * time.Second)
	var held []*anteroomv1.Lease
	for i := range 2 {
		held = append(held, take(t, nodes[i], &anteroomv1.DeleteMinRequest{Queue: "imports", Wait: wait})...)
	}
	if len(held) != 2 {
		t.Fatalf("two takes: %v", held)
	}
	if more := take(t, nodes[2], &anteroomv1.DeleteMinRequest{Queue: "imports", MaxItems: 4}); len(more) > 0 {
		t.Fatalf("with two leased another take gets %v", more)
	}
	came := make(chan []*anteroomv1.Lease, 1)
	go func() {
		a, err := nodes[2].client.DeleteMin(t.Context(), &anteroomv1.DeleteMinRequest{Queue: "imports", MaxItems: 4, Wait: wait})
		if err != nil {
			t.Error(err)
		}
		came <- a.GetLeases()
	}()
	if _, err := nodes[1].client.Ack(t.Context(), &anteroomv1.AckRequest{Queue: "imports", Receipt: held[0].GetReceipt()}); err != nil {
		t.Fatal(err)
	}
	if l := <-came; len(l) != 1 {
		t.Fatalf("one is acknowledged, and a take that waits gets %v", l)
	}
}
