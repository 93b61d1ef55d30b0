package node

import (
	"runtime"
	"testing"

	"github.com/anteroom/anteroom/eviction"
)

func spreadHash(i uint64) uint64 { return max(1, (i+1)*0x9e3779b97f4a7c15) }

func TestAMillionUsedTicketsTakeLittle(t *testing.T) {
	const many = 1_000_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var u used
	for i := range uint64(many) {
		u.add(spreadHash(i), int64(i)*1000, UsedMax)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := float64(after.HeapAlloc-before.HeapAlloc) / many
	t.Logf("%.1f bytes each", each)
	if each > 32 {
		t.Errorf("%.1f bytes each, want at most 32", each)
	}
	for i := range uint64(many) {
		if !u.has(spreadHash(i)) {
			t.Fatalf("ticket %d is forgotten", i)
		}
		if u.has(spreadHash(i + many)) {
			t.Fatalf("ticket %d was never used", i+many)
		}
	}
}

func TestTheOldestUsedTicketsAreForgottenWhenThereAreTooMany(t *testing.T) {
	var u used
	for i := range uint64(1000) {
		u.add(spreadHash(i), 7, 800)
		if u.n > 800 {
			t.Fatalf("%d are remembered, want at most 800", u.n)
		}
		if !u.has(spreadHash(i)) {
			t.Fatalf("the latest is forgotten")
		}
	}
	for i := uint64(400); i < 1000; i++ {
		if !u.has(spreadHash(i)) {
			t.Errorf("%d is forgotten before its time", i)
		}
	}
	if u.has(spreadHash(0)) {
		t.Error("the first is still there")
	}
}

// A long list goes out in parts, each when the one before has arrived, and again
// if it has not.
func TestUsedTicketsAreToldInParts(t *testing.T) {
	tickets := make([]uint64, eviction.UsedMax+5)
	for i := range tickets {
		tickets[i] = spreadHash(uint64(i))
	}
	n := &Node{c: Config{UsedMax: UsedMax, Self: eviction.Peer{Member: eviction.Member{Name: "a"}}}}
	n.loadUsed([]eviction.UsedBatch{{At: 1, Tickets: tickets}})
	b := eviction.Member{Name: "b"}
	told := func() (from uint64, many int) {
		t.Helper()
		defer func() { n.out = nil }()
		if len(n.out) != 1 {
			return 0, -1
		}
		m := n.out[0].Body.(*eviction.Used)
		return m.From, len(m.Tickets)
	}
	expect := func(what string, from uint64, many int) {
		t.Helper()
		if f, m := told(); f != from || m != many {
			t.Errorf("%s: told %d from %d, want %d from %d", what, m, f, many, from)
		}
	}
	n.tellUsedTo(b, eviction.Time{})
	expect("at first", 0, eviction.UsedMax)
	n.tellUsedTo(b, eviction.Time{Boot: tellAgain / 2})
	expect("soon after", 0, -1)
	n.tellUsedTo(b, eviction.Time{Boot: tellAgain})
	expect("again", 0, eviction.UsedMax)
	n.onUsedAck(eviction.Time{Boot: tellAgain}, b, &eviction.UsedAck{Upto: 1 << 60})
	expect("after nonsense", 0, -1)
	n.onUsedAck(eviction.Time{Boot: tellAgain}, b, &eviction.UsedAck{Upto: eviction.UsedMax})
	expect("after an answer", eviction.UsedMax, 5)
	n.onUsedAck(eviction.Time{Boot: tellAgain}, b, &eviction.UsedAck{Upto: eviction.UsedMax + 5})
	n.tellUsedTo(b, eviction.Time{Boot: 9 * tellAgain})
	expect("when all is told", 0, -1)
}
