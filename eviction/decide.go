package eviction

import (
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// decision is what a coordinator knows when every listed node has replied.
type decision struct {
	now     Time
	epoch   qpid.Epoch
	t       uint64 // the gather's T
	list    []Member
	grade   Grade
	line    Line
	met     []Sighting // members that are not in the list
	reckons Bounds     // what D goes by: the longest of what any of the list reckons with, or wants
	awaited []Member   // of them those that a new coordinator has not had the time to hear of
	votes   []bool     // by index: the life that its name votes in, on the line that it is on
	rivals  []Rival    // other lives of listed names
	lives   [][]uint64 // by index: the earlier ones whose disk it has
	up      []int64    // by index: µs since it started, if it has a room that shares
	voters  Voters     // whose quorum makes the wave a primary one; none: of a line that begins with it

	origins []origin // by index: where rooms stand that were never on a line
}

// conclude decides about one room, and keeps what the next decision goes by.
func (g *Gate) conclude(d *decision, r *RoomReply) RoomCommit {
	c, next := g.decide(d, r)
	g.told, g.toldSeed, g.mints, g.hint, g.short, g.pacer = next.told, next.toldSeed, next.mints, next.hint, next.short, next.pacer
	return c
}

// sequel is what a decision leaves to those after it.
type sequel struct {
	told     uint64   // the newest keying that anyone holds, for the next gather to tell everybody,
	toldSeed [32]byte // and its seed
	mints    bool     // a next wave will mint
	hint     int
	short    bool
	pacer    pacer
}

// decide turns the replies about one room into a commit. It changes nothing: the gate is
// as this coordinator knows it, and what comes of the decision is in what it returns.
func (g *Gate) decide(d *decision, r *RoomReply) (RoomCommit, sequel) {
	next := sequel{told: g.told, toldSeed: g.toldSeed, mints: g.mints, hint: g.hint, short: g.short, pacer: g.pacer.clone()}
	rs := newRoomSums(d, g, r)
	for _, rn := range r.Nodes {
		if rn.Keying == rs.keying && rs.keying > g.keying {
			next.told, next.toldSeed = rn.Keying, rn.Seed
			break
		}
	}
	b := rs.books()
	c := RoomCommit{Room: g.cfg.Name, Agreed: rs.agreed, TTL: rs.ttl, Born: b.born, Cut: g.cut, Pace: Pace{Idle: true}}
	if !rs.agreed {
		c.Config = &rs.plan
	}
	c.Shared = rs.shared
	c.Rate, c.Active, c.Called, c.Queued, c.Waiting, c.Digest, c.First = rs.calls, rs.used, rs.called, rs.queued+rs.due, rs.waiting, r.Digest, rs.first
	c.Bare = rs.bare
	if before := g.cutBefore(rs); before.newer(c.Cut) {
		c.Before, c.Cut = before, before
	}
	c.Bound, c.Held = g.bound, g.heldFor(r.Nodes)
	follows := d.grade >= Primary && g.chooseLine(d, rs, &c)
	supply := r.supply(d.grade, &c)
	c.Supply = supply.left()
	c.Closed = c.Supply > rs.target // on a side too: back among the others, a lease from before the split may last still
	if d.grade < Side {
		return c, next
	}
	next.mints = false
	admits := rs.cfg.OnPartition.admits(d.grade, true, rs.sides)
	if d.grade >= Primary {
		if !follows {
			return c, next
		}
		rs.share(d, &c)
		next.mints = g.account(d, rs, r, supply, &c, &b)
	} else if admits {
		rs.hold(&c, &b)
	}
	g.callNext(d, rs, r, &c, &b, &next, admits)
	return c, next
}

// roomSums are the replies about one room, by list index. What was heard does not change
// while it is decided on.
type roomSums struct {
	plan    Room // the newest configuration, with its events
	cfg     Room // what of it holds at T
	target  int  // the limit: cfg's, or what the governor leaves of it
	agreed  bool
	shared  bool       // some account may act on a side, here or elsewhere
	sides   bool       // those here may: all of them, so that none is void elsewhere
	nodes   []RoomNode // by index; Version.By "" and Born 0 for one that does not have the room
	queued  int
	due     int
	used    int
	called  int
	wanted  int
	ttl     int64
	calls   float64
	keying  uint64 // the newest that anyone holds
	keyed   bool   // everyone holds it
	first   []int  // where each node's people beyond the cut begin, see RoomCommit.First
	waiting []int
	bare    []uint64 // see RoomCommit.Bare
	covers  []Cover
	visits  []VisitCount
	known   int    // slots that a later life of the coordinator would reckon with
	keeps   uint64 // the stamp of the first who is kept of a node that is not in the wave; 0: nobody is
	resumes bool   // visits of earlier lives go on, and not all of them may have been counted
}

// books are the accounts of a room as a decision makes them, by list index: first as they
// were reported.
type books struct {
	born   []uint64
	free   []int
	valid  []bool // the account goes on
	inside int    // slots owned by, or on their way between, valid accounts
	kept   int    // visits of accounts that are lost, where that is all that they use
	lost   []Void // of which something can act yet
	wait   int64  // µs until nothing of it can
}

func (rs *roomSums) books() books {
	b := books{born: make([]uint64, len(rs.nodes)), free: make([]int, len(rs.nodes)), valid: make([]bool, len(rs.nodes))}
	for i, n := range rs.nodes {
		b.born[i], b.free[i] = n.Born, n.Free
	}
	return b
}

func newRoomSums(d *decision, g *Gate, r *RoomReply) *roomSums {
	n := len(d.list)
	rs := &roomSums{
		plan: g.cfg, agreed: len(r.Nodes) == n, nodes: make([]RoomNode, n), waiting: make([]int, n), keyed: true, calls: r.Calls,
		covers: r.Covers, visits: r.Visits, known: g.slotsKnown(),
	}
	if r.Newest != nil && r.Newest.Version.Compare(rs.plan.Version) > 0 {
		rs.plan = *r.Newest
	}
	rs.cfg = rs.plan.At(max(d.t, g.at))
	rs.shared = r.Shared || rs.plan.OnPartition == Share
	rs.target = g.governed(rs.cfg.Target)
	sum := g.sum
	if rs.plan.Version != g.cfg.Version {
		sum = rs.plan.Sum()
	}
	for i := range rs.nodes {
		rs.nodes[i] = RoomNode{Index: i, Lapsed: -1, OldAge: -1, Lightest: qpid.Empty(i)} // of one that has no such room yet
		rs.nodes[i].setOff(d.origins[i])
	}
	bare := make([]uint64, n)
	for _, rn := range r.Nodes {
		rs.nodes[rn.Index] = rn
		rs.nodes[rn.Index].setOff(d.origins[rn.Index])
		rs.waiting[rn.Index] = rn.Queued + rn.Due
		rs.queued += rn.Queued
		rs.due += rn.Due
		rs.wanted += rn.Wanted
		rs.used += rn.Used
		rs.called += rn.Called
		rs.ttl = max(rs.ttl, rn.TTL)
		rs.agreed = rs.agreed && rn.Version == rs.plan.Version && rn.Sum == sum
		rs.keying = max(rs.keying, rn.Keying)
		bare[rn.Index] = rn.Bare
		if rn.Keeps > 0 && (rs.keeps == 0 || rn.Keeps < rs.keeps) {
			rs.keeps = rn.Keeps
		}
	}
	if !slices.Contains(bare, 0) {
		rs.bare = bare
	}
	if r.Digest != nil {
		rs.first = make([]int, n)
		for _, rn := range r.Nodes {
			rs.first[rn.Index] = r.Digest.before(rn.First)
		}
	}
	rs.ttl = max(rs.ttl, micros(rs.plan.longest()))
	accounts := slices.DeleteFunc(slices.Clone(r.Nodes), func(n RoomNode) bool { return n.Born == 0 })
	rs.sides = len(accounts) > 0 && rs.cfg.OnPartition == Share && !slices.ContainsFunc(accounts, func(n RoomNode) bool { return !n.Sides })
	for _, rn := range r.Nodes {
		rs.keyed = rs.keyed && rn.Keying == rs.keying
	}
	return rs
}

// setOff puts a room that was never on a line on the one that its nodes come from.
func (n *RoomNode) setOff(o origin) {
	if !n.Line.Founded() {
		n.Line, n.Voters, n.Lapsed = o.line, o.voters, o.lapsed
	}
}

// cutBefore returns the newest cut of the room's line that any node has. Where sides may
// go on by themselves each has its own.
func (g *Gate) cutBefore(rs *roomSums) (newest Cut) {
	if g.cfg.OnPartition != Majority {
		return Cut{}
	}
	for i := range rs.nodes {
		if n := &rs.nodes[i]; n.Line == g.line && n.Cut.Keying == g.keying && n.Cut.newer(newest) {
			newest = n.Cut
		}
	}
	return newest
}
