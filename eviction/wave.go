package eviction

import (
	"fmt"
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// wave is one epoch's wave as one node sees it, from its gather on.
type wave struct {
	Gather
	epoch    qpid.Epoch
	list     []Member
	index    int
	up       Member // parent in the tree
	at       int64  // boot time of the gather: leases count from here
	deadline int64  // boot time by which to reply, complete or not
	waiting  []Member
	sum      Reply
	below    [][]qpid.Weight // QPID rooms: each child's subtree minima, by room in sum
	named    []bool          // each child's reply named its voters
	digests  [][]*Digest     // by room, of this node and its children
	children []Member
	replied  bool
}

// onGather joins a wave, unless a newer one or a more senior coordinator is at
// work.
func (n *Node) onGather(now Time, from Member, g *Gather) error {
	g, known := n.full(g)
	i, err := g.validate(n.self.Member, from, n.c.Fanout)
	if err != nil || n.clock.quarantined && !n.clock.probed {
		return err
	}
	if g.Epoch.Num > n.epoch.Num && g.Epoch.Num-n.epoch.Num > epochLeap {
		return fmt.Errorf("eviction: gather %v is far beyond %v", g.Epoch, n.epoch)
	}
	if senior := n.senior(now, g.Lead); senior.Member != (Member{}) {
		n.send(g.Lead.Member, &Nack{Epoch: n.epoch, Lead: senior})
		return nil
	}
	if g.Epoch.Compare(n.epoch) <= 0 {
		n.send(g.Lead.Member, &Nack{Epoch: n.epoch})
		return nil
	}
	if int64(g.T) > n.clock.now+2*micros(n.c.MaxSkew) {
		return nil // one of the two clocks is off; the coordinator measures which
	}
	if !known {
		n.send(from, &Ask{Epoch: g.Epoch})
		return nil
	}
	n.join(now, from, g, i)
	return nil
}

// senior returns the coordinator that the node follows if it is at work, is
// believed alive and is more senior than lead.
func (n *Node) senior(now Time, lead Peer) Peer {
	f := n.follow
	if f.Member == (Member{}) || f.Member == lead.Member || Seniority(f, lead) > 0 ||
		now.Boot-n.followedAt >= micros(n.c.ExcludeAfter) || n.view.index(f.Member) < 0 {
		return Peer{}
	}
	return f
}

// join opens the wave at this node: from here to the commit it is frozen, and
// it stamps nothing at or before the gather's T.
func (n *Node) join(now Time, from Member, g *Gather, index int) {
	n.epoch = g.Epoch
	if n.since == 0 && index > 0 {
		n.since = g.Epoch.Num
	}
	if index > 0 {
		n.follow, n.followedAt = g.Lead, now.Boot
		n.lead.active = n.lead.active && n.view.index(n.self.Member) == 0
	}
	if n.clock.promise(g.T); index > 0 {
		n.clock.told = g.T
	}
	n.miss(now, g.List)
	for k, m := range g.List {
		if k == index {
			continue
		}
		if _, ok := n.metIn(g.List, k); !ok {
			n.saw(m, now.Boot, g.Epoch.Num, false)
		}
		i, _ := n.metIn(g.List, k)
		s := &n.met[i]
		s.epoch, s.wave = max(s.epoch, g.Epoch.Num), max(s.wave, g.Epoch.Num)
		s.at, s.guess = now.Boot, false // also in another wave of the same number
	}
	w := &wave{Gather: *g, epoch: g.Epoch, list: g.List, index: index, up: from, at: now.Boot, deadline: now.Boot + min(max(0, g.Wait), micros(n.c.Deadline))}
	n.wave = w
	first, end := children(index, n.c.Fanout, len(g.List))
	w.children = g.List[first:end]
	w.waiting = slices.Clone(w.children)
	w.below = make([][]qpid.Weight, len(w.children))
	w.named = make([]bool, len(w.children))
	n.report(now, w)
	down := *g
	down.Wait = g.Wait * 7 / 10
	for _, c := range w.children {
		n.send(c, down.named())
	}
	if len(w.waiting) == 0 {
		n.reply(w)
	}
}

// report starts the wave's sum with what this node knows.
func (n *Node) report(now Time, w *wave) {
	nr := NodeReply{
		Index: w.index, Clock: n.clock.now, HLC: n.clock.hlc, Line: n.line, Knows: n.knows, Voters: n.voters,
		Expect: n.start.Expect, Joins: n.start.Joins, KeptKeys: n.start.Kept, Leaving: n.leaving, Lapsed: -1, Since: n.since, Lives: n.lives,
		Restored: n.restored,
	}
	if nr.Named = n.names(w); nr.Named {
		nr.Voters = Voters{}
	}
	if at := max(n.lastPrimary, n.heardAt); at != never {
		nr.Lapsed = now.Boot - at
	}
	w.sum = Reply{Epoch: w.epoch, Rooms: make([]RoomReply, 0, len(w.Rooms))}
	listed := make([]bool, len(n.met))
	for k := range w.list {
		if i, ok := n.metIn(w.list, k); ok {
			listed[i] = true
		}
	}
	for i, s := range n.met {
		to := &w.sum.Met
		if s.guess {
			to = &nr.Guesses
		}
		if !listed[i] {
			*to = append(*to, Sighting{s.member, now.Boot - s.at, s.epoch, s.left, s.wave})
		}
	}
	for _, rg := range w.Rooms {
		r := RoomReply{Room: rg.Room, Front: Front{Complete: true}}
		if g := n.Gate(rg.Room); g != nil {
			g.told, g.toldSeed = rg.Keying, rg.Seed
			if g.Prepare != nil {
				g.Prepare(w.T)
			}
			g.applyCut(rg.Cut)
			r = g.reply(w, rg, now)
			if g.line != n.line {
				r.Nodes[0].Voters = g.voters
			}
		}
		w.sum.Rooms = append(w.sum.Rooms, r)
		w.addDigest(len(w.sum.Rooms)-1, r.Digest)
	}
	for _, g := range n.gates { // also those of which the coordinator may not know
		if (g.busy || now.Boot-g.asked >= 2*micros(roomsEvery)) && !slices.ContainsFunc(w.Rooms, func(r RoomGather) bool { return r.Room == g.cfg.Name }) {
			nr.Busy = append(nr.Busy, g.cfg.Name)
		}
	}
	w.sum.Nodes = []NodeReply{nr}
}

// onReply adds a child's subtree to the sum; the last one sends it up.
func (n *Node) onReply(from Member, r *Reply) error {
	w := n.wave
	if w == nil || w.epoch != r.Epoch || w.replied {
		return nil
	}
	i := slices.Index(w.waiting, from)
	if i < 0 {
		return nil
	}
	if err := r.validate(w, slices.Index(w.list, from), n.c.Fanout); err != nil {
		return err
	}
	w.waiting = slices.Delete(w.waiting, i, i+1)
	w.sum.Nodes = append(w.sum.Nodes, r.Nodes...)
	w.sum.Met = mergeSightings(w.sum.Met, r.Met)
	minima := make([]qpid.Weight, len(r.Rooms))
	for i := range r.Rooms {
		minima[i] = r.Rooms[i].lightest()
		w.addDigest(i, r.Rooms[i].Digest)
		if w.sum.Rooms[i].Nodes == nil && w.sum.Rooms[i].Net == nil {
			w.sum.Rooms[i] = cloneRoomReply(r.Rooms[i])
		} else {
			w.sum.Rooms[i].merge(r.Rooms[i], w.Rooms[i].Want)
		}
	}
	child := slices.Index(w.children, from)
	w.below[child] = minima
	for _, nr := range r.Nodes {
		if nr.Named && w.list[nr.Index] == from {
			w.named[child] = true
		}
	}
	if len(w.waiting) == 0 {
		n.reply(w)
	}
	return nil
}

// addDigest keeps a digest of room i until all are here.
func (w *wave) addDigest(i int, d *Digest) {
	if w.digests == nil {
		w.digests = make([][]*Digest, len(w.Rooms))
	}
	if d != nil {
		w.digests[i] = append(w.digests[i], d)
	}
}

// lightest returns the subtree's lightest weight.
func (r *RoomReply) lightest() qpid.Weight {
	least := qpid.Empty(1 << 30)
	for _, n := range r.Nodes {
		if n.Lightest.Less(least) {
			least = n.Lightest
		}
	}
	return least
}

// cloneRoomReply copies what merge writes to: a sent reply is immutable.
func cloneRoomReply(r RoomReply) RoomReply {
	r.Nodes, r.Net, r.Voids = slices.Clone(r.Nodes), slices.Clone(r.Net), slices.Clone(r.Voids)
	r.Front.Items, r.Front.Samples = slices.Clone(r.Front.Items), slices.Clone(r.Front.Samples)
	return r
}

func mergeSightings(a, b []Sighting) []Sighting {
	for _, s := range b {
		i, ok := slices.BinarySearchFunc(a, s.Member, func(s Sighting, m Member) int { return s.Member.compare(m) })
		if !ok {
			a = slices.Insert(a, i, s)
			continue
		}
		a[i].Age, a[i].Epoch, a[i].Wave = min(a[i].Age, s.Age), max(a[i].Epoch, s.Epoch), max(a[i].Wave, s.Wave)
		a[i].Left = a[i].Left || s.Left
	}
	return a
}

// reply closes the node's part: the sum goes up, complete or not.
func (n *Node) reply(w *wave) {
	w.replied = true
	for i, ds := range w.digests {
		if len(ds) > 0 {
			w.sum.Rooms[i].Digest = merged(ds)
		}
	}
	w.digests = nil
	if w.index == 0 {
		return // steer decides
	}
	sum := w.sum
	n.send(w.up, &sum)
}

// onCommit takes in what the wave decided, if this node replied to it and to
// none since. One that comes when its lease is over is of no use any more, and
// what it says of accounts may be long out of date.
func (n *Node) onCommit(now Time, from Member, c *Commit) error {
	w := n.wave
	if w == nil || !w.replied || w.epoch != c.Epoch || from != w.up || now.Boot-w.at >= micros(n.c.Lease) {
		return nil
	}
	if err := c.validate(w); err != nil {
		return err
	}
	full, ok := n.withVoters(w, c)
	if !ok {
		return fmt.Errorf("eviction: commit of %v leaves out voters that %v does not hold", c.Epoch, n.self.Member)
	}
	n.carryOut(now, w, full)
	return nil
}

// carryOut installs a commit and passes it on.
func (n *Node) carryOut(now Time, w *wave, c *Commit) {
	for i, child := range w.children {
		if w.below[i] == nil {
			continue
		}
		down := *c
		down.RestMin = n.restFor(w, c, i)
		if c.Carried && w.named[i] {
			down.Voters = Voters{}
		}
		n.send(child, &down)
	}
	n.install(now, w, c)
}

// restFor returns the lightest weights outside child i's subtree.
func (n *Node) restFor(w *wave, c *Commit, child int) []qpid.Weight {
	rest := make([]qpid.Weight, len(w.Rooms))
	for r, room := range w.sum.Rooms {
		least := qpid.Empty(1 << 30)
		if c.RestMin != nil {
			least = c.RestMin[r]
		}
		for _, nr := range room.Nodes {
			if nr.Index == w.index && nr.Lightest.Less(least) {
				least = nr.Lightest
			}
		}
		for j, b := range w.below {
			if j != child && b != nil && b[r].Less(least) {
				least = b[r]
			}
		}
		rest[r] = least
	}
	return rest
}

func (n *Node) install(now Time, w *wave, c *Commit) {
	n.wave = nil
	n.installed, n.installedAt, n.list = w.epoch, now.Boot, w.list
	n.clock.promise(min(c.HLC, uint64(n.clock.now+2*micros(n.c.MaxSkew))))
	if c.Grade >= Primary && n.clock.jumpedAt < w.at {
		n.clock.quarantined = false // it was measured since, against a quorum of clocks
	}
	if c.Grade >= Primary && (c.Line != n.line || !n.knows) {
		n.leave(c.Voters.From)
	}
	if c.Line.Founded() {
		if c.Grade >= Primary || c.Founding || !n.line.Founded() {
			n.line = c.Line
		}
		if !n.knows && c.Voters.Version > 0 {
			n.heardAt = w.at
		}
		n.grade, n.leaseUntil = c.Grade, w.at+micros(n.c.Lease)
		n.clock.leased = n.clock.leased || c.Grade >= Primary
		n.clock.vouched = n.clock.vouched || c.Grade >= Primary
		n.clock.agreed = n.clock.agreed || c.Grade >= Primary && len(w.list) > 1
	}
	if c.Grade >= Primary || c.Founding {
		n.knows, n.lastPrimary, n.since = true, w.at, max(n.since, w.epoch.Num)
		n.voters = c.Voters
		n.recall(c.Recalled)
		for _, s := range c.Met {
			n.saw(s.Member, now.Boot-s.Age, s.Epoch, s.Left)
			n.sawWave(s.Member, s.Wave)
		}
	}
	n.sync()
	n.installRooms(now, w, c)
	n.forget(now, c.Met, c.Grade)
}

// leave notes what stays behind when this node goes over to another line: who
// votes on rooms that do not come along, and where those stand that were never on
// a line. Of survivors that is the line that they left, from.
func (n *Node) leave(from Line) {
	switch {
	case n.knows && from.Founded() && from == n.line:
		n.left, n.leftVoters, n.leftAt = from, n.voters, n.lastPrimary
	case from != n.left:
		n.left, n.leftVoters, n.leftAt = from, Voters{}, never
	}
	for _, g := range n.gates {
		if n.knows && g.line == n.line {
			g.voters = n.voters
		}
		n.setOff(g)
	}
}

// setOff puts a room that was never on a line where it stands.
func (n *Node) setOff(g *Gate) {
	if !g.line.Founded() && n.left.Founded() {
		g.line, g.voters, g.leasedAt = n.left, n.leftVoters, n.leftAt
		n.changed(g)
	}
}

// recall ends what this node only guesses: by what a quorum remembers, or for good.
func (n *Node) recall(others bool) {
	if n.restored = false; others {
		n.met, n.ranked = slices.DeleteFunc(n.met, func(s sight) bool { return s.guess }), -1
	}
	for i := range n.met {
		n.met[i].guess = false
	}
}

func (n *Node) installRooms(now Time, w *wave, c *Commit) {
	for i := range c.Rooms {
		rc := &c.Rooms[i]
		g := n.Gate(rc.Room)
		if g == nil {
			if rc.Config == nil {
				continue
			}
			empty := *rc.Config
			empty.Version = Version{}
			g = n.addGate(empty)
		}
		if g.lost(w.list) {
			g.shyUntil = now.Boot + micros(g.cfg.Refresh)*11/10
		}
		share := g.cfg.OnPartition == Share
		g.back = g.awaitLost(w.list, now.Boot, g.cfg.OnPartition.admits(c.Grade) && (share || rc.Line == c.Line))
		if c.Kept {
			g.coldStart(now.Boot)
		}
		in, out := g.install(n, w, rc, c.Grade)
		n.changed(g)
		if g.cfg.Algorithm == ByQPID {
			in.QPID = n.snapshot(w, c, i)
		}
		n.out = append(n.out, out...)
		n.done = append(n.done, in)
	}
}

// snapshot is what the room's QPID installs: both ends of every edge derive it
// from the same replies.
func (n *Node) snapshot(w *wave, c *Commit, room int) *qpid.Snapshot {
	s := &qpid.Snapshot{Epoch: w.epoch, Position: w.index, Own: qpid.Empty(w.index)}
	for _, nr := range w.sum.Rooms[room].Nodes {
		if nr.Index == w.index {
			s.Own = nr.Lightest
		}
	}
	if w.index > 0 && c.RestMin != nil {
		s.Neighbors = append(s.Neighbors, qpid.Neighbor{ID: w.up.Name, Weight: c.RestMin[room]})
	}
	for i, child := range w.children {
		if w.below[i] != nil {
			s.Neighbors = append(s.Neighbors, qpid.Neighbor{ID: child.Name, Weight: w.below[i][room]})
		}
	}
	return s
}

// miss notes who of list may have taken people of this node over: those that
// it was in no wave with for about exclude_after. If that is everyone, it was
// cut off, and calls nobody until it has heard from them.
func (n *Node) miss(now Time, list []Member) {
	if !n.line.Founded() {
		return // nobody has joined here yet
	}
	missed := 0
	for k, m := range list {
		i, ok := n.metIn(list, k)
		if m == n.self.Member || ok && now.Boot-n.met[i].at < micros(max(n.c.ExcludeAfter-n.c.Deadline, n.c.ExcludeAfter/2)) {
			continue
		}
		if !slices.Contains(n.unsynced, m) {
			n.unsynced = append(n.unsynced, m)
		}
		n.unsyncedAt = now.Boot
		missed++
	}
	n.cutOff = n.cutOff || missed > 0 && missed == len(list)-1
}

// sync asks for the tickets that were taken over, until the answers are here.
func (n *Node) sync() {
	for _, m := range n.unsynced {
		n.send(m, &SyncRequest{})
	}
}

// holdsShare reports whether m may hold slots of a room whose sides go on with
// what they have: it keeps them however long it is away, until an operator says
// that it will not return, or it has said so, or a later life of it is here.
func (n *Node) holdsShare(s sight) bool {
	m := s.member
	return !s.left && !succeeded(n.list, m) && slices.ContainsFunc(n.gates, func(g *Gate) bool {
		return g.cfg.OnPartition == Share && m.Name != "" && !slices.Contains(g.cfg.Reclaimed, m)
	})
}

// succeeded reports whether list has a later life of the node of which m was
// one: that one is over.
func succeeded(list []Member, m Member) bool {
	return slices.ContainsFunc(list, func(o Member) bool { return o.Name == m.Name && o.Boot != m.Boot })
}

// owes reports whether books with an account of m are still open here.
func (n *Node) owes(m Member) bool {
	return slices.ContainsFunc(n.gates, func(g *Gate) bool {
		return slices.ContainsFunc(g.ledger.peers, func(p PeerAccount) bool { return p.Member == m })
	})
}

// standsFor reports whether s may be the life that a voter's name votes in: to
// forget it would give the vote back to an earlier one. A primary wave that lists
// another life of the name has made that one the latest.
func (n *Node) standsFor(s sight, grade Grade) bool {
	name := s.member.Name
	if !slices.Contains(n.voters.Names, name) && !slices.Contains(n.voters.Next, name) {
		return false
	}
	if grade < Primary {
		return true
	}
	return !slices.ContainsFunc(n.list, func(m Member) bool { return m.Name == name }) &&
		!slices.ContainsFunc(n.met, func(o sight) bool { return o.member.Name == name && o.wave > s.wave })
}

// forget drops members that cannot come back with anything: twice D after the
// last wave with them even their own clocks have closed their accounts. What is
// known of them to be void is kept while anyone in the wave reckons with them.
func (n *Node) forget(now Time, met []Sighting, grade Grade) {
	keep := int64(0)
	for _, g := range n.gates {
		keep = max(keep, 2*g.delay())
	}
	before := len(n.met)
	n.met = slices.DeleteFunc(n.met, func(s sight) bool {
		return now.Boot-s.at > keep && !n.Listed(s.member) && !n.holdsShare(s) && !n.owes(s.member) &&
			!(n.lastLife(s) && n.stopsFor(s.member)) && !n.standsFor(s, grade)
	})
	if len(n.met) < before {
		n.ranked = -1
	}
	for _, g := range n.gates {
		if g.forget(func(m Member) bool {
			_, ok := n.findMet(m)
			return ok || n.Listed(m) || slices.ContainsFunc(met, func(s Sighting) bool { return s.Member == m })
		}) {
			n.changed(g)
		}
	}
}
