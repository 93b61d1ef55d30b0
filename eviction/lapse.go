package eviction

import (
	"math"
	"slices"
	"time"
)

// Until when something may act, and what is let go of after that: a lease and the passes
// given under it (lapsesAt), all that a lost node may have left (D, delay), and all that
// is remembered of it (forget).

// Now takes in the clocks and returns the pass time, in Unix microseconds.
func (n *Node) Now(now Time) int64 { n.read(now); return n.clock.now }

// Gives notes until when, in pass time, a pass is good.
func (n *Node) Gives(until int64) { n.clock.given, n.clock.off = max(n.clock.given, until), false }

// LastNow returns the pass time as of when the clocks were last taken in. It changes
// nothing, where Now may find that the machine stood still and give up its accounts.
func (n *Node) LastNow() int64 { return n.clock.now }

// LastBoot is the boot time of LastNow.
func (n *Node) LastBoot() int64 { return n.clock.last.Boot }

// Promised is the time up to which this node stamps nothing any more, µs since 1970.
func (n *Node) Promised() int64 { return int64(n.clock.hlc) }

// AloneFor is for how long, in µs, this node has been in no primary wave, nor heard of one.
// It is 0 before the first.
func (n *Node) AloneFor(now Time) int64 {
	if at := max(n.lastPrimary, n.heardAt); at != never {
		return now.Boot - at
	}
	return 0
}

// read takes in the clocks and lets go of what has lapsed meanwhile.
func (n *Node) read(now Time) {
	n.clock.leased = n.clock.leased && !n.outlived(now.Boot)
	jumped, set := n.clock.read(now)
	if jumped {
		n.leaseUntil = never
	}
	if set {
		n.lead.open = false // the T of its own wave binds it no longer
	}
	n.lapse(now.Boot)
}

// dues are what a node looks at instead of all its rooms, as it does whenever it
// reads the clocks or speaks: there may be thousands of rooms, in which nothing
// has happened.
//
// Invariant: the account of no gate lapses before lapse, and outlived is false
// before outlived. What makes either earlier goes through changed, or forgets it.
// Invariant: what differs from the record kept last is of a gate in revised, or no
// gate's.
type dues struct {
	lapse    int64 // boot time
	outlived int64 // boot time; never: find out
	delay    int64 // µs: the longest D that any room has had
	revised  []*Gate
}

// changed notes that the configuration of g, its account, its lease, its line or
// what it knows to be void is another one.
func (n *Node) changed(g *Gate) {
	n.dues.lapse = min(n.dues.lapse, g.lapsesAt())
	n.dues.outlived = never
	n.dues.delay = max(n.dues.delay, g.delay())
	if !g.revised {
		g.revised = true
		n.dues.revised = append(n.dues.revised, g)
	}
}

// lapse closes the accounts that nobody has renewed the lease of for too long.
func (n *Node) lapse(now int64) {
	if now < n.dues.lapse {
		return
	}
	n.dues.lapse = ever
	for _, g := range n.gates {
		if g.lapse(n.self.Member, now) {
			n.done = append(n.done, Installed{Gate: g, Before: g.cut, Epoch: n.installed, Reset: true})
		}
		n.dues.lapse = min(n.dues.lapse, g.lapsesAt())
	}
}

// lapse closes an account whose passes have run out while nobody renewed its
// lease: its slots may be about to be minted again elsewhere, and it forgotten
// that it is void, see forget.
func (g *Gate) lapse(self Member, now int64) (reset bool) {
	if now < g.lapsesAt() {
		return false
	}
	g.busy = true
	return g.reopen(Account{Member: self})
}

// age makes the accounts older by as long as this machine stood still with its clocks,
// which no reading of the boot clock shows: they lapse as they would have if it had not, or
// sooner, if it stood before their last lease. How long ago others were seen stays what it
// is: that is waited for, and may not seem longer than it was.
func (n *Node) age(stood int64) {
	for _, g := range n.gates {
		g.lapses -= stood
		n.changed(g)
	}
	n.lapse(n.clock.last.Boot)
}

// lapsesAt is the boot time from which on the account has lapsed.
func (g *Gate) lapsesAt() int64 {
	if g.sides || g.ledger.account.Born == 0 {
		return ever
	}
	return g.lapses
}

// outlived reports whether nothing is left alive that this node's clock timed:
// its last primary lease is over, and so is the longest session since.
func (n *Node) outlived(now int64) bool {
	switch {
	case n.lastPrimary == never:
		return true
	case now < n.lastPrimary+n.c.waits.Lease || now < n.dues.outlived:
		return false // however short the sessions are
	}
	n.dues.outlived = n.outlives()
	return now >= n.dues.outlived
}

// outlives is until when something is alive that this node's clock timed, as of its
// last primary wave.
func (n *Node) outlives() int64 {
	longest := time.Duration(0)
	for _, g := range n.gates {
		longest = max(longest, g.ttl, g.cfg.longest())
	}
	b := n.c.waits
	return n.lastPrimary + drifted(b.Lease+micros(longest)) + 2*b.MaxSkew + b.Margin
}

// driftMax is by how much two machines' boot clocks may come apart, in
// microseconds per second: 200 in a million each, which is more than a crystal
// does. Twice max_skew does not cover it: that is how far clocks are apart when
// they are measured, and a wait of hours is by one clock alone.
const driftMax = 400

// drifted is how long d, in microseconds, has to be waited by one clock so that
// it is over by every other.
func drifted(d int64) int64 { return d + (d*driftMax+999_999)/1_000_000 }

// delay is D: this long after a wave with a node, nothing of that node's can
// act any more.
func (f *inForce) delay() int64 { return f.delayFor(f.c.waits, 0) }

// delayFor is D by what is reckoned with, where passes may last for ttl, in
// microseconds, if that is longer than all that this gate knows of.
func (f *inForce) delayFor(b Bounds, ttl int64) int64 {
	ttl = max(ttl, micros(max(f.ttl, f.cfg.longest())))
	return drifted(b.Deadline+b.Lease+ttl) + 2*b.MaxSkew + b.Margin
}

// leaseOver is how long after a wave with a node the lease is over that it brought.
func (b Bounds) leaseOver() int64 { return drifted(b.Deadline+b.Lease) + 2*b.MaxSkew + b.Margin }

// EndsBy returns the pass time by which a pass of home is over at the latest, whatever it
// says; stamp is that of its ticket. It bounds passes of before the founding of this
// cluster, which kept signing keys let in: whoever gave them is over, and nobody knows by
// which session. D reckons with the longest of the files, and so does this.
//
// Proof that slots are made for those who were lost with the founding only when no such
// pass is good. They were last seen in it, D ago, and D reckons with the session of any
// listed node's file, also if a shorter one has come since: that is forgotten no sooner
// than D after. The founding came later than its stamp, so by every clock that judges
// passes that session from there on is over (lemma 5).
//
// A pass of since is told by its home: waves have told everybody of that, and it is
// remembered for longer than its passes last. Only where somebody roams to the other side
// of a split, and has waited since before the founding, and the home joined after the
// split, is such a pass refused. No clock, nor a stamp before it, is further ahead than
// 2ε, so who was stamped 4ε after the founding has no pass of before.
func (n *Node) EndsBy(g *Gate, home Member, stamp uint64) int64 {
	founded := n.line.Stamp
	if from := n.voters.From; from.Founded() {
		founded = from.Stamp
	}
	if stamp >= founded+uint64(4*n.c.waits.MaxSkew) || n.Listed(home) {
		return math.MaxInt64
	}
	if _, met := n.findMet(home); met {
		return math.MaxInt64
	}
	return int64(founded) + micros(g.filed)
}

// survivorAfter is how long a side without a quorum waits, by what is reckoned with; ok
// is false for never.
func (f *inForce) survivorAfter(b Bounds) (µs int64, ok bool) {
	switch f.cfg.Survivor {
	case 0:
		return 0, false
	case SurvivorAuto:
		return max(micros(5*time.Minute), f.delayFor(b, 0)), true
	default:
	}
	return max(micros(f.cfg.Survivor), f.delayFor(b, 0)), true
}

// forget drops members that cannot come back with anything: twice D after the
// last wave with them their own nodes have closed their accounts. What is
// known of them to be void is kept while anyone in the wave reckons with them.
//
// Proof. An account lapses when its last lease is over, the session that passes were
// given by under that lease, and 2ε (escrow.lease): not the longest that its node has
// heard of since, on a side of a split, or from a wave that others did not get. By lemma
// 8 somebody in every later quorum reckons with that session, and keeps the void until
// twice the D of it. And the node is in no wave before its clock is right. That of a
// machine that stood still is set when nothing is left that it timed (Clock.read), or by
// as long as it stood, and then its accounts are as much older (age).
func (n *Node) forget(now Time, c *Commit) {
	keep := int64(0)
	for _, g := range n.gates {
		keep = max(keep, 2*g.delay())
		if g.cfg.NewPerMinute > 0 || g.now.NewPerMinute > 0 {
			keep = max(keep, drifted(minute)) // who takes over counts them, see decision.lately
		}
	}
	before := len(n.met)
	n.met = slices.DeleteFunc(n.met, func(s sight) bool {
		return now.Boot-s.at > keep && !n.Listed(s.member) && !n.holdsShare(s, now.Boot-keep) && !n.owes(s.member) &&
			!(n.lastLife(s) && n.stopsFor(s.member)) && !n.standsFor(s, c)
	})
	if len(n.met) < before {
		n.ranked = -1
	}
	for _, g := range n.gates {
		if g.forget(func(m Member) bool {
			_, ok := n.findMet(m)
			return ok || n.Listed(m) || slices.ContainsFunc(c.Met, func(s Sighting) bool { return s.Member == m })
		}) {
			n.changed(g)
		}
	}
}

// holdsShare reports whether m may hold slots of a room whose sides go on with
// what they have: it keeps them however long it is away, until it has said that it will
// not return, or a later life of it is here since before. An operator may be wrong who
// says so of it: then its slots are made again, and it is void for good.
func (n *Node) holdsShare(s sight, before int64) bool {
	m := s.member
	if later := successor(n.list, m); later >= 0 {
		since := n.began
		if i, ok := n.findMet(n.list[later]); ok {
			since = n.met[i].first
		}
		if since < before {
			return false
		}
	}
	return !s.left && slices.ContainsFunc(n.gates, func(g *Gate) bool {
		return m.Name != "" && (g.Shares() || slices.Contains(g.cfg.Reclaimed, m))
	})
}

// succeeded reports whether list has a later life of the node of which m was
// one: that one is over.
func succeeded(list []Member, m Member) bool { return successor(list, m) >= 0 }

// successor is the place of that life in the list, -1 if there is none.
func successor(list []Member, m Member) int {
	return slices.IndexFunc(list, func(o Member) bool { return o.Name == m.Name && o.Boot != m.Boot })
}

// shares reports whether a room has sides that go on with the slots that they have.
func (n *Node) shares() bool {
	return slices.ContainsFunc(n.gates, (*Gate).Shares)
}

// owes reports whether books with an account of m are still open here.
func (n *Node) owes(m Member) bool {
	return slices.ContainsFunc(n.gates, func(g *Gate) bool {
		return slices.ContainsFunc(g.ledger.peers, func(p PeerAccount) bool { return p.Member == m })
	})
}

// standsFor reports whether s may be the life that a voter's name votes in: to
// forget it would give the vote back to an earlier one, which has not heard that it had lost it. It is not, once a primary wave
// lists another life of the name and does not say so of that one: that one knows, then, and stands for as late a wave as s
// (Commit.Outvoted, votes). To have been listed is not enough, as the commit may not have reached it.
func (n *Node) standsFor(s sight, c *Commit) bool {
	if !n.voters.names(s.member.Name) {
		return false
	}
	if c.Grade < Primary {
		return true
	}
	for i, m := range n.list {
		if m.Name == s.member.Name && !slices.Contains(c.Outvoted, i) {
			return false
		}
	}
	return true
}

// lastLife reports whether s is the latest known life of a node that is not in
// the list: a room that stops for it must be able to name it.
func (n *Node) lastLife(s sight) bool {
	if slices.ContainsFunc(n.list, func(m Member) bool { return m.Name == s.member.Name }) {
		return false
	}
	return !slices.ContainsFunc(n.met, func(o sight) bool { return o.member.Name == s.member.Name && o.epoch > s.epoch })
}

// stopsFor reports whether a room stops until the node of which m was the last
// life is back, however long that takes, or until an operator says that it
// will not return.
func (n *Node) stopsFor(m Member) bool {
	return slices.ContainsFunc(n.gates, func(g *Gate) bool {
		return g.cfg.OnPartition == Stop && g.cfg.Mode != Deleted && !slices.Contains(g.cfg.Reclaimed, m)
	})
}
