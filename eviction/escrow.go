package eviction

import (
	"fmt"
	"math"
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// escrow is this node's part of the room's slots: an account, until when it may act, and
// whom it deals with.
//
// Invariant: the account acts for a lease's time from heldAt on, and no longer. Without an
// account that is never.
// Invariant: the account is open for no longer than a lease, the session of then and 2ε
// after the last wave that let it act, unless it may act on a side.
// Invariant: the account may act on a side only if the room shares, and if a primary wave
// let it act of which every node said that it does.
// Invariant: an account is born after all that were closed here, and no account ever
// comes back.
// Invariant: voids and safe are by member, one of each; members and born are equally
// long.
// Invariant: without has each line once, and withoutMax at most.
type escrow struct {
	ledger    Ledger
	supply    Supply  // of slots in the whole room
	countedAt int64   // boot time from which its census is dated
	line      Line    // that the ledger belongs to
	voters    Voters  // of line, if the node has gone on to another one,
	goes      Vote    // its vote there,
	came      Stay    // the line that the room left for line; zero: it is not known that it did
	without   []Stay  // lines that the node has left while the room was on another one here, the latest last; never changed: another takes its place
	rivals    []Rival // the lives of the names of all their voters
	behind    bool    // when it last replied to a wave, the node had gone on

	sides  bool // the account may act on a side, see sharing.go
	shared bool // some account of the room may, or might by this node's configuration of before

	heldAt   int64        // boot time of the last wave that asked about the room and let the account act
	leasedAt int64        // the same, of primary waves and of any account here
	lapses   int64        // boot time from which on nothing is left of the last lease of an account here, see Gate.lapse
	oldHeld  int64        // heldAt of earlier accounts of this life
	shutBorn uint64       // Born of the last account closed here
	gave     []VisitCount // visits that accounts closed here, and not settled, had on their way to others: see cover

	voids   []Void   // that this node knows of; never changed: another takes its place
	saved   saved    // what a later life would know
	safe    []Void   // that every node of a primary wave knew of
	members []Member // the list of the last commit about the room
	born    []uint64 // their accounts: only these exchange slots with this one
	apart   bool     // they may be on other lines than this one's: none of its slots goes to them
	opens   uint64   // the number of that wave: accounts of it have yet to say that they are open
}

// Void says that every account of Member born at or before Epoch is void: it
// never admits again and its slots are refused.
type Void struct {
	Member Member
	Epoch  uint64
}

func findVoid(vs []Void, m Member) (int, bool) {
	return slices.BinarySearchFunc(vs, m, func(v Void, m Member) int { return v.Member.Compare(m) })
}

// addVoid records v in sorted vs; a later epoch covers an earlier one.
func addVoid(vs []Void, v Void) []Void {
	i, ok := findVoid(vs, v.Member)
	if !ok {
		return slices.Insert(vs, i, v)
	}
	vs[i].Epoch = max(vs[i].Epoch, v.Epoch)
	return vs
}

// install carries out what a commit says of slots: which account is open here, whether it
// may act, and what it has. reset: another account was open until now, and had slots in
// use.
func (e *escrow) install(n *Node, w *wave, c *RoomCommit, f *inForce, grade Grade) (reset bool, out []Message) {
	reset = e.accept(n.self.Member, n.line, c, c.Born[w.index])
	e.shared = c.Shared || grade < Primary && e.shared
	e.sides = e.sides && f.cfg.OnPartition == Share
	e.lease(n, w, c, f, grade)
	if w.index == 0 && c.Born[0] == e.ledger.account.Born {
		e.ledger.mint(c.Mint)
	}
	burned := 0
	for _, b := range c.Burn {
		if b.Index == w.index {
			burned += e.ledger.burn(b.N)
		}
	}
	switch {
	case grade < Primary || e.line != n.line: // of a room that has stayed behind nothing was decided
	case c.Stands == nil:
		e.dateCensus(n.clock.last.Boot, c.Census)
		e.supply = Supply{Line: c.Line, Slots: c.Supply, At: w.epoch, Voters: n.voters.Version, Reckoning: c.Reckoning}
	case e.supply.Line != c.Line || e.supply.holds() == (qpid.Epoch{}) && e.supply.At.Compare(c.Stands.At) < 0:
		e.supply = *c.Stands
	}
	e.supply.Burned += burned // a side knows what it burns, not what others have minted
	e.members, e.born, e.opens = w.list, c.Born, w.epoch.Num
	e.apart = grade < Primary && !e.sides || c.Line.Founded() && e.line != n.line
	return reset, e.moves(w, c, f.cfg.Name)
}

// dateCensus notes at boot time now the census that a commit carries.
func (e *escrow) dateCensus(now int64, c *Census) {
	if old := e.supply.Census; c != nil && (old == nil || old.At != c.At) {
		e.countedAt = now - c.Age
	}
}

// accept takes in which account of self, a node on a line, is open now, and which are void.
func (e *escrow) accept(self Member, line Line, c *RoomCommit, born uint64) (reset bool) {
	if c.Line.Founded() {
		if born != e.ledger.account.Born && born > e.shutBorn {
			reset = e.reopen(Account{self, born})
		}
		if e.line != line || c.Line != line {
			e.follow(line, c)
		} else if e.goes = (Vote{}); c.Sure && e.supply.Sure && e.supply.Line == line {
			e.came, e.without, e.rivals = Stay{}, nil, nil // see leaving.go
		}
	}
	for _, v := range c.Void {
		if !e.voided(Account{v.Member, v.Epoch}) {
			e.voids = addVoid(slices.Clone(e.voids), v)
		}
	}
	if c.Safe != nil || c.Settled != nil {
		e.safe = c.Safe
	}
	for _, v := range c.Settled {
		e.ledger.fold(v)
		if v.Member == self {
			e.oldHeld, e.gave = never, nil
		}
	}
	return reset
}

// lease lets the account act from the gather on, if the coordinator has looked
// at it. A wave that does not ask about the room leases nothing of it: the
// account may be void and nobody here know.
func (e *escrow) lease(n *Node, w *wave, c *RoomCommit, f *inForce, grade Grade) {
	born := e.ledger.account.Born
	if born == 0 || c.Born[w.index] != born {
		return
	}
	primary := grade >= Primary && c.Line.Founded() && e.line == n.line
	if primary {
		e.leasedAt = w.at
		e.sides = e.sides || c.Sides && f.cfg.OnPartition == Share
	}
	if primary || grade >= Side && e.sides {
		e.heldAt = w.at
		e.lapses = w.at + drifted(micros(n.c.Lease+f.session)) + 2*micros(n.c.MaxSkew)
	}
}

// moves carries out the node's own rows of the slot plan, but for what goes to an account
// that this node knows to be void, and the coordinator of a side may not.
func (e *escrow) moves(w *wave, c *RoomCommit, room string) (out []Message) {
	for _, m := range c.Moves {
		if m.From != w.index || c.Born[m.To] == 0 {
			continue
		}
		to := Account{w.list[m.To], c.Born[m.To]}
		if e.voided(to) {
			continue
		}
		if s := e.ledger.send(to, m.Slots); s != nil {
			out = append(out, e.carry(room, s))
		}
	}
	return out
}

// carry is the message to the account that s is for, in a room. It says on which line the slots
// are: there they stay.
func (e *escrow) carry(room string, s *Slots) Message {
	m := *s
	m.Room, m.Line = room, e.line
	return Message{From: s.From.Member, To: s.To.Member, Body: &m}
}

// reopen closes the account and opens another; it reports whether the old one
// had anything in use, or on its way to be used elsewhere.
func (e *escrow) reopen(a Account) (used bool) {
	used = e.ledger.used > 0 || len(e.ledger.given) > 0
	e.oldHeld = max(e.oldHeld, e.heldAt)
	e.heldAt = never
	e.sides = false
	e.shutBorn = max(e.shutBorn, e.ledger.account.Born)
	e.gave = e.giving()
	e.ledger.reset(a)
	return used
}

// giving is how many visits are on their way to others from here, also of accounts that were closed since.
func (e *escrow) giving() (to []VisitCount) {
	to = slices.Clone(e.gave)
	for _, s := range e.ledger.given {
		to = addVisits(to, VisitCount{s.To.Member, len(s.Visits)})
	}
	return to
}

// voided reports whether account a may never act again.
func (e *escrow) voided(a Account) bool {
	i, ok := findVoid(e.voids, a.Member)
	return ok && a.Born <= e.voids[i].Epoch
}

// saved is what a later life of this node would know of voids and of the supply. What others hear of these
// waits for the disk; a coordinator, who may be a quorum by itself, hears its own word at once, and
// makes slots by no more than that.
type saved struct {
	voids []Void
	over  []Void // see resumed
	slots int    // of the supply
}

// slotsKnown is how many slots a later life of this node would reckon with.
func (g *Gate) slotsKnown() int {
	if g.durable == unbounded {
		return math.MaxInt
	}
	return g.saved.slots
}

// knows is what this node says of void v in wave w.
func (g *Gate) knows(w *wave, v Void) VoidCount {
	c := VoidCount{v.Member, v.Epoch, v.Epoch, 1}
	if w.index > 0 || g.durable == unbounded {
		return c
	}
	saved := g.saved.voids
	if g.sured { // what is lowered of a claim is never to be resumed
		saved = g.saved.over
	}
	if i, ok := findVoid(saved, v.Member); ok {
		c.Min = min(v.Epoch, saved[i].Epoch)
	} else {
		c.Nodes = 0
	}
	return c
}

// current reports whether a is an account that the last commit listed. Only
// such accounts exchange slots: to refuse what is known to be void is not
// enough, since that is forgotten in time, and a link may be stuck for longer.
func (e *escrow) current(a Account) bool {
	i := slices.Index(e.members, a.Member)
	return i >= 0 && i < len(e.born) && e.born[i] == a.Born && !e.voided(a)
}

// isSafe reports whether every node of a primary wave knew a to be void.
func (e *escrow) isSafe(a Account) bool {
	i, ok := findVoid(e.safe, a.Member)
	return ok && a.Born <= e.safe[i].Epoch
}

// forget drops voids of members that no one can hear of any more, and reports
// whether there were any.
func (e *escrow) forget(heardOf func(Member) bool) bool {
	gone := func(v Void) bool { return !heardOf(v.Member) }
	if !slices.ContainsFunc(e.voids, gone) {
		return false
	}
	e.voids = slices.DeleteFunc(slices.Clone(e.voids), gone)
	return true
}

// resend repeats transfers to listed accounts that were not acknowledged.
func (g *Gate) resend(list []Member) (out []Message) {
	for _, p := range g.ledger.peers {
		if p.Acked < p.Sent && slices.Contains(list, p.Member) && g.current(p.Account) {
			for _, s := range g.ledger.unacked(p) {
				out = append(out, g.carry(g.cfg.Name, s))
			}
		}
	}
	return out
}

// SendTo moves up to n free slots to the account of the listed node called
// name. The message is nil if there is nobody or nothing to send.
func (g *Gate) SendTo(self Member, name qpid.NodeID, n int) *Message {
	if g.apart {
		return nil
	}
	for i, m := range g.members {
		if m.Name == name && m != self && i < len(g.born) && g.born[i] > 0 && !g.voided(Account{m, g.born[i]}) {
			if s := g.ledger.send(Account{m, g.born[i]}, n); s != nil {
				out := g.carry(g.cfg.Name, s)
				return &out
			}
		}
	}
	return nil
}

// Give has the account of a listed node go on with visits, on the slots that they
// use. It returns false if that node has no account, or one of which it has not said itself that it is open:
// if the commit that opens it is lost, the next one opens another, and nobody ever had the slots of the first.
func (g *Gate) Give(self, to Member, visits []Visit) ([]Message, bool) {
	i := slices.Index(g.members, to)
	if i < 0 || to == self || i >= len(g.born) || g.born[i] == 0 || g.born[i] == g.opens || g.voided(Account{to, g.born[i]}) || g.apart || g.promised {
		return nil, false
	}
	var out []Message
	for part := range slices.Chunk(visits, VisitsMax) {
		out = append(out, g.carry(g.cfg.Name, g.ledger.give(Account{to, g.born[i]}, part)))
	}
	return out, true
}

func (n *Node) onSlots(from Member, m *Slots) error {
	if m.From.Member != from || !count(m.Total) || len(m.Visits) > min(VisitsMax, m.Total) {
		return fmt.Errorf("eviction: %v sends %d slots of %v", from, m.Total, m.From)
	}
	g := n.Gate(m.Room)
	if g == nil || m.To.Born == 0 || m.To != g.ledger.account || m.From == m.To || !g.current(m.From) || m.Line.Founded() && m.Line != g.line {
		return nil
	}
	if len(m.Visits) > 0 && n.clock.last.Boot >= n.LeaseOf(g) {
		return nil // the account may lapse, and be taken to be over, before their passes are
	}
	if len(m.Visits) > 0 && (g.promised || g.Earlier != nil) && g.Keep != nil && !g.Keep(m) {
		return nil // their passes are out, and no heir of this node keeps them yet, or its disk
	}
	ack, visits := g.ledger.receive(m)
	n.send(from, ack)
	g.busy = true
	if len(visits) > 0 {
		n.done = append(n.done, Installed{Gate: g, Before: g.cut, Epoch: n.installed, Visits: visits, From: m.From})
	}
	if n.parted { // they were on their way when it said so
		n.handOn(g)
	}
	return nil
}
