package eviction

import (
	"reflect"
	"testing"
	"time"

	"github.com/anteroom/anteroom/qpid"
	"github.com/google/go-cmp/cmp"
)

// deciding is a coordinator's gate and what it is told.
type deciding struct {
	g *Gate
	d decision
	r RoomReply
}

// decideAt makes a primary wave of three whose accounts were all opened by
// wave 1, with ten slots at the coordinator and nothing going on.
func decideAt(room Room, nodes int) *deciding {
	room.Name = "shop"
	g := newGate(newClusterSettings(Config{}.WithDefaults()), room)
	line := Line{1, "a"}
	g.line = line
	x := &deciding{g: g, r: RoomReply{Room: "shop", Front: Front{Complete: true}}}
	x.d = decision{now: Time{Boot: 1e12}, epoch: qpid.Epoch{Num: 100, Coordinator: "a.1"}, t: 1e15, grade: Primary, line: line}
	for i := range nodes {
		x.d.list = append(x.d.list, Member{qpid.NodeID(rune('a' + i)), 1})
		x.d.origins = append(x.d.origins, origin{})
		x.r.Nodes = append(x.r.Nodes, RoomNode{Index: i, Born: 1, Line: line, OldAge: -1, TTL: micros(room.Session), Holds: qpid.Epoch{Num: 99}})
		x.d.votes = append(x.d.votes, true)
		x.d.voters.Names = append(x.d.voters.Names, x.d.list[i].Name)
	}
	x.d.voters.Version = 1
	x.r.Nodes[0].Minted, x.r.Nodes[0].Free = room.Target, room.Target
	x.r.Supply = []Supply{{Line: line, Slots: room.Target, At: qpid.Epoch{Num: 99}, Voters: 1, Reckoning: Reckoning{Sure: true}}}
	return x
}

func (x *deciding) decide() RoomCommit { return x.g.conclude(&x.d, &x.r) }

// The books of an account that is void no longer say how many slots there are.
func TestBooksOfVoidAccountsDoNotCount(t *testing.T) {
	gone := Account{Member{"z", 1}, 1}
	x := decideAt(Room{Target: 10, Session: time.Minute}, 3)
	x.r.Nodes[1].Free = 4                                // b had 4 slots from z,
	x.r.Net = []Net{{gone, 4}}                           // which is gone,
	x.r.Voids = []VoidCount{{Member{"b", 1}, 50, 50, 2}} // and b was voided meanwhile
	x.d.met = []Sighting{{Member: gone.Member, Age: 1, Epoch: 99}}
	c := x.decide()
	if c.Closed || len(c.Burn) > 0 || c.Supply != 10 {
		t.Errorf("closed %v, burn %v, supply %d; want the ten slots left alone", c.Closed, c.Burn, c.Supply)
	}
	if c.Mint != 0 {
		t.Errorf("mint %d while b's old account may act", c.Mint)
	}
	if c.Born[1] != 100 {
		t.Errorf("b's account was opened by wave %d, want a new one", c.Born[1])
	}
}

// A node that hears of a room for the first time had no account of it before.
func TestNewRoomNeedsNoVoids(t *testing.T) {
	x := decideAt(Room{Target: 10, Session: time.Minute}, 3)
	x.r.Nodes = x.r.Nodes[:1]
	x.r.Nodes[0] = RoomNode{Lapsed: -1, OldAge: -1}
	x.r.Supply = nil
	c := x.decide()
	if len(c.Void) != 0 || c.Mint != 0 || c.Supply != 10 || !c.Sure || !c.Line.Founded() || c.Config == nil {
		t.Errorf("void %v, mint %d of %d, sure %t, line %v, config %v; want ten slots announced to everybody", c.Void, c.Mint, c.Supply, c.Sure, c.Line, c.Config)
	}
	x = decideAt(Room{Target: 10, Session: time.Minute}, 3)
	x.r.Nodes[0].Minted, x.r.Nodes[0].Free = 0, 0
	if c := x.decide(); c.Mint != 10 {
		t.Errorf("mint %d by the next wave, which finds that everybody knows; want 10", c.Mint)
	}
}

// A coordinator that had not heard of b's void gave b an account as to a
// newcomer. Where the void turns up, it is made to cover all that came before
// the account, or that would never be settled. Found by seed 3467.
func TestVoidOlderThanTheAccountIsRaised(t *testing.T) {
	x := decideAt(Room{Target: 10, Session: time.Minute}, 3)
	x.r.Nodes[1].Born = 60
	x.r.Voids = []VoidCount{{Member{"b", 1}, 50, 50, 3}}
	c := x.decide()
	if len(c.Void) != 1 || c.Void[0] != (Void{Member{"b", 1}, 59}) {
		t.Fatalf("void %v, want all of b's accounts before its wave 60", c.Void)
	}
	x.r.Voids = []VoidCount{{Member{"b", 1}, 59, 59, 3}} // every node has heard of it
	c = x.decide()
	if len(c.Settled) != 1 || c.Settled[0] != c.Void[0] {
		t.Errorf("settled %v, want %v", c.Settled, c.Void)
	}
}

// A decision is made from what was heard: made again of the same, it is the same.
func TestADecisionChangesNothing(t *testing.T) {
	for _, room := range []Room{{}, {NewPerMinute: 540}, {Method: Random}, {Algorithm: ByQPID}} {
		room.Target, room.Session = 30, time.Minute
		x := decideAt(room, 3)
		for i := range x.r.Nodes {
			x.r.Nodes[i].Free, x.r.Nodes[i].Queued, x.r.Nodes[i].Keying = 10, 5, 7
		}
		for range 2 {
			first, next := x.g.decide(&x.d, &x.r)
			again, then := x.g.decide(&x.d, &x.r)
			if diff := cmp.Diff(first, again); diff != "" {
				t.Errorf("%v %v: made again, the decision is another one:\n%s", room.Method, room.Algorithm, diff)
			}
			if !reflect.DeepEqual(next, then) {
				t.Errorf("%v %v: what follows is %+v, and made again %+v", room.Method, room.Algorithm, next, then)
			}
			x.decide()
			x.d.now.Boot += 10_000_000
		}
	}
}

// Nobody knows where the next one joins, so while nobody waits the tokens of a
// paced room are dealt to all who have slots.
func TestTokensOfAnIdleRoomAreDealtEvenly(t *testing.T) {
	x := decideAt(Room{Target: 30, Session: time.Minute, NewPerMinute: 540}, 3)
	for i := range x.r.Nodes {
		x.r.Nodes[i].Free = 10
	}
	c := x.decide() // opens the bucket
	for range 10 {
		x.d.now.Boot += second
		c = x.decide()
	}
	if len(c.Tokens) != 3 || c.Tokens[0].N != 3 || c.Tokens[1].N != 3 || c.Tokens[2].N != 3 {
		t.Errorf("dealt %v, want 3 of the second's 9 tokens to each", c.Tokens)
	}
}

// A node that was alone for a moment has a lease of before the split, and by its
// own wave knows the lower limit of an event that has begun. Seed 10247.
func TestLimitCountsOnASideToo(t *testing.T) {
	for _, grade := range []Grade{NoGrade, Side, Primary} {
		x := decideAt(Room{Target: 6, Session: time.Minute}, 1)
		x.d.grade = grade
		x.r.Nodes[0].Minted, x.r.Nodes[0].Free = 46, 3
		x.r.Supply[0].Slots = 46
		if c := x.decide(); !c.Closed {
			t.Errorf("grade %v: open for calls with 46 slots and a limit of 6", grade)
		}
	}
}

// A node that goes over to another line takes note of who votes on the rooms that
// stay, as of its own last primary wave: a quiet room's last one may be older.
func TestWhoLeavesALineKeepsItsNewestVoters(t *testing.T) {
	line := Line{1, "a"}
	n := NewNode(Config{}, Start{Self: Peer{Member: Member{"a", 1}}}, []Room{{Name: "quiet"}, {Name: "new"}}, Time{})
	n.line, n.knows, n.forgot, n.lastPrimary = line, true, false, 7
	n.voters = Voters{Version: 2, Names: []qpid.NodeID{"a", "b", "c"}}
	quiet, other := n.Gate("quiet"), n.Gate("new")
	quiet.line, quiet.voters = line, Voters{Version: 1, Names: []qpid.NodeID{"a"}}
	n.leave(line)
	for _, g := range []*Gate{quiet, other} {
		if g.line != line || g.voters.Version != 2 {
			t.Errorf("room %s stays on line %v with voters of version %d, want %v and 2", g.cfg.Name, g.line, g.voters.Version, line)
		}
	}
	if other.leasedAt != 7 {
		t.Errorf("the new room's survivor_after counts from %d, want 7: the last primary wave", other.leasedAt)
	}
	n.leave(Line{})
	if g := n.addGate(Room{Name: "newer"}); g.line.Founded() {
		t.Errorf("a room made on a founded line is on line %v, want none yet", g.line)
	}
}

// What one node alone has accepted may be out of date: if the others have started
// anew, all that is missing is waited for, as long as anybody lost can act.
func TestASupplyIsSureIfAQuorumHoldsIt(t *testing.T) {
	for hold := range 4 {
		x := decideAt(Room{Target: 10, Session: time.Minute}, 3)
		for i := hold; i < 3; i++ {
			x.r.Nodes[i].Holds = qpid.Epoch{}
		}
		x.r.Nodes[0].Minted, x.r.Nodes[0].Free = 6, 6
		x.d.met = []Sighting{{Member: Member{"z", 1}, Age: 10e6, Epoch: 99}}
		x.r.Voids = []VoidCount{{Member{"z", 1}, 99, 99, 3}}
		c := x.decide()
		if c.Sure != (hold >= 2) || c.Mint != 0 {
			t.Errorf("%d of 3 hold the supply: sure %t, mint %d", hold, c.Sure, c.Mint)
		}
		if hold >= 2 && (len(c.Claims) != 1 || c.Claims[0].Slots != 4) {
			t.Errorf("claims %v, want one of the 4 slots that are missing", c.Claims)
		}
	}
}

// The voters have changed in waves that did not ask about the room. Those who can
// tell of its slots may all be among the voters of before who were not there when
// the last were minted, and all the same be a quorum of those of now.
func TestASupplyOfEarlierVotersIsNotSure(t *testing.T) {
	x := decideAt(Room{Target: 20, Session: time.Minute}, 3)
	x.r.Supply[0].Slots, x.d.voters.Version = 10, 2
	x.r.Nodes[0].Minted, x.r.Nodes[0].Free = 6, 6
	x.d.met = []Sighting{{Member: Member{"z", 1}, Age: 10e6, Epoch: 99}}
	x.r.Voids = []VoidCount{{Member{"z", 1}, 99, 99, 3}}
	if c := x.decide(); c.Sure || c.Mint != 0 || len(c.Claims) > 0 {
		t.Errorf("sure %t, mint %d, claims %v; want to wait for all that z may have", c.Sure, c.Mint, c.Claims)
	}
	x.d.met, x.r.Voids = nil, nil
	if c := x.decide(); !c.Sure || c.Supply != 20 {
		t.Errorf("sure %t of %d slots with nobody lost, want 20", c.Sure, c.Supply)
	}
}

// Whoever is cut off again and again fills no list: neither that of the claims nor
// that of the accounts in the last of them.
func TestClaimsAreBounded(t *testing.T) {
	var cs []Claim
	for i := range 1000 {
		cs = closed(cs, Claim{Of: []Void{{Member{"z", uint64(i%3 + 1)}, uint64(i)}}, Slots: 2})
	}
	if last := cs[len(cs)-1]; len(cs) != claimsMax || slotsOf(cs) != 2000 || len(last.Of) != 3 {
		t.Errorf("%d claims of %d slots, the last of %d accounts; want %d of 2000, 3", len(cs), slotsOf(cs), len(last.Of), claimsMax)
	}
	for i := range 1000 {
		if !claims(cs, Void{Member{"z", uint64(i%3 + 1)}, uint64(i)}) {
			t.Fatalf("loss %d is in no claim", i)
		}
	}
}

// What is on a disk was not synced with every wave: a node that starts from it has
// accepted nothing, and takes nothing off that may have been raised since.
func TestARestoredSupplyIsNotSure(t *testing.T) {
	supply := Supply{Line: Line{1, "a"}, Slots: 10, Burned: 3, At: qpid.Epoch{Num: 7, Coordinator: "a.1"}, Reckoning: Reckoning{Sure: true}}
	r := &Record{Line: Line{1, "a"}, Rooms: []RoomRecord{{Room: Room{Name: "shop", Target: 10}, Line: Line{1, "a"}, Supply: supply}}}
	n := NewNode(Config{}, Start{Self: Peer{Member: memberB}, Record: r}, nil, Time{Boot: 1e6, Wall: 1e15})
	if s := n.Gate("shop").supply; s.Sure || s.left() != 10 || s.holds() != (qpid.Epoch{}) {
		t.Errorf("restored as %+v, want ten slots that are not sure", s)
	}
}

// Nobody is called by an order that not everybody has: those who have not drawn yet would be passed over.
func TestNobodyIsCalledUntilAllHaveDrawn(t *testing.T) {
	for _, test := range []struct {
		keyings []uint64
		want    bool
	}{
		{[]uint64{7, 7, 7}, true},
		{[]uint64{7, 0, 7}, false},
		{[]uint64{0, 0, 7}, false},
		{[]uint64{0, 0, 0}, true},
	} {
		x := decideAt(Room{Target: 10, Session: time.Minute}, len(test.keyings))
		for i, k := range test.keyings {
			x.r.Nodes[i].Keying = k
		}
		if rs := newRoomSums(&x.d, x.g, &x.r); rs.keyed != test.want {
			t.Errorf("with the draws %v: everybody has the order: %v, want %v", test.keyings, rs.keyed, test.want)
		}
	}
}

// Another coordinator's wave may have had the same number, and opened an account of another line. Seed 421 of
// TestScenarioNodesOfOneNameComeAndGo, when it was made.
func TestNoAccountIsNamedAsOneOfAnotherLine(t *testing.T) {
	a, b := Line{1, "a"}, Line{2, "b"}
	for _, c := range []struct {
		name string
		node RoomNode
		want bool
	}{
		{"it has none", RoomNode{Line: b}, false},
		{"an older one", RoomNode{Born: 6, Line: b}, false},
		{"of this line", RoomNode{Born: 7, Line: a}, false},
		{"of another line", RoomNode{Born: 7, Line: b}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &wave{epoch: qpid.Epoch{Num: 7, Coordinator: "a.1"}, sum: Reply{Rooms: []RoomReply{{}, {Nodes: []RoomNode{{Born: 5, Line: a}, c.node}}}}}
			if got := w.namesAgain(a); got != c.want {
				t.Errorf("namesAgain = %t", got)
			}
		})
	}
}

// Of two claims in one all is known if it is of both.
func TestWhatIsNotedOfTwoClaimsIsOfBoth(t *testing.T) {
	full := make([]Claim, claimsMax)
	for _, tt := range []struct{ last, more, want int }{{0, 0, 0}, {3, 0, 0}, {0, 3, 0}, {3, 4, 6}, {1, 1, 1}} {
		full[claimsMax-1].Most = tt.last
		if cs := closed(full, Claim{Most: tt.more}); cs[claimsMax-1].Most != tt.want {
			t.Errorf("%d and %d make %d, want %d", tt.last, tt.more, cs[claimsMax-1].Most, tt.want)
		}
	}
}
