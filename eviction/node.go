package eviction

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// Start is what a node knows of itself when it starts.
type Start struct {
	Self   Peer
	Expect int  // founding: how many nodes start a cluster together
	Joins  bool // it was told of members to join; with Expect 0 it never founds
	Kept   bool // it has signing keys from before
	Record *Record
}

// Node is one node's part in the waves: who takes part, what its lease allows,
// and the gates of its rooms. It is not safe for concurrent use.
type Node struct {
	c      Config
	start  Start
	self   Peer
	view   View
	viewed []Member // of its views, and of earlier ones if they are listed yet
	clock  Clock
	gates  []*Gate // by name
	dues   dues

	epoch       qpid.Epoch // highest seen. Invariant: never falls
	installed   qpid.Epoch
	installedAt int64
	line        Line
	since       uint64   // up to this wave's number no other life of its name is ahead of it, see votes
	lives       []uint64 // boots of earlier lives whose record it has
	knows       bool     // took part in a committed primary wave of line in this life, or restored
	restored    bool     // knows from its disk alone
	voters      Voters
	left        Line   // that the survivors left whose line this is; zero: they left none
	leftVoters  Voters // of left, if this node was on it
	leftAt      int64  // boot time of its last primary wave on it
	grade       Grade
	leaseUntil  int64 // boot time
	lastPrimary int64 // boot time of the last primary wave
	heardAt     int64 // boot time of the last wave with one that knows, while this node did not
	met         []sight
	metAt       []int    // where in met the members of the last gather's list were, see metIn
	ranked      int64    // see rank; -1: find out
	list        []Member // of the last committed wave
	leaving     bool     // it lets nobody in, and gives away what it has
	parted      bool     // it has said goodbye

	follow     Peer // the coordinator whose gather was accepted last
	followedAt int64
	wave       *wave // replied to, or being answered
	lead       lead

	unsynced   []Member
	unsyncedAt int64
	cutOff     bool // has heard of none of them since it came back
	resentAt   int64

	out  []Message
	done []Installed
}

// sight is when this node was last in a wave with a member.
type sight struct {
	member Member
	at     int64  // boot time
	epoch  uint64 // of that wave, or of one that this node may have forgotten
	left   bool
	wave   uint64 // of that wave, as far as this node knows
	guess  bool   // at and epoch are as late as they can be: an earlier life was in that wave
}

// NewNode returns a node that has joined nothing yet. c must be valid.
func NewNode(c Config, s Start, rooms []Room, now Time) *Node {
	c = c.WithDefaults()
	n := &Node{
		c: c, start: s, self: s.Self, view: View{s.Self}, clock: newClock(micros(c.MaxSkew), now),
		installedAt: never, leaseUntil: never, lastPrimary: never, heardAt: never, leftAt: never, followedAt: now.Boot, resentAt: now.Boot, ranked: -1,
	}
	n.lead.since, n.lead.probedAt = never, never
	n.dues = dues{lapse: never, outlived: never}
	for _, r := range rooms {
		n.addGate(r)
	}
	n.restore(s.Record, now)
	return n
}

func (n *Node) addGate(r Room) *Gate {
	g := newGate(n.c, r)
	i, ok := n.find(r.Name)
	if ok {
		return n.gates[i]
	}
	n.gates = slices.Insert(n.gates, i, g)
	n.setOff(g)
	n.changed(g)
	return g
}

func (n *Node) find(room string) (int, bool) {
	return slices.BinarySearchFunc(n.gates, room, func(g *Gate, name string) int { return cmp.Compare(g.cfg.Name, name) })
}

// Gate returns the gate of a room, nil if there is no such room.
func (n *Node) Gate(room string) *Gate {
	if i, ok := n.find(room); ok {
		return n.gates[i]
	}
	return nil
}

// Gates returns all gates by room name. The slice is the node's own.
func (n *Node) Gates() []*Gate { return n.gates }

// SetRoom proposes a room's configuration. It takes force when a wave brings
// it back, everywhere at once.
func (n *Node) SetRoom(now Time, r Room) {
	n.read(now)
	r.Version = Version{n.clock.stamp(), n.self.Name}
	g := n.Gate(r.Name)
	if g == nil {
		empty := r
		empty.Target, empty.Version = 0, Version{}
		g = n.addGate(empty)
	}
	// What is changed now is newer than all that is known here, also if a clock
	// that was ahead has dated that.
	r.Version.Stamp = max(r.Version.Stamp, g.cfg.Version.Stamp+1)
	if g.proposed != nil {
		r.Version.Stamp = max(r.Version.Stamp, g.proposed.Version.Stamp+1)
	}
	g.proposed = &r
	g.busy = true
	n.urge(g)
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

// Now takes in the clocks and returns the pass time, in Unix microseconds.
func (n *Node) Now(now Time) int64 { n.read(now); return n.clock.now }

// LastNow returns the pass time as of when the clocks were last taken in. It changes
// nothing, where Now may find that the machine stood still and give up its accounts.
func (n *Node) LastNow() int64 { return n.clock.now }

// Stamp returns the join stamp of a visitor who arrives now.
func (n *Node) Stamp() uint64 { return n.clock.stamp() }

// Clear reports whether the node's clock may be trusted with stamps and passes: a
// quorum has taken it for right in this life, and it has neither been set nor
// been found wrong since. A node that returns alone with a wrong clock would give
// out places in the far future, or ahead of everyone, and whoever takes them over
// would be dragged along. If its clock is behind, passes would be good there long
// after D has made their slots again.
func (n *Node) Clear() bool { return n.clock.vouched && !n.clock.quarantined }

// Admits reports whether visitors of g may be called, admitted or have their
// passes extended here and now.
func (n *Node) Admits(g *Gate, now Time) bool {
	return !n.leaving && n.leased(g, now)
}

// leased reports whether the account of g may act here and now.
func (n *Node) leased(g *Gate, now Time) bool {
	if !n.Clear() || now.Boot >= n.LeaseOf(g) || g.ledger.account.Born == 0 || g.broken {
		return false
	}
	return g.cfg.OnPartition.admits(n.grade) && (g.line == n.line || g.cfg.OnPartition == Share)
}

// LeaseOf returns the boot time until which the account of g may act.
func (n *Node) LeaseOf(g *Gate) int64 { return min(n.leaseUntil, g.heldAt+micros(n.c.Lease)) }

// InTouch reports whether this node knows what became of its visitors of g: it is in
// the waves, and whoever may have taken some over while it was not has told it.
func (n *Node) InTouch(g *Gate, now Time) bool { return n.leased(g, now) && len(n.unsynced) == 0 }

// Calls reports whether waiting visitors of g may be called.
func (n *Node) Calls(g *Gate, now Time) bool {
	return n.Admits(g, now) && !g.closed && !n.cutOff && g.cfg.Mode.calls() && !g.waits(uint64(n.clock.now))
}

// Gathers reports whether an event keeps everybody waiting here and now.
func (n *Node) Gathers(g *Gate) bool { return g.waits(uint64(n.clock.now)) }

// Open reports whether a newcomer may walk straight in.
func (n *Node) Open(g *Gate, now Time) bool {
	return g.open && n.Calls(g, now) && g.now.started(uint64(n.clock.now)) && now.Boot >= g.shyUntil
}

// Listed reports whether m took part in the last committed wave.
func (n *Node) Listed(m Member) bool { return m == n.self.Member || slices.Contains(n.list, m) }

// Members lists who took part in the last committed wave. It must not be changed.
func (n *Node) Members() []Member { return n.list }

// Gone reports whether m may be taken for lost: it was not in a wave with this
// node for exclude_after, or it never was and nobody believes it alive.
func (n *Node) Gone(m Member, now Time) bool {
	if n.Listed(m) {
		return false
	}
	if i, ok := n.findMet(m); ok {
		return n.met[i].left || now.Boot-n.met[i].at >= micros(n.c.ExcludeAfter)
	}
	return n.view.index(m) < 0
}

// MayAdopt reports whether a session whose account is gone may go on here, on a
// slot of this node's. It may not until nothing of that account can extend the
// same pass.
func (n *Node) MayAdopt(g *Gate, from Account, now Time) bool {
	if !n.Admits(g, now) || !g.voided(from) || !g.isSafe(from) {
		return false
	}
	wait := drifted(micros(n.c.Deadline+n.c.Lease)) + micros(n.c.Margin)
	if from.Member == n.self.Member {
		if g.oldHeld != never && now.Boot-g.oldHeld < wait {
			return false
		}
	} else if i, ok := n.findMet(from.Member); ok && !n.Listed(from.Member) && now.Boot-n.met[i].at < wait {
		return false
	} else if n.Listed(from.Member) {
		return false // it is here under another account, and adopts its own
	}
	return true
}

// urge asks for a wave soon.
func (n *Node) urge(g *Gate) {
	g.busy = true
	if n.lead.active {
		n.lead.urgent = true
		return
	}
	if n.follow.Member != (Member{}) && n.follow.Member != n.self.Member {
		n.send(n.follow.Member, &Urgent{Room: g.cfg.Name})
	}
}

// Urge asks for a wave soon: someone started to wait.
func (n *Node) Urge(g *Gate) { n.urge(g) }

func (n *Node) send(to Member, b Body) {
	n.out = append(n.out, Message{From: n.self.Member, To: to, Body: b})
}

// Take drains what is to be sent and what was installed. The caller owns both.
func (n *Node) Take() ([]Message, []Installed) {
	out, done := n.out, n.done
	n.out, n.done = nil, nil
	return out, done
}

// Pending reports whether Take has installs to bring that the owner must carry
// out before it does anything else: an account may have lapsed.
func (n *Node) Pending() bool { return len(n.done) > 0 }

func (n *Node) findMet(m Member) (int, bool) {
	return slices.BinarySearchFunc(n.met, m, func(s sight, m Member) int { return s.member.compare(m) })
}

// metIn finds the member at place k of a list. Lists seldom change, nor does met: it is
// most often where it was.
func (n *Node) metIn(list []Member, k int) (int, bool) {
	if len(n.metAt) < len(list) {
		n.metAt = make([]int, len(list))
	}
	if i := n.metAt[k]; i < len(n.met) && n.met[i].member == list[k] {
		return i, true
	}
	i, ok := n.findMet(list[k])
	n.metAt[k] = i
	return i, ok
}

// saw notes that m was in a wave with this node at boot time at.
func (n *Node) saw(m Member, at int64, epoch uint64, left bool) {
	i, ok := n.findMet(m)
	if !ok {
		n.met = slices.Insert(n.met, i, sight{m, at, epoch, left, 0, false})
		n.ranked = -1
		return
	}
	s := &n.met[i]
	if left && !s.left {
		s.left, n.ranked = true, -1
	}
	if epoch > s.epoch { // an old wave heard of again is no newer for it: ages travel, and must not shrink on the way
		s.at, s.epoch, s.guess = max(s.at, at), epoch, false
	}
}

// sawWave notes that m was in wave number num for certain.
func (n *Node) sawWave(m Member, num uint64) {
	if i, ok := n.findMet(m); ok {
		n.met[i].wave = max(n.met[i].wave, num)
	}
}

// SetView takes in what the failure detector believes.
func (n *Node) SetView(now Time, v View) {
	n.read(now)
	if v.index(n.self.Member) < 0 {
		v = NewView(append(slices.Clone(v), n.self))
	}
	n.view, n.ranked = v, -1
	n.viewed = slices.DeleteFunc(n.viewed, func(m Member) bool { return v.index(m) >= 0 || !slices.Contains(n.list, m) })
	for _, p := range v {
		n.viewed = append(n.viewed, p.Member)
	}
	n.lead.prune(n.others())
	n.steer(now)
}

// Step takes in a message from another node. The error says what was wrong
// with it; it then changed nothing.
func (n *Node) Step(now Time, m Message) (err error) {
	n.read(now)
	switch b := m.Body.(type) {
	case *Gather:
		err = n.onGather(now, m.From, b)
	case *Ask:
		n.onAsk(now, m.From, b)
	case *Reply:
		err = n.onReply(m.From, b)
	case *Commit:
		err = n.onCommit(now, m.From, b)
	case *Nack:
		n.onNack(b)
	case *Probe:
		n.onProbe(now, m.From, b)
	case *ProbeAck:
		n.onProbeAck(now, m.From, b)
	case *Urgent:
		if g := n.Gate(b.Room); g != nil {
			n.lead.urgent = n.lead.urgent || n.lead.active
			g.busy = true
		}
	case *Slots:
		err = n.onSlots(m.From, b)
	case *SlotsAck:
		if g := n.Gate(b.Room); g != nil && b.From == g.ledger.account && b.To.Member == m.From {
			g.ledger.acked(b)
		}
	case *Goodbye:
		n.onGoodbye(now, m.From)
	}
	n.steer(now)
	return err
}

func (n *Node) onSlots(from Member, m *Slots) error {
	if m.From.Member != from || !count(m.Total) || len(m.Visits) > min(VisitsMax, m.Total) {
		return fmt.Errorf("eviction: %v sends %d slots of %v", from, m.Total, m.From)
	}
	g := n.Gate(m.Room)
	if g == nil || m.To.Born == 0 || m.To != g.ledger.account || m.From == m.To || !g.current(m.From) {
		return nil
	}
	ack, visits := g.ledger.receive(m)
	n.send(from, ack)
	g.busy = true
	if len(visits) > 0 {
		n.done = append(n.done, Installed{Gate: g, Before: g.cut, Epoch: n.installed, Visits: visits, From: m.From})
	}
	if n.parted { // they were on their way when it said so
		n.handOn(g)
	}
	return nil
}

// Tick does what is due at now.
func (n *Node) Tick(now Time) {
	n.read(now)
	n.steer(now)
	if w := n.wave; w != nil && !w.replied && now.Boot >= w.deadline {
		n.reply(w)
	}
	if len(n.unsynced) > 0 && now.Boot-n.unsyncedAt >= micros(n.c.ExcludeAfter) {
		n.unsynced, n.cutOff = nil, false
	}
	if now.Boot-n.resentAt >= micros(n.c.Period) {
		n.resentAt = now.Boot
		for _, g := range n.gates {
			n.out = append(n.out, g.resend(n.self.Member, n.list)...)
		}
	}
}

// Deadline returns the boot time at which Tick is due next.
func (n *Node) Deadline(now Time) int64 {
	at := now.Boot + micros(n.c.Period)
	if w := n.wave; w != nil && !w.replied {
		at = min(at, w.deadline)
	}
	if n.lead.active {
		at = min(at, n.nextWave(now))
	}
	return max(at, now.Boot+1)
}

// Synced notes that m has said so.
func (n *Node) Synced(m Member) {
	n.unsynced = slices.DeleteFunc(n.unsynced, func(u Member) bool { return u == m })
	n.cutOff = n.cutOff && len(n.unsynced) > 0
}

// Heir returns the node that goes on with what a node that is lost, or leaves, had of
// ticket id, stamped at stamp. While the list stands it is the same on every node, and
// a newcomer does not change it: candidates are the nodes that were there when the
// visitor joined, by rendezvous hashing (Thaler and Ravishankar 1998), and when none of
// them is left, the most senior node alone. So it is also the same for a place that
// has been given on several times and for a browser that has not asked meanwhile.
func (n *Node) Heir(id qpid.ItemID, stamp uint64) Member {
	var heir Member
	var best uint64
	senior := false
	for _, p := range n.view {
		if !n.Listed(p.Member) || n.leaving && p.Member == n.self.Member {
			continue
		}
		old := p.Start <= int64(stamp)
		score := draw(qpid.Epoch{Num: p.Boot, Coordinator: p.Name}, id).Stamp
		if heir == (Member{}) || old && (!senior || score > best) {
			heir, best, senior = p.Member, score, old
		}
	}
	return heir
}

// Status is what an operator, or an oracle, sees of a node's part in the waves.
type Status struct {
	Epoch, Installed     qpid.Epoch
	Grade                Grade
	LeaseUntil           int64 // boot time, µs
	Line                 Line
	Knows                bool
	Voters               Voters
	List                 []Member
	Frozen               bool
	Leading              bool // its waves are those that are installed, or it is about to send the first
	Quarantined, Leaving bool
	Vouched              bool // a quorum has taken the clock for right in this life
	HLC                  uint64
	Clock                int64 // pass time, µs
	ClockAt              int64 // boot time, µs, of that reading
	Following            Member
}

// Status returns a copy of the node's state.
func (n *Node) Status() Status {
	return Status{
		Epoch: n.epoch, Installed: n.installed, Grade: n.grade, LeaseUntil: n.leaseUntil, Line: n.line, Knows: n.knows,
		Voters: n.voters, List: slices.Clone(n.list), Frozen: n.wave != nil,
		Leading:     n.lead.active && (len(n.list) == 0 || n.list[0] == n.self.Member), // a more senior node may stand by
		Quarantined: n.clock.quarantined, Vouched: n.clock.vouched, Leaving: n.leaving, HLC: n.clock.hlc, Clock: n.clock.now, ClockAt: n.clock.last.Boot, Following: n.follow.Member,
	}
}

// Met returns the members that were in a wave with this node and are not
// forgotten yet.
func (n *Node) Met() []Member {
	met := make([]Member, len(n.met))
	for i := range n.met {
		met[i] = n.met[i].member
	}
	return met
}

// Absent returns those whom it met, who are not in the list, did not take their leave
// and have no later life there: who runs, if at all, at another side of a split.
func (n *Node) Absent() (gone []Member) {
	for i := range n.met {
		if m := n.met[i].member; !n.met[i].left && !n.Listed(m) && !succeeded(n.list, m) {
			gone = append(gone, m)
		}
	}
	return gone
}

// Grade says what the last commit allows, as Status does.
func (n *Node) Grade() Grade { return n.grade }

// Installed is the last wave that the node was in, as in Status.
func (n *Node) Installed() qpid.Epoch { return n.installed }

// MemberOf returns the listed member called name.
func (n *Node) MemberOf(name qpid.NodeID) (Member, bool) {
	for _, m := range n.list {
		if m.Name == name {
			return m, true
		}
	}
	return Member{}, false
}
