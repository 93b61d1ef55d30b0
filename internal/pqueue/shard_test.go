package pqueue_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/pqueue"
)

func limits() pqueue.Limits {
	return pqueue.Limits{ItemsMax: 10, BytesMax: 1 << 20, AttemptsMax: 2, DeadMax: 2, RememberMax: 3, Remember: 1000, LeaseMax: 1 << 40}
}

// shard returns one with an empty queue "q".
func shard(t *testing.T) *pqueue.Shard {
	t.Helper()
	s := pqueue.New(7)
	if r := s.Apply(pqueue.Command{Op: pqueue.OpConfigure, Queue: "q", Limits: limits(), Now: 1}); r.Code != pqueue.OK {
		t.Fatalf("configure: %+v", r)
	}
	return s
}

// do carries out c on queue q at time now and wants that code.
func do(t *testing.T, s *pqueue.Shard, now int64, c pqueue.Command, want pqueue.Code) pqueue.Result {
	t.Helper()
	c.Queue, c.Now = "q", now
	r := s.Apply(c)
	if r.Code != want {
		t.Fatalf("at %d: %+v went %v, want %v", now, c, r.Code, want)
	}
	return r
}

func insert(t *testing.T, s *pqueue.Shard, now int64, id string, priority uint32) uint64 {
	t.Helper()
	return do(t, s, now, pqueue.Command{Op: pqueue.OpInsert, ID: id, Priority: priority, Payload: []byte(id)}, pqueue.OK).Number
}

func lease(t *testing.T, s *pqueue.Shard, now int64, n uint64, seq uint64) uint64 {
	t.Helper()
	return do(t, s, now, pqueue.Command{Op: pqueue.OpLease, Number: n, For: 100, Taker: pqueue.Taker{Node: "a", Seq: seq}}, pqueue.OK).Lease
}

func ids(items []pqueue.Item) []string {
	all := []string{}
	for _, i := range items {
		all = append(all, i.ID)
	}
	return all
}

func wantReady(t *testing.T, s *pqueue.Shard, want ...string) {
	t.Helper()
	got := ids(s.Apply(pqueue.Command{Op: pqueue.OpPeek, Queue: "q", Max: 100}).Items)
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		t.Fatalf("ready (-want +got):\n%s", diff)
	}
}

func tick(s *pqueue.Shard, now int64) { s.Apply(pqueue.Command{Op: pqueue.OpTick, Now: now, Max: 100}) }

func TestLowestPriorityFirstThenTheOldest(t *testing.T) {
	s := shard(t)
	insert(t, s, 10, "late and urgent", 0)
	insert(t, s, 5, "not so old, time does not go back", 1)
	insert(t, s, 11, "youngest", 1)
	insert(t, s, 12, "last", 1<<32-1)
	wantReady(t, s, "late and urgent", "not so old, time does not go back", "youngest", "last")
}

func TestRepeatedInsertHasTheSameHandle(t *testing.T) {
	s := shard(t)
	n := insert(t, s, 10, "a", 0)
	again := pqueue.Command{Op: pqueue.OpInsert, ID: "a", Payload: []byte("other")}
	if r := do(t, s, 11, again, pqueue.OK); !r.Exists || r.Number != n || r.State != pqueue.Ready {
		t.Fatalf("repeated: %+v", r)
	}
	l := lease(t, s, 12, n, 1)
	do(t, s, 13, pqueue.Command{Op: pqueue.OpAck, Number: n, Lease: l}, pqueue.OK)
	if r := do(t, s, 14, again, pqueue.OK); !r.Exists || r.Number != n || r.State != pqueue.Finished {
		t.Fatalf("repeated after the ack: %+v", r)
	}
	tick(s, 2000)
	if r := do(t, s, 2001, again, pqueue.OK); r.Exists || r.Number == n {
		t.Fatalf("repeated when forgotten: %+v", r)
	}
}

func TestAckOfALapsedLease(t *testing.T) {
	s := shard(t)
	n := insert(t, s, 10, "a", 0)
	first := lease(t, s, 20, n, 1)
	tick(s, 119)
	wantReady(t, s)
	tick(s, 120)
	wantReady(t, s, "a")
	do(t, s, 121, pqueue.Command{Op: pqueue.OpExtend, Number: n, Lease: first, For: 10}, pqueue.LeaseLost)
	second := lease(t, s, 122, n, 2)
	do(t, s, 123, pqueue.Command{Op: pqueue.OpAck, Number: n, Lease: first}, pqueue.LeaseLost)
	do(t, s, 124, pqueue.Command{Op: pqueue.OpAck, Number: n, Lease: second}, pqueue.OK)
	do(t, s, 125, pqueue.Command{Op: pqueue.OpAck, Number: n, Lease: second}, pqueue.OK)
	do(t, s, 125, pqueue.Command{Op: pqueue.OpAck, Number: n, Lease: first}, pqueue.ItemFinished)
}

func TestAckOfALapsedLeaseThatNobodyTookIsGood(t *testing.T) {
	s := shard(t)
	n := insert(t, s, 10, "a", 0)
	l := lease(t, s, 20, n, 1)
	tick(s, 500)
	do(t, s, 501, pqueue.Command{Op: pqueue.OpAck, Number: n, Lease: l}, pqueue.OK)
	wantReady(t, s)
}

func TestATakerThatRepeatsItselfHasOneLease(t *testing.T) {
	s := shard(t)
	n := insert(t, s, 10, "a", 0)
	l := lease(t, s, 20, n, 1)
	if again := lease(t, s, 21, n, 1); again != l {
		t.Fatalf("second lease %d, want %d", again, l)
	}
	do(t, s, 22, pqueue.Command{Op: pqueue.OpLease, Number: n, For: 1, Taker: pqueue.Taker{Node: "b", Seq: 1}}, pqueue.NotReady)
}

func TestTooManyAttemptsMakeADeadLetter(t *testing.T) {
	s := shard(t)
	n := insert(t, s, 10, "a", 0)
	l := lease(t, s, 20, n, 1)
	if r := do(t, s, 21, pqueue.Command{Op: pqueue.OpNack, Number: n, Lease: l, For: 50, Text: "no"}, pqueue.OK); r.State != pqueue.Delayed {
		t.Fatalf("first nack: %+v", r)
	}
	tick(s, 71)
	lease(t, s, 80, n, 2)
	tick(s, 180)
	wantReady(t, s)
	dead := s.Apply(pqueue.Command{Op: pqueue.OpDead, Queue: "q", Max: 10}).Items
	if len(dead) != 1 || dead[0].Reason != "no" || dead[0].State != pqueue.Dead || string(dead[0].Payload) != "a" {
		t.Fatalf("dead: %+v", dead)
	}
	do(t, s, 190, pqueue.Command{Op: pqueue.OpRequeue, ID: "a"}, pqueue.OK)
	wantReady(t, s, "a")
	do(t, s, 191, pqueue.Command{Op: pqueue.OpBury, ID: "a"}, pqueue.NotReady)
}

func TestTheLongestDeadGoesFirst(t *testing.T) {
	s := shard(t)
	for i, id := range []string{"a", "b", "c"} {
		n := insert(t, s, 10, id, 0)
		for range 2 {
			l := lease(t, s, 20, n, uint64(i))
			do(t, s, 21, pqueue.Command{Op: pqueue.OpNack, Number: n, Lease: l}, pqueue.OK)
		}
	}
	if diff := cmp.Diff([]string{"b", "c"}, ids(s.Apply(pqueue.Command{Op: pqueue.OpDead, Queue: "q", Max: 10}).Items)); diff != "" {
		t.Fatal(diff)
	}
	if r := do(t, s, 30, pqueue.Command{Op: pqueue.OpBury}, pqueue.OK); r.N != 2 {
		t.Fatalf("bury all: %+v", r)
	}
	if s.Bytes() != 0 {
		t.Fatalf("%d bytes are left", s.Bytes())
	}
}

func TestAReleasedLeaseDoesNotCount(t *testing.T) {
	s := shard(t)
	n := insert(t, s, 10, "a", 0)
	for seq := range uint64(5) {
		l := lease(t, s, 20, n, seq)
		do(t, s, 21, pqueue.Command{Op: pqueue.OpRelease, Number: n, Lease: l}, pqueue.OK)
	}
	wantReady(t, s, "a")
	if st := s.Apply(pqueue.Command{Op: pqueue.OpStats, Queue: "q"}).Stats[0]; st.Counters.Leased != 0 {
		t.Fatalf("stats: %+v", st)
	}
}

func TestDelayedAndExpiring(t *testing.T) {
	s := shard(t)
	do(t, s, 10, pqueue.Command{Op: pqueue.OpInsert, ID: "later", NotBefore: 100, Expires: 300}, pqueue.OK)
	do(t, s, 10, pqueue.Command{Op: pqueue.OpInsert, ID: "never", NotBefore: 300, Expires: 200}, pqueue.OK)
	insert(t, s, 50, "between", 0)
	wantReady(t, s, "between")
	tick(s, 100)
	wantReady(t, s, "between", "later")
	tick(s, 300)
	wantReady(t, s, "between")
	if st := s.Apply(pqueue.Command{Op: pqueue.OpStats, Queue: "q"}).Stats[0]; st.Counters.Expired != 2 {
		t.Fatalf("stats: %+v", st)
	}
}

func TestBounds(t *testing.T) {
	s := shard(t)
	for i := range 10 {
		insert(t, s, 10, string(rune('a'+i)), 0)
	}
	full := pqueue.Command{Op: pqueue.OpInsert, ID: "x"}
	do(t, s, 11, full, pqueue.Full)
	do(t, s, 12, pqueue.Command{Op: pqueue.OpCancel, ID: "c"}, pqueue.OK)
	do(t, s, 13, full, pqueue.OK)
	do(t, s, 14, pqueue.Command{Op: pqueue.OpCancel, ID: "a"}, pqueue.OK)
	do(t, s, 14, pqueue.Command{Op: pqueue.OpInsert, ID: "large", Payload: make([]byte, 1<<20)}, pqueue.Full)
	if r := s.Apply(pqueue.Command{Op: pqueue.OpInsert, Queue: "unheard of", ID: "x"}); r.Code != pqueue.QueueUnknown {
		t.Fatalf("unknown queue: %+v", r)
	}
}

func TestModes(t *testing.T) {
	s := shard(t)
	n := insert(t, s, 10, "a", 0)
	set := func(m pqueue.Mode, stamp uint64) {
		do(t, s, 11, pqueue.Command{Op: pqueue.OpMode, Mode: pqueue.ModeSetting{Mode: m, Stamp: stamp, By: "a"}}, pqueue.OK)
	}
	set(pqueue.Paused, 5)
	do(t, s, 12, pqueue.Command{Op: pqueue.OpLease, Number: n, For: 1}, pqueue.IsPaused)
	set(pqueue.Running, 4)
	do(t, s, 12, pqueue.Command{Op: pqueue.OpLease, Number: n, For: 1}, pqueue.IsPaused)
	set(pqueue.Draining, 6)
	do(t, s, 12, pqueue.Command{Op: pqueue.OpInsert, ID: "b"}, pqueue.IsDraining)
	lease(t, s, 13, n, 1)
}

func TestUpdateKeepsThePlaceInTime(t *testing.T) {
	s := shard(t)
	insert(t, s, 10, "a", 5)
	insert(t, s, 20, "b", 3)
	insert(t, s, 30, "c", 3)
	do(t, s, 40, pqueue.Command{Op: pqueue.OpUpdate, ID: "a", Priority: 3}, pqueue.OK)
	wantReady(t, s, "a", "b", "c")
	if r := do(t, s, 41, pqueue.Command{Op: pqueue.OpFind, ID: "c"}, pqueue.OK); r.N != 2 || r.Items[0].Payload != nil {
		t.Fatalf("find: %+v", r)
	}
}

func TestUpdateOfPayloadAndTime(t *testing.T) {
	s := shard(t)
	update := func(now int64, id string, f pqueue.Fields, payload string, notBefore int64, want pqueue.State) {
		t.Helper()
		c := pqueue.Command{Op: pqueue.OpUpdate, ID: id, Priority: 9, Fields: f, Payload: []byte(payload), NotBefore: notBefore}
		r := do(t, s, now, c, pqueue.OK)
		if i := r.Items[0]; r.State != want || i.Priority == 9 || f&pqueue.FieldPayload != 0 && string(i.Payload) != payload {
			t.Fatalf("%s is %+v", id, r)
		}
	}
	insert(t, s, 10, "a", 1)
	insert(t, s, 20, "b", 1)
	do(t, s, 30, pqueue.Command{Op: pqueue.OpInsert, ID: "later", Priority: 1, NotBefore: 500}, pqueue.OK)
	update(40, "a", pqueue.FieldNotBefore, "", 100, pqueue.Delayed)
	wantReady(t, s, "b")
	update(45, "later", pqueue.FieldNotBefore|pqueue.FieldPayload, "now", 0, pqueue.Ready)
	insert(t, s, 50, "c", 1)
	wantReady(t, s, "b", "later", "c")
	update(55, "b", pqueue.FieldNotBefore, "", 20, pqueue.Ready)
	tick(s, 100)
	wantReady(t, s, "b", "later", "c", "a")

	n := do(t, s, 101, pqueue.Command{Op: pqueue.OpFind, ID: "b"}, pqueue.OK).Number
	l := lease(t, s, 101, n, 1)
	update(102, "b", pqueue.FieldNotBefore|pqueue.FieldPayload, "new", 300, pqueue.Leased)
	do(t, s, 103, pqueue.Command{Op: pqueue.OpNack, Number: n, Lease: l, For: 10}, pqueue.OK)
	tick(s, 200)
	wantReady(t, s, "later", "c", "a")
	tick(s, 300)
	wantReady(t, s, "later", "c", "a", "b")
	l = lease(t, s, 301, n, 2)
	do(t, s, 302, pqueue.Command{Op: pqueue.OpNack, Number: n, Lease: l, For: 5000}, pqueue.OK) // dead
	do(t, s, 303, pqueue.Command{Op: pqueue.OpRequeue, Number: n}, pqueue.OK)
	wantReady(t, s, "later", "c", "a", "b")
	full := pqueue.Command{Op: pqueue.OpUpdate, ID: "c", Fields: pqueue.FieldPayload, Payload: make([]byte, 1<<20)}
	do(t, s, 310, full, pqueue.Full)
	if bytes := s.Bytes(); bytes != 4*pqueue.CostOfItem+int64(len("a"+"b"+"c"+"later")+len("a"+"new"+"c"+"now")) {
		t.Fatalf("%d bytes", bytes)
	}
}

// A command of before there was more to change than the priority is read as it was.
func TestAnUpdateInAnOldLogChangesThePriority(t *testing.T) {
	old := []byte{8, 1, 1, 'q', 20, 0, 0, 1, 'a', 7, 0, 0, 0} // Update, with hasInsert: q, at 10, id a, priority 7
	c, err := pqueue.DecodeCommand(old)
	if want := (pqueue.Command{Op: pqueue.OpUpdate, Queue: "q", ID: "a", Priority: 7, Now: 10}); err != nil || cmp.Diff(want, c) != "" {
		t.Fatalf("%+v, %v", c, err)
	}
	s := shard(t)
	insert(t, s, 5, "a", 3)
	if i := s.Apply(c).Items[0]; i.Priority != 7 || string(i.Payload) != "a" || i.State != pqueue.Ready {
		t.Fatalf("%+v", i)
	}
}

func TestPurgeLeavesWhatIsLeasedDeadOrYounger(t *testing.T) {
	s := shard(t)
	dead := insert(t, s, 10, "dead", 0)
	for seq := range uint64(2) {
		do(t, s, 11, pqueue.Command{Op: pqueue.OpNack, Number: dead, Lease: lease(t, s, 11, dead, seq+1)}, pqueue.OK)
	}
	held := lease(t, s, 12, insert(t, s, 12, "held", 0), 3)
	insert(t, s, 13, "ready", 1)
	do(t, s, 14, pqueue.Command{Op: pqueue.OpInsert, ID: "delayed", NotBefore: 500}, pqueue.OK)
	seen := do(t, s, 15, pqueue.Command{Op: pqueue.OpPurge}, pqueue.OK)
	if seen.N != 0 || !seen.Exists {
		t.Fatalf("a purge of nothing yet: %+v", seen)
	}
	young := insert(t, s, 16, "young", 0)
	if r := do(t, s, 17, pqueue.Command{Op: pqueue.OpPurge, Max: 5, Number: seen.Number}, pqueue.OK); r.N != 2 || r.Exists {
		t.Fatalf("purge: %+v", r)
	}
	wantReady(t, s, "young")
	st := s.Apply(pqueue.Command{Op: pqueue.OpStats, Queue: "q"}).Stats[0]
	if got := []int{st.Ready, st.Delayed, st.Leased, st.Dead}; !cmp.Equal(got, []int{1, 0, 1, 1}) || st.Counters.Cancelled != 2 {
		t.Fatalf("left %v, counted %+v", got, st.Counters)
	}
	do(t, s, 18, pqueue.Command{Op: pqueue.OpNack, Number: 12, Lease: held}, pqueue.OK)
	wantReady(t, s, "held", "young")
	if r := do(t, s, 19, pqueue.Command{Op: pqueue.OpInsert, ID: "ready"}, pqueue.OK); !r.Exists || r.State != pqueue.Finished {
		t.Fatalf("a put of an id that was purged just now: %+v", r)
	}
	if r := do(t, s, 20, pqueue.Command{Op: pqueue.OpPurge, Max: 1, Number: young}, pqueue.OK); r.N != 1 || !r.Exists {
		t.Fatalf("one of two: %+v", r)
	}
	tick(s, 600)
	wantReady(t, s, "held")
}

func TestForgetDropsOnlyWhatIsEmpty(t *testing.T) {
	s := shard(t)
	insert(t, s, 10, "a", 0)
	do(t, s, 11, pqueue.Command{Op: pqueue.OpForget}, pqueue.Full)
	do(t, s, 12, pqueue.Command{Op: pqueue.OpCancel, ID: "a"}, pqueue.OK)
	do(t, s, 13, pqueue.Command{Op: pqueue.OpForget}, pqueue.Full)
	tick(s, 5000)
	do(t, s, 5001, pqueue.Command{Op: pqueue.OpForget}, pqueue.OK)
	do(t, s, 5002, pqueue.Command{Op: pqueue.OpPeek}, pqueue.QueueUnknown)
}
