package eviction

import (
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// tokenLife is how long a dealt pacing token may be spent, in microseconds: until
// the next wave speaks of a quiet room, and some time more.
const tokenLife = 2_000_000

// tokensMax bounds what a node may say that it has.
const tokensMax = 1 << 20

// minute is new_users_per_minute's, in microseconds.
const minute = 60_000_000

// allowance is what may be let in within a minute, in parts: of any rate, and of
// any side's share of it, so that what a coordinator has dealt before a change counts after it.
const allowance = 1e15

// pacer meters new users per minute at a coordinator: of those let in within any
// minute there are no more than the rate, and they are spread evenly over it, but
// for a burst after quiet. Tokens are permissions: one that was dealt and not spent
// is dealt again.
//
// Proof for one coordinator. Nodes reply how many tokens they have spent ever, and
// have left. What was spent since the reply before is counted as of now, no earlier
// than it happened. A commit replaces what a node has left, and what the node spends
// between reply and commit counts towards the new tokens. So until the next reply
// it spends at most the larger of the two numbers, and the sum of these, with what
// lost members may spend until their tokens lapse and what was spent in the last
// minute, is within the allowance.
//
// Who takes over goes on with the bucket of the lead before, if it is told how that one has left it:
// see inherit.
//
// Otherwise what was let in under another coordinator is not known, nor what of it may still be:
// the tokens that were dealt and not spent. Since its bucket was never fuller than a burst, both
// together are at most a burst and what accrued to it until it dealt last. A burst is no more
// than a token at each node and a second's worth, at whatever rate there was. So who goes on
// owes the tokens, and nothing accrues until a second after all of them are spent or lapsed: a
// minute that begins when the last is spent has so much less of what is dealt here. It
// owes as long as it lists members to whom another one was the last to deal of which it has not
// heard, and when slots of which nobody knows what they were used for are made again in a room that
// shares. When a minute is over in which the other one cannot have dealt none has anything of before
// in it, and no debt is left.
//
// Nobody deals before all those who are listed know that it leads, by a commit of this lead that
// deals, or leaves a bucket. So whoever has replied to a wave that dealt says so to the next one who
// leads, whether or not it heard what was decided, and that one goes by what it knows of who was
// away but has had nothing of another meanwhile. The other one may decide once more after the first
// decision here, for those who are not listed here, if it had asked before: of its waves each is over
// within a deadline. What accrues to it until then does not accrue here. Of nodes of a version
// that does not say who dealt last it is taken that they know.
//
// Of two that may deal one after the other, in the lists of the last wave of the one and the
// first of the other, there is a node in both, but on sides: so it says as well when it
// was in a wave of the other one last, and no later than a deadline after that the other one
// has dealt. So where there are no sides who leads has heard in its first wave of all that was dealt
// before: what nodes say later of that is counted already. Who has forgotten it in a restart says that
// somebody may have dealt until then, and that is owed for unless those who remember are in every
// quorum. Where nobody even knows who was there, since no disk does, they say so for a minute, whoever
// deals, and nobody does. On a line that survivors begin there need be no node in both, so what another
// one dealt to who comes from before counts as of then.
//
// Sides, each with a coordinator, have parts of the rate that are together no more than all
// of it: those of the slots that they have. So have their bursts, but for a token at each
// node. What a side has let in when it ends, and any number of others with it, is then at
// most the sum of their bursts, and what accrued to them, and the debt of who goes on with
// their nodes is as large as the bursts of all sides that there can be.
type pacer struct {
	level int64  // millionths of a token; below 0: more were let in than had accrued
	at    int64  // boot time of level
	from  int64  // boot time before which nothing is dealt
	debt  int64  // of other leads: millionths of a token that are to accrue before the level rises
	owes  bool   // there is a debt to take
	dueTo int64  // boot time from which no debt counts; never: there is none
	away  int64  // boot time at which somebody was lost who may have had a side; never: nobody was
	known bool   // to all who are listed, that this one leads
	after uint64 // number of a wave: those of this lead have higher ones
	first uint64 // number of the first wave of this lead in which no other may deal; 0: there was none
	dealt int64  // boot time of the last decision by which this one dealt, if only nothing, in any lead; never: there was none
	anew  bool   // this one leads once more, and has not heard who did meanwhile
	spent []spending
	out   []grant // who may spend tokens
}

// spending is what was spent of the allowance, by first to last boot time.
type spending struct {
	first, last int64
	parts       int64
}

// grant is what one member may spend.
type grant struct {
	member Member
	spent  uint64 // by its last reply
	n      int    // at most so many more,
	until  int64  // and no later
	parts  int64  // of the allowance, each: by the share of when it was dealt
}

// taken is how much of the allowance it is that d were spent. More than were granted came
// of another side's share: those are as good as any of the whole.
func (g *grant) taken(d int, q quota) int64 {
	own := min(d, g.n)
	return int64(min(float64(own)*float64(g.parts)+float64(q.whole().taken(d-own)), allowance))
}

// quota is the rate that a side may deal.
type quota struct {
	perMinute  int
	by         qpid.NodeID // who deals
	wave       uint64      // the number of its wave
	share, all int         // of the slots: a side deals in proportion; all 0: nothing
	nodes      int
	lately     int   // nodes that may have had a token within the last minute, these among them
	sides      bool  // there may be others
	alone      bool  // the wave has a quorum, and nobody else may deal
	known      bool  // who remembers is in every quorum that may have dealt
	lost       int64 // boot time until which somebody lost may have dealt, who may have a side of their own; never: nobody is
	remade     bool  // what they had may have been made again
	underWay   int64 // µs for which another coordinator's wave may go on
	late       int64 // µs for which who is not listed may let in by what another one has dealt
	deadline   int64 // µs that a wave of another one's takes at most
	line       Line  // of the room
}

// part is what this side may deal of the rate.
func (q quota) part() float64 {
	if q.share <= 0 || q.all <= 0 {
		return 0
	}
	return float64(q.share) / float64(q.all)
}

// whole is the quota without sides.
func (q quota) whole() quota {
	q.share, q.all = 1, 1
	return q
}

// burst is how much may be let in at once after quiet, in millionths of a token: a
// second's worth, or a token at each node, since nobody knows where the next one
// joins.
func (q quota) burst() int64 {
	return max(int64(q.nodes)*1_000_000, int64(q.second()*q.part()))
}

// debt is the tokens of other coordinators that there may have been at once, of one side or
// several.
func (q quota) debt() int64 { return int64(q.lately) * 1_000_000 }

// pause is for how long nothing accrues to who takes a debt, in microseconds: a burst at a
// fast rate is a second's worth, in a minute that begins when the last of it is let in, and to
// another one whose wave is under way it goes on.
func (q quota) pause() int64 { return drifted(1_000_000) + max(q.underWay, q.late) }

// dueFrom is from when on nothing counts of who has dealt until then: no minute has anything
// of it in it.
func dueFrom(until int64) int64 { return until + drifted(minute+tokenLife) }

// second is a second's worth of the whole rate, in millionths of a token.
func (q quota) second() float64 { return float64(q.perMinute) * 1_000_000 / 60 }

// accrued is what this side may deal of that many microseconds' worth, in millionths of a token.
func (q quota) accrued(d int64) int64 {
	return int64(min(float64(d)/1_000_000*q.second()*q.part(), allowance))
}

// parts is how much of the allowance one person takes.
func (q quota) parts() int64 {
	return int64(allowance / (float64(q.perMinute) * q.part()))
}

// taken is how much of it d people take.
func (q quota) taken(d int) int64 { return int64(min(float64(d)*float64(q.parts()), allowance)) }

// clone returns a pacer that goes on by itself.
func (p *pacer) clone() pacer {
	c := *p
	c.spent, c.out = slices.Clone(p.spent), slices.Clone(p.out)
	return c
}

// hear counts what the listed nodes have spent, and returns how many tokens each
// has left.
func (p *pacer) hear(now int64, q quota, list []Member, nodes []RoomNode) (left []int) {
	counted := p.begin(now, q, nodes)
	out := make([]grant, 0, len(list))
	left = make([]int, len(list))
	other := int64(never) // until when another lead may deal
	p.known = true
	for i, m := range list {
		n := &nodes[i]
		g := grant{member: m, spent: n.Spent, parts: q.whole().parts()} // what it has left may be of another side's share
		left[i] = min(n.Tokens, tokensMax)
		old := n.Dealt == qpid.Epoch{} // it does not say: of a version that does not, or of its parent's
		ours := n.Dealt.Coordinator == q.by && n.Dealt.Num > p.after
		p.known = p.known && (old || ours)
		if !ours && n.Dealt.Num > 0 && (n.Dealt.Num > counted || n.Dealt.Coordinator == forgotten || n.stranger(q.line)) {
			other = max(other, p.dealtUntil(now, q, n))
		}
		j := slices.IndexFunc(p.out, func(g grant) bool { return g.member == m })
		switch {
		case j >= 0:
			o := &p.out[j]
			spent := int(min(max(n.Spent, o.spent)-o.spent, visitorsMax))
			p.note(now, spent, o.taken(spent, q))
			g.parts = o.parts
			if old && len(list) > 1 && now >= o.until {
				other = now + q.underWay
			}
		case !ours && n.Born > 0 && (old || q.sides):
			other = now + q.underWay
		}
		out = append(out, g)
	}
	for _, g := range p.out {
		switch {
		case slices.Contains(list, g.member):
		case now < g.until:
			out = append(out, g)
		default:
			p.note(now, g.n, max(g.taken(g.n, q), q.whole().taken(g.n))) // nobody knows; it may have spent them, when the rate was this one
		}
	}
	p.out = out
	p.owe(now, other)
	return left
}

// dealtUntil is until when the lead may deal that n had its last of, which is another one;
// never: that is of no matter.
func (p *pacer) dealtUntil(now int64, q quota, n *RoomNode) int64 {
	switch {
	case n.Dealt.Coordinator == q.by:
		return p.dealt
	case n.Dealt.Coordinator == forgotten && q.known:
		return never
	case n.stranger(q.line):
		return now + q.underWay
	}
	return min(now+q.underWay, now-n.DealtAge+drifted(q.deadline))
}

// owe takes a debt for a lead that may deal until then, if that is not long ago.
func (p *pacer) owe(now, until int64) {
	if due := dueFrom(until); due > now {
		p.owes, p.dueTo = true, max(p.dueTo, due)
	}
}

// note counts n tokens that were spent by now, and that took parts of the allowance.
func (p *pacer) note(now int64, n int, parts int64) {
	if n == 0 {
		return
	}
	p.level -= int64(n) * 1_000_000
	s := spending{now, now, parts}
	if i := len(p.spent) - 1; i >= 0 && now-p.spent[i].first < noteEvery {
		p.spent[i].last, p.spent[i].parts = max(p.spent[i].last, now), p.spent[i].parts+s.parts
		return
	}
	p.spent = append(p.spent, s)
}

// noteEvery bounds the spendings of a minute, in microseconds.
const noteEvery = 250_000

// fill adds what has accrued by now and returns how many tokens there may be.
func (p *pacer) fill(now int64, q quota) int {
	p.spent = slices.DeleteFunc(p.spent, func(s spending) bool { return now-s.last >= drifted(minute) })
	part := q.part()
	if q.remade {
		p.owe(now, p.away)
		p.away = never
	}
	p.away = max(p.away, q.lost)
	if now >= p.dueTo {
		p.debt, p.owes, p.dueTo = 0, false, never
	}
	if p.owes && part > 0 {
		p.level, p.debt = min(p.level, 0), max(p.debt, q.debt())
		p.at, p.from, p.owes = now, now+q.pause(), false
	}
	since := min(max(p.at, p.from), now)
	p.at = now
	if part == 0 {
		return 0
	}
	accrued := q.accrued(now - since)
	paid := min(accrued, p.debt)
	p.debt -= paid
	p.level = min(p.level+accrued-paid, q.burst())
	if now <= p.from || !p.known {
		return 0
	}
	left, lost := int64(allowance), 0
	for _, s := range p.spent {
		left -= s.parts
	}
	for _, g := range p.out {
		lost += g.n // only of those who are not in the list: the others have replied
	}
	return max(0, min(int(p.level/1_000_000), int(float64(left)/float64(q.parts())+1e-6))-lost)
}

// deal settles how many tokens each node gets in place of what it has left, so
// that all that may be spent is within tokens. A side does not go on with what it has not: what
// is left at its nodes of before they were a side is counted, until it lapses, by who dealt it.
// So is all that is left as long as not all know who deals.
func (p *pacer) deal(now int64, q quota, tokens int, need, left []int, offset int) (deals []Deal) {
	p.dealt = now
	keep := tokens
	for _, n := range left {
		tokens -= n
	}
	for j := range need {
		i := (j + offset) % len(need)
		own := left[i]
		if q.part() < 1 {
			own = min(own, keep)
			keep -= own
		}
		n := min(need[i], own+max(0, tokens))
		tokens -= max(0, n-left[i])
		if n > 0 && p.known {
			deals = append(deals, Deal{i, n})
		}
		o := &p.out[i]
		if o.n, o.until = max(n, left[i]), now+drifted(tokenLife); n > 0 && q.share > 0 {
			o.parts = max(q.parts(), o.parts*int64(min(left[i], 1))) // the dearer of both, if some are left
		}
	}
	return deals
}

// lead is of a coordinator that takes the lead at now, when the highest wave was after. What it knows
// of a lead of its own goes on if nobody has led since: see begin.
func (p *pacer) lead(now, deadline int64, after uint64) {
	p.anew = p.first > 0
	if !p.anew {
		p.restart(now, deadline, after)
	}
}

// restart empties the pacer of a coordinator that took over at now, when the highest wave was
// after: nothing is dealt until every token dealt before has lapsed, unless it hears of those
// to whom another dealt, and owes.
func (p *pacer) restart(now, deadline int64, after uint64) {
	*p = pacer{at: now, from: now + drifted(tokenLife) + deadline, dueTo: never, away: never, after: after, dealt: p.dealt}
}
