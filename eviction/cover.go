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
// What it can use then is known long before, and noted (Claim.Most): in a wave as above in which each node has replied, too, that x
// is void as of the last wave that it was in. Whoever is lost later, that stays an upper bound: visits end, run out, or go on with
// another account's slot, and no more come to be. For x, whose lease may last, gives a pass only by the word of an heir that was in the last wave that it has
// installed, a primary one. That was before this one, so the heir is here, and it keeps nothing more of one that it knows to be void
// (MayKeep; each node of the wave says that it heeds that), until it has a primary wave with it again. Each later primary wave knows of that (lemma 6), by a sighting that is
// newer than the claim: then nobody goes by what was noted, as x may have missed the commit, and act by its old account yet. So it is the least of what
// waves have noted, it is gone by only when the lease is over, and who kept the visits need not be here any more (lowered).
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

// MayKeep reports whether visits of m may come to be kept here: of one that is known to be void only
// once a primary wave has it again.
func (g *Gate) MayKeep(m Member) bool {
	_, void := findVoid(g.voids, m)
	return !void || slices.Contains(g.said.list, m)
}

// uses returns what the account of m can still use at the most when its lease is over, if others keep all
// of it: see cover.
func (rs *roomSums) uses(d *decision, m Member) (visits int, ok bool) {
	i, known := slices.BinarySearchFunc(rs.covers, m, func(c Cover, m Member) int { return c.Member.Compare(m) })
	old := func(n RoomNode) bool { return n.Says == SaysNothing } // it may have run the waves, and not told what x said last
	if !known || !rs.covers[i].Is || rs.shared || slices.ContainsFunc(rs.nodes, old) || slices.Contains(d.list, m) {
		return 0, false
	}
	missed := func(s Sighting) bool { return s.Member != m && s.Epoch >= rs.covers[i].At }
	if slices.ContainsFunc(d.met, missed) {
		return 0, false
	}
	return rs.keptOf(m), true
}

// keptOf is how many visits of m, which is not in the wave, those who are keep.
func (rs *roomSums) keptOf(m Member) (visits int) {
	for _, k := range rs.visits {
		if k.Member == m {
			visits = k.Visits
		}
	}
	return visits
}

// seen returns when m was last in a wave, if it is not in this one.
func (d *decision) seen(m Member) (s Sighting, ok bool) {
	i := slices.IndexFunc(d.met, func(s Sighting) bool { return s.Member == m })
	if i < 0 || slices.Contains(d.list, m) {
		return Sighting{}, false
	}
	return d.met[i], true
}

// leaseOver reports whether all leases of those in c are over, though there be later lives here: these may be
// other nodes of their names.
func (d *decision) leaseOver(c *Claim) bool {
	return !slices.ContainsFunc(c.Of, func(v Void) bool {
		s, ok := d.seen(v.Member)
		return !ok || s.Age < d.reckons.leaseOver()
	})
}

// noted reports whether what was noted of c holds: none of it was in a wave since it was void.
func (d *decision) noted(c *Claim) bool {
	return c.Most > 0 && !slices.ContainsFunc(c.Of, func(v Void) bool {
		s, ok := d.seen(v.Member)
		return !ok || s.Epoch > v.Epoch
	})
}

// lowered returns the claims with no more in any than its accounts can use, and how many visits others keep of
// those where that is known.
func (rs *roomSums) lowered(d *decision, cs []Claim, safe map[Member]uint64) (low []Claim, kept int) {
	low = slices.Clone(cs)
	heeded := !slices.ContainsFunc(rs.nodes, func(n RoomNode) bool { return !n.Heeds })
	for i := range low {
		c, most, visits, all, void := &low[i], 0, 0, true, heeded
		for _, v := range c.Of {
			n, ok := rs.uses(d, v.Member)
			most, all = most+n, all && ok
			s, ok := d.seen(v.Member)
			void = void && ok && known([]Void{{v.Member, s.Epoch}}, safe)
			visits += rs.keptOf(v.Member)
		}
		if all && void && (c.Most == 0 || most < c.Most-1) {
			c.Most = most + 1
		}
		switch over := d.leaseOver(c) && !rs.shared; {
		case over && all:
			c.Slots = min(c.Slots, most)
		case over && d.noted(c):
		default:
			continue
		}
		if d.noted(c) {
			c.Slots = min(c.Slots, c.Most-1)
		}
		kept += min(c.Slots, visits)
	}
	return low, kept
}
