package eviction

import "slices"

// levelMax bounds what a level may be below or above 0, in millionths of a token.
const levelMax = visitorsMax * 1_000_000

// spentEvery is what a bucket tells spendings by, in microseconds.
const spentEvery = 2_000_000

// spentMax bounds how many it tells: of a minute, by the youngest, and of what may be spent yet.
const spentMax = minute/spentEvery + 2

// begin is of a wave of which the nodes replied so, and begins a lead. One that leads once more goes on
// where it was, and so does one that stood still, if no other has led since and no side may have. It
// returns the number of the wave up to which all that was dealt is counted, 0 where sides may have dealt.
func (p *pacer) begin(now int64, q quota, nodes []RoomNode) (counted uint64) {
	rival := slices.ContainsFunc(nodes, func(n RoomNode) bool {
		return n.Dealt.Num > p.first && n.Dealt.Coordinator != q.by
	})
	if q.alone && p.first > 0 && rival || !q.alone && p.anew {
		p.restart(now, q.deadline, q.wave-1)
	}
	p.anew = false
	switch {
	case !q.alone:
		return 0
	case p.first == 0:
		p.first = q.wave
		return p.inherit(now, q, nodes)
	}
	return p.first
}

// inherit takes over the bucket that the lead before this one left, if its nodes know how, and returns
// the number of the wave that left it, else 0.
//
// Proof that nothing is missing. Each decision that no other one may deal beside leaves the bucket
// as if all were spent that may be. Each decision of the lead before was on a wave that some node
// here has replied to, before it replied to this one, and it says in which of them it was last. So
// the last was the one of which a node here has heard last, or one that a node says it was in since,
// no later than a deadline after that. In those since it dealt no more than there was and had accrued,
// and anew what was left of the tokens of then. Nodes replied here up to a deadline ago, and were asked
// up to a deadline before a decision: what it has dealt since accrues from the earliest that the one
// heard of can have been taken, and what is dealt here from the latest. So each change takes a deadline's
// worth of the rate.
func (p *pacer) inherit(now int64, q quota, nodes []RoomNode) uint64 {
	last := latest(nodes)
	if last.Left == nil || last.stranger(q.line) {
		return 0
	}
	b, deadline := last.Left, drifted(q.deadline)
	earliest, at := now-b.Age-deadline, now-b.Age+deadline // between these it was decided on,
	again := int64(never)                                  // and on one since, by then; never: there was none
	for _, n := range nodes {
		if n.Dealt.Coordinator == last.Dealt.Coordinator && n.askedSince(last.Dealt.Num) {
			again = max(again, now-n.DealtAge+deadline)
		}
	}
	p.level, p.at, p.from, p.after = b.Level, at, at+b.Pause, q.wave-1
	p.debt, p.dueTo, p.owes = max(p.debt, b.Debt), max(p.dueTo, at+b.DebtFor), p.owes || b.Owes
	for _, s := range b.Spent {
		then := at
		if s.Age < 0 {
			then = max(at, again) // what was left of it may have been dealt anew
		}
		p.spent = append(p.spent, spending{then - s.Age, then - s.Age, s.Parts})
	}
	if again != never {
		whole := q.whole()
		more := max(0, b.Level+whole.accrued(max(0, again-earliest))) / 1_000_000
		p.level += whole.accrued(max(0, again-p.from)) - more*1_000_000
		p.from = max(p.from, again)
		p.spent = append(p.spent, spending{again, again + drifted(tokenLife), whole.taken(int(more))})
	}
	return last.Dealt.Num
}

// latest is one of the nodes that heard of the last decision of all, one that has its bucket if
// any does.
func latest(nodes []RoomNode) *RoomNode {
	last := &nodes[0]
	for i := range nodes {
		if n := &nodes[i]; n.Dealt.Num > last.Dealt.Num || n.Dealt.Num == last.Dealt.Num && last.Left == nil {
			last = n
		}
	}
	return last
}

// askedSince reports whether who dealt last may have asked the node again after the wave of that
// number.
func (n *RoomNode) askedSince(num uint64) bool {
	return n.Left == nil || n.Left.LastAsk > num
}

// stranger reports whether the node was on another line than this one.
func (n *RoomNode) stranger(line Line) bool { return n.Line.Founded() && n.Line != line }

// leave is the bucket as a decision at now leaves it; nil: there may be others.
func (p *pacer) leave(now int64, q quota) *Bucket {
	if !q.alone {
		return nil
	}
	b := &Bucket{Level: p.level, Debt: p.debt, DebtFor: max(0, p.dueTo-now), Owes: p.owes, Pause: max(0, p.from-now)}
	for _, s := range p.spent {
		b.tell(Spent{now - s.last, s.parts})
	}
	yet := Spent{Age: -drifted(tokenLife)}
	for _, g := range p.out {
		b.Level -= int64(g.n) * 1_000_000
		yet.Parts = min(yet.Parts+max(g.taken(g.n, q), q.whole().taken(g.n)), allowance)
	}
	b.tell(yet)
	b.Level = max(b.Level, -levelMax)
	return b
}

// tell adds what was spent, if anything, to what was spent about then, as of the later.
func (b *Bucket) tell(s Spent) {
	i := slices.IndexFunc(b.Spent, func(o Spent) bool {
		return s.Age < 0 && o.Age < 0 || s.Age >= 0 && o.Age >= 0 && s.Age/spentEvery == o.Age/spentEvery
	})
	switch {
	case s.Parts == 0:
	case i < 0:
		b.Spent = append(b.Spent, Spent{s.Age, min(s.Parts, allowance)})
	default:
		o := &b.Spent[i]
		o.Age, o.Parts = min(o.Age, s.Age), min(o.Parts+s.Parts, allowance)
	}
}

func (l *Left) valid() bool { return l == nil || l.Bucket.valid() && l.Age >= 0 && l.Age <= ageMax }

func (b *Bucket) valid() bool {
	return b == nil || b.Level >= -levelMax && b.Level <= levelMax && b.Debt >= 0 && b.Debt <= levelMax &&
		min(b.DebtFor, b.Pause) >= 0 && max(b.DebtFor, b.Pause) <= ageMax && len(b.Spent) <= spentMax &&
		!slices.ContainsFunc(b.Spent, func(s Spent) bool {
			return s.Age < -ageMax || s.Age > ageMax || s.Parts < 0 || s.Parts > allowance
		})
}
