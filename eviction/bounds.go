package eviction

// How long a node may act, and how long others wait until what it left cannot act any
// more, where its `cluster:` settings may be others than theirs: lemma 13.

// Bounds are the cluster's settings that one node acts by and others reckon with, in
// microseconds each.
type Bounds struct {
	Lease, Deadline, MaxSkew, Margin int64
	// Exclude is what nobody acts by before: a node that was in no wave for as long as
	// its own exclude_after asks who took its people over, and nobody does before the
	// longest of all.
	Exclude int64
}

// bounds returns those of c.
func (c *Config) bounds() Bounds {
	return Bounds{micros(c.Lease), micros(c.Deadline), micros(c.MaxSkew), micros(c.Margin), micros(c.ExcludeAfter)}
}

// max returns the longer of each.
func (b Bounds) max(o Bounds) Bounds {
	return Bounds{max(b.Lease, o.Lease), max(b.Deadline, o.Deadline), max(b.MaxSkew, o.MaxSkew), max(b.Margin, o.Margin), max(b.Exclude, o.Exclude)}
}

// min returns the shorter of each.
func (b Bounds) min(o Bounds) Bounds {
	return Bounds{min(b.Lease, o.Lease), min(b.Deadline, o.Deadline), min(b.MaxSkew, o.MaxSkew), min(b.Margin, o.Margin), min(b.Exclude, o.Exclude)}
}

// valid reports whether they can be anybody's.
func (b Bounds) valid() bool {
	return b.min(Bounds{}) == Bounds{} && b.max(Bounds{ageMax, ageMax, ageMax, ageMax, ageMax}) == Bounds{ageMax, ageMax, ageMax, ageMax, ageMax}
}

// BoundsSum is what a subtree says of its bounds.
type BoundsSum struct {
	Wants   Bounds // the longest of its nodes' own settings
	Reckons Bounds // the longest that any of them reckons with
	Held    Bounds // what each of them that reckons with any at all reckons with at least; zero: none does
}

func (s BoundsSum) merge(o BoundsSum) BoundsSum {
	s.Wants, s.Reckons = s.Wants.max(o.Wants), s.Reckons.max(o.Reckons)
	switch {
	case s.Held == Bounds{}:
		s.Held = o.Held
	case o.Held != Bounds{}:
		s.Held = s.Held.min(o.Held)
	}
	return s
}

func (s *BoundsSum) valid() bool { return s.Wants.valid() && s.Reckons.valid() && s.Held.valid() }

// clusterSettings are the cluster's settings at one node, which owns them. Its gates look at the
// same ones.
//
// Invariant: Lease and MaxSkew of Config, by which the node acts, are no longer than
// wants, nor than Acts of the last commit that it installed.
// Invariant: reckons is what the last commit says that it installed, what the gather of
// a coordinator says if that is longer, or what the disk has before; zero before those.
// Invariant: waits is the longer of both.
type clusterSettings struct {
	Config
	wants   Bounds // of the configuration file
	reckons Bounds
	waits   Bounds // what the node waits by for others
}

func newClusterSettings(c Config) *clusterSettings {
	t := new(clusterSettings)
	t.take(c)
	return t
}

// take makes c the node's own settings.
func (t *clusterSettings) take(c Config) {
	t.Config, t.wants = c, c.bounds()
	t.reckon(t.reckons)
}

// reckon has the node reckon with b, and no longer with what was before.
func (t *clusterSettings) reckon(b Bounds) { t.reckons, t.waits = b, b.max(t.wants) }

// copied reports whether the places of room r are kept by other nodes as well.
func (t *clusterSettings) copied(r *Room) bool {
	return t.Copies > 0 && r.OnPartition == Majority && r.Algorithm == ByCut
}

// hold takes in what a coordinator reckons with. From here on so does this node, also if
// the wave comes to nothing: the reply says so.
func (t *clusterSettings) hold(b Bounds) { t.reckon(t.reckons.max(b)) }

// install takes in what a wave has agreed on, and lets the node act for as long as that
// and its own settings allow.
func (t *clusterSettings) install(c *Commit) {
	t.reckon(c.Reckons)
	b := t.wants.min(c.Acts)
	t.Lease, t.MaxSkew = durationOf(b.Lease), durationOf(b.MaxSkew)
}

// sum is the node's part of a reply.
func (t *clusterSettings) sum() BoundsSum { return BoundsSum{t.wants, t.reckons, t.reckons} }

// reckonWith says what everybody reckons with from this wave on, and what all of it do
// already, by which its nodes act. It grows in a wave with a quorum, to the longest
// that any node has in its file; a side only keeps it. It becomes less when nobody is
// missing: then whatever was done under more is over, see lemma 13.
func (n *Node) reckonWith(w *wave, c *Commit) {
	s := &w.sum.Bounds
	c.Reckons, c.Acts = s.Reckons, s.Held
	if c.Grade >= Primary || c.Founding {
		c.Reckons = s.Reckons.max(s.Wants)
	}
	if c.Grade == Unanimous && len(c.Met) == 0 {
		c.Reckons = s.Wants
	}
	if c.Acts == (Bounds{}) { // nobody was in a wave yet: this one leases nothing
		c.Acts = c.Reckons
	}
}
