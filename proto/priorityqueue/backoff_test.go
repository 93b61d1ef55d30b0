package priorityqueue_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

func TestANackWithoutADelayWaitsAsTheQueueSays(t *testing.T) {
	nodes := cluster(t, 2, "again")
	put(t, nodes[0], "again", "a@n2", 5)
	for n, c := range []struct {
		delay *durationpb.Duration
		state anteroomv1.ItemState
		least time.Duration
	}{
		{durationpb.New(0), anteroomv1.ItemState_ITEM_STATE_READY, 0},
		{durationpb.New(time.Second), anteroomv1.ItemState_ITEM_STATE_DELAYED, 0},
		{nil, anteroomv1.ItemState_ITEM_STATE_DELAYED, 4 * time.Minute}, // a minute, doubled with each lease
	} {
		began := time.Now()
		l := take(t, nodes[0], &anteroomv1.DeleteMinRequest{Queue: "again", Wait: durationpb.New(10 * time.Second)})
		if len(l) != 1 {
			t.Fatalf("take %d: %v", n, l)
		}
		a, err := nodes[0].client.Nack(t.Context(), &anteroomv1.NackRequest{Queue: "again", Receipt: l[0].GetReceipt(), Delay: c.delay})
		if err != nil || a.GetState() != c.state {
			t.Fatalf("given back with %v: %v, %v", c.delay, a, err)
		}
		if c.least == 0 {
			continue
		}
		u, err := nodes[0].client.Update(t.Context(), &anteroomv1.UpdateRequest{Queue: "again", Id: "a@n2", Payload: []byte("x")})
		if at := u.GetItem().GetNotBefore().AsTime(); err != nil || at.Before(began.Add(c.least-time.Second)) || at.After(time.Now().Add(c.least+time.Second)) {
			t.Errorf("given back at %v it waits until %v (%v)", began, at, err)
		}
	}
	u, err := nodes[1].client.Update(t.Context(), &anteroomv1.UpdateRequest{Queue: "again", Id: "a@n2", NotBefore: timestamppb.Now()})
	if err != nil || u.GetItem().GetState() != anteroomv1.ItemState_ITEM_STATE_READY {
		t.Errorf("made ready before its time: %v, %v", u, err)
	}
}
