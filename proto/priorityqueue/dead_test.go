package priorityqueue_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

func TestADeadLetterIsTakenFromTheQueueForThem(t *testing.T) {
	nodes := cluster(t, 2, "mail", "mail/failed")
	wait := durationpb.New(10 * time.Second)
	for _, id := range []string{"a@n2", "b@n2"} {
		put(t, nodes[0], "mail", id, 5)
		l := take(t, nodes[0], &anteroomv1.DeleteMinRequest{Queue: "mail", Wait: wait})
		if len(l) != 1 || l[0].GetItem().GetId() != id {
			t.Fatalf("taken: %v", l)
		}
		a, err := nodes[0].client.Nack(t.Context(), &anteroomv1.NackRequest{Queue: "mail", Receipt: l[0].GetReceipt(), Reason: "no such user"})
		if err != nil || a.GetState() != anteroomv1.ItemState_ITEM_STATE_DEAD {
			t.Fatalf("given back: %v, %v", a, err)
		}
		if id == "a@n2" {
			_, err = nodes[0].client.Ack(t.Context(), &anteroomv1.AckRequest{Queue: "mail", Receipt: l[0].GetReceipt()})
			refused(t, err, codes.FailedPrecondition, "item_finished")
		}
	}
	l := take(t, nodes[0], &anteroomv1.DeleteMinRequest{Queue: "mail/failed", Wait: wait})
	if len(l) != 1 || l[0].GetItem().GetId() != "a@n2" || l[0].GetItem().GetReason() != "no such user" || l[0].GetItem().GetAttempts() != 1 ||
		l[0].GetItem().GetOriginQueue() != "mail" {
		t.Errorf("taken from the dead: %v", l)
	}
	d, err := nodes[0].client.DeadLetters(t.Context(), &anteroomv1.DeadLettersRequest{Queue: "mail"})
	if err != nil || len(d.GetItems()) != 1 || d.GetItems()[0].GetId() != "b@n2" || d.GetItems()[0].GetLeaseUntil() != nil {
		t.Errorf("waiting for room: %v, %v", d, err)
	}
}
