package eviction

import (
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// callNext sets the cut (or the draw, or the number of deleteMins), the slot
// transfers, and whether newcomers may walk in.
func (g *Gate) callNext(d *decision, rs *roomSums, r *RoomReply, c *RoomCommit, b *books, next *sequel, admits bool) {
	cfg, free := &rs.cfg, 0
	for _, burn := range c.Burn {
		b.free[burn.Index] -= burn.N
	}
	for _, f := range b.free {
		free += max(0, f)
	}
	if c.Closed || !admits || !cfg.started(d.t) || cfg.Method == Reject || !rs.keyed || c.Held > 0 {
		free = 0
	}
	k, tokens := max(0, free-rs.wanted), 0 // who is on the site already comes first
	var (
		q    quota
		left []int // of the tokens that were dealt before
		deal bool  // tokens, though it be none; false: another one may meanwhile
	)
	c.Paced, c.Idle = cfg.NewPerMinute > 0, !admits
	if c.Paced {
		q = quota{
			perMinute: cfg.NewPerMinute, share: rs.part(b, d.grade), all: cfg.Target, nodes: len(d.list), lately: d.lately(rs.shared),
			sides: rs.shared, known: d.remember(rs.nodes), lost: never, remade: c.Mint > 0 || !rs.shared, by: d.epoch.Coordinator, wave: d.epoch.Num,
			alone:    !rs.shared && d.grade >= Primary && d.voters.Version > 0,
			underWay: d.underWay(), late: d.late(), deadline: d.reckons.Deadline, line: c.Line,
		}
		if rs.shared {
			q.lost = d.asideUntil(b.lost)
		}
		deal = admits || q.alone
	}
	if deal {
		left = next.pacer.hear(d.now.Boot, q, d.list, rs.nodes)
		tokens = next.pacer.fill(d.now.Boot, q)
		k = min(k, tokens)
	}
	if !cfg.Mode.calls() { // slots still move, to sessions of lost nodes
		k = 0
	}
	next.hint, next.short = min(k+k/4+64, 1<<20), !r.Front.Sampled && len(r.Front.Items) < min(k, rs.queued)
	need := g.entitle(d, rs, r, c, k, g.awaitLost(&rs.plan, d.list, d.met, d.now.Boot, admits))
	waiting := c.Queued > 0 || rs.wanted > 0 || rs.keeps > 0
	c.Open = !waiting && free > 0 && !cfg.QueueAll && cfg.Mode.calls() && cfg.Algorithm == ByCut && !g.shy(d.now.Boot)
	switch {
	case free == 0:
	case waiting && c.Paced: // there may be slots to spare for long
		c.Moves = plan(b.free, spare(b.free, need))
	case waiting:
		c.Moves = plan(b.free, need)
	default:
		arrivals := make([]float64, len(rs.nodes))
		for i, n := range rs.nodes {
			arrivals[i] = float64(n.Arrivals)
		}
		c.Moves = plan(b.free, spread(b.free, arrivals))
		need = atMost(b.free, (tokens+len(b.free)-1)/len(b.free)) // nobody knows where the next one joins
	}
	if deal {
		if free == 0 || !cfg.Mode.calls() {
			clear(need)
		}
		c.Tokens = next.pacer.deal(d.now.Boot, q, tokens, need, left, int(d.epoch.Num%uint64(len(need))))
		c.Stay, c.Bucket = admits && !next.pacer.known, next.pacer.leave(d.now.Boot, q)
	}
}

// lately is how many nodes may have had a token at once within the last minute: these, those
// that were in a wave with any of them in it, and in a room that shares those that may have
// gone on on a side of their own since. Who said goodbye and is back is one.
func (d *decision) lately(shared bool) int {
	n := len(d.list)
	for _, m := range d.met {
		later := successor(d.list, m.Member)
		switch {
		case m.Left && later >= 0:
		case m.Age < drifted(minute), shared && !m.Left && (later < 0 || d.up[later] < drifted(minute)):
			n++
		}
	}
	return n
}

// remember reports whether of every quorum that may have let people in before somebody is here,
// and knows of it: who has been dealt something since does, as it was accounted for then.
func (d *decision) remember(nodes []RoomNode) bool {
	var rest []qpid.NodeID // all other voters
	for _, name := range slices.Concat(d.voters.Names, d.voters.Next) {
		if !slices.ContainsFunc(nodes, func(n RoomNode) bool {
			return d.list[n.Index].Name == name && n.Dealt.Num > 0 && n.Dealt.Coordinator != forgotten
		}) {
			rest = append(rest, name)
		}
	}
	return d.voters.Version > 0 && !half(d.voters.Names, rest) && (d.voters.Next == nil || !half(d.voters.Next, rest))
}

// asideUntil is until when somebody of the lost may have let people in on a side of their own, in
// boot time: the life of a node that is back for good has ended.
func (d *decision) asideUntil(lost []Void) int64 {
	until := int64(never)
	for _, v := range lost {
		ended := d.now.Boot
		if later := successor(d.list, v.Member); later >= 0 && !slices.Contains(d.list, v.Member) {
			ended -= max(0, 2*d.up[later]-drifted(d.up[later]))
		}
		until = max(until, ended)
	}
	return until
}

// underWay is how long a wave may go on that one of these was asked in, and somebody who is
// not listed: it was asked no later than they were seen last.
func (d *decision) underWay() int64 {
	longest := int64(0)
	for _, m := range d.met {
		longest = max(longest, drifted(d.reckons.Deadline)-m.Age)
	}
	return longest
}

// late is for how long somebody who is not listed may let people in by tokens of a wave that
// any of these was in. Who has said goodbye, or is back in another life, lets nobody in.
func (d *decision) late() int64 {
	longest := int64(0)
	for _, m := range d.met {
		if !m.Left && successor(d.list, m.Member) < 0 {
			longest = max(longest, drifted(tokenLife)-m.Age)
		}
	}
	return longest
}

// part is this side's part of the rate, of Target. Where a side without a quorum may call
// as well it is that of the slots that the side has; those that the governor has burned count
// at a majority alone: it calls only while no more exist anywhere than the governed limit,
// so that two sides never count them twice. The parts of all sides that call are no more than
// all: none calls while more slots may exist than its own limit (hold), so that a lowered one
// makes no part larger, and none are minted while somebody is away who may act (make).
// Elsewhere it is all: one side alone calls, with however few slots the loss of a node has
// left it.
func (rs *roomSums) part(b *books, grade Grade) int {
	if !rs.shared {
		return rs.cfg.Target
	}
	owned := 0
	for i, n := range rs.nodes {
		if n.Born > 0 && n.Born == b.born[i] {
			owned += max(0, b.free[i]) + n.Used
		}
	}
	has := max(b.inside, owned)
	if grade >= Primary {
		has += rs.cfg.Target - rs.target
	}
	return min(has, rs.cfg.Target)
}

// entitle picks who is called next and returns how many slots each node needs.
func (g *Gate) entitle(d *decision, rs *roomSums, r *RoomReply, c *RoomCommit, k int, back comeback) (need []int) {
	k -= rs.due
	if (rs.cfg.Method == Random) != (g.drawKey == d.epoch) {
		k = 0 // the replies are in another order
	}
	queued := func(i int) int { return rs.nodes[i].Queued }
	need = make([]int, len(rs.nodes))
	switch {
	case rs.cfg.Algorithm == ByQPID:
		c.Delete = max(0, min(k, rs.queued))
		need[0] = c.Delete
		c.Twins = rs.twins()
	case rs.cfg.Method == Random:
		everything := qpid.UpTo(1<<63 - 1)
		if cut, n, ok := r.Front.choose(k, rs.queued, len(need), everything, queued); ok {
			c.Key, c.Drawn, need = d.epoch, cut, n
		}
	default:
		cut, n, ok := r.Front.choose(k, rs.queued, len(need), qpid.UpTo(d.t), queued)
		if from, passes := back.limits(d.now.Boot, cut); ok && passes {
			cut, n = from, r.Front.count(from, n)
		}
		if kept := (qpid.Weight{Stamp: rs.keeps}); rs.keeps > 0 && kept.Less(cut) {
			cut, n = kept, r.Front.count(kept, n) // they are in nobody's line yet
		}
		next := Cut{Keying: rs.keying, Epoch: d.epoch.Num, Value: cut}
		if ok {
			need = n
			if next.newer(c.Cut) {
				c.Cut = next
			}
		}
	}
	for i, n := range rs.nodes {
		need[i] += n.Due + n.Wanted
	}
	return need
}

// twins finds tickets that wait at two nodes, as may be after a partition: at
// all but the first they are parked, for a queue's weights are unique.
func (rs *roomSums) twins() (twins []Tagged) {
	for i, n := range rs.nodes {
		for _, earlier := range rs.nodes[:i] {
			if !n.Lightest.IsEmpty() && n.Lightest == earlier.Lightest {
				twins = append(twins, Tagged{n.Lightest, i})
				break
			}
		}
	}
	return twins
}
