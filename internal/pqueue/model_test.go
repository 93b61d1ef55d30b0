package pqueue_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// machine drives a shard and its twin with the same commands.
type machine struct {
	s   *pqueue.Shard
	m   twin
	seq uint64
	// mirror is what somebody who only hears of changes takes for ready.
	mirror map[qpid.Weight]bool
}

func (h *machine) apply(t *rapid.T, c pqueue.Command) pqueue.Result {
	c.Queue, c.Now = "q", h.m.now
	decoded, err := pqueue.DecodeCommand(c.Encode(nil))
	if err != nil || gocmp.Diff(c, decoded) != "" {
		t.Fatalf("%+v became %+v (%v)", c, decoded, err)
	}
	r := h.s.Apply(decoded)
	if again, err := pqueue.DecodeResult(r.Encode(nil)); err != nil || gocmp.Diff(r, again) != "" {
		t.Fatalf("%+v became %+v (%v)", r, again, err)
	}
	return r
}

func (h *machine) advance(t *rapid.T) {
	h.m.now += rapid.Int64Range(0, 40).Draw(t, "pass")
}

func (h *machine) insert(t *rapid.T) {
	h.advance(t)
	c := pqueue.Command{
		Op: pqueue.OpInsert, ID: fmt.Sprint("i", rapid.IntRange(0, 15).Draw(t, "id")), Priority: rapid.Uint32Range(0, 2).Draw(t, "priority"),
		Payload: []byte("p"), Key: rapid.SampledFrom([]string{"", "a", "a", "b"}).Draw(t, "key"),
	}
	if rapid.Bool().Draw(t, "delayed") {
		c.NotBefore = h.m.now + rapid.Int64Range(-5, 60).Draw(t, "not before")
	}
	if rapid.Bool().Draw(t, "expiring") {
		c.Expires = h.m.now + rapid.Int64Range(1, 90).Draw(t, "expires")
	}
	was := h.m.byID(c.ID)
	r := h.apply(t, c)
	switch {
	case was != nil:
		if !r.Exists || r.Number != was.Number || r.State != was.State {
			t.Fatalf("repeated insert of %+v: %+v", was, r)
		}
	case h.m.mode == pqueue.Draining:
		want(t, r, pqueue.IsDraining)
	case len(h.m.in(pqueue.Ready, pqueue.Delayed, pqueue.Leased)) >= h.m.l.ItemsMax:
		want(t, r, pqueue.Full)
	default:
		want(t, r, pqueue.OK)
		i := &twinItem{Item: pqueue.Item{Number: r.Number, ID: c.ID, Priority: c.Priority, Stamp: h.m.now, State: pqueue.Ready, Expires: c.Expires, Payload: c.Payload, Key: c.Key}}
		if c.NotBefore > h.m.now {
			i.State, i.NotBefore, i.Stamp = pqueue.Delayed, c.NotBefore, c.NotBefore
		}
		h.m.items = append(h.m.items, i)
	}
}

func want(t *rapid.T, r pqueue.Result, c pqueue.Code) {
	if r.Code != c {
		t.Fatalf("went %v, want %v: %+v", r.Code, c, r)
	}
}

func (h *machine) lease(t *rapid.T) {
	r := h.apply(t, pqueue.Command{Op: pqueue.OpPeek, Max: 2})
	if len(r.Items) == 0 {
		return
	}
	h.seq++
	i := h.m.byID(rapid.SampledFrom(r.Items[:min(2, len(r.Items))]).Draw(t, "which").ID)
	c := pqueue.Command{Op: pqueue.OpLease, Number: i.Number, For: rapid.Int64Range(1, 80).Draw(t, "for"), Taker: pqueue.Taker{Node: "n", Seq: h.seq}}
	r = h.apply(t, c)
	if h.m.held(i) {
		want(t, r, pqueue.NotReady)
		return
	}
	if h.m.mode == pqueue.Paused {
		want(t, r, pqueue.IsPaused)
		return
	}
	if most := h.m.l.InFlightMax; most > 0 && len(h.m.in(pqueue.Leased)) >= most {
		want(t, r, pqueue.AllLeased)
		return
	}
	want(t, r, pqueue.OK)
	i.State, i.Lease, i.Until = pqueue.Leased, r.Lease, h.m.now+c.For
	i.Attempts++
}

// someone returns an item and a number of a lease, of its own most of the time.
func (h *machine) someone(t *rapid.T) (*twinItem, uint64) {
	if len(h.m.items) == 0 {
		t.Skip("nobody yet")
	}
	i := rapid.SampledFrom(h.m.items).Draw(t, "item")
	if rapid.IntRange(0, 5).Draw(t, "stale") == 0 && i.Lease > 0 {
		return i, i.Lease - 1
	}
	return i, i.Lease
}

func (h *machine) settle(t *rapid.T) {
	h.advance(t)
	i, lease := h.someone(t)
	op := rapid.SampledFrom([]pqueue.Op{pqueue.OpAck, pqueue.OpNack, pqueue.OpRelease, pqueue.OpExtend}).Draw(t, "op")
	c := pqueue.Command{Op: op, Number: i.Number, Lease: lease, For: rapid.Int64Range(1, 50).Draw(t, "for")}
	if op == pqueue.OpNack {
		c.For = rapid.SampledFrom([]int64{-1, 0, 0, c.For}).Draw(t, "delay")
	}
	r := h.apply(t, c)
	switch {
	case i.State == pqueue.None:
		want(t, r, pqueue.ItemUnknown)
	case i.State == pqueue.Finished && op == pqueue.OpAck && i.acked && lease == i.Lease:
		want(t, r, pqueue.OK)
	case i.State == pqueue.Finished:
		want(t, r, pqueue.ItemFinished)
	case lease != i.Lease || lease == 0 || i.State != pqueue.Leased && op != pqueue.OpAck:
		want(t, r, pqueue.LeaseLost)
	case op == pqueue.OpAck:
		want(t, r, pqueue.OK)
		i.acked = true
		h.m.finish(i)
	case op == pqueue.OpNack:
		want(t, r, pqueue.OK)
		wait := c.For
		if wait == 0 {
			wait = h.m.wait(i)
		}
		h.m.putBack(i, h.m.now+wait)
	case op == pqueue.OpRelease:
		want(t, r, pqueue.OK)
		h.m.stand(i)
		i.Until = 0
		i.Attempts--
	default:
		want(t, r, pqueue.OK)
		i.Until = h.m.now + c.For
	}
}

func (h *machine) change(t *rapid.T) {
	i, _ := h.someone(t)
	cancel := rapid.Bool().Draw(t, "cancel")
	c := pqueue.Command{
		Op: pqueue.OpUpdate, ID: i.ID, Priority: rapid.Uint32Range(0, 2).Draw(t, "priority"),
		Fields: pqueue.Fields(rapid.IntRange(0, 7).Draw(t, "fields")), Payload: []byte(rapid.SampledFrom([]string{"x", "yyyyyyyy"}).Draw(t, "payload")),
		NotBefore: h.m.now + rapid.Int64Range(-20, 60).Draw(t, "not before"),
	}
	if cancel {
		c = pqueue.Command{Op: pqueue.OpCancel, ID: i.ID}
	}
	i = h.m.byID(i.ID)
	r := h.apply(t, c)
	switch {
	case i == nil:
		want(t, r, pqueue.ItemUnknown)
	case i.State == pqueue.Finished:
		want(t, r, pqueue.ItemFinished)
	case cancel:
		want(t, r, pqueue.OK)
		h.m.finish(i)
	default:
		want(t, r, pqueue.OK)
		h.m.update(i, c)
		if got := r.Items[0]; got.State != i.State || string(got.Payload) != string(i.Payload) || got.Priority != i.Priority || got.NotBefore != i.NotBefore {
			t.Fatalf("updated: %+v, want %+v", got, i)
		}
	}
}

func (h *machine) dead(t *rapid.T) {
	i, _ := h.someone(t)
	requeue := rapid.Bool().Draw(t, "requeue")
	c := pqueue.Command{Op: pqueue.OpBury, Number: i.Number}
	if requeue {
		c.Op = pqueue.OpRequeue
	}
	r := h.apply(t, c)
	switch {
	case i.State == pqueue.None:
		want(t, r, pqueue.ItemUnknown)
	case i.State == pqueue.Finished:
		want(t, r, pqueue.ItemFinished)
	case i.State != pqueue.Dead:
		want(t, r, pqueue.NotReady)
	case requeue:
		h.m.stand(i)
		i.Attempts = 0
	default:
		h.m.finish(i)
	}
}

// purge drops the last ones first, and none that is younger than the bound.
func (h *machine) purge(t *rapid.T) {
	c := pqueue.Command{Op: pqueue.OpPurge, Max: rapid.IntRange(0, 6).Draw(t, "most")}
	if len(h.m.items) > 0 && rapid.Bool().Draw(t, "bounded") {
		c.Number = rapid.SampledFrom(h.m.items).Draw(t, "up to").Number
	}
	r, n := h.apply(t, c), 0
	want(t, r, pqueue.OK)
	for _, s := range []pqueue.State{pqueue.Ready, pqueue.Delayed} {
		for _, i := range slices.Backward(h.m.line(s)) {
			if n < c.Max && (c.Number == 0 || i.Number <= c.Number) {
				h.m.finish(i)
				n++
			}
		}
	}
	left := len(h.m.in(pqueue.Ready, pqueue.Delayed))
	if r.N != uint64(n) || r.Exists != (n == c.Max && left > 0) || c.Number != 0 && r.Number != c.Number {
		t.Fatalf("%+v: %+v, want %d, and %d are left", c, r, n, left)
	}
}

func (h *machine) setMode(t *rapid.T) {
	h.seq++
	h.m.mode = rapid.SampledFrom([]pqueue.Mode{pqueue.Running, pqueue.Running, pqueue.Paused, pqueue.Draining}).Draw(t, "mode")
	h.apply(t, pqueue.Command{Op: pqueue.OpMode, Mode: pqueue.ModeSetting{Mode: h.m.mode, Stamp: h.seq}})
}

// heed has keys be exclusive, or no more.
func (h *machine) heed(t *rapid.T) {
	h.m.l.Exclusive = !h.m.l.Exclusive
	want(t, h.apply(t, pqueue.Command{Op: pqueue.OpConfigure, Limits: h.m.l}), pqueue.OK)
	h.m.trim()
}

func (h *machine) tick(t *rapid.T) {
	h.advance(t)
	for h.apply(t, pqueue.Command{Op: pqueue.OpTick, Max: 3}).N == 3 {
	}
	h.m.tick()
}

// again goes on with a shard restored from a snapshot.
func (h *machine) again(t *rapid.T) {
	h.hear(t)
	b := h.s.Encode()
	s, err := pqueue.Restore(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, s.Encode()) {
		t.Fatal("a restored shard has another snapshot")
	}
	h.s = s
	h.s.Follow(true)
}

func (h *machine) hear(t *rapid.T) {
	for _, c := range h.s.Changes() {
		if c.Left {
			if !h.mirror[c.Out] {
				t.Fatalf("%+v: was not ready", c)
			}
			delete(h.mirror, c.Out)
		}
		if c.Came {
			if h.mirror[c.In] {
				t.Fatalf("%+v: was ready already", c)
			}
			h.mirror[c.In] = true
		}
	}
}

func (h *machine) check(t *rapid.T) {
	h.hear(t)
	r := h.apply(t, pqueue.Command{Op: pqueue.OpPeek, Max: 100})
	got, numbers := []string{}, map[uint64]bool{}
	for _, i := range r.Items {
		got = append(got, i.ID)
		numbers[i.Number] = true
	}
	if diff := gocmp.Diff(h.m.ready(), got); diff != "" {
		t.Fatalf("ready (-want +got):\n%s", diff)
	}
	offered := h.m.offered()
	for w := range h.mirror {
		if !numbers[pqueue.NumberOf(w)] || !offered[pqueue.NumberOf(w)] {
			t.Fatalf("changes say that %v may be leased, it may not", w)
		}
	}
	st := h.apply(t, pqueue.Command{Op: pqueue.OpStats}).Stats[0]
	want := [4]int{len(h.m.in(pqueue.Ready)), len(h.m.in(pqueue.Delayed)), len(h.m.in(pqueue.Leased)), len(h.m.in(pqueue.Dead))}
	if got := [4]int{st.Ready, st.Delayed, st.Leased, st.Dead}; got != want || len(h.mirror) != len(offered) || st.Blocked != st.Ready-len(offered) {
		t.Fatalf("counts %v, mirror %d of %d, %d blocked, want %v", got, len(h.mirror), len(offered), st.Blocked, want)
	}
	if alive := want[0] + want[1] + want[2] + want[3]; alive == 0 && st.Bytes != 0 || int64(alive)*pqueue.CostOfItem > st.Bytes {
		t.Fatalf("%d items take %d bytes", alive, st.Bytes)
	}
	c := st.Counters
	if in, out := c.Inserted, c.Acked+c.Cancelled+c.Expired; in < out+uint64(want[0]+want[1]+want[2]+want[3]) {
		t.Fatalf("counters do not add up: %+v and %v", c, want)
	}
}

func TestAShardDoesWhatItsTwinDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &machine{s: pqueue.New(7), mirror: map[qpid.Weight]bool{}}
		h.m = twin{now: 1000, l: pqueue.Limits{ItemsMax: 8, BytesMax: 1 << 20, AttemptsMax: 3, DeadMax: 2, RememberMax: 4, Remember: 200, LeaseMax: 1 << 40}}
		if rapid.Bool().Draw(t, "backoff") {
			h.m.l.Backoff = pqueue.Backoff{Base: rapid.Int64Range(1, 30).Draw(t, "base"), Factor: rapid.Int64Range(1000, 4000).Draw(t, "factor"), Max: 50}
		}
		h.m.l.InFlightMax = rapid.IntRange(0, 2).Draw(t, "in flight")
		h.m.l.Exclusive = rapid.Bool().Draw(t, "exclusive")
		h.s.Follow(true)
		h.s.Apply(pqueue.Command{Op: pqueue.OpConfigure, Queue: "q", Limits: h.m.l, Now: h.m.now})
		t.Repeat(map[string]func(*rapid.T){
			"insert": h.insert, "insert more": h.insert, "lease": h.lease, "lease more": h.lease, "settle": h.settle, "settle more": h.settle,
			"change": h.change, "purge": h.purge, "dead": h.dead, "mode": h.setMode, "tick": h.tick, "again": h.again, "heed": h.heed, "": h.check,
		})
	})
}
