package server_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/anteroom/anteroom/internal/config"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

const queueFile = `
node: {gateway: "127.0.0.1:0", admin: "127.0.0.1:0", peer: "127.0.0.1:0", grpc: "127.0.0.1:0", gossip: "127.0.0.1:0", data: %s}
cluster: {lease: 4s}
queues:
  - {name: slow, interval: 300ms}
%s`

// queues is a client of m's priority queues.
func (m *member) queues() anteroomv1.PriorityQueueClient {
	m.r.t.Helper()
	conn, err := grpc.NewClient(m.Addresses().GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		m.r.t.Fatal(err)
	}
	m.r.t.Cleanup(func() { _ = conn.Close() })
	return anteroomv1.NewPriorityQueueClient(conn)
}

// queueRig runs three nodes and returns their clients, when all can be used.
func queueRig(t *testing.T, queues string) (*rig, []anteroomv1.PriorityQueueClient) {
	t.Helper()
	r := newRig(t, 1)
	var clients []anteroomv1.PriorityQueueClient
	for range 3 {
		expect := 0
		m := r.startWith(fmt.Sprintf(queueFile, t.TempDir(), queues), expect, 0)
		clients = append(clients, m.queues())
	}
	for i, c := range clients {
		r.until(fmt.Sprintf("the queues of node %d", i+1), 20*time.Second, func() bool {
			s, err := c.Stats(t.Context(), &anteroomv1.StatsRequest{})
			return err == nil && len(s.GetQueues()) > 0 && len(s.GetQueues()[0].GetNodes()) == 3
		})
	}
	return r, clients
}

func put(t *testing.T, c anteroomv1.PriorityQueueClient, queue, id string, priority uint32) {
	t.Helper()
	if _, err := c.Insert(t.Context(), &anteroomv1.InsertRequest{Queue: queue, Id: id, Priority: priority, Payload: []byte("of " + id)}); err != nil {
		t.Fatalf("insert %s: %v", id, err)
	}
}

func TestQueuesOfThreeNodes(t *testing.T) {
	r, nodes := queueRig(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 30 {
		put(t, nodes[i%3], "jobs", fmt.Sprintf("job-%02d", i), uint32(i/10))
	}
	p, err := nodes[1].Position(ctx, &anteroomv1.PositionRequest{Queue: "jobs", Id: "job-25"})
	if err != nil || p.GetPosition() != 26 || p.Bound == nil {
		t.Fatalf("position: %v %v", p, err)
	}
	var got []string
	for i := range 30 {
		d, err := nodes[i%3].DeleteMin(ctx, &anteroomv1.DeleteMinRequest{Queue: "jobs"})
		if err != nil || len(d.GetLeases()) != 1 {
			t.Fatalf("deleteMin %d: %v %v", i, d, err)
		}
		l := d.GetLeases()[0]
		got = append(got, l.GetItem().GetId())
		if string(l.GetItem().GetPayload()) != "of "+l.GetItem().GetId() {
			t.Fatalf("payload: %v", l)
		}
		if _, err := nodes[(i+1)%3].Ack(ctx, &anteroomv1.AckRequest{Queue: "jobs", Receipt: l.GetReceipt()}); err != nil {
			t.Fatalf("ack: %v", err)
		}
	}
	if !slices.IsSorted(got) {
		t.Errorf("order: %v", got)
	}
	r.phase("thirty items in order")

	began := time.Now()
	go func() {
		time.Sleep(300 * time.Millisecond)
		_, _ = nodes[2].Insert(ctx, &anteroomv1.InsertRequest{Queue: "jobs", Id: "late"})
	}()
	d, err := nodes[0].DeleteMin(ctx, &anteroomv1.DeleteMinRequest{Queue: "jobs", Wait: durationpb.New(20 * time.Second)})
	if err != nil || len(d.GetLeases()) != 1 || time.Since(began) > 3*time.Second {
		t.Fatalf("long poll after %v: %v %v", time.Since(began), d, err)
	}
	r.phase("a long poll, %v after the insert", time.Since(began)-300*time.Millisecond)

	reload(t, r, nodes)

	for i := range 30 {
		put(t, nodes[i%3], "jobs", fmt.Sprintf("more-%02d", i), 0)
	}
	r.nodes[2].end()
	var left []string
	r.until("the items of the other two", 20*time.Second, func() bool {
		d, err := nodes[0].DeleteMin(ctx, &anteroomv1.DeleteMinRequest{Queue: "jobs", MaxItems: 100})
		for _, l := range d.GetLeases() {
			left = append(left, l.GetItem().GetId())
		}
		return err == nil && len(left) >= 15
	})
	r.phase("a node left; %d of 30 items were elsewhere", len(left))
}

// reload has one node take in another file, as SIGHUP does, and looks at the others.
func reload(t *testing.T, r *rig, nodes []anteroomv1.PriorityQueueClient) {
	t.Helper()
	slow, jobs, kind, fresh := config.DefaultQueue(), config.DefaultQueue(), config.DefaultQueue(), config.DefaultQueue()
	slow.Name, slow.Interval, slow.PerInterval = "slow", config.Duration(time.Hour), 3
	jobs.Name, jobs.MaxAttempts = "jobs", 9 // which was made on use
	fresh.Name, fresh.Durable = "fresh", true
	added := config.DefaultQueue()
	added.Name = "added"
	if err := r.nodes[1].SetQueues(t.Context(), []config.Queue{slow, jobs, added}); err != nil {
		t.Fatalf("reload: %v", err)
	}
	for i, c := range nodes {
		for _, want := range []config.Queue{slow, jobs, added} {
			r.until(fmt.Sprintf("the settings of %s at node %d", want.Name, i+1), 20*time.Second, func() bool {
				is, err := c.Configure(t.Context(), &anteroomv1.ConfigureRequest{Queue: want.Name})
				s := is.GetSettings()
				return err == nil && s.GetInterval().AsDuration() == time.Duration(want.Interval) && int(s.GetMaxAttempts()) == want.MaxAttempts && is.GetChangedBy() == r.nodes[1].id
			})
		}
	}
	at := func() string {
		is, err := nodes[0].Configure(t.Context(), &anteroomv1.ConfigureRequest{Queue: "slow"})
		return fmt.Sprint(is.GetChangedAt(), err)
	}
	before := at()
	kind.Name, kind.Durable = "slow", true
	err := r.nodes[0].SetQueues(t.Context(), []config.Queue{slow, kind, fresh})
	want := `queue "slow": is memory, and the file says durable: what keeps a queue's items cannot change while it runs; ` +
		"let it run empty (anteroom queue drain), restart all nodes with the new file, and resume it\n" +
		`queue "fresh": is new and durable, which takes a restart of the nodes`
	if err == nil || err.Error() != want {
		t.Errorf("another kind: %v, want %s", err, want)
	}
	if now := at(); now != before {
		t.Errorf("a file that says the same has changed something: %s, and %s before", now, before)
	}
	r.phase("another file is reloaded")
}

func TestDurableQueueComesBack(t *testing.T) {
	r := newRig(t, 1)
	file := fmt.Sprintf(queueFile, t.TempDir(), "  - {name: kept, durable: true}\n")
	m := r.startWith(file, 0, 0)
	c := m.queues()
	usable := func(c anteroomv1.PriorityQueueClient) func() bool {
		return func() bool {
			_, err := c.Insert(t.Context(), &anteroomv1.InsertRequest{Queue: "kept", Id: "first"})
			return err == nil
		}
	}
	r.until("a durable queue", 10*time.Second, usable(c))
	for i := range 20 {
		put(t, c, "kept", fmt.Sprintf("item-%02d", i), 1)
	}
	d, err := c.DeleteMin(t.Context(), &anteroomv1.DeleteMinRequest{Queue: "kept"})
	if err != nil || d.GetLeases()[0].GetItem().GetId() != "first" {
		t.Fatalf("deleteMin: %v %v", d, err)
	}
	if _, err := c.Ack(t.Context(), &anteroomv1.AckRequest{Queue: "kept", Receipt: d.GetLeases()[0].GetReceipt()}); err != nil {
		t.Fatal(err)
	}
	set := &anteroomv1.ConfigureRequest{Queue: "kept", Settings: &anteroomv1.QueueSettings{Lease: durationpb.New(time.Hour), MaxItems: new(uint32(21))}}
	if is, err := c.Configure(t.Context(), set); err != nil || len(is.GetMissing()) > 0 {
		t.Fatalf("configure: %v %v", is, err)
	}
	m.end()
	r.nodes = nil
	m = r.startWith(file, 0, 0)
	c = m.queues()
	r.until("the durable queue again", 10*time.Second, usable(c)) // it is remembered, so this inserts nothing
	l, err := c.Len(t.Context(), &anteroomv1.LenRequest{Queue: "kept"})
	if err != nil || l.GetReady() != 20 || l.GetLeased() != 0 {
		t.Fatalf("len: %v %v", l, err)
	}
	is, err := c.Configure(t.Context(), &anteroomv1.ConfigureRequest{Queue: "kept"})
	if s := is.GetSettings(); err != nil || is.GetKind() != "durable" || s.GetLease().AsDuration() != time.Hour || s.GetMaxItems() != 21 {
		t.Errorf("what it was set to is not on its disk: %v %v", is, err)
	}
}

func TestReplicatedQueueSurvivesANode(t *testing.T) {
	r, nodes := queueRig(t, "  - {name: safe, replicas: 2}\n")
	r.until("a replicated queue", 30*time.Second, func() bool {
		_, err := nodes[1].Insert(t.Context(), &anteroomv1.InsertRequest{Queue: "safe", Id: "first"})
		return err == nil
	})
	for i := range 20 {
		put(t, nodes[i%3], "safe", fmt.Sprintf("item-%02d", i), 1)
	}
	r.phase("21 items on two disks each")
	r.nodes[0].end()
	got := map[string]bool{}
	r.until("all items from the others", 30*time.Second, func() bool {
		d, err := nodes[1].DeleteMin(t.Context(), &anteroomv1.DeleteMinRequest{Queue: "safe", MaxItems: 100, Wait: durationpb.New(time.Second)})
		if err != nil {
			return false
		}
		for _, l := range d.GetLeases() {
			if got[l.GetItem().GetId()] {
				t.Errorf("%s came twice", l.GetItem().GetId())
			}
			got[l.GetItem().GetId()] = true
		}
		return len(got) == 21
	})
}
