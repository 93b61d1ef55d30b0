package eviction

import (
	"reflect"
	"testing"
	"time"

	"github.com/anteroom/anteroom/qpid"
)

// solo is one node with one room, without its cluster.
type solo struct {
	*Node
	g   *Gate
	now Time
}

var (
	memberA = Member{"a", 1}
	memberB = Member{"b", 1}
	memberC = Member{"c", 1}
)

func newSolo(t *testing.T, r Room) *solo {
	t.Helper()
	r.Name = "shop"
	now := Time{Boot: 1e9, Wall: 1_700_000_000_000_000}
	n := NewNode(Config{}, Start{Self: Peer{memberB, now.Wall}, Expect: 3, Joins: true}, []Room{r}, now)
	n.SetView(now, NewView([]Peer{{memberA, now.Wall - 1e6}, {memberB, now.Wall}, {memberC, now.Wall}}))
	return &solo{n, n.Gate("shop"), now}
}

// pass lets time go by.
func (s *solo) pass(d time.Duration) {
	s.now.Boot += d.Microseconds()
	s.now.Wall += d.Microseconds()
	s.read(s.now)
}

// gather opens a wave at b, of a, b and c or of list, and returns b's reply.
func (s *solo) gather(t *testing.T, num uint64, list ...Member) *Reply {
	t.Helper()
	if list == nil {
		list = []Member{memberA, memberB, memberC}
	}
	lead := Peer{memberA, s.now.Wall - 1e6}
	g := &Gather{
		Epoch: qpid.Epoch{Num: num, Coordinator: "a.1"}, Lead: lead, List: list,
		T: uint64(s.now.Wall), Wait: 500_000, Rooms: []RoomGather{{Room: "shop", Want: 64}},
	}
	if err := s.Step(s.now, Message{memberA, memberB, g}); err != nil {
		t.Fatal(err)
	}
	out, _ := s.Take()
	for _, m := range out {
		if r, ok := m.Body.(*Reply); ok {
			return r
		}
	}
	t.Fatalf("no reply to the gather among %v", out)
	return nil
}

// commit decides the open wave: line 1, accounts as given.
func (s *solo) commit(t *testing.T, born uint64, change ...func(*Commit, *RoomCommit)) {
	t.Helper()
	w := s.wave
	c := &Commit{
		Epoch: w.epoch, Grade: Primary, Line: Line{1, "a"}, Voters: Voters{Version: 1, Names: []qpid.NodeID{"a", "b", "c"}, At: w.epoch},
		Reckons: s.c.wants, Acts: s.c.wants,
		Rooms: []RoomCommit{{Room: "shop", Agreed: true, Line: Line{1, "a"}, Born: []uint64{1, born, 1}, Supply: s.g.cfg.Target}},
	}
	for _, f := range change {
		f(c, &c.Rooms[0])
	}
	if err := s.Step(s.now, Message{memberA, memberB, c}); err != nil {
		t.Fatal(err)
	}
	s.Take()
}

// An account that has lapsed between a gather and its commit stays closed: its
// name is in other ledgers, with slots that the new book knows nothing of.
func TestLapsedAccountIsNotOpenedAgain(t *testing.T) {
	s := newSolo(t, Room{Target: 10, Session: time.Second})
	s.gather(t, 1)
	s.commit(t, 1)
	if got := s.g.ledger.account; got != (Account{memberB, 1}) {
		t.Fatalf("account %v, want the first", got)
	}
	s.g.ledger.mint(10)
	s.g.ledger.send(Account{memberC, 1}, 4)
	s.pass(11900 * time.Millisecond) // of lease, session and twice the skew: 12s
	s.gather(t, 2)
	s.pass(200 * time.Millisecond)
	s.commit(t, 1)
	if got := s.g.ledger.account; got.Born != 0 {
		t.Errorf("account %v with minted %d; want none: the old one sent 4 slots that its new book does not show", got, s.g.ledger.minted)
	}
	s.gather(t, 3)
	s.commit(t, 3)
	if got := s.g.ledger.account; got != (Account{memberB, 3}) {
		t.Errorf("account %v, want a new one", got)
	}
}

// A commit that comes when its lease is over changes nothing.
func TestCommitAfterItsLeaseIsIgnored(t *testing.T) {
	s := newSolo(t, Room{Target: 10, Session: time.Minute})
	s.gather(t, 1)
	s.pass(10 * time.Second)
	s.commit(t, 1)
	if s.installed.Num != 0 || s.g.ledger.account.Born != 0 {
		t.Errorf("installed %v, account %v; want neither", s.installed, s.g.ledger.account)
	}
}

// So is one whose gather came before the machine stood still, if the clock was set since:
// by the boot clock its lease is good.
func TestCommitOfBeforeTheClockWasSetIsIgnored(t *testing.T) {
	s := newSolo(t, Room{Target: 10, Session: time.Minute})
	s.gather(t, 1)
	s.now.Boot += 1000
	s.clock.last.Boot = s.now.Boot
	s.clock.followWall()
	s.commit(t, 1)
	if s.installed.Num != 0 || s.g.ledger.account.Born != 0 {
		t.Errorf("installed %v, account %v; want neither", s.installed, s.g.ledger.account)
	}
}

// A transfer that was stuck in a broken link arrives when everybody has long
// forgotten that its sender's account was void.
func TestSlotsFromAForgottenAccountAreRefused(t *testing.T) {
	s := newSolo(t, Room{Target: 10, Session: time.Second})
	s.gather(t, 1)
	s.commit(t, 1)
	late := Message{memberC, memberB, &Slots{Room: "shop", From: Account{memberC, 1}, To: Account{memberB, 1}, Total: 5}}
	arrive := func() {
		if err := s.Step(s.now, late); err != nil {
			t.Fatal(err)
		}
	}
	arrive()
	if got := s.g.ledger.Owned(); got != 5 {
		t.Fatalf("owned %d after a transfer of 5 from a listed account", got)
	}
	num := uint64(2)
	for range 60 { // c is gone: void, settled after D, forgotten after twice that
		s.pass(time.Second)
		s.gather(t, num, memberA, memberB)
		s.commit(t, 1, func(c *Commit, r *RoomCommit) {
			r.Born = r.Born[:2]
			r.Void = []Void{{memberC, 2}}
			c.Voters.Names = []qpid.NodeID{"a", "b"} // while it is a voter it is not forgotten
			if num > 20 {
				r.Settled = r.Void
			}
			if num > 25 {
				r.Void, r.Settled = nil, nil
			}
		})
		num++
	}
	if len(s.g.voids) > 0 || len(s.g.ledger.peers) > 0 {
		t.Fatalf("after a minute b still knows %v and %v", s.g.voids, s.g.ledger.peers)
	}
	arrive()
	if got := s.g.ledger.Owned(); got != 5 {
		t.Errorf("owned %d after the transfer came again, want 5 still", got)
	}
}

// Only an account's own node moves its slots.
func TestSlotsInAnothersNameAreRefused(t *testing.T) {
	s := newSolo(t, Room{Target: 10, Session: time.Second})
	s.gather(t, 1)
	s.commit(t, 1)
	m := Message{memberA, memberB, &Slots{Room: "shop", From: Account{memberC, 1}, To: Account{memberB, 1}, Total: 5}}
	if err := s.Step(s.now, m); err == nil || s.g.ledger.Owned() != 0 {
		t.Errorf("owned %d, error %v; want nothing and an error", s.g.ledger.Owned(), err)
	}
}

// Two coordinators may give their waves the same number. Both are sightings.
func TestSightingInTheSecondWaveOfANumber(t *testing.T) {
	s := newSolo(t, Room{Target: 10, Session: time.Second})
	s.gather(t, 5)
	s.pass(3 * time.Second)
	c := Peer{memberC, s.now.Wall - 3e6}
	g := &Gather{Epoch: qpid.Epoch{Num: 5, Coordinator: "c.1"}, Lead: c, List: []Member{memberC, memberB, memberA}, T: uint64(s.now.Wall), Wait: 1e5}
	if err := s.Step(s.now, Message{memberC, memberB, g}); err != nil || s.epoch != g.Epoch {
		t.Fatalf("epoch %v, %v", s.epoch, err)
	}
	if i, ok := s.findMet(memberA); !ok || s.met[i].at != s.now.Boot {
		t.Errorf("a was last met %d µs ago, want now: its lease counts from this wave", s.now.Boot-s.met[i].at)
	}
}

// While someone still goes by an older, longer session, passes of that length
// are given out: they are reckoned with until D after the last such wave.
func TestLongerSessionIsReckonedWithWhileItIsInUse(t *testing.T) {
	s := newSolo(t, Room{Target: 10, Session: time.Minute})
	s.gather(t, 1)
	s.commit(t, 1)
	shorter := s.g.cfg
	shorter.Session, shorter.Version = time.Second, Version{Stamp: 9, By: "a"}
	long := func(c *Commit, r *RoomCommit) { r.Agreed, r.Config, r.TTL = false, &shorter, micros(time.Minute) }
	num := uint64(2)
	for range 70 { // the shorter session reaches b, but not c
		s.gather(t, num)
		s.commit(t, 1, long)
		num++
		s.pass(time.Second)
	}
	if s.g.cfg.Session != time.Second {
		t.Fatalf("session %v, want the new one", s.g.cfg.Session)
	}
	s.pass(5 * time.Second)
	s.gather(t, num, memberA, memberB) // c is cut off
	s.commit(t, 1, func(c *Commit, r *RoomCommit) { r.Born, r.TTL = r.Born[:2], micros(s.g.ttl) })
	if s.g.ttl != time.Minute {
		t.Errorf("longest session reckoned with is %v, want the minute that c gave until 6 s ago", s.g.ttl)
	}
	for range 90 {
		num++
		s.pass(time.Second)
		s.gather(t, num, memberA, memberB)
		s.commit(t, 1, func(c *Commit, r *RoomCommit) { r.Born, r.TTL = r.Born[:2], micros(s.g.ttl) })
	}
	if s.g.ttl != time.Second {
		t.Errorf("longest session reckoned with is %v, a minute and a half after the last of them was given", s.g.ttl)
	}
}

// Who joins after a random room's gather is not in its draw.
func TestDrawLeavesOutThoseWhoCameLater(t *testing.T) {
	s := newSolo(t, Room{Target: 10, Session: time.Second, Method: Random})
	s.gather(t, 1)
	s.commit(t, 1)
	s.g.Queue.Insert(qpid.Weight{Stamp: uint64(s.now.Wall) + 10_000, ID: qpid.ItemID{7}})
	s.gather(t, 2)
	if len(s.g.drawn) != 0 {
		t.Errorf("drawn %v: stamped after the gather's T", s.g.drawn)
	}
}

// A node whose clock no quorum has seen in this life gives out no places: they
// might be in the far future, or ahead of everyone. Found by seed 1680.
func TestNobodyStampsBeforeAQuorumHasVouchedForTheClock(t *testing.T) {
	s := newSolo(t, Room{Target: 10, Session: time.Second})
	if s.Clear() {
		t.Error("stamps before its first wave")
	}
	s.gather(t, 1)
	s.commit(t, 1, func(c *Commit, _ *RoomCommit) { c.Grade = Side })
	if s.Clear() {
		t.Error("stamps on a side without a quorum, which it never left")
	}
	s.gather(t, 2)
	s.commit(t, 1)
	if !s.Clear() {
		t.Error("does not stamp after a primary wave")
	}
	s.gather(t, 3)
	s.commit(t, 1, func(c *Commit, _ *RoomCommit) { c.Grade = Side })
	if !s.Clear() {
		t.Error("a side that a quorum once vouched for keeps no places")
	}
}

// A side of a split does not know how many slots there are by now. What it
// thought must not count once it is back, or slots that are away would be
// forgotten when the limit is lowered.
func TestWavesOfASideDoNotSayHowManySlotsThereAre(t *testing.T) {
	s := newSolo(t, Room{Target: 8, Session: time.Minute, OnPartition: Share})
	s.gather(t, 1)
	s.commit(t, 1)
	s.g.ledger.mint(3)
	s.pass(time.Second)
	s.gather(t, 20)
	s.commit(t, 1, func(c *Commit, r *RoomCommit) {
		c.Grade, r.Burn = Side, []Deal{{Index: 1, N: 2}}
	})
	s.pass(time.Second)
	reply := s.gather(t, 21)
	there := Supply{Slots: 75, At: qpid.Epoch{Num: 10, Coordinator: "a.1"}}
	if got := reply.Rooms[0].Supply[0].merge(there); !reflect.DeepEqual(got, there) {
		t.Errorf("75 slots of wave 10 and what a side thinks are together %+v, want %+v", got, there)
	}
	if got := reply.Rooms[0].Supply[0].left(); got != 6 {
		t.Errorf("the side has %d slots of 8 left, want 6: it burned 2", got)
	}
}

// An operator's change counts, also after one at a node whose clock was ahead.
// Seed 12654 of the swarm.
func TestChangeIsNewerThanWhatAClockAheadHasDated(t *testing.T) {
	s := newSolo(t, Room{Target: 8, Session: time.Minute})
	s.gather(t, 1)
	held := s.g.cfg
	held.Mode, held.Version = Held, Version{uint64(s.now.Wall) + 180e6, "c"}
	s.commit(t, 1, func(_ *Commit, r *RoomCommit) { r.Agreed, r.Config = false, &held })
	for _, mode := range []Mode{Normal, Draining} {
		next := s.g.cfg
		next.Mode = mode
		before := s.g.cfg.Version
		if s.g.proposed != nil {
			before = s.g.proposed.Version
		}
		s.SetRoom(s.now, next)
		if got := s.g.proposed; got.Mode != mode || got.Version.Compare(before) <= 0 {
			t.Errorf("%v is proposed as %v, no newer than %v, which it changes", got.Mode, got.Version, before)
		}
	}
}

// Who says that slots have arrived is who they were sent to, in a room that is known here, and of
// the account that this node has: nobody else may stop what was lost from being repeated.
func TestSlotsAreAcknowledgedByWhoeverTheyWereSentTo(t *testing.T) {
	for _, test := range []struct {
		name string
		from Member
		ack  SlotsAck
		want int // sent and acknowledged
	}{
		{"by whom they were sent to", memberC, SlotsAck{Room: "shop", From: Account{memberB, 1}, To: Account{memberC, 1}, Total: 4}, 4},
		{"by another", memberA, SlotsAck{Room: "shop", From: Account{memberB, 1}, To: Account{memberC, 1}, Total: 4}, 0},
		{"of an earlier account", memberC, SlotsAck{Room: "shop", From: Account{memberB, 9}, To: Account{memberC, 1}, Total: 4}, 0},
		{"of a room that nobody knows", memberC, SlotsAck{Room: "hall", From: Account{memberB, 1}, To: Account{memberC, 1}, Total: 4}, 0},
	} {
		s := newSolo(t, Room{Target: 10, Session: time.Second})
		s.gather(t, 1)
		s.commit(t, 1)
		s.g.ledger.mint(10)
		s.g.ledger.send(Account{memberC, 1}, 4)
		if err := s.Step(s.now, Message{test.from, memberB, &test.ack}); err != nil {
			t.Fatal(err)
		}
		if got := s.g.ledger.peers[0].Acked; got != test.want {
			t.Errorf("%s: %d of 4 slots are acknowledged, want %d", test.name, got, test.want)
		}
	}
}

// A wave of a quorum says on which line a node is, whether or not all voters know of it. A side
// does not: who is on a line stays on it.
func TestAWaveOfAQuorumSaysWhichLineANodeIsOn(t *testing.T) {
	for grade, want := range map[Grade]Line{Side: {1, "a"}, Primary: {2, "c"}, Unanimous: {2, "c"}} {
		s := newSolo(t, Room{Target: 10, Session: time.Minute})
		s.gather(t, 1)
		s.commit(t, 1)
		s.gather(t, 2)
		s.commit(t, 1, func(c *Commit, _ *RoomCommit) { c.Grade, c.Line = grade, Line{2, "c"} })
		if s.line != want {
			t.Errorf("%v: the node is on %v, want %v", grade, s.line, want)
		}
	}
}

// A node is taken for lost when it was in no wave for as long as anybody may take to leave it out,
// or has taken its leave; one that was in none yet when nobody believes it alive.
func TestANodeIsLostWhenItWasInNoWaveForLong(t *testing.T) {
	s := newSolo(t, Room{Target: 10, Session: time.Minute})
	s.gather(t, 1)
	s.commit(t, 1)
	gone := func(what string, m Member, want bool) {
		t.Helper()
		if got := s.Gone(m, s.now); got != want {
			t.Errorf("%s: taken for lost: %v, want %v", what, got, want)
		}
	}
	s.pass(time.Duration(s.LongestExclude()) * 2 * time.Microsecond)
	gone("listed", memberC, false)
	s.gather(t, 2, memberA, memberB)
	s.commit(t, 1, func(_ *Commit, r *RoomCommit) { r.Born = r.Born[:2] })
	gone("in no wave for twice as long", memberC, true)
	i, _ := s.findMet(memberC)
	s.met[i].at = s.now.Boot - 1
	gone("in a wave a moment ago", memberC, false)
	s.met[i].left = true
	gone("in a wave a moment ago, and has taken its leave", memberC, true)
	gone("never met, and nobody believes it alive", Member{"z", 1}, true)
	s.SetView(s.now, NewView([]Peer{{memberA, 1}, {memberB, 2}, {Member{"z", 1}, 3}}))
	gone("never met, and believed alive", Member{"z", 1}, false)
}
