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
	started  int64 // boot time of the last wave
	clock    int64 // pass time of the last wave
	urgent   bool
	open     bool // the last wave is neither committed nor given up
	probedAt int64
	peers    []candidate
	asks     []string // rooms that others have and this node does not
}

// candidate is a member that could be listed.
type candidate struct {
	Peer
	heard   int64 // boot time of its last answer
	probed  int64 // boot time of the last probe
	clock   reading
	follows bool  // a more senior coordinator
	blamed  int64 // boot time since which waves fail because of it; never: they do not
	blocked int64 // boot time until which it is left out
	backoff int64
	late    int  // so many of its round trips, the last ones, took longer than a wave may: lateMin at most
	owes    int  // so many more have to fit, in a row, before it is listed
	gray    bool // it was left out as slow, not long ago
}

// A node is slow when the last lateMin round trips to it took longer than a wave may:
// it lives, and every wave would wait for it in vain. One alone may be due to this
// node's own standing still. Who was left out for that is back when fitsMin in a row have
// fitted; of anybody else one has to.
const (
	lateMin = 2
	fitsMin = 3
)

// prune forgets candidates that are not among those who may be listed any more.
func (l *lead) prune(others []Peer) {
	l.peers = slices.DeleteFunc(l.peers, func(c candidate) bool {
		return !slices.ContainsFunc(others, func(p Peer) bool { return p.Member == c.Member })
	})
}

// others are those whom this node may list: its view, and newcomers of the last
// commit that its failure detector has not told it of yet. They are the most junior.
// Without them the first wave after a coordinator has left would lack whoever that one
// had only just taken in, and hold the cut for the people who wait there.
func (n *Node) others() []Peer {
	others := slices.DeleteFunc(slices.Clone(n.view), func(p Peer) bool { return p.Member == n.self.Member })
	for _, m := range n.list[slices.Index(n.list, n.self.Member)+1:] {
		if n.view.index(m) < 0 && !slices.Contains(n.viewed, m) {
			others = append(others, Peer{Member: m})
		}
	}
	return others
}

// drop forgets a member that says goodbye.
func (l *lead) drop(m Member) {
	if c := l.find(m); c != nil {
		c.heard, c.blocked = never, 1<<62
	}
}

func (l *lead) find(m Member) *candidate {
	if i := slices.IndexFunc(l.peers, func(c candidate) bool { return c.Member == m }); i >= 0 {
		return &l.peers[i]
	}
	return nil
}

// steer takes the lead or gives it up, and as coordinator does what is due.
func (n *Node) steer(now Time) {
	l := &n.lead
	rank := n.rank()
	silent := now.Boot-n.followedAt >= micros(n.c.ExcludeAfter)*rank
	if !(rank == 0 || l.active || silent) || now.Boot < l.banned || n.parted {
		l.active = false
		return
	}
	if !l.active {
		*l = lead{active: true, since: now.Boot, banned: l.banned, started: never, probedAt: l.probedAt}
		for _, g := range n.gates {
			g.pacer.restart(now.Boot, micros(n.c.Deadline))
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

// probing reports whether a new coordinator still waits to hear who is there.
func (n *Node) probing(now Time) bool {
	heard := 0
	for _, c := range n.lead.peers {
		if c.heard != never {
			heard++
		}
	}
	return heard < len(n.others()) && now.Boot-n.lead.since < micros(n.c.Deadline)
}

// probe asks members of the view whether they could take part: the unheard
// every period, the others once a second, for their clocks.
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
		if now.Boot-c.heard >= micros(n.c.Period) || now.Boot-c.probed >= 1_000_000 {
			c.probed = now.Boot
			off := sure && n.fresh(now, c) && abs(c.clock.offset-mid)-c.clock.err > micros(n.c.MaxSkew)
			n.send(p.Member, &Probe{Lead: n.self, Epoch: n.epoch, Sent: n.clock.now, Off: off})
		}
	}
}

func (n *Node) onProbe(now Time, from Member, p *Probe) {
	n.clock.probed = true
	switch {
	case p.Off:
		n.clock.distrust(now.Boot)
		n.leaseUntil = never
	case n.clock.behind(p.Sent) && slices.Contains(n.list, from): // no newcomer, whose clock nobody has measured
		n.clock.doubt(now.Boot)
		n.leaseUntil = never
	}
	follow := n.senior(now, p.Lead)
	if n.leads(now) && n.reaches(from) && Seniority(n.self, p.Lead) < 0 && n.view.index(n.self.Member) == 0 {
		follow = n.self
	}
	n.send(from, &ProbeAck{Sent: p.Sent, Clock: n.clock.now, Follow: follow, Epoch: n.epoch, Leaving: n.parted})
}

// leads reports whether the node's own waves have a quorum. Only then it asks
// others to leave the lead to it: to be the most senior is not enough for one who
// hears no replies, or has left everybody out.
func (n *Node) leads(now Time) bool {
	return n.lead.active && !n.clock.quarantined && n.grade >= Primary && n.list[0] == n.self.Member &&
		now.Boot-n.installedAt < micros(n.c.ExcludeAfter)
}

// reaches reports whether a round trip to m fits a wave: else the lead would be left to
// one who cannot list it. A slow node that went on alone has a quorum of its own.
func (n *Node) reaches(m Member) bool {
	c := n.lead.find(m)
	return c != nil && c.owes == 0
}

func (n *Node) onProbeAck(now Time, from Member, a *ProbeAck) {
	c := n.lead.find(from)
	if c == nil || !n.lead.active {
		return
	}
	follows := a.Follow.Member != (Member{}) && !n.hasLeft(a.Follow.Member) // whose goodbye is on its way there
	if follows && Seniority(a.Follow, n.self) < 0 && n.view.index(n.self.Member) > 0 {
		n.yield(now)
		return
	}
	n.jump(a.Epoch)
	c.follows = follows || a.Leaving
	c.heard = now.Boot
	c.clock = measure(a.Sent, n.clock.now, a.Clock)
	c.fits(2*c.clock.err <= micros(n.c.Deadline), n.Listed(from))
}

// fits notes whether a round trip fitted a wave's deadline. Who was in the last wave
// is not left out before one has missed it.
func (c *candidate) fits(ok, listed bool) {
	if !ok {
		c.late = min(c.late+1, lateMin)
		if !listed || c.owes > 0 {
			c.owe()
		}
		return
	}
	c.late, c.owes = 0, max(0, c.owes-1)
}

// owe says how many round trips have to fit before c is listed.
func (c *candidate) owe() {
	c.owes = 1
	if c.gray {
		c.owes = fitsMin
	}
}

// epochLeap bounds how far one message may carry the epoch: more than this many
// waves nobody can have missed, and numbers are not for one peer to use up.
const epochLeap = 1 << 40

// jump raises the epoch seen, so that the next wave's is higher.
func (n *Node) jump(e qpid.Epoch) {
	if n.lead.active && e.Num > n.epoch.Num && e.Num-n.epoch.Num <= epochLeap {
		n.epoch = qpid.Epoch{Num: e.Num, Coordinator: e.Coordinator}
	}
}

func (n *Node) onNack(m *Nack) {
	n.jump(m.Epoch)
	if m.Lead.Member == (Member{}) {
		return
	}
	if n.view.index(m.Lead.Member) >= 0 && !n.hasLeft(m.Lead.Member) {
		n.yield(n.clock.last)
	}
}

// yield leaves the lead to a more senior coordinator that is at work, as another node
// says. That one may have heard of it last a little later than this one, so this one
// asks again after a deadline.
func (n *Node) yield(now Time) {
	n.lead.active = false
	n.followedAt = max(n.followedAt, now.Boot+micros(n.c.Deadline)-micros(n.c.ExcludeAfter)*n.rank())
}

// ready reports whether c may be listed: heard of lately, its clock within
// bounds of the median, and neither slow nor left out for failing waves.
func (n *Node) ready(now Time, c *candidate, mid int64) bool {
	if c == nil || c.follows || c.owes > 0 || now.Boot < c.blocked || now.Boot-c.heard >= micros(n.c.ExcludeAfter) {
		return false
	}
	return c.clock.ok && abs(c.clock.offset-mid)+c.clock.err <= micros(n.c.MaxSkew)
}

// middle returns the median offset of all candidates heard of, and its own 0.
func (n *Node) middle(now Time) int64 {
	offsets := []int64{0}
	for _, c := range n.lead.peers {
		if n.fresh(now, &c) {
			offsets = append(offsets, c.clock.offset)
		}
	}
	slices.Sort(offsets)
	return median(offsets)
}

// fresh reports whether c's clock was measured lately.
func (n *Node) fresh(now Time, c *candidate) bool {
	return c.clock.ok && now.Boot-c.heard < micros(n.c.ExcludeAfter)
}

// clocksWith reports whether the clocks of a quorum are certain to be around mid.
// Only then a clock that is not may be called off: who is told so stops at once,
// and a coordinator that is itself off, or has heard of few, must not have that
// done to the others.
func (n *Node) clocksWith(now Time, mid int64) bool {
	if !n.knows || n.clock.quarantined {
		return false
	}
	var with []qpid.NodeID
	if abs(mid) <= micros(n.c.MaxSkew) {
		with = append(with, n.self.Name)
	}
	for _, c := range n.lead.peers {
		if n.fresh(now, &c) && abs(c.clock.offset-mid)+c.clock.err <= micros(n.c.MaxSkew) {
			with = append(with, c.Name)
		}
	}
	return n.voters.quorum(with)
}

// startWave lists who is ready and gathers.
func (n *Node) startWave(now Time) {
	l := &n.lead
	mid := n.middle(now)
	if abs(mid) > micros(n.c.MaxSkew) {
		n.stepDown(now)
		return
	}
	list := []Member{n.self.Member}
	for _, p := range n.others() {
		if n.ready(now, l.find(p.Member), mid) {
			list = append(list, p.Member)
		}
	}
	if len(list) == 1 && n.follow.Member != (Member{}) && now.Boot-n.followedAt < micros(n.c.ExcludeAfter) {
		l.started, l.urgent = now.Boot, false // it is in another's waves, with more than itself
		return
	}
	n.clock.promise(uint64(n.clock.now))
	n.catchUp(list)
	rooms, more := n.dueRooms(now)
	g := &Gather{Epoch: n.nextEpoch(), Lead: n.self, List: list, T: n.clock.hlc, Wait: micros(n.c.Deadline), Rooms: rooms}
	l.started, l.clock, l.urgent, l.open, l.asks = now.Boot, n.clock.now, more, true, nil
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

// stepDown lets another node lead: this one's clock is not with the others.
func (n *Node) stepDown(now Time) {
	n.clock.quarantined, n.clock.probed, n.clock.agreed = true, false, false
	n.leaseUntil = never
	n.lead.active, n.lead.banned = false, now.Boot+2*micros(n.c.ExcludeAfter)
}

// blame notes whom a failed wave lacked: the topmost of the silent in each
// branch. One that fails waves for exclude_after is left out for a while, and one
// that is slow at once.
func (n *Node) blame(now Time, w *wave) {
	for _, r := range w.Rooms { // whose nodes take them for reported
		if g := n.Gate(r.Room); g != nil {
			g.busy = true
		}
	}
	if now.Boot-w.at > 2*micros(n.c.Deadline) {
		return // it was this node that stood still
	}
	present := make([]bool, len(w.list))
	for _, r := range w.sum.Nodes {
		present[r.Index] = true
	}
	for i, m := range w.list {
		c := n.lead.find(m)
		if c == nil || i == 0 {
			continue
		}
		if present[i] {
			c.heard = now.Boot
			continue
		}
		if !present[parent(i, n.c.Fanout)] {
			continue
		}
		if c.blamed == never {
			c.blamed = w.at
		}
		c.gray = c.gray || c.late >= lateMin
		if now.Boot-c.blamed >= micros(n.c.ExcludeAfter) || c.gray {
			n.block(now, c)
		}
	}
}

// block leaves c out of waves, longer each time.
func (n *Node) block(now Time, c *candidate) {
	c.backoff = min(max(2*c.backoff, micros(n.c.ExcludeAfter)), n.patience())
	c.blocked, c.blamed, c.heard = now.Boot+c.backoff, never, never
	if c.gray {
		c.owe()
	}
}

// patience is how long a node is left out at most, and how long one that was slow has
// to be back until that is forgotten.
func (n *Node) patience() int64 { return 8 * micros(n.c.ExcludeAfter) }

// commit decides a complete wave and installs it.
func (n *Node) commit(now Time, w *wave) {
	if !n.clocksAgree(now, w) {
		return
	}
	c, d, ok := n.authority(now, w)
	if !ok {
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
			c.Rooms = append(c.Rooms, RoomCommit{Room: r.Room, Born: make([]uint64, len(w.list))})
			continue
		}
		c.Rooms = append(c.Rooms, g.decide(d, r))
		g.busy, n.lead.urgent = g.busy || g.mints, n.lead.urgent || g.mints
	}
	for _, r := range w.sum.Nodes {
		n.lead.urgent = n.lead.urgent || r.Leaving // it goes when waves have let go of it
		for _, name := range r.Busy {
			if g := n.Gate(name); g != nil {
				g.busy = true
			} else if len(n.lead.asks) < 16 && !slices.Contains(n.lead.asks, name) {
				n.lead.asks = append(n.lead.asks, name)
			}
		}
		if cand := n.lead.find(w.list[r.Index]); cand != nil {
			cand.heard, cand.blamed = now.Boot, never
			if !cand.gray || now.Boot-cand.blocked >= n.patience() {
				cand.backoff, cand.gray = 0, false
			}
		}
	}
	if len(w.list) > 1 {
		n.clock.told = d.t // the others go by it now
	}
	n.carryOut(now, w, c)
}

// clocksAgree checks the clocks that the replies carried; a node whose clock
// is off is left out of the next wave.
func (n *Node) clocksAgree(now Time, w *wave) bool {
	offsets := make([]int64, len(w.sum.Nodes))
	readings := make([]reading, len(w.sum.Nodes))
	for i, r := range w.sum.Nodes {
		if r.Index == 0 {
			continue
		}
		readings[i] = measure(n.lead.clock, n.clock.now, r.Clock)
		offsets[i] = readings[i].offset
	}
	slices.Sort(offsets)
	mid, agree := median(offsets), true
	for i, r := range w.sum.Nodes {
		if abs(readings[i].offset-mid)-readings[i].err <= micros(n.c.MaxSkew) {
			continue
		}
		agree = false
		if c := n.lead.find(w.list[r.Index]); c != nil {
			c.clock.ok, c.heard = false, never
		} else if r.Index == 0 {
			n.stepDown(now)
		}
	}
	return agree
}

// nextEpoch names the next wave. The life is part of the name: a node that was
// restarted may number its first waves as an earlier life did.
func (n *Node) nextEpoch() qpid.Epoch {
	return qpid.Epoch{Num: n.epoch.Num + 1, Coordinator: qpid.NodeID(n.self.Member.String())}
}

// rank is how many more senior members this node leaves the lead to: those of its
// view that have not said goodbye.
func (n *Node) rank() (rank int64) {
	for _, p := range n.view {
		if p.Member == n.self.Member {
			break
		}
		if !n.hasLeft(p.Member) {
			rank++
		}
	}
	return rank
}

// hasLeft reports whether m has said goodbye, as far as this node knows.
func (n *Node) hasLeft(m Member) bool {
	i, met := n.findMet(m)
	return met && n.met[i].left
}
