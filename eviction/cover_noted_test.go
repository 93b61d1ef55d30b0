package eviction

import "testing"

// What a lost node can use is noted while its lease lasts, if all know that it is void and nobody else is missing who could tell; it
// counts once the lease is over, whoever is missing by then, unless the node was in a wave since.
func TestWhatALostNodeCanUseIsNoted(t *testing.T) {
	x, y, z := Member{"x", 1}, Member{"y", 1}, Member{"z", 1}
	const early, late = 1000, 1 << 40
	told, half := map[Member]uint64{x: 8}, map[Member]uint64{x: 7}
	lone := func(age int64, epoch uint64) []Sighting { return []Sighting{{Member: x, Age: age, Epoch: epoch}} }
	both := func(age int64) []Sighting { return append(lone(age, 8), Sighting{Member: y, Epoch: 6}) }
	for name, tt := range map[string]struct {
		met         []Sighting
		safe        map[Member]uint64
		shared      bool
		older       bool // one of the nodes is
		was         int  // noted before
		slots, most int
		kept        int
	}{
		"its lease lasts":                         {met: lone(early, 8), safe: told, slots: 9, most: 3},
		"its lease is over":                       {met: lone(late, 8), safe: told, slots: 2, most: 3, kept: 2},
		"some have not heard that it is void":     {met: lone(early, 8), safe: half, slots: 9},
		"more was noted before":                   {met: lone(early, 8), safe: told, was: 6, slots: 9, most: 3},
		"less was noted before":                   {met: lone(late, 8), safe: told, was: 2, slots: 1, most: 2, kept: 1},
		"nothing was left when that was noted":    {met: lone(late, 8), safe: told, was: 1, slots: 0, most: 1},
		"another is missing":                      {met: both(early), safe: told, slots: 9},
		"another is missing, and it was noted":    {met: both(late), safe: told, was: 6, slots: 5, most: 6, kept: 2},
		"another is missing, and the lease lasts": {met: both(early), safe: told, was: 6, slots: 9, most: 6},
		"it was in a wave since":                  {met: append(lone(late, 9), Sighting{Member: y, Epoch: 6}), safe: told, was: 6, slots: 9, most: 6},
		"nobody knows when it was in a wave":      {safe: told, was: 6, slots: 9, most: 6},
		"a node is older":                         {met: lone(early, 8), safe: told, older: true, slots: 9},
		"a node is older, and the lease is over":  {met: lone(late, 8), safe: told, older: true, slots: 2, kept: 2},
		"the room shares":                         {met: lone(late, 8), safe: told, shared: true, was: 6, slots: 9, most: 6},
	} {
		rs := &roomSums{covers: []Cover{{x, 5, true}}, visits: []VisitCount{{x, 2}}, nodes: []RoomNode{{Says: NotCovered, Heeds: true}, {Says: NotCovered, Heeds: !tt.older}}, shared: tt.shared}
		d := &decision{list: []Member{z}, met: tt.met, reckons: Bounds{Lease: 1_000_000}}
		before := []Claim{{[]Void{{x, 8}}, 9, tt.was}}
		low, kept := rs.lowered(d, before, tt.safe)
		if c := low[0]; c.Slots != tt.slots || c.Most != tt.most || kept != tt.kept {
			t.Errorf("%s: %d slots, noted %d, kept %d; want %d, %d, %d", name, c.Slots, c.Most, kept, tt.slots, tt.most, tt.kept)
		}
		if before[0].Slots != 9 || before[0].Most != tt.was {
			t.Errorf("%s: what others hold has changed: %v", name, before[0])
		}
	}
}

// Of a member that is void nothing comes to be kept, until a primary wave has it again.
func TestNothingIsKeptOfOneThatIsVoid(t *testing.T) {
	x, g := Member{"x", 1}, &Gate{}
	if !g.MayKeep(x) {
		t.Error("of one that never was void nothing is kept")
	}
	g.voids = []Void{{x, 8}}
	if g.MayKeep(x) {
		t.Error("of one that is void visits come to be kept")
	}
	g.said.list = []Member{x}
	if !g.MayKeep(x) {
		t.Error("of one that is back nothing is kept")
	}
}
