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
	clocks   []reading       // of sum.Nodes, one by one, when each came: at the coordinator
	below    [][]qpid.Weight // QPID rooms: each child's subtree minima, by room in sum
	named    []bool          // each child's reply named its voters
	twins    []*NodeReply    // of sum.Nodes, those of which the list has another life of the name: at the coordinator, once all are here
	held     Bounds          // of the children's Reply.Bounds: Held
	digests  [][]*Digest     // by room, of this node and its children
	children []Member
	replied  bool
}

// onGather joins a wave, unless a newer one is at work, or a coordinator that goes before.
func (n *Node) onGather(now Time, from Member, g *Gather) error {
	g, known := n.full(g)
	i, err := g.validate(n.self.Member, from, n.c.Fanout)
	if err != nil || n.clock.quarantined && !n.clock.probed {
		return err
	}
	if g.Epoch.Num > n.epoch.Num && g.Epoch.Num-n.epoch.Num > epochLeap {
		return fmt.Errorf("eviction: gather %v is far beyond %v", g.Epoch, n.epoch)
	}
	if with := n.with(now); with.lead.Member != g.Lead.Member && with.before(bid{g.Lead, g.Quorum}) {
		n.send(g.Lead.Member, &Nack{Epoch: n.epoch, Lead: with.lead})
		return nil
	}
	if n.wave != nil && n.wave.epoch == g.Epoch {
		return nil // it came twice
	}
	if g.Epoch.Compare(n.epoch) <= 0 {
		n.send(g.Lead.Member, &Nack{Epoch: n.epoch})
		return nil
	}
	if int64(g.T) > n.clock.now+2*micros(n.c.MaxSkew) {
		return nil // one of the two clocks is off; the coordinator measures which
	}
	if g.T+uint64(2*micros(n.c.MaxSkew)) < n.line.Stamp && int64(n.line.Stamp) <= n.clock.now { // else a wrong clock has founded it
		return nil // it was under way when this line was founded, and speaks by the numbers of an earlier cluster
	}
	if !known {
		n.send(from, &Ask{Epoch: g.Epoch})
		return nil
	}
	n.join(now, from, g, i)
	return nil
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
		n.lead.active = n.lead.active && (n.rank() == 0 || n.seeks(now))
	}
	n.clock.promise(g.T)
	if index > 0 {
		n.clock.told = max(n.clock.told, g.T)
	}
	n.c.hold(g.Reckons)
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
		Index: w.index, Clock: n.clock.now, HLC: n.clock.hlc, Line: n.line, Knows: n.knows, Forgot: n.forgot, Voters: n.voters,
		Expect: n.start.Expect, Joins: n.start.Joins, KeptKeys: n.start.Kept, Leaving: n.leaving, Lapsed: -1, Since: n.since, Lives: n.lives,
		Restored: n.restored,
	}
	if n.restored {
		nr.Stood = n.stood
	}
	if r := &n.rumour; r.line.Founded() && r.line != n.line && n.grade < Primary && now.Boot-r.at < micros(n.c.ExcludeAfter) {
		nr.Holdout, nr.HoldoutLine = r.from, r.line
	}
	if n.shares() {
		nr.Up = max(1, now.Boot-n.began)
	}
	nr.Named = n.names(w)
	if nr.Named {
		nr.Voters = Voters{}
	}
	if at := max(n.lastPrimary, n.heardAt); at != never {
		nr.Lapsed = now.Boot - at
	}
	w.sum = Reply{Epoch: w.epoch, Bounds: n.c.sum(), Rooms: make([]RoomReply, 0, len(w.Rooms))}
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
			if n.namesake(i, listed) {
				w.sum.Rivals = append(w.sum.Rivals, Rival{n.line, s.member, s.wave})
			}
		}
	}
	for _, rg := range w.Rooms {
		r := RoomReply{Room: rg.Room, Front: Front{Complete: true}}
		if g := n.Gate(rg.Room); g != nil {
			g.told, g.toldSeed = rg.Keying, rg.Seed
			if g.Prepare != nil {
				g.Prepare(n.rekeyTo(w.T))
			}
			g.hearOf(rg.Cut)
			r = g.reply(w, rg, now)
			g.tell(&r.Nodes[0], n.line)
			w.sum.Rivals = mergeRivals(w.sum.Rivals, rivalsIn(g.rivals, w.list))
		}
		w.sum.Rooms = append(w.sum.Rooms, r)
		w.addDigest(len(w.sum.Rooms)-1, r.Digest)
	}
	nr.Busy, nr.More = n.unaskedRooms(now, w)
	w.sum.Nodes, w.clocks = []NodeReply{nr}, []reading{{ok: true}}
}

// unaskedRooms are those of which w should have spoken: also those of which its coordinator may not know, or this
// node has forgotten what was said. Of these there may be more: they take turns.
func (n *Node) unaskedRooms(now Time, w *wave) (rooms []string, more bool) {
	waits := 0
	for _, g := range n.gates {
		if slices.ContainsFunc(w.Rooms, func(r RoomGather) bool { return r.Room == g.cfg.Name }) {
			continue
		}
		busy := g.busy || now.Boot-g.asked >= 2*micros(roomsEvery)
		if !busy && (g.askedBy != w.epoch.Coordinator || n.forgot && !n.outvoted && !g.learned) { // see hasAll and remember
			busy = waits < asksMax
			more = more || !busy
			waits++
		}
		if busy {
			rooms = append(rooms, g.cfg.Name)
		}
	}
	return rooms, more
}

// rekeyTo is up to when a wave of T has events begin. A draw is never taken back, so by a
// clock that nobody has vouched for none is held: others say of those that were.
func (n *Node) rekeyTo(t uint64) uint64 {
	if !n.clock.vouched {
		return 0
	}
	return t
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
	if w.index == 0 {
		for _, nr := range r.Nodes {
			w.clocks = append(w.clocks, measure(n.lead.clock, n.clock.now, nr.Clock))
		}
	}
	w.sum.Met = mergeSightings(w.sum.Met, r.Met)
	w.sum.Rivals = mergeRivals(w.sum.Rivals, r.Rivals)
	w.sum.Bounds = w.sum.Bounds.merge(r.Bounds)
	w.held = BoundsSum{Held: w.held}.merge(r.Bounds).Held
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
