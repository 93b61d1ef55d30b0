package eviction

import (
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// lead is what a coordinator keeps between waves.
type lead struct {
	active   bool
	since    int64 // boot time at which it took over
	banned   int64 // boot time until which its own clock keeps it from leading
	ban      int64 // µs: for how long it did last
	started  int64 // boot time of the last wave
	clock    int64 // pass time of the last wave
	urgent   bool
	open     bool   // the last wave is neither committed nor given up
	doubts   int64  // boot time until which it does not say that it lists a quorum, having said so in vain
	yielded  int64  // boot time at which it left the lead to others, having found no quorum
	seen     uint64 // the highest number that it has heard of, as coordinator
	skips    uint64 // numbers that the next wave leaves out
	probedAt int64
	peers    []candidate
	holdout  Member   // who knows of a cluster, and is not in the waves in which one would be founded
	asks     []string // rooms that others have and this node does not
	heard    heard
}

// asksMax bounds the rooms that a coordinator asks about without having them.
const asksMax = 16

// steer takes the lead or gives it up, and as coordinator does what is due.
func (n *Node) steer(now Time) {
	l := &n.lead
	rank := n.rank()
	silent := now.Boot-n.followedAt >= micros(n.c.ExcludeAfter)*rank
	if !(rank == 0 || l.active || silent || n.seeks(now)) || now.Boot < l.banned || n.parted {
		l.active = false
		return
	}
	if !l.active {
		*l = lead{active: true, since: now.Boot, banned: l.banned, ban: l.ban, doubts: l.doubts, yielded: l.yielded, started: never, probedAt: l.probedAt}
		for _, g := range n.gates {
			g.pacer.lead(now.Boot, micros(n.c.Deadline), n.epoch.Num)
			g.busy = true
		}
	}
	n.probe(now)
	if w := n.wave; l.open && w != nil && w.index == 0 {
		switch complete := len(w.waiting) == 0 && len(w.sum.Nodes) == len(w.list); {
		case now.Boot-w.at > micros(n.c.Deadline) || len(w.waiting) == 0 && !complete:
			n.blame(now, w)
			l.open = false
		case complete:
			l.open = false
			n.commit(now, w)
			return // the owner carries out the install before the next wave asks: it unfreezes
		}
	} else {
		l.open = false
	}
	if !l.open && l.active && now.Boot >= n.nextWave(now) {
		n.startWave(now)
	}
}

// seeks reports whether it is time that this node finds out whether it lists a quorum, though it follows another one: it has
// long been in no primary waves, for twice as long as when it found none, and its view is a quorum, with somebody who is not in the
// waves that it follows. To list one in vain costs others waves for exclude_after: after eight times the patience that is little.
func (n *Node) seeks(now Time) bool {
	without, yielded := now.Boot-n.lastPrimary, n.lead.yielded
	if without < micros(n.c.ExcludeAfter)*(n.rank()+2) || now.Boot-yielded < min(yielded-n.lastPrimary, 8*n.patience()) || !n.voting() {
		return false
	}
	var names []qpid.NodeID
	more := false
	for _, p := range n.view {
		names = append(names, p.Name)
		more = more || !slices.Contains(n.list, p.Member)
	}
	return more && n.voters.quorum(names)
}

// nextWave returns the boot time at which the coordinator has something to do.
func (n *Node) nextWave(now Time) int64 {
	l := &n.lead
	switch {
	case l.open:
		return l.started + micros(n.c.Deadline) + 1
	case l.started == never && n.probing(now):
		return l.since + micros(n.c.Deadline)
	case l.started == never:
		return now.Boot
	case l.urgent:
		return l.started + micros(n.c.Urgent)
	}
	return l.started + micros(n.c.Period)
}

// probing reports whether a new coordinator still waits to hear who is there: not of a life
// of whose node another one has answered.
func (n *Node) probing(now Time) bool {
	if now.Boot-n.lead.since >= micros(n.c.Deadline) {
		return false
	}
	return slices.ContainsFunc(n.others(), func(p Peer) bool {
		return !slices.ContainsFunc(n.lead.peers, func(c candidate) bool { return c.Name == p.Name && c.heard != never })
	})
}

// probe asks members of the view whether they could take part: the unheard every period,
// and so who was late once and is in the waves, which fail for it until that is known to be
// no accident; the others once a second, for their clocks.
func (n *Node) probe(now Time) {
	l := &n.lead
	if now.Boot-l.probedAt < micros(n.c.Period) {
		return
	}
	l.probedAt = now.Boot
	mid := n.middle(now)
	sure := n.clocksWith(now, mid)
	for _, p := range n.others() {
		c := l.find(p.Member)
		if c == nil {
			l.peers = append(l.peers, candidate{Peer: p, heard: never, probed: never, blamed: never, blocked: never, owes: 1})
			c = &l.peers[len(l.peers)-1]
		}
		doubtful := c.owes == 0 && c.late > 0 && c.late < lateMin
		if doubtful || now.Boot-c.heard >= micros(n.c.Period) || now.Boot-c.probed >= 1_000_000 {
			c.probed = now.Boot
			off := sure && n.fresh(now, c) && abs(c.clock.offset-mid)-c.clock.err > micros(n.c.MaxSkew)
			n.send(p.Member, &Probe{Lead: n.self, Epoch: n.epoch, Sent: n.clock.now, Off: off, Line: n.line})
		}
	}
}

func (n *Node) onProbe(now Time, from Member, p *Probe) {
	n.clock.probed = true
	if p.Line.Founded() && p.Line != n.line && from != n.follow.Member {
		n.rumour = rumour{from, p.Line, now.Boot}
	}
	switch {
	case p.Off:
		n.clock.distrust(now.Boot)
		n.leaseUntil = never
	case n.clock.behind(p.Sent) && slices.Contains(n.list, from): // no newcomer, whose clock nobody has measured
		n.clock.doubt(now.Boot)
		n.leaseUntil = never
	}
	with := n.answers(now, p.Lead)
	n.send(from, &ProbeAck{Sent: p.Sent, Clock: n.clock.now, Follow: with.lead, Quorum: with.quorum, Epoch: n.epoch, Leaving: n.parted, Line: n.line, Forgot: !n.voting()})
}

func (n *Node) onProbeAck(now Time, from Member, a *ProbeAck) {
	c := n.lead.find(from)
	if c == nil || !n.lead.active {
		return
	}
	n.jump(a.Epoch)
	c.with = bid{a.Follow, a.Quorum}
	if n.hasLeft(a.Follow.Member) { // whose goodbye is on its way there
		c.with = bid{}
	}
	c.heard, c.answered, c.line, c.forgot, c.leaves = now.Boot, true, a.Line, a.Forgot, a.Leaving
	c.clock = measure(a.Sent, n.clock.now, a.Clock)
	c.fits(2*c.clock.err <= micros(n.c.Deadline), n.Listed(from))
}

// epochLeap bounds how far one message may carry the epoch: more than this many
// waves nobody can have missed, and numbers are not for one peer to use up.
const epochLeap = 1 << 40

// jump notes a number that somebody has seen, so that the next wave's is higher. It promises
// nothing: the wave of that number may yet ask.
func (n *Node) jump(e qpid.Epoch) {
	if n.lead.active && e.Num > n.epoch.Num && e.Num-n.epoch.Num <= epochLeap {
		n.lead.seen = max(n.lead.seen, e.Num)
	}
}

// onNack gives the wave up, of which one who is listed is in no more. If it stays with another
// coordinator, the next one does without it; if it has seen a higher number, as of waves of its own, the
// next one leaves a number out, or the two would be as high each time.
func (n *Node) onNack(from Member, m *Nack) {
	n.jump(m.Epoch)
	c, w := n.lead.find(from), n.wave
	if c == nil || !n.lead.open || w == nil || w.index > 0 || !slices.Contains(w.list, from) || m.Lead.Member == (Member{}) && m.Epoch.Compare(w.epoch) < 0 {
		return
	}
	if m.Lead.Member != (Member{}) && !n.hasLeft(m.Lead.Member) {
		c.with = bid{m.Lead, w.Quorum || Seniority(n.self, m.Lead) < 0}
	} else {
		n.lead.skips = 1
	}
	n.lead.open = false
}

// yield leaves the lead to another coordinator that is at work, as another node
// says. That one may have heard of it last a little later than this one, so this one
// asks again after a deadline, or while it follows one when it seeks.
func (n *Node) yield(now Time) {
	n.lead.active, n.lead.yielded = false, now.Boot
	n.followedAt = max(n.followedAt, now.Boot+micros(n.c.Deadline)-micros(n.c.ExcludeAfter)*n.rank())
}

// startWave lists who is ready and gathers.
func (n *Node) startWave(now Time) {
	l := &n.lead
	mid := n.middle(now)
	list, quorum := n.candidates(now, mid)
	mine := bid{n.self, quorum}
	if !quorum && n.rank() > 0 && (n.follows(now) != bid{} || n.outdone(now, mine)) {
		n.yield(now)
		return
	}
	if abs(mid) > micros(n.c.MaxSkew) {
		n.stepDown(now, mid)
		return
	}
	if n.follows(now).before(mine) || len(list) == 1 && n.follow.Member != (Member{}) && now.Boot-n.followedAt < micros(n.c.ExcludeAfter) {
		l.started, l.urgent = now.Boot, false // it is in another's waves, with more than itself
		return
	}
	n.clock.promise(uint64(n.clock.now))
	n.catchUp(list)
	rooms, more := n.dueRooms(now)
	g := &Gather{Epoch: n.nextEpoch(), Lead: n.self, Quorum: quorum, List: list, T: n.clock.hlc, Wait: micros(n.c.Deadline), Rooms: rooms, Voters: n.voters.At, Reckons: n.c.reckons}
	if slices.Equal(list, n.list) {
		g.List, g.As = n.list, n.installed
	}
	l.started, l.clock, l.urgent, l.open, l.asks, l.skips = now.Boot, n.clock.now, more, true, nil, 0
	n.join(now, n.self.Member, g, 0)
	n.steerOwn(now)
}

// catchUp counts tickets stamped ahead of this node's clock, when it is the
// whole cluster: it may have been restarted with a clock that is behind.
func (n *Node) catchUp(list []Member) {
	if len(list) > 1 || len(n.voters.Names) > 1 {
		return
	}
	for _, g := range n.gates {
		if w, ok := g.Queue.Select(g.Queue.Len() - 1); ok && g.cfg.Algorithm == ByCut {
			n.clock.promise(w.Stamp)
		}
	}
}

// steerOwn commits a wave of one at once.
func (n *Node) steerOwn(now Time) {
	if w := n.wave; w != nil && len(w.list) == 1 && n.lead.open {
		n.lead.open = false
		n.commit(now, w)
	}
}

// stepDown lets another node lead: this one's clock is not with the others, whose middle
// is mid ahead. If it stood still it is with them from here on, and this node may lead:
// of two nodes the other one may have no quorum. Else it may after a while, longer each
// time: a clock that is just as far off as it may be seems right every other time, and
// whenever it is given up the waves stand until another node takes over.
func (n *Node) stepDown(now Time, mid int64) {
	n.clock.quarantined, n.clock.probed, n.clock.agreed = true, false, false
	n.leaseUntil = never
	n.lead.active = false
	if n.clock.stoodStill(mid) {
		n.age(n.clock.followWall())
		return
	}
	if n.clock.beganAhead(mid) {
		n.clock.leased = false // so that it is set when it is read next
		return
	}
	l := &n.lead
	if now.Boot-l.banned >= n.patience() {
		l.ban = 0
	}
	l.ban = min(max(2*l.ban, 2*micros(n.c.ExcludeAfter)), n.patience())
	l.banned = now.Boot + l.ban
}

// commit decides a complete wave and installs it.
func (n *Node) commit(now Time, w *wave) {
	n.vouchFor(w)
	if now.Boot-w.at > w.sum.Bounds.Held.Deadline && w.sum.Bounds.Held != (Bounds{}) {
		n.blame(now, w) // D does not reckon with a wave that took so long
		return
	}
	if !n.clocksAgree(now, w) {
		return
	}
	c, d, ok := n.authority(now, w)
	if w.Quorum && (!ok || c.Grade < Primary) && len(linesOf(w)) == 1 { // of several the others may be why
		n.lead.doubts = now.Boot + 2*micros(n.c.ExcludeAfter)
	}
	if !ok {
		return
	}
	if w.namesAgain(c.Line) {
		n.lead.urgent = true // the next one has another number
		return
	}
	c.Rooms = make([]RoomCommit, 0, len(w.sum.Rooms))
	for i := range w.sum.Rooms {
		r := &w.sum.Rooms[i]
		g := n.Gate(r.Room)
		if g == nil && r.Newest != nil {
			empty := *r.Newest
			empty.Version = Version{}
			g = n.addGate(empty)
		}
		if g == nil {
			c.Rooms = append(c.Rooms, RoomCommit{Room: r.Room, Born: make([]uint64, len(w.list)), Pace: Pace{Idle: true}})
			continue
		}
		c.Rooms = append(c.Rooms, g.conclude(d, r))
		g.busy, n.lead.urgent = g.busy || g.mints, n.lead.urgent || g.mints
	}
	for _, r := range w.sum.Nodes {
		n.lead.urgent = n.lead.urgent || r.Leaving // it goes when waves have let go of it
		for _, name := range r.Busy {
			if g := n.Gate(name); g != nil {
				g.busy = true
			} else if len(n.lead.asks) < asksMax && !slices.Contains(n.lead.asks, name) {
				n.lead.asks = append(n.lead.asks, name)
			}
		}
		n.acquit(now, w.list[r.Index])
	}
	if len(w.list) > 1 {
		n.clock.told = d.t // the others go by it now
	}
	n.carryOut(now, w, c)
}

// namesAgain reports whether a node has an account of another line than this wave's which another coordinator's wave of this
// number has opened. One that this wave opens there would have the same name, and go on with slots that are of that line.
func (w *wave) namesAgain(line Line) bool {
	return slices.ContainsFunc(w.sum.Rooms, func(r RoomReply) bool {
		return slices.ContainsFunc(r.Nodes, func(n RoomNode) bool { return n.Born >= w.epoch.Num && n.Line != line })
	})
}

// vouchFor has the coordinator itself hold what any of its wave reckons with. It may, as it
// has said nothing of this wave yet: from here on it stands for it in every other.
func (n *Node) vouchFor(w *wave) {
	n.c.hold(w.sum.Bounds.Reckons)
	s := &w.sum.Bounds
	s.Held = w.held
	*s = s.merge(n.c.sum())
}

// clocksAgree checks the clocks that the replies carried; a node whose clock is off is
// left out of the next wave. The middle of them is no better known than the clock that it
// is the reading of: where that one's reply was late, also this node's own clock may seem
// far from the middle and be right.
func (n *Node) clocksAgree(now Time, w *wave) bool {
	offsets := make([]int64, len(w.clocks))
	for i, r := range w.clocks {
		offsets[i] = r.offset
	}
	slices.Sort(offsets)
	mid, err, agree := n.clock.median(offsets), int64(ever), true
	for _, r := range w.clocks {
		if r.offset == mid {
			err = min(err, r.err)
		}
	}
	skew := micros(n.c.MaxSkew)
	if held := w.sum.Bounds.Held; held != (Bounds{}) {
		skew = min(skew, held.MaxSkew) // D reckons with no clock that is further off
	}
	for i, r := range w.sum.Nodes {
		if abs(w.clocks[i].offset-mid)-w.clocks[i].err-err <= skew {
			continue
		}
		agree = false
		if c := n.lead.find(w.list[r.Index]); c != nil {
			c.clock.ok, c.heard = false, never
		} else if r.Index == 0 {
			n.stepDown(now, mid)
		}
	}
	return agree
}

// nextEpoch names the next wave. The life is part of the name: a node that was
// restarted may number its first waves as an earlier life did.
func (n *Node) nextEpoch() qpid.Epoch {
	return qpid.Epoch{Num: max(n.epoch.Num, n.lead.seen) + 1 + n.lead.skips, Coordinator: qpid.NodeID(n.self.Member.String())}
}

// rank is how many more senior members this node leaves the lead to: those of its view
// and of the last commit that its failure detector has not told it of yet, but for who
// has said goodbye. Who has only just started would else lead for a moment when the
// coordinator leaves.
func (n *Node) rank() (rank int64) {
	if n.ranked >= 0 { // neither the view, the list nor who has left is another since
		return n.ranked
	}
	for _, p := range n.view {
		if p.Member == n.self.Member {
			break
		}
		if !n.hasLeft(p.Member) {
			rank++
		}
	}
	for _, m := range n.list[:max(0, slices.Index(n.list, n.self.Member))] {
		if n.unheard(m) && !n.hasLeft(m) {
			rank++
		}
	}
	n.ranked = rank
	return rank
}

// unheard reports whether the failure detector has not told this node yet of m, which is
// in the last commit.
func (n *Node) unheard(m Member) bool {
	return n.view.index(m) < 0 && !slices.Contains(n.viewed, m)
}
