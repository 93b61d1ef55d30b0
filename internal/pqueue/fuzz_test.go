package pqueue_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/pqueue"
)

func seedShard() *pqueue.Shard {
	s := pqueue.New(7)
	for _, c := range []pqueue.Command{
		{Op: pqueue.OpConfigure, Queue: "q", Limits: limits(), Now: 5},
		{Op: pqueue.OpInsert, Queue: "q", ID: "a", Payload: []byte("x"), Expires: 400},
		{Op: pqueue.OpInsert, Queue: "q", ID: "b", NotBefore: 100},
		{Op: pqueue.OpLease, Queue: "q", Number: 5, For: 20, Taker: pqueue.Taker{Node: "n", Seq: 1}},
		{Op: pqueue.OpCancel, Queue: "q", ID: "b"},
	} {
		s.Apply(c)
	}
	return s
}

func inFlight() pqueue.Command {
	c := policies()
	c.Limits.InFlightMax = 2
	return c
}

func exclusive() pqueue.Command {
	c := inFlight()
	c.Limits.Exclusive = true
	return c
}

func policies() pqueue.Command {
	l := limits()
	l.Backoff, l.DeadTo = pqueue.Backoff{Base: 1, Factor: 2000, Max: 9}, "d"
	return pqueue.Command{Op: pqueue.OpConfigure, Queue: "q", Limits: l, Now: 5}
}

// letter is a shard with a dead letter of another queue.
func letter() *pqueue.Shard {
	s, l := pqueue.New(7), limits()
	l.AttemptsMax, l.DeadTo = 1, "d"
	for _, c := range []pqueue.Command{
		{Op: pqueue.OpConfigure, Queue: "q", Limits: l, Now: 5},
		{Op: pqueue.OpConfigure, Queue: "d", Limits: limits()},
		{Op: pqueue.OpInsert, Queue: "q", ID: "a"},
		{Op: pqueue.OpLease, Queue: "q", Number: 5, For: 20},
		{Op: pqueue.OpTick, Now: 30, Max: 9},
	} {
		s.Apply(c)
	}
	return s
}

// FuzzRestore: no bytes make Restore panic, and what it takes makes the same bytes again.
func FuzzRestore(f *testing.F) {
	f.Add(seedShard().Encode())
	f.Add(pqueue.New(0).Encode())
	with := seedShard()
	with.Apply(policies())
	f.Add(with.Encode())
	with.Apply(inFlight())
	f.Add(with.Encode())
	f.Add(letter().Encode())
	keys := seedShard()
	keys.Apply(exclusive())
	keys.Apply(pqueue.Command{Op: pqueue.OpInsert, Queue: "q", ID: "k", Key: "key"})
	f.Add(keys.Encode())
	with.Apply(set(5, "n", 3))
	f.Add(with.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		b = pqueue.Resum(b)
		s, err := pqueue.Restore(b)
		if err != nil {
			return
		}
		again, err := pqueue.Restore(s.Encode())
		if err != nil || !bytes.Equal(again.Encode(), s.Encode()) {
			t.Fatalf("a snapshot of what was restored: %v", err)
		}
		s.Apply(pqueue.Command{Op: pqueue.OpTick, Now: 1 << 40, Max: 1000})
	})
}

// FuzzCommand: no bytes make a decoder panic, and no command a shard.
func FuzzCommand(f *testing.F) {
	f.Add(pqueue.Command{Op: pqueue.OpInsert, Queue: "q", ID: "a", Payload: []byte("x")}.Encode(nil))
	f.Add(pqueue.Command{Op: pqueue.OpLease, Queue: "q", Number: 3, For: 9, Taker: pqueue.Taker{Node: "n", Seq: 2}}.Encode(nil))
	f.Add(pqueue.Command{Op: pqueue.OpConfigure, Queue: "q", Limits: limits()}.Encode(nil))
	f.Add(policies().Encode(nil))
	f.Add(set(5, "n", 3).Encode(nil))
	f.Add(inFlight().Encode(nil))
	f.Add(exclusive().Encode(nil))
	f.Add(pqueue.Command{Op: pqueue.OpInsert, Queue: "q", ID: "c", Key: "key"}.Encode(nil))
	f.Add(pqueue.Result{Items: []pqueue.Item{{ID: "a", Key: "k"}}, Stats: []pqueue.Stats{{Queue: "q", Blocked: 3}}}.Encode(nil))
	f.Add(pqueue.Command{Op: pqueue.OpUpdate, Queue: "q", ID: "b", Fields: 7, Payload: []byte("y"), NotBefore: 70}.Encode(nil))
	f.Add(pqueue.Command{Op: pqueue.OpPurge, Queue: "q", Number: 9, Max: 3}.Encode(nil))
	f.Add(pqueue.Result{Items: []pqueue.Item{{ID: "a"}}, Stats: []pqueue.Stats{{Queue: "q"}}}.Encode(nil))
	f.Add(pqueue.Result{Items: []pqueue.Item{{ID: "a", Origin: "q"}, {ID: "b"}}}.Encode(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := pqueue.DecodeResult(b); err == nil {
			if again, err := pqueue.DecodeResult(r.Encode(nil)); err != nil || cmp.Diff(r, again) != "" {
				t.Fatalf("%+v became %+v (%v)", r, again, err)
			}
		}
		c, err := pqueue.DecodeCommand(b)
		if err != nil {
			return
		}
		if again, err := pqueue.DecodeCommand(c.Encode(nil)); err != nil || cmp.Diff(c, again) != "" {
			t.Fatalf("%+v became %+v (%v)", c, again, err)
		}
		s := seedShard()
		s.Apply(c)
		s.Apply(pqueue.Command{Op: pqueue.OpTick, Now: 1 << 40, Max: 1000})
		if _, err := pqueue.Restore(s.Encode()); err != nil {
			t.Fatalf("after %+v: %v", c, err)
		}
	})
}
