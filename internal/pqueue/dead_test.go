package pqueue_test

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/anteroom/anteroom/internal/pqueue"
)

// lettered is a shard whose queue q sends its dead letters into d, which has room
// for so many.
func lettered(t *testing.T, room, dead int) *pqueue.Shard {
	t.Helper()
	s, l := shard(t), limits()
	l.AttemptsMax, l.DeadMax, l.DeadTo = 1, dead, "d"
	do(t, s, 1, pqueue.Command{Op: pqueue.OpConfigure, Limits: l}, pqueue.OK)
	l = limits()
	l.ItemsMax = room
	if r := s.Apply(pqueue.Command{Op: pqueue.OpConfigure, Queue: "d", Limits: l, Now: 1}); r.Code != pqueue.OK {
		t.Fatal(r)
	}
	return s
}

// fail has an item that was put just now come to nothing.
func fail(t *testing.T, s *pqueue.Shard, now int64, id string) pqueue.Result {
	t.Helper()
	n := insert(t, s, now, id, 1)
	return do(t, s, now, pqueue.Command{Op: pqueue.OpNack, Number: n, Lease: lease(t, s, now, n, n), Text: "no"}, pqueue.OK)
}

// where says where an item stands in both queues.
func where(s *pqueue.Shard, id string) string {
	in := func(q string) pqueue.State {
		r := s.Apply(pqueue.Command{Op: pqueue.OpFind, Queue: q, ID: id})
		return r.State
	}
	return fmt.Sprint(in("q"), in("d"))
}

func at(t *testing.T, s *pqueue.Shard, id string, q, d pqueue.State) {
	t.Helper()
	if got, want := where(s, id), fmt.Sprint(q, d); got != want {
		t.Errorf("%s stands in %s, want %s", id, got, want)
	}
}

func TestADeadLetterGoesIntoTheQueueForThem(t *testing.T) {
	s := lettered(t, 10, 2)
	s.Follow(true)
	n := do(t, s, 9, pqueue.Command{Op: pqueue.OpInsert, ID: "a", Priority: 3, Payload: []byte("p"), Expires: 500}, pqueue.OK).Number
	held := lease(t, s, 10, n, 1)
	if r := do(t, s, 20, pqueue.Command{Op: pqueue.OpNack, Number: n, Lease: held, Text: "no"}, pqueue.OK); r.State != pqueue.Dead {
		t.Errorf("given back: %+v", r)
	}
	at(t, s, "a", pqueue.Finished, pqueue.Ready)
	do(t, s, 21, pqueue.Command{Op: pqueue.OpAck, Number: n, Lease: held}, pqueue.ItemFinished)
	got := s.Apply(pqueue.Command{Op: pqueue.OpPeek, Queue: "d", Max: 9}).Items
	if len(got) != 1 || got[0].Priority != 3 || string(got[0].Payload) != "p" || got[0].Reason != "no" || got[0].Inserted != 9 ||
		got[0].Stamp != 20 || got[0].Attempts != 0 || got[0].Expires != 0 || got[0].Origin != "q" {
		t.Errorf("there it is %+v", got)
	}
	came := 0
	for _, c := range s.Changes() {
		if c.Queue == "d" && c.Came {
			came++
		}
	}
	if came != 1 {
		t.Errorf("it became ready %d times", came)
	}
	n = insert(t, s, 30, "b", 1)
	lease(t, s, 30, n, 2)
	tick(s, 130)
	at(t, s, "b", pqueue.Finished, pqueue.Ready)
}

// TestADeadLetterIsOfTheQueueIntoWhichItWasPut: wherever it has gone since, and
// whatever has read it from a disk, or from another node.
func TestADeadLetterIsOfTheQueueIntoWhichItWasPut(t *testing.T) {
	s, l := lettered(t, 10, 2), limits()
	fail(t, s, 10, "a")
	plain := shard(t)
	insert(t, plain, 10, "a", 1)
	if b := plain.Encode(); !bytes.HasPrefix(b, []byte("anteroom-shard-1\n")) {
		t.Errorf("without policies and letters a snapshot begins %q", b[:17])
	}
	l.AttemptsMax, l.DeadTo = 1, "last"
	for _, c := range []pqueue.Command{
		{Op: pqueue.OpConfigure, Queue: "last", Limits: limits()},
		{Op: pqueue.OpConfigure, Queue: "d", Limits: l},
	} {
		if r := s.Apply(c); r.Code != pqueue.OK {
			t.Fatal(r)
		}
	}
	again, err := pqueue.Restore(s.Encode())
	if err != nil || !bytes.Equal(again.Encode(), s.Encode()) {
		t.Fatalf("restored it is another: %v", err)
	}
	for _, s := range []*pqueue.Shard{s, again} {
		if got := listed(t, s, "d"); len(got) != 1 || got[0].ID != "a" || got[0].Origin != "q" {
			t.Fatalf("a letter: %+v", got)
		}
		n := listed(t, s, "d")[0].Number
		r := s.Apply(pqueue.Command{Op: pqueue.OpLease, Queue: "d", Number: n, For: 100, Now: 30})
		s.Apply(pqueue.Command{Op: pqueue.OpNack, Queue: "d", Number: n, Lease: r.Lease, Now: 30})
		if got := listed(t, s, "last"); len(got) != 1 || got[0].ID != "a" || got[0].Origin != "q" {
			t.Errorf("a letter of a letter: %+v", got)
		}
		s.Apply(pqueue.Command{Op: pqueue.OpCancel, Queue: "last", ID: "a"})
		if st := s.Apply(pqueue.Command{Op: pqueue.OpStats}).Stats; st[0].Bytes+st[1].Bytes+st[2].Bytes != 0 || s.Bytes() != 0 {
			t.Errorf("without items they take %d bytes: %+v", s.Bytes(), st)
		}
		if b := s.Encode(); !bytes.HasPrefix(b, []byte("anteroom-shard-2\n")) {
			t.Errorf("without letters a snapshot begins %q", b[:17])
		}
	}
}

// listed are the ready items of a queue, as another node hears of them.
func listed(t *testing.T, s *pqueue.Shard, queue string) []pqueue.Item {
	t.Helper()
	r, err := pqueue.DecodeResult(s.Apply(pqueue.Command{Op: pqueue.OpPeek, Queue: queue, Max: 9}).Encode(nil))
	if err != nil {
		t.Fatal(err)
	}
	return r.Items
}

func TestADeadLetterWaitsForRoom(t *testing.T) {
	const minute = 60_000_000
	s := lettered(t, 1, 1)
	fail(t, s, 10, "a")
	fail(t, s, 20, "b")
	at(t, s, "b", pqueue.Dead, pqueue.None)
	fail(t, s, 30, "c") // as many wait as may: this one stays in line
	at(t, s, "c", pqueue.Delayed, pqueue.None)
	tick(s, minute+30)
	at(t, s, "b", pqueue.Dead, pqueue.None)
	at(t, s, "c", pqueue.Ready, pqueue.None)
	s.Apply(pqueue.Command{Op: pqueue.OpCancel, Queue: "d", ID: "a"})
	tick(s, 2*minute+29)
	at(t, s, "b", pqueue.Dead, pqueue.None)
	again, err := pqueue.Restore(s.Encode()) // the time goes with it
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*pqueue.Shard{s, again} {
		tick(s, 2*minute+30)
		at(t, s, "b", pqueue.Finished, pqueue.Ready)
	}
	if !bytes.Equal(s.Encode(), again.Encode()) {
		t.Error("a restored shard went another way")
	}
}

func TestADeadLetterStaysWhereItsQueueDoesNotTakeIt(t *testing.T) {
	for name, before := range map[string]func(s *pqueue.Shard){
		"it is not there": func(s *pqueue.Shard) { s.Apply(pqueue.Command{Op: pqueue.OpForget, Queue: "d"}) },
		"it is draining": func(s *pqueue.Shard) {
			s.Apply(pqueue.Command{Op: pqueue.OpMode, Queue: "d", Mode: pqueue.ModeSetting{Mode: pqueue.Draining, Stamp: 1}})
		},
		"it has one of that id": func(s *pqueue.Shard) { s.Apply(pqueue.Command{Op: pqueue.OpInsert, Queue: "d", ID: "a"}) },
	} {
		s := lettered(t, 10, 2)
		before(s)
		fail(t, s, 10, "a")
		if r := s.Apply(pqueue.Command{Op: pqueue.OpFind, Queue: "q", ID: "a"}); r.State != pqueue.Dead {
			t.Errorf("%s: %+v", name, r)
		}
		if r := do(t, s, 20, pqueue.Command{Op: pqueue.OpRequeue}, pqueue.OK); r.N != 1 {
			t.Errorf("%s: requeued: %+v", name, r)
		}
		if r := s.Apply(pqueue.Command{Op: pqueue.OpFind, Queue: "q", ID: "a"}); r.State != pqueue.Ready || r.Items[0].Until != 0 {
			t.Errorf("%s, requeued: %+v", name, r)
		}
	}
}

func TestDeadLettersOfBeforeGoOnToo(t *testing.T) {
	s, l := lettered(t, 10, 2), limits()
	l.AttemptsMax = 1
	do(t, s, 2, pqueue.Command{Op: pqueue.OpConfigure, Limits: l}, pqueue.OK)
	fail(t, s, 10, "a")
	at(t, s, "a", pqueue.Dead, pqueue.None)
	l.DeadTo, l.DeadMax = "d", 0
	do(t, s, 20, pqueue.Command{Op: pqueue.OpConfigure, Limits: l}, pqueue.OK)
	at(t, s, "a", pqueue.Dead, pqueue.None)
	tick(s, 20)
	at(t, s, "a", pqueue.Finished, pqueue.Ready)
}

// TestNoDeadLetterIsLostOrTwice: whatever happens, an item is in one place, until it
// is acknowledged.
func TestNoDeadLetterIsLostOrTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, now := pqueue.New(7), int64(1)
		l := pqueue.Limits{ItemsMax: 20, BytesMax: 1 << 20, AttemptsMax: 2, DeadMax: rapid.IntRange(0, 3).Draw(t, "dead"), DeadTo: "d", RememberMax: 3, Remember: 1000, LeaseMax: 1 << 40}
		s.Apply(pqueue.Command{Op: pqueue.OpConfigure, Queue: "q", Limits: l})
		l.DeadTo, l.ItemsMax, l.AttemptsMax = "", 3, 0
		s.Apply(pqueue.Command{Op: pqueue.OpConfigure, Queue: "d", Limits: l})
		there, put := map[string]bool{}, 0
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			now += rapid.SampledFrom([]int64{0, 1, 30, 61_000_000}).Draw(t, "pass")
			queue := rapid.SampledFrom([]string{"q", "q", "d"}).Draw(t, "queue")
			switch op := rapid.SampledFrom([]string{"put", "take", "take", "tick", "again"}).Draw(t, "op"); op {
			case "put":
				put++
				id := fmt.Sprint(put)
				if s.Apply(pqueue.Command{Op: pqueue.OpInsert, Queue: "q", ID: id, Now: now}).Code == pqueue.OK {
					there[id] = true
				}
			case "take":
				for _, i := range s.Apply(pqueue.Command{Op: pqueue.OpPeek, Queue: queue, Max: 1}).Items {
					r := s.Apply(pqueue.Command{Op: pqueue.OpLease, Queue: queue, Number: i.Number, For: 20, Now: now, Taker: pqueue.Taker{Node: "n", Seq: uint64(now)}})
					settle := rapid.SampledFrom([]pqueue.Op{pqueue.OpAck, pqueue.OpNack, pqueue.OpNack, pqueue.OpFind}).Draw(t, "settle")
					s.Apply(pqueue.Command{Op: settle, Queue: queue, Number: i.Number, Lease: r.Lease, Now: now})
					if settle == pqueue.OpAck {
						delete(there, i.ID)
					}
				}
			case "tick":
				s.Apply(pqueue.Command{Op: pqueue.OpTick, Max: 100, Now: now})
			default:
				again, err := pqueue.Restore(s.Encode())
				if err != nil || !bytes.Equal(again.Encode(), s.Encode()) {
					t.Fatal("restored it is not the same", err)
				}
				s = again
			}
			alive := 0
			for _, st := range s.Apply(pqueue.Command{Op: pqueue.OpStats}).Stats {
				alive += st.Ready + st.Delayed + st.Leased + st.Dead
			}
			if alive != len(there) {
				t.Fatalf("%d items are there, want %d", alive, len(there))
			}
			for id := range there {
				n := 0
				for _, q := range []string{"q", "d"} {
					if r := s.Apply(pqueue.Command{Op: pqueue.OpFind, Queue: q, ID: id}); r.Code == pqueue.OK {
						n++
					}
				}
				if n != 1 {
					t.Fatalf("%s is in %d places", id, n)
				}
			}
		}
	})
}
