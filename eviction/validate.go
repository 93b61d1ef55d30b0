package eviction

import (
	"fmt"
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// Bounds of numbers that come over the network, so that sums of them fit.
const (
	wantMax  = 1 << 20 // weights that a gather may ask for
	countMax = 1 << 40 // people, slots
	ageMax   = 1 << 50 // µs, some thirty years
	marksMax = 2048    // of a digest
)

// count reports whether n can be a number of people or slots.
func count(n int) bool { return n >= 0 && n <= countMax }

// A peer proves who it is, not that it makes sense: what follows is checked
// before anything is indexed by what came over the network. The errors say
// what was wrong; the message changes nothing.

// validate returns the receiver's place in the list, if that is known.
func (g *Gather) validate(self, from Member, fanout int) (index int, err error) {
	if g.List == nil {
		if g.As == (qpid.Epoch{}) || g.Lead.Member == self || from == self || g.Epoch.Coordinator != qpid.NodeID(g.Lead.Member.String()) {
			return 0, fmt.Errorf("eviction: gather %v of %v without a list, as in %v, for %v", g.Epoch, g.Lead.Member, g.As, self)
		}
		return 0, nil
	}
	if !g.Reckons.valid() {
		return 0, fmt.Errorf("eviction: gather %v reckons with %v", g.Epoch, g.Reckons)
	}
	index = slices.Index(g.List, self)
	switch {
	case index <= 0 || g.List[0] != g.Lead.Member || g.Epoch.Coordinator != qpid.NodeID(g.Lead.Member.String()):
		return 0, fmt.Errorf("eviction: gather %v of %v lists %v for %v", g.Epoch, g.Lead.Member, g.List, self)
	case g.List[parent(index, fanout)] != from:
		return 0, fmt.Errorf("eviction: gather %v came from %v, whose child %v is not", g.Epoch, from, self)
	}
	sorted := slices.Clone(g.List)
	slices.SortFunc(sorted, Member.Compare)
	if len(slices.Compact(sorted)) < len(g.List) {
		return 0, fmt.Errorf("eviction: gather %v lists someone twice: %v", g.Epoch, g.List)
	}
	for i := range g.Rooms {
		if w := g.Rooms[i].Want; w < 0 || w > wantMax {
			return 0, fmt.Errorf("eviction: gather %v wants %d weights of room %q", g.Epoch, w, g.Rooms[i].Room)
		}
	}
	return index, nil
}

// validate checks a reply of the child at place root of the list: it speaks of
// that child and those below, once of each.
func (r *Reply) validate(w *wave, root, fanout int) error {
	told := make([]bool, len(w.list))
	below := func(i int) bool {
		if i >= len(w.list) {
			return false
		}
		for i > root {
			i = parent(i, fanout)
		}
		return i == root
	}
	if !r.Bounds.valid() {
		return fmt.Errorf("eviction: reply to %v of %v reckons with %v", r.Epoch, w.list[root], r.Bounds)
	}
	for i := range r.Nodes {
		at := r.Nodes[i].Index
		if !below(at) || told[at] {
			return fmt.Errorf("eviction: reply to %v of %v tells of node %d, or twice", r.Epoch, w.list[root], at)
		}
		told[at] = true
		if r.Nodes[i].Named && w.Voters == (qpid.Epoch{}) {
			return fmt.Errorf("eviction: reply to %v of %v names voters, and the gather none", r.Epoch, w.list[root])
		}
	}
	if len(r.Rooms) != len(w.Rooms) {
		return fmt.Errorf("eviction: reply to %v of %v tells of %d rooms, was asked for %d", r.Epoch, w.list[root], len(r.Rooms), len(w.Rooms))
	}
	for i := range r.Rooms {
		room := &r.Rooms[i]
		ok := room.Room == w.Rooms[i].Room
		clear(told)
		for j := range room.Nodes {
			n := &room.Nodes[j]
			ok = ok && below(n.Index) && !told[n.Index] && count(n.Queued) && count(n.Due) && count(n.Wanted) && count(n.Used) && count(n.Called) && count(n.Tokens) &&
				count(max(n.Free, -n.Free)) && count(max(n.Minted, -n.Minted)) && n.TTL >= 0 && n.TTL <= ageMax && n.Held >= heldAnew && n.Held <= ageMax &&
				n.DealtAge >= 0 && n.DealtAge <= ageMax && n.Left.valid() && n.Resuming.valid()
			if ok {
				told[n.Index] = true
			}
		}
		for _, n := range room.Net {
			ok = ok && count(max(n.Slots, -n.Slots))
		}
		ok = ok && room.Digest.valid() && validVisits(room.Visits)
		for _, s := range room.Supply {
			ok = ok && count(s.Slots) && count(s.Burned) && validClaims(s.Claims) && s.Census.valid()
		}
		for _, t := range room.Front.Items {
			ok = ok && below(t.Index)
		}
		for _, s := range room.Front.Samples {
			ok = ok && below(s.Index) && s.Rank > 0 && count(s.Rank)
		}
		if !ok {
			return fmt.Errorf("eviction: reply to %v of %v makes no sense of room %q", r.Epoch, w.list[root], w.Rooms[i].Room)
		}
	}
	return nil
}

func validVisits(vs []VisitCount) bool {
	return !slices.ContainsFunc(vs, func(v VisitCount) bool { return !count(v.Visits) })
}

func validClaims(cs []Claim) bool {
	return len(cs) <= claimsMax && !slices.ContainsFunc(cs, func(c Claim) bool { return !count(c.Slots) || c.Most != 0 && !count(c.Most-1) })
}

func (c *Census) valid() bool { return c == nil || count(c.Slots) && c.Age >= 0 && c.Age <= ageMax }

// validate checks a commit against the wave that it decides.
func (c *Commit) validate(w *wave) error {
	if len(c.Rooms) != len(w.Rooms) || c.RestMin != nil && len(c.RestMin) != len(w.Rooms) || c.Grade > Unanimous || !c.Reckons.valid() || !c.Acts.valid() {
		return fmt.Errorf("eviction: commit of %v tells of %d rooms, grade %d", c.Epoch, len(c.Rooms), c.Grade)
	}
	n := len(w.list)
	in := func(i int) bool { return i >= 0 && i < n }
	for _, i := range c.Outvoted {
		if !in(i) {
			return fmt.Errorf("eviction: commit of %v tells of node %d of %d", c.Epoch, i, n)
		}
	}
	for i := range c.Rooms {
		rc := &c.Rooms[i]
		ok := rc.Room == w.Rooms[i].Room && len(rc.Born) == n && count(rc.Mint) && count(rc.Supply) && validClaims(rc.Claims) && rc.Census.valid() && count(rc.Delete) && rc.TTL >= 0 && rc.TTL <= ageMax && rc.Held >= 0 && rc.Held <= ageMax &&
			(rc.Waiting == nil || len(rc.Waiting) == n) && (rc.Bare == nil || len(rc.Bare) == n) && (rc.Covered == nil || len(rc.Covered) == n) && (rc.Digest == nil || rc.Digest.valid() && len(rc.First) == n && rc.Digest.marked(rc.First))
		ok = ok && !(rc.Cut.Epoch == c.Epoch.Num && qpid.UpTo(w.T).Less(rc.Cut.Value))
		for _, m := range rc.Moves {
			ok = ok && in(m.From) && in(m.To) && m.Slots > 0 && count(m.Slots)
		}
		ok = ok && rc.Bucket.valid()
		for _, deals := range [][]Deal{rc.Burn, rc.Tokens} {
			for _, d := range deals {
				ok = ok && in(d.Index) && d.N > 0 && count(d.N)
			}
		}
		if !ok {
			return fmt.Errorf("eviction: commit of %v makes no sense of room %q", c.Epoch, rc.Room)
		}
		if rc.Config != nil {
			if err := rc.Config.Validate(); err != nil {
				return fmt.Errorf("eviction: commit of %v: %w", c.Epoch, err)
			}
		}
	}
	return nil
}

// valid reports whether d, if there is one, is in order.
func (d *Digest) valid() bool {
	if d == nil {
		return true
	}
	for i, m := range d.Marks {
		if m.Rank < 0 || m.Rank >= d.Length || i > 0 && (m.compare(d.Marks[i-1].Key) <= 0 || m.Rank <= d.Marks[i-1].Rank) {
			return false
		}
	}
	return count(d.Length) && len(d.Marks) <= marksMax && (d.Length == 0 || len(d.Marks) > 0)
}

// marked reports whether d has all the marks that are counted from 1 in first.
func (d *Digest) marked(first []int) bool {
	return !slices.ContainsFunc(first, func(i int) bool { return i < 0 || i > len(d.Marks) })
}
