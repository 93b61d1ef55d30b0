package eviction

import "slices"

// Each visit can be kept by an heir, as a place is, and then a loss costs no slot: what the
// account of a lost node can still use is the visits that others keep of it, and no more.
// So its claim (see Supply) is lowered to those, as soon as all know that it is void, and
// the slots of the others are made again.
//
// A node says in its reply to a wave that its account is covered: for each pass of the
// account that is out, a member of that wave keeps the visit, until a time that the pass
// does not outlast. From that reply on, the node gives no pass that is not kept so
// (promised), and takes in no visit of a leaving node, nor gives one away, since their passes
// are out already. It may only when a primary wave has carried it that it is not covered.
//
// An heir forgets a visit when its home says that it is over, when it has run out, or when
// it is somebody's own visit, with a slot. It keeps none of a node that was not in the last
// wave that it installed.
//
// It also forgets one that is ended by its bearer while the home is out of the waves. The
// home may be alive, and be shown another copy of the pass: so it gives no pass by a word of
// the heir that is older than three quarters of exclude_after, and the heir ends none for a
// whole one after its last word. A node that is not in its waves gets no word of it, so
// nothing that the heir has ended is given again.
//
// Visits that a node gives away are nobody's while they are on their way, and their slots count
// as the receiver's if that is lost: so the giver counts them, too, also once its own account has been closed, until that is settled (giving).
//
// Proof that a lost account of x then uses no more than the visits that the members of a
// wave keep of it (uses). Let w be the wave by which it was covered last, as far as the
// wave knows, and let nobody but x be missing of all who were in a wave since w. By lemma 6
// somebody here was in the last primary wave of x, and saw its list; so all that were in any
// wave with x since w are here, in this life. Among them is the coordinator of each of
// those waves, who knows what x said: were there a word that it is not covered, or what
// only a wave without one of them could have carried, it would be known here. So x has
// promised since w, and whoever it may have had keep a visit is in this wave. Each of them
// knows x to be void, as all do of whom there is a claim, by a wave without it, and none with
// it has followed: what it does not keep in its reply it will not keep, and so
// no pass of it is out, or will be. Nor is that of a visit that was on its way to x: who gave
// it is here, in this life, and counts it, or the passes of the account that gave it are over; or that was lost before w, so that its slot is in the claim of that one. Of the slots that x owns beside those visits none is
// used any more when its lease is over: nobody takes them, and nobody is called to them.
//
// That is so of an account that is the first of its life: of one before, passes may be
// about that nobody keeps. And it is so only when visits of earlier lives are not about to
// go on by it (see resume): their passes are out already. They do not once a wave of its life has
// counted all slots (MayResume).
type cover struct {
	carried  bool    // the last primary wave carried what was said: its coordinator is of a version that does
	promised bool    // nobody gets a pass of this account whom no heir keeps
	retracts bool    // the next replies say that it is not covered, so that this can end
	said     said    // by those of the list
	missed   []Cover // the last word of others, by member; never changed: another takes its place
}

// said is what a commit has carried of those in its wave: they share the list.
type said struct {
	at   uint64 // number of the wave
	list []Member
	of   []bool
}

// Says is what a node says in a wave of its account in a room.
type Says uint8

const (
	// SaysNothing is what nodes say of a version that keeps no visits: beside one no
	// account is covered.
	SaysNothing Says = iota
	// NotCovered is said of an account of which somebody may have a pass whom nobody keeps.
	NotCovered
	// IsCovered is the promise of cover.
	IsCovered
)

// Cover is what a member said last of its account in a room.
type Cover struct {
	Member Member
	At     uint64 // number of the wave
	Is     bool   // it is covered
}

// VisitCount is how many visits of a member others keep.
type VisitCount struct {
	Member Member
	Visits int
}

// Keeping is what the owner of a gate says in a wave of who keeps what.
type Keeping struct {
	Bare, Keeps uint64       // see RoomNode
	Covered     bool         // each pass that is out is kept by a member of the wave
	Visits      []VisitCount // that are kept here of members that are not in the wave
}

// Promised reports whether nobody may get a pass whom no heir keeps for as long as it is good.
func (c *cover) Promised() bool { return c.promised }

// Retract has the promise end as soon as all may know, and reports whether it was to last
// until now.
func (c *cover) Retract() bool {
	was := c.retracts
	c.retracts = c.promised
	return c.promised && !was
}

// coverNow is what the reply to a wave says of it: covered is whether all is kept.
func (g *Gate) coverNow(covered bool) Says {
	covered = covered && g.carried && !g.retracts && g.ledger.account.Born > 0 && g.oldHeld == never && !g.sides
	if !covered {
		return NotCovered
	}
	g.promised = true
	return IsCovered
}

// installCovers takes in what a primary wave has carried.
func (c *cover) installCovers(w *wave, of []bool) {
	c.carried = of != nil
	if !c.carried {
		of = make([]bool, len(w.list))
	}
	c.said = said{w.epoch.Num, w.list, of}
	c.promised = of[w.index]
	c.retracts = c.retracts && c.promised
}

// missCovers keeps the last word of those who are not in a list, of the met: who is
// remembered.
func (c *cover) missCovers(list []Member, met []Sighting) {
	c.missed = slices.DeleteFunc(c.coversBut(list), func(o Cover) bool {
		return !slices.ContainsFunc(met, func(s Sighting) bool { return s.Member == o.Member })
	})
}

// coversBut returns what was said by those who are not in a list.
func (c *cover) coversBut(list []Member) (out []Cover) {
	if len(c.missed) == 0 && slices.Equal(c.said.list, list) {
		return nil
	}
	for _, o := range c.missed {
		if !slices.Contains(list, o.Member) {
			out = addCover(out, o)
		}
	}
	for i, m := range c.said.list {
		if !slices.Contains(list, m) {
			out = addCover(out, Cover{m, c.said.at, c.said.of[i]})
		}
	}
	return out
}

// addCover records o in cs, which are by member; of two of one wave's number the lesser counts.
func addCover(cs []Cover, o Cover) []Cover {
	i, ok := slices.BinarySearchFunc(cs, o.Member, func(c Cover, m Member) int { return c.Member.Compare(m) })
	switch {
	case !ok:
		return slices.Insert(cs, i, o)
	case cs[i].At == o.At:
		cs[i].Is = cs[i].Is && o.Is
	case cs[i].At < o.At:
		cs[i] = o
	}
	return cs
}

func addVisits(vs []VisitCount, o VisitCount) []VisitCount {
	i, ok := slices.BinarySearchFunc(vs, o.Member, func(v VisitCount, m Member) int { return v.Member.Compare(m) })
	if !ok {
		return slices.Insert(vs, i, o)
	}
	vs[i].Visits += o.Visits
	return vs
}

// uses returns what the account of m can still use at the most, if others keep all of it:
// see cover.
func (rs *roomSums) uses(d *decision, m Member) (visits int, ok bool) {
	i, known := slices.BinarySearchFunc(rs.covers, m, func(c Cover, m Member) int { return c.Member.Compare(m) })
	old := func(n RoomNode) bool { return n.Says == SaysNothing } // it may have run the waves, and not told what x said last
	if !known || !rs.covers[i].Is || rs.shared || slices.ContainsFunc(rs.nodes, old) || slices.Contains(d.list, m) {
		return 0, false
	}
	over := false
	for _, s := range d.met {
		switch {
		case s.Member == m:
			over = s.Age >= d.reckons.leaseOver() // though it has a later life here: that may be another node of its name
		case s.Epoch >= rs.covers[i].At:
			return 0, false
		}
	}
	if !over {
		return 0, false
	}
	for _, k := range rs.visits {
		if k.Member == m {
			visits = k.Visits
		}
	}
	return visits, true
}

// lowered returns the claims with no more in any than its accounts can use, and how many that
// is in all where it is known.
func (rs *roomSums) lowered(d *decision, cs []Claim) (low []Claim, kept int) {
	for i, c := range cs {
		most, all := 0, true
		for _, v := range c.Of {
			n, ok := rs.uses(d, v.Member)
			most, all = most+n, all && ok
		}
		if all && most < c.Slots {
			cs = slices.Clone(cs)
			cs[i].Slots = most
		}
		if all {
			kept += cs[i].Slots
		}
	}
	return cs, kept
}
