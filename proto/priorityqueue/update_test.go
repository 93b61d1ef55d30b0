package priorityqueue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

func TestUpdateChangesWhatIsSetAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, 2)
		put(t, nodes[0], "q", "a@n2", 5)
		update := func(r *anteroomv1.UpdateRequest) *anteroomv1.Item {
			t.Helper()
			r.Queue, r.Id = "q", "a@n2"
			a, err := nodes[0].client.Update(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			return a.GetItem()
		}
		three, none := uint32(3), uint32(0)
		soon := timestamppb.New(time.Now().Add(time.Hour))
		for _, c := range []struct {
			r        *anteroomv1.UpdateRequest
			priority uint32
			payload  string
			state    anteroomv1.ItemState
		}{
			{&anteroomv1.UpdateRequest{Payload: []byte("new")}, 5, "new", anteroomv1.ItemState_ITEM_STATE_READY},
			{&anteroomv1.UpdateRequest{Priority: &three}, 3, "new", anteroomv1.ItemState_ITEM_STATE_READY},
			{&anteroomv1.UpdateRequest{NotBefore: soon}, 3, "new", anteroomv1.ItemState_ITEM_STATE_DELAYED},
			{&anteroomv1.UpdateRequest{Payload: []byte{}}, 3, "", anteroomv1.ItemState_ITEM_STATE_DELAYED},
			{&anteroomv1.UpdateRequest{Priority: &none, Payload: []byte("x")}, 0, "x", anteroomv1.ItemState_ITEM_STATE_DELAYED},
			{&anteroomv1.UpdateRequest{Priority: &three, NotBefore: timestamppb.New(time.Unix(1, 0))}, 3, "x", anteroomv1.ItemState_ITEM_STATE_READY},
			{&anteroomv1.UpdateRequest{}, 0, "x", anteroomv1.ItemState_ITEM_STATE_READY}, // as a caller of before says 0
		} {
			if i := update(c.r); i.GetPriority() != c.priority || string(i.GetPayload()) != c.payload || i.GetState() != c.state {
				t.Errorf("%v: %v, want priority %d, %q, %v", c.r, i, c.priority, c.payload, c.state)
			}
		}
		_, err := nodes[1].client.Update(t.Context(), &anteroomv1.UpdateRequest{Queue: "q", Id: "a@n2", Payload: make([]byte, 2<<10)})
		refused(t, err, codes.InvalidArgument, "request_invalid")
		l := take(t, nodes[0], &anteroomv1.DeleteMinRequest{Queue: "q", Wait: durationpb.New(5 * time.Second)})
		if len(l) != 1 || string(l[0].GetItem().GetPayload()) != "x" {
			t.Fatalf("taken: %v", l)
		}
		if i := update(&anteroomv1.UpdateRequest{Payload: []byte("late")}); i.GetState() != anteroomv1.ItemState_ITEM_STATE_LEASED {
			t.Errorf("what somebody has: %v", i)
		}
	})
}
