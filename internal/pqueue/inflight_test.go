package pqueue_test

import (
	"bytes"
	"testing"

	"github.com/anteroom/anteroom/internal/pqueue"
)

func TestNoMoreAreLeasedAtOnceThanMayBe(t *testing.T) {
	s, l := shard(t), limits()
	l.AttemptsMax, l.InFlightMax = 0, 2
	do(t, s, 5, pqueue.Command{Op: pqueue.OpConfigure, Limits: l}, pqueue.OK)
	a, b, c := insert(t, s, 10, "a", 0), insert(t, s, 10, "b", 1), insert(t, s, 10, "c", 2)
	first := lease(t, s, 20, a, 1)
	lease(t, s, 20, b, 2)
	third := pqueue.Command{Op: pqueue.OpLease, Number: c, For: 100, Taker: pqueue.Taker{Node: "n", Seq: 3}}
	full := func(now int64) {
		t.Helper()
		do(t, s, now, third, pqueue.AllLeased)
		wantReady(t, s, "c")
	}
	full(21)
	again := pqueue.Command{Op: pqueue.OpLease, Number: a, For: 100, Taker: pqueue.Taker{Node: "a", Seq: 1}}
	if r := do(t, s, 21, again, pqueue.OK); r.Lease != first {
		t.Errorf("a taker that repeats itself is given %+v, not lease %d", r, first)
	}
	do(t, s, 22, pqueue.Command{Op: pqueue.OpExtend, Number: a, Lease: first, For: 100}, pqueue.OK)
	full(23)

	snapshot := s.Encode()
	restored, err := pqueue.Restore(snapshot)
	if err != nil || !bytes.Equal(restored.Encode(), snapshot) {
		t.Fatalf("restored: %v", err)
	}
	s = restored
	full(24)

	do(t, s, 25, pqueue.Command{Op: pqueue.OpAck, Number: a, Lease: first}, pqueue.OK)
	do(t, s, 26, third, pqueue.OK)
	tick(s, 121) // b's lease has run out
	wantReady(t, s, "b")
	lease(t, s, 122, b, 4)
}

func TestABoundOfWhatIsLeasedIsTakenAwayAgain(t *testing.T) {
	s, l := shard(t), limits()
	plain := s.Encode()
	l.InFlightMax = -1
	do(t, s, 5, pqueue.Command{Op: pqueue.OpConfigure, Limits: l}, pqueue.Invalid)
	l.InFlightMax = 1
	do(t, s, 5, pqueue.Command{Op: pqueue.OpConfigure, Limits: l}, pqueue.OK)
	a, b := insert(t, s, 10, "a", 0), insert(t, s, 10, "b", 1)
	lease(t, s, 20, a, 1)
	l.InFlightMax = 0
	do(t, s, 25, pqueue.Command{Op: pqueue.OpConfigure, Limits: l}, pqueue.OK)
	lease(t, s, 26, b, 2)
	if got := s.Encode(); !bytes.Equal(got[:17], plain[:17]) {
		t.Errorf("a snapshot without bounds begins with %q, older versions read %q", got[:17], plain[:17])
	}
}
