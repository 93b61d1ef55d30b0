package pqueue_test

import (
	"bytes"
	"encoding/hex"
	"math"
	"testing"

	"github.com/anteroom/anteroom/internal/pqueue"
)

func TestBackoffGrowsUpToItsBound(t *testing.T) {
	const year = 366 * 24 * 3600 * 1_000_000
	for _, c := range []struct {
		b        pqueue.Backoff
		attempts uint32
		want     int64
	}{
		{pqueue.Backoff{}, 3, 0},
		{pqueue.Backoff{Base: 100, Factor: 2000, Max: 1000}, 0, 100},
		{pqueue.Backoff{Base: 100, Factor: 2000, Max: 1000}, 1, 100},
		{pqueue.Backoff{Base: 100, Factor: 2000, Max: 1000}, 2, 200},
		{pqueue.Backoff{Base: 100, Factor: 2000, Max: 1000}, 4, 800},
		{pqueue.Backoff{Base: 100, Factor: 2000, Max: 1000}, 5, 1000},
		{pqueue.Backoff{Base: 100, Factor: 1500, Max: 1000}, 3, 225},
		{pqueue.Backoff{Base: 100, Factor: 1000, Max: 1000}, math.MaxUint32, 100},
		{pqueue.Backoff{Base: 1, Factor: 1001, Max: 1000}, math.MaxUint32, 1},
		{pqueue.Backoff{Base: year - 1, Factor: 100_000, Max: year}, math.MaxUint32, year},
	} {
		if got := c.b.After(c.attempts); got != c.want {
			t.Errorf("%+v after %d: %d, want %d", c.b, c.attempts, got, c.want)
		}
	}
}

func TestBackoffsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, b := range []pqueue.Backoff{
		{Base: -1, Factor: 2000, Max: 5},
		{Base: 6, Factor: 2000, Max: 5},
		{Base: 1, Factor: 999, Max: 5},
		{Base: 1, Factor: 100_001, Max: 5},
		{Base: 1, Factor: 2000, Max: math.MaxInt64},
		{Factor: 2000},
	} {
		s, l := pqueue.New(7), limits()
		l.Backoff = b
		if r := s.Apply(pqueue.Command{Op: pqueue.OpConfigure, Queue: "q", Limits: l}); r.Code != pqueue.Invalid {
			t.Errorf("%+v: %+v", b, r)
		}
	}
}

func TestAnItemWaitsAfterALeaseThatCameToNothing(t *testing.T) {
	s, l := shard(t), limits()
	l.AttemptsMax, l.Backoff = 0, pqueue.Backoff{Base: 10, Factor: 3000, Max: 50}
	do(t, s, 5, pqueue.Command{Op: pqueue.OpConfigure, Limits: l}, pqueue.OK)
	n := insert(t, s, 1000, "a", 1)
	ready := func(now int64, want ...string) {
		t.Helper()
		do(t, s, now, pqueue.Command{Op: pqueue.OpTick, Max: 100}, pqueue.OK)
		wantReady(t, s, want...)
	}
	give := func(now, delay int64, seq uint64) {
		t.Helper()
		do(t, s, now, pqueue.Command{Op: pqueue.OpNack, Number: n, Lease: lease(t, s, now, n, seq), For: delay}, pqueue.OK)
	}
	give(1000, 0, 1)
	ready(1009)
	ready(1010, "a")
	lease(t, s, 1100, n, 2) // lapses at 1200, of which the shard hears late
	ready(1220)
	ready(1229)
	ready(1230, "a")
	lease(t, s, 1300, n, 3)
	ready(1500, "a") // it lapsed long ago, and waited since
	give(1500, 7, 4) // whoever says for how long is believed
	ready(1506)
	ready(1507, "a")
	give(1600, -1, 5)
	wantReady(t, s, "a")
	do(t, s, 1700, pqueue.Command{Op: pqueue.OpRelease, Number: n, Lease: lease(t, s, 1700, n, 6)}, pqueue.OK) // it reached nobody
	wantReady(t, s, "a")
	give(1700, 0, 7)
	ready(1749)
	do(t, s, 1749, pqueue.Command{Op: pqueue.OpUpdate, Number: n, Fields: pqueue.FieldNotBefore}, pqueue.OK)
	wantReady(t, s, "a")
}

// TestWithoutPoliciesTheBytesAreThoseOfBefore holds the encodings to what versions
// without policies wrote and can read.
func TestWithoutPoliciesTheBytesAreThoseOfBefore(t *testing.T) {
	c := pqueue.Command{Op: pqueue.OpConfigure, Queue: "q", Limits: limits(), Now: 5}
	const command = "010801710a00001480808001040406d00f808080808040"
	if got := hex.EncodeToString(c.Encode(nil)); got != command {
		t.Errorf("a command is %s", got)
	}
	const snapshot = "616e7465726f6f6d2d73686172642d310a070a06010101711480808001040406d00f80808080804000000002010000000100000001050161000a0a00a00632030101000178016e0101060001620a00565fdcd1"
	s := seedShard()
	plain := s.Encode()
	if got := hex.EncodeToString(plain); got != snapshot {
		t.Errorf("a snapshot is %s", got)
	}
	c.Limits.Backoff = pqueue.Backoff{Base: 1, Factor: 2000, Max: 9}
	s.Apply(c)
	with := s.Encode()
	again, err := pqueue.Restore(with)
	if err != nil || bytes.Equal(with, plain) || !bytes.Equal(again.Encode(), with) {
		t.Fatalf("a shard with policies: %v", err)
	}
	if l, _ := again.Limits("q"); l != c.Limits {
		t.Errorf("restored: %+v", l)
	}
	c.Limits.Backoff = pqueue.Backoff{}
	if again.Apply(c); !bytes.Equal(again.Encode(), plain) {
		t.Error("a shard whose policies are gone is not what it was")
	}
}
