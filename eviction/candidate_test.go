package eviction

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/qpid"
)

// TestWhoWasSlowOwesRoundTrips: of one that was left out as slow three round trips in
// a row have to fit, of any other that is not listed one. Who is listed owes nothing.
func TestWhoWasSlowOwesRoundTrips(t *testing.T) {
	for _, tt := range []struct {
		name       string
		c          candidate
		listed     bool
		trips      string // f: fits, l: late
		owes, late int
	}{
		{"a newcomer", candidate{owes: 1}, false, "f", 0, 0},
		{"a slow newcomer", candidate{owes: 1}, false, "ll", 1, 2},
		{"a slow newcomer that is fast", candidate{owes: 1}, false, "lf", 0, 0},
		{"out for another reason, and slow", candidate{}, false, "fl", 1, 1},
		{"left out", candidate{owes: fitsMin, gray: true}, false, "ff", 1, 0},
		{"left out, late in between", candidate{owes: fitsMin, gray: true}, false, "fflff", 1, 0},
		{"left out, and the last wave had it", candidate{owes: fitsMin, gray: true}, true, "ffl", fitsMin, 1},
		{"left out, and ready", candidate{owes: fitsMin, gray: true}, false, "fflfff", 0, 0},
		{"listed", candidate{}, true, "fl", 0, 1},
		{"listed, and slow", candidate{gray: true}, true, "flll", 0, lateMin},
		{"listed, late now and then", candidate{}, true, "lflfl", 0, 1},
	} {
		for _, trip := range tt.trips {
			tt.c.fits(trip == 'f', tt.listed)
		}
		if tt.c.owes != tt.owes || tt.c.late != tt.late {
			t.Errorf("%s: after %s it owes %d, %d late; want %d, %d", tt.name, tt.trips, tt.c.owes, tt.c.late, tt.owes, tt.late)
		}
	}
}

// Clocks are around a middle, ahead or behind, if those of a quorum are certain to be.
func TestClocksOfAQuorumAreAroundTheMiddle(t *testing.T) {
	const skew = 500_000
	for _, tt := range []struct {
		name    string
		mid     int64
		offsets []int64 // of b and c; this node's own is 0
		want    bool
	}{
		{"all as one", 0, []int64{0, 0}, true},
		{"all ahead of this node", 2 * skew, []int64{2 * skew, 2 * skew}, true},
		{"all behind it", -2 * skew, []int64{-2 * skew, -2 * skew}, true},
		{"one ahead, one behind", 2 * skew, []int64{2 * skew, -2 * skew}, false},
		{"this one and another", skew / 2, []int64{skew / 2, 4 * skew}, true},
		{"none of the others", 2 * skew, []int64{0, 0}, false},
	} {
		n := NewNode(Config{MaxSkew: 500_000_000}, Start{Self: Peer{Member: Member{Name: "a", Boot: 1}}}, nil, Time{Boot: 1e12, Wall: 1e15})
		n.knows, n.voters = true, Voters{Version: 1, Names: names("abc")}
		for i, at := range tt.offsets {
			p := Peer{Member: Member{Name: qpid.NodeID(rune('b' + i)), Boot: 1}}
			n.lead.peers = append(n.lead.peers, candidate{Peer: p, heard: 1e12, clock: reading{offset: at, err: 1000, ok: true}})
		}
		if got := n.clocksWith(Time{Boot: 1e12, Wall: 1e15}, tt.mid); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A wave that failed is blamed on whoever it lacked, and on nobody if the coordinator itself stood
// still meanwhile.
func TestAFailedWaveIsBlamedOnTheSilent(t *testing.T) {
	deadline := micros(Config{}.WithDefaults().Deadline)
	for _, tt := range []struct {
		name string
		took int64
		want bool
	}{
		{"it took as long as a wave may", deadline, true},
		{"this node stood still", 2*deadline + 1, false},
	} {
		now := Time{Boot: 1e12, Wall: 1e15}
		w := &wave{list: []Member{memberA, memberB, memberC}, at: now.Boot - tt.took}
		w.sum.Nodes = []NodeReply{{Index: 0}, {Index: 1}}
		n := NewNode(Config{}, Start{Self: Peer{Member: memberA}}, nil, now)
		for _, m := range w.list[1:] {
			n.lead.peers = append(n.lead.peers, candidate{Peer: Peer{Member: m}, blamed: never})
		}
		n.blame(now, w)
		if c := n.lead.find(memberC); (c.blamed == w.at) != tt.want || !tt.want && c.blamed != never {
			t.Errorf("%s: the silent one is blamed since %d, want it blamed: %v", tt.name, c.blamed, tt.want)
		}
		if c := n.lead.find(memberB); c.blamed != never {
			t.Errorf("%s: who replied is blamed", tt.name)
		}
	}
}

// A node that is the whole cluster promises to stamp nobody before those who wait: it may have
// been started anew with a clock that is behind. Where there are others it leaves that to the waves.
func TestANodeAloneStampsNobodyBeforeThoseWhoWait(t *testing.T) {
	for _, tt := range []struct {
		name string
		room Room
		list []Member
		want bool
	}{
		{"alone", Room{}, []Member{memberA}, true},
		{"of two", Room{}, []Member{memberA, memberB}, false},
		{"by deleteMin", Room{Algorithm: ByQPID}, []Member{memberA}, false},
	} {
		now := Time{Boot: 1e12, Wall: 1e15}
		tt.room.Name, tt.room.Session = "shop", time.Minute
		n := NewNode(Config{}, Start{Self: Peer{Member: memberA}}, []Room{tt.room}, now)
		last := uint64(now.Wall + 600*second)
		for i, stamp := range []uint64{last - 9, last, last - 5} {
			n.gates[0].Queue.Insert(qpid.Weight{Stamp: stamp, ID: qpid.ItemID{byte(i + 1)}})
		}
		n.catchUp(tt.list)
		if stamp := n.clock.stamp(); (stamp > last) != tt.want {
			t.Errorf("%s: the next one is stamped %d µs after the last in line, want after them: %v", tt.name, int64(stamp-last), tt.want)
		}
	}
}
