package eviction

import (
	"slices"
	"testing"

	"github.com/anteroom/anteroom/qpid"
)

// What a peer says is checked before anything is indexed by it. Each of these is a wave of five
// that is in order but for one thing, at the root's first child, which has children of its own.

var five = []Member{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}}

func epochOf(m Member, num uint64) qpid.Epoch {
	return qpid.Epoch{Num: num, Coordinator: qpid.NodeID(m.String())}
}

// cases are what is changed in a message that is in order, by what it is called.
type cases[M any] []struct {
	name   string
	change func(m *M)
	ok     bool
}

func (all cases[M]) run(t *testing.T, inOrder func() *M, validate func(*M) error) {
	t.Helper()
	if err := validate(inOrder()); err != nil {
		t.Fatalf("in order: %v", err)
	}
	for _, c := range all {
		m := inOrder()
		c.change(m)
		if (validate(m) == nil) != c.ok {
			t.Errorf("%s: %v, want in order: %v", c.name, validate(m), c.ok)
		}
	}
}

func TestAGatherThatMakesNoSenseIsRefused(t *testing.T) {
	a, b := five[0], five[1]
	const fanout = 2
	whole := func() *Gather {
		return &Gather{Epoch: epochOf(a, 9), Lead: Peer{Member: a}, List: slices.Clone(five), Rooms: []RoomGather{{Room: "shop", Want: wantMax}}}
	}
	cases[Gather]{
		{"wants more weights than there can be", func(g *Gather) { g.Rooms[0].Want = wantMax + 1 }, false},
		{"wants none", func(g *Gather) { g.Rooms[0].Want = 0 }, true},
		{"wants less than none", func(g *Gather) { g.Rooms[0].Want = -1 }, false},
		{"another leads", func(g *Gather) { g.Lead.Member = five[2] }, false},
		{"another one's epoch", func(g *Gather) { g.Epoch = epochOf(five[2], 9) }, false},
		{"lists somebody twice", func(g *Gather) { g.List[4] = g.List[3] }, false},
		{"does not list the receiver", func(g *Gather) { g.List[1] = Member{Name: "z"} }, false},
		{"the receiver leads", func(g *Gather) { g.List[0], g.List[1], g.Lead.Member, g.Epoch = b, a, b, epochOf(b, 9) }, false},
		{"reckons with what cannot be", func(g *Gather) { g.Reckons.Lease = ageMax + 1 }, false},
		{"reckons with less than nothing", func(g *Gather) { g.Reckons.MaxSkew = -1 }, false},
	}.run(t, whole, func(g *Gather) error { _, err := g.validate(b, a, fanout); return err })
	if i, err := whole().validate(b, a, fanout); i != 1 || err != nil {
		t.Errorf("validate = %d, %v, want place 1", i, err)
	}
	if _, err := whole().validate(five[3], a, fanout); err == nil {
		t.Error("a gather that came past the parent is in order")
	}
	own := whole()
	own.List[0], own.List[1], own.Lead.Member, own.Epoch = b, a, b, epochOf(b, 9)
	if _, err := own.validate(b, b, fanout); err == nil {
		t.Error("a gather of the receiver's own is in order")
	}
	named := func() *Gather { return &Gather{Epoch: epochOf(a, 9), Lead: Peer{Member: a}, As: epochOf(a, 8)} }
	cases[Gather]{
		{"names no wave", func(g *Gather) { g.As = qpid.Epoch{} }, false},
		{"another one's epoch", func(g *Gather) { g.Epoch = epochOf(five[2], 9) }, false},
		{"the receiver leads", func(g *Gather) { g.Lead.Member, g.Epoch = b, epochOf(b, 9) }, false},
	}.run(t, named, func(g *Gather) error { _, err := g.validate(b, a, fanout); return err })
	if _, err := named().validate(b, b, fanout); err == nil {
		t.Error("a gather from the receiver itself is in order")
	}
}

func TestAReplyThatMakesNoSenseIsRefused(t *testing.T) {
	w := &wave{list: five, Gather: Gather{Rooms: []RoomGather{{Room: "shop"}, {Room: "hall"}}, Voters: epochOf(five[0], 3)}}
	digest := func() *Digest {
		return &Digest{Length: 9, Marks: []Mark{{Key: Key{Stamp: 1}, Rank: 0}, {Key: Key{Stamp: 2}, Rank: 5}}}
	}
	inOrder := func() *Reply {
		return &Reply{
			Nodes: []NodeReply{{Index: 3, Named: true}, {Index: 1}},
			Rooms: []RoomReply{{
				Room: "shop", Nodes: []RoomNode{{Index: 1, Queued: countMax, Free: -2, Minted: -2, TTL: ageMax, Held: heldAnew}, {Index: 4, Held: ageMax, DealtAge: ageMax}},
				Net: []Net{{Slots: -countMax}}, Digest: digest(), Visits: []VisitCount{{Visits: countMax}},
				Supply: []Supply{{Slots: 12, Burned: 1, Reckoning: Reckoning{Claims: []Claim{{Slots: 3}}}}},
				Front:  Front{Items: []Tagged{{Index: 1}}, Samples: []Sample{{Index: 3, Rank: 1}}},
			}, {Room: "hall"}},
		}
	}
	room := func(r *Reply) *RoomReply { return &r.Rooms[0] }
	first := func(r *Reply) *RoomNode { return &r.Rooms[0].Nodes[0] }
	all := cases[Reply]{
		{"tells of one who is not below", func(r *Reply) { r.Nodes[0].Index = 2 }, false},
		{"tells of the root", func(r *Reply) { r.Nodes[0].Index = 0 }, false},
		{"tells of nobody", func(r *Reply) { r.Nodes[0].Index = 5 }, false},
		{"tells of less than nobody", func(r *Reply) { r.Nodes[0].Index = -1 }, false},
		{"tells of one twice", func(r *Reply) { r.Nodes[0].Index = 1 }, false},
		{"tells of fewer rooms", func(r *Reply) { r.Rooms = r.Rooms[:1] }, false},
		{"tells of another room", func(r *Reply) { r.Rooms[1].Room = "shop" }, false},
		{"reckons with what cannot be", func(r *Reply) { r.Bounds.Held.Exclude = -1 }, false},
		{"a node of a room that is not below", func(r *Reply) { first(r).Index = 2 }, false},
		{"a node of a room twice", func(r *Reply) { room(r).Nodes[1].Index = 1 }, false},
		{"more queued than there can be", func(r *Reply) { first(r).Queued++ }, false},
		{"less due than none", func(r *Reply) { first(r).Due = -1 }, false},
		{"less wanted than none", func(r *Reply) { first(r).Wanted = -1 }, false},
		{"less used than none", func(r *Reply) { first(r).Used = -1 }, false},
		{"less called than none", func(r *Reply) { first(r).Called = -1 }, false},
		{"less tokens than none", func(r *Reply) { first(r).Tokens = -1 }, false},
		{"more free than there can be", func(r *Reply) { first(r).Free = countMax + 1 }, false},
		{"less free than there can be", func(r *Reply) { first(r).Free = -countMax - 1 }, false},
		{"as few free as there can be", func(r *Reply) { first(r).Free = -countMax }, true},
		{"less minted than there can be", func(r *Reply) { first(r).Minted = -countMax - 1 }, false},
		{"a session longer than can be", func(r *Reply) { first(r).TTL++ }, false},
		{"a session shorter than none", func(r *Reply) { first(r).TTL = -1 }, false},
		{"held for longer than can be", func(r *Reply) { room(r).Nodes[1].Held++ }, false},
		{"held for what means nothing", func(r *Reply) { first(r).Held = heldAnew - 1 }, false},
		{"dealt longer ago than can be", func(r *Reply) { room(r).Nodes[1].DealtAge++ }, false},
		{"dealt in time to come", func(r *Reply) { first(r).DealtAge = -1 }, false},
		{"a bucket that cannot be", func(r *Reply) { first(r).Left = &Left{Age: -1} }, false},
		{"a bucket left longer ago than can be", func(r *Reply) { first(r).Left = &Left{Age: ageMax + 1} }, false},
		{"a bucket", func(r *Reply) { first(r).Left = &Left{Age: ageMax} }, true},
		{"more received than there can be", func(r *Reply) { room(r).Net[0].Slots-- }, false},
		{"no digest", func(r *Reply) { room(r).Digest = nil }, true},
		{"more visits than there can be", func(r *Reply) { room(r).Visits[0].Visits++ }, false},
		{"less slots than none", func(r *Reply) { room(r).Supply[0].Slots = -1 }, false},
		{"less burned than none", func(r *Reply) { room(r).Supply[0].Burned = -1 }, false},
		{"claims that cannot be", func(r *Reply) { room(r).Supply[0].Claims[0].Slots = -1 }, false},
		{"a census that cannot be", func(r *Reply) { room(r).Supply[0].Census = &Census{Slots: -1} }, false},
		{"a census of a time to come", func(r *Reply) { room(r).Supply[0].Census = &Census{Age: -1} }, false},
		{"a census of long ago", func(r *Reply) { room(r).Supply[0].Census = &Census{Age: ageMax} }, true},
		{"claims without end", func(r *Reply) { room(r).Supply[0].Claims = make([]Claim, claimsMax+1) }, false},
		{"as many claims as there can be", func(r *Reply) { room(r).Supply[0].Claims = make([]Claim, claimsMax) }, true},
		{"a weight of one who is not below", func(r *Reply) { room(r).Front.Items[0].Index = 2 }, false},
		{"a sample of one who is not below", func(r *Reply) { room(r).Front.Samples[0].Index = 2 }, false},
		{"a sample of no rank", func(r *Reply) { room(r).Front.Samples[0].Rank = 0 }, false},
		{"a sample of a rank that cannot be", func(r *Reply) { room(r).Front.Samples[0].Rank = countMax + 1 }, false},
	}
	all.run(t, inOrder, func(r *Reply) error { return r.validate(w, 1, 2) })
	for _, c := range digestsOutOfOrder() {
		r := inOrder()
		c.change(r.Rooms[0].Digest)
		if r.validate(w, 1, 2) == nil {
			t.Errorf("a digest with %s is in order", c.name)
		}
	}
	beyond := &Reply{Nodes: []NodeReply{{Index: 5}}, Rooms: []RoomReply{{Room: "shop"}, {Room: "hall"}}}
	if beyond.validate(w, 2, 2) == nil {
		t.Error("a reply of a child that would be there in a longer list is in order")
	}
	asked := *w
	asked.Voters = (qpid.Epoch{})
	if inOrder().validate(&asked, 1, 2) == nil {
		t.Error("a reply that names voters of which the gather said nothing is in order")
	}
}

// digestsOutOfOrder are changes to one of nine people with two marks.
func digestsOutOfOrder() cases[Digest] {
	return cases[Digest]{
		{"a mark of nobody", func(d *Digest) { d.Marks[1].Rank = 9 }, false},
		{"a mark before all", func(d *Digest) { d.Marks[0].Rank = -1 }, false},
		{"a rank twice", func(d *Digest) { d.Marks[1].Rank = 0 }, false},
		{"a key twice", func(d *Digest) { d.Marks[1].Key = d.Marks[0].Key }, false},
		{"people and no mark", func(d *Digest) { d.Marks = nil }, false},
		{"more people than there can be", func(d *Digest) { d.Length = countMax + 1 }, false},
		{"marks without end", func(d *Digest) {
			d.Length, d.Marks = countMax, nil
			for i := range marksMax + 1 {
				d.Marks = append(d.Marks, Mark{Key: Key{Stamp: uint64(i)}, Rank: i})
			}
		}, false},
	}
}

func TestACommitThatMakesNoSenseIsRefused(t *testing.T) {
	w := &wave{list: five, Gather: Gather{Rooms: []RoomGather{{Room: "shop"}, {Room: "hall"}}, T: 1000}}
	born := func() []uint64 { return make([]uint64, len(five)) }
	inOrder := func() *Commit {
		return &Commit{Epoch: epochOf(five[0], 9), Grade: Unanimous, Rooms: []RoomCommit{{
			Room: "shop", Born: born(), Mint: countMax, Supply: countMax, Reckoning: Reckoning{Claims: []Claim{{Slots: 3}}}, Delete: 1, TTL: ageMax, Held: ageMax,
			Waiting: make([]int, 5), KeptBy: KeptBy{Bare: born(), Covered: make([]bool, 5)}, First: []int{0, 1, 2, 0, 0},
			Digest: &Digest{Length: 9, Marks: []Mark{{Key: Key{Stamp: 1}, Rank: 0}, {Key: Key{Stamp: 2}, Rank: 5}}},
			Cut:    Cut{Epoch: 9, Value: qpid.UpTo(1000)}, Moves: []Move{{0, 4, 1}}, Burn: []Deal{{4, 1}}, Pace: Pace{Tokens: []Deal{{0, countMax}}, Bucket: &Bucket{}},
		}, {Room: "hall", Born: born()}}}
	}
	room := func(c *Commit) *RoomCommit { return &c.Rooms[0] }
	cases[Commit]{
		{"tells of fewer rooms", func(c *Commit) { c.Rooms = c.Rooms[:1] }, false},
		{"tells of another room", func(c *Commit) { c.Rooms[1].Room = "shop" }, false},
		{"rests of fewer rooms", func(c *Commit) { c.RestMin = make([]qpid.Weight, 1) }, false},
		{"rests of all rooms", func(c *Commit) { c.RestMin = make([]qpid.Weight, 2) }, true},
		{"a grade beyond all", func(c *Commit) { c.Grade = Unanimous + 1 }, false},
		{"reckons with what cannot be", func(c *Commit) { c.Reckons.Lease = -1 }, false},
		{"acts by what cannot be", func(c *Commit) { c.Acts.Lease = -1 }, false},
		{"accounts of fewer", func(c *Commit) { room(c).Born = born()[:4] }, false},
		{"more made than there can be", func(c *Commit) { room(c).Mint++ }, false},
		{"more slots than there can be", func(c *Commit) { room(c).Supply++ }, false},
		{"claims that cannot be", func(c *Commit) { room(c).Claims[0].Slots = -1 }, false},
		{"a census that cannot be", func(c *Commit) { room(c).Census = &Census{Age: ageMax + 1} }, false},
		{"less taken than none", func(c *Commit) { room(c).Delete = -1 }, false},
		{"a session longer than can be", func(c *Commit) { room(c).TTL++ }, false},
		{"a session shorter than none", func(c *Commit) { room(c).TTL = -1 }, false},
		{"held for longer than can be", func(c *Commit) { room(c).Held++ }, false},
		{"held for less than nothing", func(c *Commit) { room(c).Held = -1 }, false},
		{"waiting of fewer", func(c *Commit) { room(c).Waiting = make([]int, 4) }, false},
		{"waiting of nobody", func(c *Commit) { room(c).Waiting = nil }, true},
		{"kept of fewer", func(c *Commit) { room(c).Bare = born()[:4] }, false},
		{"kept of nobody", func(c *Commit) { room(c).Bare = nil }, true},
		{"covered of fewer", func(c *Commit) { room(c).Covered = make([]bool, 4) }, false},
		{"covered of nobody", func(c *Commit) { room(c).Covered = nil }, true},
		{"a digest for fewer", func(c *Commit) { room(c).First = []int{0, 1, 2, 0} }, false},
		{"a mark that is not there", func(c *Commit) { room(c).First[3] = 3 }, false},
		{"a mark before all", func(c *Commit) { room(c).First[3] = -1 }, false},
		{"no digest", func(c *Commit) { room(c).Digest, room(c).First = nil, nil }, true},
		{"a cut beyond T", func(c *Commit) { room(c).Cut.Value = qpid.UpTo(1001) }, false},
		{"a cut of another wave beyond T", func(c *Commit) { room(c).Cut.Value, room(c).Cut.Epoch = qpid.UpTo(1001), 8 }, true},
		{"moves from nobody", func(c *Commit) { room(c).Moves[0].From = -1 }, false},
		{"moves to nobody", func(c *Commit) { room(c).Moves[0].To = 5 }, false},
		{"moves none", func(c *Commit) { room(c).Moves[0].Slots = 0 }, false},
		{"moves more than there can be", func(c *Commit) { room(c).Moves[0].Slots = countMax + 1 }, false},
		{"burns nobody's", func(c *Commit) { room(c).Burn[0].Index = 5 }, false},
		{"burns none", func(c *Commit) { room(c).Burn[0].N = 0 }, false},
		{"deals to nobody", func(c *Commit) { room(c).Tokens[0].Index = -1 }, false},
		{"deals more than there can be", func(c *Commit) { room(c).Tokens[0].N++ }, false},
		{"settings that cannot be", func(c *Commit) { room(c).Config = &Room{} }, false},
	}.run(t, inOrder, func(c *Commit) error { return c.validate(w) })
	for _, c := range digestsOutOfOrder() {
		m := inOrder()
		c.change(m.Rooms[0].Digest)
		if m.validate(w) == nil {
			t.Errorf("a digest with %s is in order", c.name)
		}
	}
	for _, b := range []struct {
		name string
		Bucket
		ok bool
	}{
		{"full", Bucket{Level: levelMax, Debt: levelMax, DebtFor: ageMax, Pause: ageMax, Spent: []Spent{{-ageMax, allowance}, {ageMax, 0}}}, true},
		{"as empty as can be", Bucket{Level: -levelMax}, true},
		{"too empty", Bucket{Level: -levelMax - 1}, false},
		{"too full", Bucket{Level: levelMax + 1}, false},
		{"too deep in debt", Bucket{Debt: levelMax + 1}, false},
		{"of less debt than none", Bucket{Debt: -1}, false},
		{"in debt for too long", Bucket{DebtFor: ageMax + 1}, false},
		{"paused until before", Bucket{Pause: -1}, false},
		{"with all spent too long ago", Bucket{Spent: []Spent{{Age: ageMax + 1}}}, false},
		{"with all spent too late", Bucket{Spent: []Spent{{Age: -ageMax - 1}}}, false},
		{"with more spent than all", Bucket{Spent: []Spent{{Parts: allowance + 1}}}, false},
		{"with less spent than nothing", Bucket{Spent: []Spent{{Parts: -1}}}, false},
		{"with too much to count", Bucket{Spent: make([]Spent, spentMax+1)}, false},
		{"with as much as can be counted", Bucket{Spent: make([]Spent, spentMax)}, true},
	} {
		c := inOrder()
		c.Rooms[0].Bucket = &b.Bucket
		if (c.validate(w) == nil) != b.ok {
			t.Errorf("a bucket %s: %v, want in order: %v", b.name, c.validate(w), b.ok)
		}
	}
}
