package simtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// decided is what one epoch decided.
type decided struct {
	epoch  qpid.Epoch
	commit *eviction.Commit
}

// S6, epochs. A node's epochs never fall, and an epoch of one line has one
// commit. (A cluster that has forgotten everything begins again at 1, on
// another line.)
func (w *world) checkEpochs(h *host, before, s *node.Status) {
	if s.Epoch.Compare(before.Epoch) < 0 || s.Installed.Compare(before.Installed) < 0 {
		w.fail("S6", "%s: epoch falls from %v to %v, installed from %v to %v", h.name, before.Epoch, s.Epoch, before.Installed, s.Installed)
	}
	if s.Installed.Compare(s.Epoch) > 0 {
		w.fail("S6", "%s: has installed %v and seen only %v", h.name, s.Installed, s.Epoch)
	}
}

// checkCommit compares a commit with others of its epoch, and follows what the
// newest one decided.
func (w *world) checkCommit(h *host, m *eviction.Commit) {
	c := &w.checker
	for i := range c.commits {
		if c.commits[i].epoch != m.Epoch || c.commits[i].commit.Line != m.Line {
			continue
		}
		if first := c.commits[i].commit; !w.sameDecision(first, m) {
			w.fail("S6", "%s sends another commit of %v: %s and %s", h.name, m.Epoch, w.body(first), w.body(m))
		}
		return
	}
	const remembered = 64
	if len(c.commits) == remembered {
		c.commits = slices.Delete(c.commits, 0, remembered/2)
	}
	c.commits = append(c.commits, decided{m.Epoch, m})
	for i := range w.hosts {
		if o := &w.hosts[i]; o.up() && o.seen.status.Installed == m.Epoch {
			w.uncovered(o, &o.seen.status)
		}
	}
	w.followCommit(m)
}

// sameDecision compares commits of one epoch. Each subtree gets its own RestMin.
func (w *world) sameDecision(a, b *eviction.Commit) bool {
	if a.Grade != b.Grade || a.Line != b.Line || a.HLC != b.HLC || a.Carried != b.Carried || len(a.Rooms) != len(b.Rooms) {
		return false
	}
	if a.Voters.Version > 0 && b.Voters.Version > 0 && !sameVoters(&a.Voters, &b.Voters) { // else one has left them out, see S21
		return false
	}
	return len(a.Rooms) == 0 || &a.Rooms[0] == &b.Rooms[0] || w.body(a) == w.body(b)
}

// followCommit counts what a wave decided.
func (w *world) followCommit(m *eviction.Commit) {
	c, n := &w.checker, &w.reached.n
	if m.Grade >= eviction.Primary && m.Line != c.line && m.Epoch.Compare(c.newest) > 0 {
		c.line = m.Line
	}
	if c.lead != "" && m.Epoch.Coordinator != c.lead {
		n[reachNewLead]++
	}
	c.lead = m.Epoch.Coordinator
	if m.Epoch.Compare(c.newest) > 0 {
		c.newest = m.Epoch
	}
	for i := range m.Rooms {
		rc := &m.Rooms[i]
		r := w.roomIndex(rc.Room)
		if r == none {
			continue
		}
		w.followRoomCommit(m, rc, r)
	}
}

func (w *world) followRoomCommit(m *eviction.Commit, rc *eviction.RoomCommit, r int) {
	w.checkClaims(m, rc, r)
	w.checkReckoned(m, rc, r)
	w.checkCensus(m, rc, r)
	n := &w.reached.n
	count := func(g goal, is bool) {
		if is {
			n[g]++
		}
	}
	count(reachVoid, len(rc.Void) > 0)
	count(reachSettled, len(rc.Settled) > 0)
	count(reachMint, rc.Mint > 0)
	count(reachBurn, len(rc.Burn) > 0)
	count(reachMoves, len(rc.Moves) > 0)
	count(reachPaced, rc.Paced)
	count(reachDrawn, rc.Key.Num > 0)
	if m.Grade >= eviction.Primary {
		count(reachOpenShut, w.checker.open[r] && !rc.Open)
		count(reachShutOpen, !w.checker.open[r] && rc.Open)
		w.checker.open[r] = rc.Open
		w.checker.rooms[r].settled = append(w.checker.rooms[r].settled, rc.Settled...)
	}
}

// S7, the cut. It never falls within one keying of one line, and is never beyond the
// T of its wave: whoever was stamped later is not counted.
func (w *world) checkCut(h *host, old, rs *node.RoomStatus) {
	if rs.Line == old.Line && rs.Cut.Keying == old.Cut.Keying && rs.Cut.Value.Less(old.Cut.Value) {
		w.fail("S7", "%s room %s: the cut falls from %s to %s", h.name, rs.Room.Name, weight(old.Cut.Value), weight(rs.Cut.Value))
	}
	if cut, t := rs.Cut, w.checker.newestT[rs.Cut.Epoch]; cut != old.Cut && cut.Value != (qpid.Weight{}) && qpid.UpTo(t).Less(cut.Value) {
		w.fail("S7", "%s room %s: the cut of wave %d is %s, beyond its T %d", h.name, rs.Room.Name, cut.Epoch, weight(cut.Value), int64(t)-epochWall)
	}
	if rs.Cut.Keying < old.Cut.Keying {
		w.fail("S7", "%s room %s: keying falls from %d to %d", h.name, rs.Room.Name, old.Cut.Keying, rs.Cut.Keying)
	}
}

// S4, roots. Among nodes whose weight tables of the room are of the same epoch
// and which are not frozen, at most one is the QPID root; at quiescence of a
// healed world, with all tables of one epoch and none waiting for the next wave
// (as when a ticket is found to wait twice), exactly one is, and (S5) it holds
// the lightest ticket.
func (w *world) checkRoots(r int) {
	if w.o.Rooms[r].Algorithm != eviction.ByQPID {
		return
	}
	var roots []*host
	var epoch qpid.Epoch
	quiet, n := w.phase >= settled && w.wires.qpid == 0, 0
	for i := range w.hosts {
		h := &w.hosts[i]
		if !h.up() {
			continue
		}
		rs, frozen := &h.seen.rooms[r], h.seen.status.Frozen
		n++
		if n == 1 {
			epoch = rs.QPIDEpoch
		}
		quiet = quiet && !frozen && !rs.QPIDFrozen && h.running() && rs.QPIDEpoch == epoch
		if !rs.QPIDRoot || frozen {
			continue
		}
		for _, o := range roots {
			if o.seen.rooms[r].QPIDEpoch == rs.QPIDEpoch {
				w.fail("S4", "room %s: %s and %s are both root in epoch %v", rs.Room.Name, o.name, h.name, rs.QPIDEpoch)
			}
		}
		roots = append(roots, h)
	}
	if !quiet || epoch == (qpid.Epoch{}) {
		return
	}
	if len(roots) != 1 {
		w.fail("S4", "room %s: %d roots with nothing in flight", w.o.Rooms[r].Name, len(roots))
		return
	}
	w.checkLightest(r, roots[0])
}

func (w *world) checkLightest(r int, root *host) {
	var least *place
	for i := range w.crowd.tickets {
		if t := &w.crowd.tickets[i]; int(t.room) == r && t.state == queued && t.entitledAt == 0 && !t.touched && t.allow == 0 &&
			w.hosts[t.home].mishaps == t.base && (least == nil || t.stamp < least.stamp) {
			least = t
		}
	}
	if least == nil || least.home == root.index {
		return
	}
	if first, ok := root.n.Lightest(w.o.Rooms[r].Name); ok && first.Stamp <= least.stamp {
		return // which may be of a ticket that came late, or a copy of one
	}
	w.fail("S5", "room %s: %s is root and ticket %d waits at %s, lighter than all there", w.o.Rooms[r].Name,
		root.name, w.ticketOf(least.id), w.hosts[least.home].name)
}

// S12, void is void. An account that its own node holds for void, or that a
// primary wave has settled, calls nobody, lets nobody in and extends nothing, and no wave
// leaves it a lease by which it might. A machine that stood still has not seen its own lapse until it hears of the time, see Standstill.
func (w *world) checkVoid(h *host, r int, rs *node.RoomStatus) {
	switch {
	case covers(rs.Voided, rs.Account):
		w.fail("S12", "%s room %s: account %s may act and is void: %s", h.name, rs.Room.Name, w.account(rs.Account), w.voids(rs.Voided))
	case w.checker.rooms[r].sides == 0 && !h.stopped && covers(w.checker.rooms[r].settled, rs.Account):
		w.fail("S12", "%s room %s: account %s may act and was settled", h.name, rs.Room.Name, w.account(rs.Account))
	}
}

// ledgers describes all accounts of a room.
func (w *world) ledgers(r int) string {
	var s strings.Builder
	c := &w.checker.rooms[r]
	for i := range c.accounts {
		a := &c.accounts[i]
		state := "alive"
		if a.life == none || w.lives[a.life].over {
			state = "dead"
		}
		fmt.Fprintf(&s, "\n  %s %s line %d/%s owns %d minted %d backs %d sessions", w.account(a.Account), state,
			a.line.Stamp, a.line.By, a.owned, a.minted, a.live)
		for _, p := range a.peers {
			if p.Sent != 0 || p.Received != 0 {
				fmt.Fprintf(&s, " [%s -%d +%d]", w.account(p.Account), p.Sent, p.Received)
			}
		}
	}
	for i := range w.hosts {
		if h := &w.hosts[i]; h.up() {
			rs, st := &h.seen.rooms[r], &h.seen.status
			fmt.Fprintf(&s, "\n  at %s: account %s %v lease %v owned %d used %d called %d queued %d voided%s", h.name,
				w.account(rs.Account), st.Grade, micros(st.LeaseUntil-h.clock.boot(w.now)), rs.Owned, rs.Used, rs.Called,
				rs.Queued, w.voids(rs.Voided))
		}
	}
	return s.String()
}
