package priorityqueue_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

// configure changes a queue at a node, of which all nodes hear.
func configure(t *testing.T, n *node, queue string, s *anteroomv1.QueueSettings) *anteroomv1.ConfigureResponse {
	t.Helper()
	r, err := n.client.Configure(t.Context(), &anteroomv1.ConfigureRequest{Queue: queue, Settings: s})
	if err != nil {
		t.Fatalf("configure %s: %v, %v", queue, r, err)
	}
	return r
}

func TestSettingsChangeOnAllNodes(t *testing.T) {
	nodes := cluster(t, 2, "crawl")
	before := configure(t, nodes[1], "crawl", nil)
	if s := before.GetSettings(); before.GetKind() != "memory" || before.GetChangedBy() != "" || s.GetMaxItems() != 100_000 || s.GetInterval().AsDuration() != 0 ||
		s.GetLease().AsDuration() != 30*time.Second || s.GetBackoffMax() != nil {
		t.Errorf("as configured: %v", before)
	}
	for _, id := range []string{"a@n1", "b@n2", "c@n1"} {
		put(t, nodes[0], "crawl", id, 5)
	}
	configure(t, nodes[0], "crawl", &anteroomv1.QueueSettings{Interval: durationpb.New(time.Hour), MaxItems: new(uint32(1)), BackoffBase: durationpb.New(time.Minute)})
	now := configure(t, nodes[1], "crawl", nil)
	for until := time.Now().Add(30 * time.Second); now.GetChangedBy() == "" && time.Now().Before(until); { // on a busy machine n1 does not wait for it
		time.Sleep(time.Millisecond)
		now = configure(t, nodes[1], "crawl", nil)
	}
	if s := now.GetSettings(); now.GetChangedBy() != "n1" || time.Since(now.GetChangedAt().AsTime()) > time.Hour || s.GetMaxItems() != 1 || s.GetInterval().AsDuration() != time.Hour ||
		s.GetPerInterval() != 1 || s.GetBackoffFactor() != 2 || s.GetBackoffMax().AsDuration() != 5*time.Minute || s.GetLease().AsDuration() != 30*time.Second {
		t.Errorf("at the other node: %v", now)
	}
	for _, n := range nodes {
		_, err := n.client.Insert(t.Context(), &anteroomv1.InsertRequest{Queue: "crawl", Id: "d@n1"})
		refused(t, err, codes.ResourceExhausted, "queue_full")
	}
	wait := durationpb.New(30 * time.Second)
	if l := take(t, nodes[0], &anteroomv1.DeleteMinRequest{Queue: "crawl", Wait: wait}); len(l) != 1 || l[0].GetItem().GetId() != "a@n1" {
		t.Fatalf("the first of the hour: %v", l)
	}
	// The next one would be an hour later. Whoever waits for it hears of a change.
	got := make(chan []*anteroomv1.Lease, 1)
	go func() {
		d, _ := nodes[1].client.DeleteMin(t.Context(), &anteroomv1.DeleteMinRequest{Queue: "crawl", Wait: wait})
		got <- d.GetLeases()
	}()
	for {
		st, err := nodes[1].client.Stats(t.Context(), &anteroomv1.StatsRequest{Queue: "crawl"})
		if err == nil && st.GetQueues()[0].GetWaiters() == 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	configure(t, nodes[0], "crawl", &anteroomv1.QueueSettings{Interval: durationpb.New(time.Millisecond)})
	if l := <-got; len(l) != 1 || l[0].GetItem().GetId() != "b@n2" {
		t.Fatalf("with a shorter interval: %v", l)
	}
	if l := take(t, nodes[0], &anteroomv1.DeleteMinRequest{Queue: "crawl", Wait: wait}); len(l) != 1 || l[0].GetItem().GetId() != "c@n1" {
		t.Fatalf("what was in when there was no room for it: %v", l)
	}
}

func TestSettingsThatCannotBeAreRefused(t *testing.T) {
	nodes := cluster(t, 1, "mail", "mail/failed")
	put(t, nodes[0], "passing", "a", 1)
	for _, c := range []struct {
		r    *anteroomv1.ConfigureRequest
		want string
	}{
		{&anteroomv1.ConfigureRequest{Queue: "no name"}, `queue: "no name" is no name`},
		{&anteroomv1.ConfigureRequest{Queue: "mail", Kind: "durable"}, `kind: "mail" is memory, and what keeps its items cannot change while it runs; let it run empty`},
		{&anteroomv1.ConfigureRequest{Queue: "mail", Settings: &anteroomv1.QueueSettings{BackoffFactor: new(uint32(3))}}, "backoff_base: none"},
		{&anteroomv1.ConfigureRequest{Queue: "mail", Settings: &anteroomv1.QueueSettings{Lease: durationpb.New(-1)}}, "lease: no time from 0"},
		{&anteroomv1.ConfigureRequest{Queue: "mail", Settings: &anteroomv1.QueueSettings{DeadLetterQueue: new("nowhere")}}, `there is no queue "nowhere"`},
		{&anteroomv1.ConfigureRequest{Queue: "mail", Settings: &anteroomv1.QueueSettings{DeadLetterQueue: new("passing")}}, `"passing" is forgotten when nothing has been in it`},
		{&anteroomv1.ConfigureRequest{Queue: "mail/failed", Settings: &anteroomv1.QueueSettings{DeadLetterQueue: new("mail")}}, `"mail" leads back to this queue`},
		{&anteroomv1.ConfigureRequest{Queue: "mail", Settings: &anteroomv1.QueueSettings{MaxItems: new(uint32(13))}}, "max_items: unlucky"},
	} {
		_, err := nodes[0].client.Configure(t.Context(), c.r)
		refused(t, err, codes.InvalidArgument, "request_invalid")
		if got := status.Convert(err).Message(); !strings.Contains(got, c.want) {
			t.Errorf("%v: %s, want %s", c.r, got, c.want)
		}
	}
	_, err := nodes[0].client.Configure(t.Context(), &anteroomv1.ConfigureRequest{Queue: "nowhere"})
	refused(t, err, codes.NotFound, "queue_unknown")
	if s := configure(t, nodes[0], "mail", nil); s.GetChangedBy() != "" {
		t.Errorf("after all that was refused: %v", s)
	}
	configure(t, nodes[0], "new", &anteroomv1.QueueSettings{MaxAttempts: new(uint32(1))})
	if s := configure(t, nodes[0], "new", nil); s.GetSettings().GetMaxAttempts() != 1 {
		t.Errorf("a queue that this has made: %v", s)
	}
	configure(t, nodes[0], "mail", &anteroomv1.QueueSettings{DeadLetterQueue: new("new")})
}
