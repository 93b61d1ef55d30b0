package eviction

import (
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// Supply says how many slots may exist, as the last primary wave left it, and who
// of the lost may still use how many of them. Slots are minted by it: as the D of
// each loss ends, whatever else was lost since.
//
// Invariant, if Sure: at any time
//
//	Σ owned or under way in the wave's accounts + what the newly lost can use + Σ Claims.Slots ≤ left()
//
// and who is in a claim can use no more than that claim says. The newly lost are
// the accounts outside the wave whose D is not over and that are in no claim.
//
// Proof. Nothing but a mint adds to the left side. While somebody is newly lost
// nothing is minted, since they may have all that is missing. They get a claim as
// soon as every node of a wave has replied that they are void (close): of that
// moment their share is known, left() minus the rest. From then on no slot passes
// between them and anybody else: nodes neither send to nor take from a void
// account, and who was lost later has replied that it knew. What was on its way to
// them counts as theirs, and what was on its way from them is refused, and stays
// theirs. All the newly lost get one claim together, since they may still send
// each other something.
//
// A claim is lowered to the visits of its accounts that others keep, or kept when that was noted (Most), as soon as those use no
// more for certain (see cover), and ends when nothing of them can act any more (safe, and
// silent for D). The supply that no longer has it, or less of it, or that has a raised limit in it, is first
// brought to every node by one wave, and what it leaves is minted by a later one
// that finds exactly it at every listed node. So no mint is unknown to those who
// outlive its coordinator: every later primary wave shares with that one a node
// that held this supply, or a newer one that followed from it. This is Paxos: the
// epoch is the ballot, the reply the promise, the install the acceptance. A node
// that restarted has accepted nothing, disk or not: what is on the disk is not
// synced with every wave. A supply of earlier voters may have been followed by one
// that those of now have not heard of, since they can change in waves that do not
// ask about the room. Unless a quorum of the same voters remembers, nothing is Sure,
// and slots are minted when nothing of anybody lost can act, or by a Census.
//
// A wave in which no quorum remembers, but those who do would be one with others who are not void yet, leaves
// what its nodes have accepted (RoomCommit.Stands): in Paxos, a ballot that proposes nothing.
// Whoever remembers none notes how many slots the newest has, under its own number, so that it hides nothing that
// others hold. As to the supply it is then as if this wave had not asked about the room: it mints nothing; visits go
// on (resume) only where nobody who is listed remembers, and here somebody does, as those who are not listed are
// no quorum; what it burns each node takes off what it has, or is reckoned with; the accounts that it opens own
// nothing; and whom it voids is newly lost. Nothing is counted meanwhile that could be: a census has to wait
// until all who were lost are void. If others are not back by then, the next wave is one of those who do not
// remember, as above.
//
// Until then what the newest supply leaves is no less than exists, if those of the last
// voters reply who were asked about the room, and nobody is called while it is more than
// the limit: slots of the lost may have been made when that was higher. For one who
// replies, y, was in the wave of the last mint. What y holds is of that wave or a later
// one; or y restarted, and its disk has as many Slots, or those of a later wave: it syncs a
// larger supply before it speaks (RoomRecord.differs), and takes nothing off for what
// was burned. If z knows of a newer supply than y, z was in that wave too, so that
// the same holds for z, or after it: who was not in it was void by then, and y synced
// that with the supply of a wave after the last one that z was in.
//
// A coordinator makes slots by its own word, too, and may be a quorum by itself: others hear
// of a supply and of a void when it is synced, and it makes slots by no more than its disk has of these.
type Supply struct {
	Line   Line // whose
	Slots  int
	At     qpid.Epoch // of the wave
	Voters uint64     // the version in force since that wave
	Burned int        // of them, by this node since
	Reckoning
}

// Reckoning is what a wave knows of the slots of those who are lost. It is never changed.
type Reckoning struct {
	Sure   bool
	Claims []Claim
	Census *Census // if it is not Sure, and all that can be counted was
}

// Claim bounds what accounts that were lost together may still use.
type Claim struct {
	Of    []Void
	Slots int // all of them together
	Most  int // 1 more than all of them can use once their leases are over, as was noted before that; 0: it is not known
}

// claimsMax bounds the claims of a room. Further losses go to the last one.
const claimsMax = 64

// left returns how many can be left.
func (s Supply) left() int { return s.Slots - s.Burned }

// holds is the wave whose supply this node has accepted in this life.
func (s Supply) holds() qpid.Epoch {
	if !s.Sure && s.Census == nil {
		return qpid.Epoch{}
	}
	return s.At
}

// merge adds what others have burned; of two waves the later one counts. A disk has only a part of one.
func (s Supply) merge(o Supply) Supply {
	switch c := s.At.Compare(o.At); {
	case c < 0:
		return o
	case c == 0:
		burned := s.Burned + o.Burned
		if s.holds() == (qpid.Epoch{}) || o.Census != nil && s.Census != nil && o.Census.Age > s.Census.Age {
			s = o
		}
		s.Burned = burned
	}
	return s
}

// supply returns the supply of the line that a commit of a primary wave is on, or of the
// one that this line continues: what other lines have counts nothing there. A side has
// that of the latest wave.
func (r *RoomReply) supply(grade Grade, c *RoomCommit) (of Supply) {
	var from Supply
	for _, s := range r.Supply {
		switch {
		case grade < Primary || s.Line == c.Line:
			of = of.merge(s)
		case c.From.Founded() && s.Line == c.From:
			from = s
		}
	}
	if of.At == (qpid.Epoch{}) {
		return from
	}
	return of
}

// accepted reports whether s, if it is Sure or has a census, is the newest supply that may have been acted upon:
// those of a quorum hold one, so that of the same voters none is newer. A newer
// version of the voters that went unnoticed had a proposal first, whose quorums
// are quorums of either version.
func (rs *roomSums) accepted(d *decision, s Supply, line Line) bool {
	return s.holds() != (qpid.Epoch{}) && s.Line == line && s.Voters == d.voters.Version && d.voters.quorum(rs.holders(d, line))
}

// holders names those who hold a supply of the line that is Sure or has a census.
func (rs *roomSums) holders(d *decision, line Line) (hold []qpid.NodeID) {
	for i, n := range rs.nodes {
		if n.Holds != (qpid.Epoch{}) && n.Line == line && d.votes[i] {
			hold = append(hold, d.list[i].Name)
		}
	}
	return hold
}

// mayRecall reports whether those who hold a supply are no quorum in this wave, and may be one in a later
// wave: with those whom this one lacks and who are not void yet.
func (rs *roomSums) mayRecall(d *decision, line Line, voids []Void) bool {
	hold := rs.holders(d, line)
	if d.voters.quorum(hold) {
		return false
	}
	for _, m := range d.met {
		if i, void := findVoid(voids, m.Member); !void || voids[i].Epoch < m.Epoch {
			hold = append(hold, m.Member.Name)
		}
	}
	return d.voters.quorum(hold)
}

// chosen reports whether every listed node holds s.
func (rs *roomSums) chosen(s Supply) bool {
	return !slices.ContainsFunc(rs.nodes, func(n RoomNode) bool { return n.Holds != s.At })
}

// make sets the supply and what is minted, of accounts that own inside slots
// while those of lost are not over. It returns how many visits of lost accounts others keep,
// where they use no more, and whether a next wave will mint.
func (rs *roomSums) make(d *decision, s Supply, c *RoomCommit, inside int, lost []Void, safe map[Member]uint64) (kept int, more bool) {
	target := rs.target
	c.Claims, kept = rs.lowered(d, open(s.Claims, lost), safe)
	left, claimed := s.left()-(slotsOf(s.Claims)-slotsOf(c.Claims)), slotsOf(c.Claims)
	fresh := slices.DeleteFunc(slices.Clone(lost), func(v Void) bool { return claims(s.Claims, v) })
	switch {
	case len(fresh) == 0:
		if rs.chosen(s) && s.Slots <= rs.known {
			c.Mint = max(0, min(target, s.left())-inside-slotsOf(s.Claims))
		}
	case !rs.shared && known(fresh, safe):
		share := max(0, left-inside-claimed)
		c.Claims, kept = rs.lowered(d, closed(c.Claims, Claim{Of: fresh, Slots: share}), safe)
		claimed = slotsOf(c.Claims)
	default: // they may still send each other something, or somebody here; sides that share always may
		c.Supply = left
		return kept, false
	}
	c.Supply = max(target, inside+c.Mint+claimed)
	return kept, target > inside+c.Mint+claimed && s.Slots <= rs.known
}

// open returns the claims of which somebody is still lost, with those alone: they can use no more than all did.
func open(cs []Claim, lost []Void) (open []Claim) {
	for _, c := range cs {
		of := slices.DeleteFunc(slices.Clone(c.Of), func(v Void) bool {
			return !slices.ContainsFunc(lost, func(l Void) bool { return l.Member == v.Member })
		})
		if len(of) > 0 {
			open = append(open, Claim{of, c.Slots, c.Most})
		}
	}
	return open
}

// claims reports whether all accounts of v are in a claim.
func claims(cs []Claim, v Void) bool {
	return slices.ContainsFunc(cs, func(c Claim) bool {
		return slices.ContainsFunc(c.Of, func(o Void) bool { return o.Member == v.Member && v.Epoch <= o.Epoch })
	})
}

// known reports whether every node has replied that all of lost are void.
func known(lost []Void, safe map[Member]uint64) bool {
	return !slices.ContainsFunc(lost, func(v Void) bool {
		e, ok := safe[v.Member]
		return !ok || e < v.Epoch
	})
}

// closed adds a claim. What accounts of two can use is known if both are.
func closed(cs []Claim, c Claim) []Claim {
	if len(cs) < claimsMax {
		return append(slices.Clone(cs), c)
	}
	cs = slices.Clone(cs)
	last := &cs[len(cs)-1]
	most := 0
	if last.Most > 0 && c.Most > 0 {
		most = last.Most + c.Most - 1
	}
	*last = Claim{slices.Clone(last.Of), last.Slots + c.Slots, most}
	for _, v := range c.Of { // of one that is lost again and again the latest covers all
		if i := slices.IndexFunc(last.Of, func(o Void) bool { return o.Member == v.Member }); i >= 0 {
			last.Of[i].Epoch = max(last.Of[i].Epoch, v.Epoch)
		} else {
			last.Of = append(last.Of, v)
		}
	}
	return cs
}

func slotsOf(cs []Claim) (n int) {
	for _, c := range cs {
		n += c.Slots
	}
	return n
}
