package pqueue_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/pqueue"
)

// exclusiveKeys is a shard with a queue of that kind, in which items die of their third
// lease.
func exclusiveKeys(t *testing.T) *pqueue.Shard {
	t.Helper()
	s, l := shard(t), limits()
	l.AttemptsMax, l.Exclusive = 3, true
	do(t, s, 5, pqueue.Command{Op: pqueue.OpConfigure, Limits: l}, pqueue.OK)
	return s
}

func insertKey(t *testing.T, s *pqueue.Shard, now int64, id, key string) uint64 {
	t.Helper()
	return do(t, s, now, pqueue.Command{Op: pqueue.OpInsert, ID: id, Key: key, Expires: 5000}, pqueue.OK).Number
}

// offered are the ids of the items that may be leased.
func offered(s *pqueue.Shard) string {
	var all []string
	s.EachOffered("q", func(i pqueue.Item) { all = append(all, i.ID) })
	return strings.Join(all, " ")
}

func TestTheNextOfAKeyIsOfferedWhenALeaseEndsWhicheverWay(t *testing.T) {
	for how, end := range map[string]pqueue.Command{
		"acknowledged":  {Op: pqueue.OpAck},
		"given back":    {Op: pqueue.OpNack, For: 3000},
		"never arrived": {Op: pqueue.OpRelease},
		"cancelled":     {Op: pqueue.OpCancel},
		"lapsed":        {Op: pqueue.OpTick, Max: 9},
	} {
		s := exclusiveKeys(t)
		a := insertKey(t, s, 10, "a", "k")
		b := insertKey(t, s, 11, "b", "k")
		insertKey(t, s, 12, "c", "")
		if got := offered(s); got != "a c" {
			t.Fatalf("%s: offered at first: %s", how, got)
		}
		l := lease(t, s, 20, a, 1)
		if got := offered(s); got != "c" {
			t.Fatalf("%s: with a leased: %s", how, got)
		}
		do(t, s, 21, pqueue.Command{Op: pqueue.OpLease, Number: b, For: 100, Taker: pqueue.Taker{Node: "n", Seq: 2}}, pqueue.NotReady)
		if st := s.Apply(pqueue.Command{Op: pqueue.OpStats, Queue: "q"}).Stats[0]; st.Ready != 2 || st.Blocked != 1 {
			t.Fatalf("%s: %+v", how, st)
		}
		end.Number, end.Lease = a, l
		do(t, s, 200, end, pqueue.OK)
		want := "b c"
		if how == "never arrived" || how == "lapsed" {
			want = "a c" // it is back in its place, which is before b
		}
		if got := offered(s); got != want {
			t.Errorf("%s: then offered: %s, want %s", how, got, want)
		}
	}
}

func TestKeysAreInTheSnapshotAndOnlyThen(t *testing.T) {
	plain := shard(t)
	insert(t, plain, 10, "a", 0)
	if got := plain.Encode(); !bytes.HasPrefix(got, []byte("anteroom-shard-1\n")) {
		t.Errorf("without keys: %q, which older versions do not read", got[:17])
	}
	s := exclusiveKeys(t)
	a := insertKey(t, s, 10, "a", "k")
	insertKey(t, s, 11, "b", "k")
	lease(t, s, 20, a, 1)
	snapshot := s.Encode()
	again, err := pqueue.Restore(snapshot)
	if err != nil || !bytes.Equal(again.Encode(), snapshot) {
		t.Fatalf("restored: %v", err)
	}
	if got := offered(again); got != "" || !again.KeyLeased("q", "k") {
		t.Errorf("restored, with a of the key leased, offered: %q", got)
	}
	long := pqueue.Command{Op: pqueue.OpInsert, ID: "c", Key: strings.Repeat("k", pqueue.KeyMax+1)}
	do(t, s, 30, long, pqueue.Invalid)
}
