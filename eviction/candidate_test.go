package eviction

import (
	"testing"

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
