package eviction

import (
	"fmt"
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// A wave's way down: what becomes of its commit at a node.

// onCommit takes in what the wave decided, if this node replied to it and to
// none since. One that comes when its lease is over is of no use any more, and
// what it says of accounts may be long out of date. So may that of a wave of before this
// machine stood still.
func (n *Node) onCommit(now Time, from Member, c *Commit) error {
	w := n.wave
	if w == nil || !w.replied || w.epoch != c.Epoch || from != w.up || now.Boot-w.at >= min(n.c.wants.Lease, c.Acts.Lease) || w.at < n.clock.stoodTo {
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
	if !same(n.list, w.list) {
		n.ranked, n.heirs = -1, nil
		n.lose(w.list)
	}
	n.installed, n.installedAt, n.list = w.epoch, now.Boot, w.list
	n.installSettings(c)
	n.clock.promise(min(c.HLC, uint64(n.clock.now+2*micros(n.c.MaxSkew))))
	if c.Grade >= Primary && n.clock.jumpedAt < w.at {
		n.clock.quarantined = false // it was measured since, against a quorum of clocks
	}
	if c.Grade >= Primary && (c.Line != n.line || !n.knows) {
		n.leave(c.Voters.From)
	}
	if c.Founding && c.Line != n.line {
		n.quit()
	}
	outvoted, knew := slices.Contains(c.Outvoted, w.index), n.knows
	if c.Line.Founded() {
		if c.Grade >= Primary || c.Founding || !n.line.Founded() {
			if outvoted || c.Line != n.line {
				n.forgets()
			}
			n.line = c.Line
			n.quits = slices.DeleteFunc(n.quits, func(l Line) bool { return l == n.line }) // it is back
		}
		if !n.knows && c.Voters.Version > 0 {
			n.heardAt = w.at
		}
		n.grade, n.leaseUntil = c.Grade, w.at+micros(n.c.Lease)
		n.clock.leased = n.clock.leased || c.Grade >= Primary
		n.clock.vouched = n.clock.vouched || c.Grade >= Primary
		n.clock.agreed = n.clock.agreed || c.Grade >= Primary && len(w.list) > 1
		if len(w.list) > 1 {
			n.goesWith()
		}
	}
	if c.Grade >= Primary || c.Founding {
		n.outvoted = outvoted
		n.knows, n.lastPrimary, n.since = true, w.at, max(n.since, w.epoch.Num)
		n.stood = n.self.Boot
		n.voters = c.Voters
		if c.Recalled {
			n.recall(true)
		}
		for _, s := range c.Met {
			n.saw(s.Member, now.Boot-s.Age, s.Epoch, s.Left) // of what is a guess here others may know better, by a lower number
			n.sawWave(s.Member, s.Wave)
		}
		if !c.Recalled {
			n.recall(false)
		}
	}
	n.sync()
	n.installRooms(now, w, c)
	n.remember(c, !outvoted && (!knew || c.Line.Stamp == w.T))
	if c.Kept {
		n.beginCold(now)
	}
	n.forget(now, c)
}

// goesWith notes that up to now passes may have been given by this node's clock elsewhere: by
// others in its waves, or in an earlier life.
func (n *Node) goesWith() { n.clock.counts = max(n.clock.counts, n.clock.now+n.dues.delay) }

// installSettings takes in what a wave has agreed on, and what follows from it for the rooms
// of which it does not speak.
func (n *Node) installSettings(c *Commit) {
	before := *n.c
	n.c.install(c)
	if *n.c == before {
		return
	}
	n.clock.skew = micros(n.c.MaxSkew)
	for _, g := range n.gates {
		n.changed(g)
	}
}

// sync asks for the tickets that were taken over, until the answers are here.
func (n *Node) sync() {
	for _, m := range n.unsynced {
		n.send(m, &SyncRequest{})
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
		in, out := g.install(n, now.Boot, w, c, rc)
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
