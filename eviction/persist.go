package eviction

import (
	"cmp"
	"slices"
)

// epochGap is added to a restored epoch number: waves that were not synced
// stay below it.
const epochGap = 1 << 20

// Record returns what this node must not forget: by whose authority it acts,
// whom it met, what it knows to be void. It is kept on disk, if there is one,
// and synced before any message that follows from it is sent. Slots are not in
// it: a node that returns opens a new account and its old one is waited out,
// as every lost account is, or it goes on with its visits, which are kept beside it: see resume.
func (n *Node) Record() *Record {
	if !n.knows {
		return nil
	}
	r := n.head()
	for _, g := range n.gates {
		r.Rooms = append(r.Rooms, g.record())
	}
	return r
}

// head is the record but for the rooms.
func (n *Node) head() *Record {
	r := &Record{Line: n.line, Forgot: n.forgot, Voters: n.voters, Epoch: n.epoch.Num, Member: n.self.Member, Lives: n.lives, Since: n.since, Stood: n.stood, Reckons: n.c.reckons}
	r.Met = make([]Sighting, len(n.met))
	for i, s := range n.met {
		r.Met[i] = Sighting{Member: s.member, Epoch: s.epoch, Left: s.left, Wave: s.wave}
	}
	return r
}

func (g *Gate) record() RoomRecord {
	return RoomRecord{
		Room: g.cfg, Line: g.line, Voters: g.voters, Rivals: g.rivals, Goes: g.goes, Came: g.came, Without: g.without, Voids: g.voids, Cut: g.cut,
		Supply: Supply{Slots: g.supply.Slots, At: g.supply.At}, TTL: max(g.ttl, g.cfg.longest()), Shared: g.Shares(),
		Counts: true, Over: g.over,
	}
}

// Differs reports whether o has anything that must be synced before a node
// that knows r speaks again.
func (r *Record) Differs(o *Record) bool {
	if r == nil || o == nil {
		return r != o
	}
	if r.differs(o) || len(r.Rooms) != len(o.Rooms) {
		return true
	}
	for i := range r.Rooms {
		if r.Rooms[i].differs(&o.Rooms[i]) {
			return true
		}
	}
	return false
}

// differs is Differs but for the rooms.
func (r *Record) differs(o *Record) bool {
	if o.Epoch >= r.Epoch+epochGap/2 || r.Voters.Next != nil && r.Voters.At != o.Voters.At {
		return true
	}
	if r.Line != o.Line || r.Forgot != o.Forgot || r.Reckons != o.Reckons || r.Voters.begun() != o.Voters.begun() || r.Voters.Version != o.Voters.Version || !slices.Equal(r.Voters.Next, o.Voters.Next) ||
		len(r.Met) != len(o.Met) {
		return true
	}
	for i := range r.Met {
		if r.Met[i].Member != o.Met[i].Member || r.Met[i].Left != o.Met[i].Left {
			return true
		}
		// Which of two lives of a name came last says who votes, also of this node's own.
		if r.Met[i].Member.Name == r.Member.Name && cmp.Compare(r.Met[i].Wave, r.Since) != cmp.Compare(o.Met[i].Wave, o.Since) {
			return true
		}
		if i > 0 && r.Met[i].Member.Name == r.Met[i-1].Member.Name &&
			cmp.Compare(r.Met[i].Wave, r.Met[i-1].Wave) != cmp.Compare(o.Met[i].Wave, o.Met[i-1].Wave) {
			return true
		}
	}
	return false
}

func (r *RoomRecord) differs(o *RoomRecord) bool {
	return r.Line != o.Line || r.Goes != o.Goes || r.Came.Line != o.Came.Line || !slices.EqualFunc(r.Without, o.Without, Stay.same) || r.TTL != o.TTL || r.Shared != o.Shared || r.Room.Version != o.Room.Version || r.Room.Name != o.Room.Name ||
		!slices.Equal(r.Room.Events, o.Room.Events) || !slices.Equal(r.Voids, o.Voids) || r.Counts != o.Counts || !slices.Equal(r.Over, o.Over) ||
		r.Supply.Slots < o.Supply.Slots ||
		r.Supply.Slots > o.Room.Target && o.Supply.Slots <= o.Room.Target // else a restart would hold calls up for what is no more
}

func (r *RoomRecord) saved() saved { return saved{r.Voids, r.Over, r.Supply.Slots} }

// restore takes up what an earlier life of this node had synced. Everyone it
// knew, and that life itself, counts as lost just now, in waves up to any that
// it may have forgotten, unless there is a quorum of others that remember.
func (n *Node) restore(r *Record, now Time) {
	if r == nil {
		return
	}
	n.line, n.voters, n.knows, n.restored, n.forgot, n.lastPrimary = r.Line, r.Voters, true, true, r.Forgot, now.Boot
	n.c.reckon(r.Reckons)
	if r.Reckons == (Bounds{}) {
		n.c.reckon(n.c.wants) // a version kept it that had all nodes reckon with the same
	}
	n.epoch.Num = r.Epoch + epochGap
	n.since = r.Since
	n.stood = r.Stood
	n.lives = append(slices.Clone(r.Lives), r.Member.Boot)
	n.lives = n.lives[max(0, len(n.lives)-LivesMax):]
	for _, s := range r.Met {
		n.saw(s.Member, now.Boot, n.epoch.Num, s.Left)
		n.sawWave(s.Member, s.Wave)
	}
	n.saw(r.Member, now.Boot, n.epoch.Num, false)
	n.left = r.Voters.From
	for i := range n.met {
		n.met[i].guess = true
	}
	for _, rr := range r.Rooms {
		g := n.addGate(rr.Room)
		if rr.Room.Version.Compare(g.cfg.Version) > 0 {
			g.setRoom(rr.Room)
		}
		g.line, g.voters, g.rivals, g.goes, g.voids = rr.Line, rr.Voters, rr.Rivals, rr.Goes, slices.Clone(rr.Voids)
		g.came, g.without = rr.Came, rr.Without
		g.shared, g.saved, g.over = rr.Shared, rr.saved(), rr.Voids
		if rr.Counts {
			g.over = rr.Over
		}
		g.supply = Supply{Line: rr.Line, Slots: rr.Supply.Slots, At: rr.Supply.At} // of an earlier life: not Sure, and nothing burned, see Supply
		if k, seed := rr.Room.keyingAt(rr.Cut.Keying); k == rr.Cut.Keying {
			g.keying, g.seed, g.cut = k, seed, rr.Cut
		} // else its event is no longer known: the order of the draw comes from the others
		g.session = g.now.Session
		g.ttl = max(g.ttl, rr.TTL, rr.Room.longest())
		g.durable = max(g.durable, g.ttl)
		g.ttlUntil = now.Boot + g.delay()
		n.clock.promise(min(g.cut.Value.Stamp, uint64(n.clock.now+2*micros(n.c.MaxSkew))))
		g.coldStart(now.Boot)
		g.leasedAt = now.Boot
	}
	for _, g := range n.gates {
		if int64(r.Line.Stamp)+2*micros(n.c.MaxSkew)+dueFrom(0) > n.clock.now {
			g.unsureTo = dueFrom(n.began) // it may have been unsure already, see beginCold
		}
		n.setOff(g)
		n.changed(g)
	}
	n.goesWith()
}

// beginCold is of a founding with signing keys from before, when nobody has a disk: there may have
// been people in any room, and nobody knows how many were let in.
func (n *Node) beginCold(now Time) {
	for _, g := range n.gates {
		g.coldStart(now.Boot)
		g.purse.forgets(n.began)
		g.unsureTo = dueFrom(n.began)
	}
}

// Unsaved returns what the node must not forget, nil if saved has it: the last
// record that this returned, or else the one that the node was restored from.
func (n *Node) Unsaved(saved *Record) *Record {
	if !n.knows {
		return nil
	}
	if saved != nil && !saved.differs(n.head()) && len(saved.Rooms) == len(n.gates) && !n.roomsDiffer(saved) {
		return nil
	}
	n.noteSaved()
	return n.Record()
}

// Saved notes that r is durable. What is new in it for passes, a longer session or a
// whole room, is gone by from here on.
func (n *Node) Saved(r *Record) {
	for i := range r.Rooms {
		if g := n.Gate(r.Rooms[i].Room.Name); g != nil {
			g.durable, g.saved, g.resumed.known = r.Rooms[i].TTL, r.Rooms[i].saved(), r.Member == n.self.Member
		}
	}
}

// roomsDiffer reports whether what saved, which has all of them, says of a room is
// out of date.
func (n *Node) roomsDiffer(saved *Record) bool {
	for _, g := range n.dues.revised {
		i, _ := n.find(g.cfg.Name)
		r := g.record()
		if saved.Rooms[i].differs(&r) {
			return true
		}
	}
	n.noteSaved()
	return false
}

func (n *Node) noteSaved() {
	for i, g := range n.dues.revised {
		g.revised, n.dues.revised[i] = false, nil
	}
	n.dues.revised = n.dues.revised[:0]
}

// Overlooked names a room of which the dues are wrong, "" if they are right. It
// looks at all of them, for a simulator; saved is as for Unsaved.
func (n *Node) Overlooked(saved *Record) (room string) {
	all := saved != nil && len(saved.Rooms) == len(n.gates)
	for i, g := range n.gates {
		r := g.record()
		if g.lapsesAt() < n.dues.lapse || all && !g.revised && saved.Rooms[i].differs(&r) {
			return g.cfg.Name
		}
	}
	if n.lastPrimary != never && n.outlives() < n.dues.outlived {
		return "that outlives its lease"
	}
	return ""
}
