package eviction

import (
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// Start is what a node knows of itself when it starts.
type Start struct {
	Self   Peer
	Expect int  // founding: how many nodes start a cluster together
	Joins  bool // it was told of members to join; with Expect 0 it never founds
	Kept   bool // it has signing keys from before
	Disk   bool // it keeps its Record, and says so by Saved
	Record *Record
}

// Node is one node's part in the waves: who takes part, what its lease allows,
// and the gates of its rooms. It is not safe for concurrent use.
type Node struct {
	c     *clusterSettings
	start Start
	self  Peer
	began int64 // boot time
	clock Clock
	gates []*Gate // by name
	dues  dues

	view    View
	viewed  []Member // of its views, and of earlier ones if they are listed yet
	heirs   []Peer   // see Heirs; nil: find out
	leaving bool     // it lets nobody in, and gives away what it has
	parted  bool     // it has said goodbye

	waves    // which ones it has seen
	standing // what they have made it
	behind   // what stays behind on another line
	company  // with whom it was in them
	lead     lead

	out      []Message
	done     []Installed
	resentAt int64
}

// waves are those that the node has seen.
//
// Invariant: epoch never falls, and installed is no higher.
type waves struct {
	epoch       qpid.Epoch // highest seen
	installed   qpid.Epoch
	installedAt int64
	list        []Member // of installed
	wave        *wave    // replied to, or being answered
	follow      Peer     // the coordinator whose gather was accepted last
	followedAt  int64
	rumour      rumour // what a coordinator has told last of a cluster, in whose waves this node may not be
}

// rumour is that a member is on a line.
type rumour struct {
	from Member
	line Line
	at   int64 // boot time
}

// NewNode returns a node that has joined nothing yet. c must be valid.
func NewNode(c Config, s Start, rooms []Room, now Time) *Node {
	c = c.WithDefaults()
	n := &Node{
		c: newClusterSettings(c), start: s, self: s.Self, began: now.Boot, view: View{s.Self}, clock: newClock(micros(c.MaxSkew), now), resentAt: now.Boot,
		waves:    waves{installedAt: never, followedAt: now.Boot},
		standing: standing{forgot: true, leaseUntil: never, lastPrimary: never, heardAt: never},
		behind:   behind{leftAt: never},
		company:  company{ranked: -1, lostAt: never},
	}
	n.lead.since, n.lead.probedAt = never, never
	n.dues = dues{lapse: never, outlived: never}
	for _, r := range rooms {
		g := n.addGate(r)
		g.filed = g.cfg.longest()
		g.durable = max(g.durable, g.filed)
	}
	n.restore(s.Record, now)
	return n
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
		n.onNack(m.From, b)
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
			n.out = append(n.out, g.resend(n.list)...)
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

// SetView takes in what the failure detector believes.
func (n *Node) SetView(now Time, v View) {
	n.read(now)
	if v.index(n.self.Member) < 0 {
		v = NewView(append(slices.Clone(v), n.self))
	}
	n.view, n.ranked, n.heirs = v, -1, nil
	n.viewed = slices.DeleteFunc(n.viewed, func(m Member) bool { return v.index(m) >= 0 || !slices.Contains(n.list, m) })
	for _, p := range v {
		n.viewed = append(n.viewed, p.Member)
	}
	n.lead.prune(n.others())
	n.steer(now)
}

// Stamp returns the join stamp of a visitor who arrives now.
func (n *Node) Stamp() uint64 { return n.clock.stamp() }

// Urge asks for a wave soon: someone started to wait.
func (n *Node) Urge(g *Gate) { n.urge(g) }

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

// Heirs are the members that may go on with places: in the order of their seniority, with
// this node among them unless it leaves. It must not be changed; another slice takes its
// place whenever they are others.
func (n *Node) Heirs() []Peer {
	if n.heirs == nil {
		heirs := make([]Peer, 0, len(n.view))
		for _, p := range n.view {
			if n.Listed(p.Member) && !(n.leaving && p.Member == n.self.Member) {
				heirs = append(heirs, p)
			}
		}
		n.heirs = heirs
	}
	return n.heirs
}

// Heir returns the node that goes on with what a node that is lost, or leaves, had of
// ticket id, stamped at stamp. While the list stands it is the same on every node, and
// a newcomer does not change it: candidates are the nodes that were there when the
// visitor joined, by rendezvous hashing (Thaler and Ravishankar 1998), and when none of
// them is left, the most senior node alone. So it is also the same for a place that
// has been given on several times and for a browser that has not asked meanwhile.
func (n *Node) Heir(id qpid.ItemID, stamp uint64) Member {
	return HeirAmong(n.Heirs(), id, stamp)
}

// HeirAmong returns the one of heirs, in the order of their seniority, that Heir does if
// they are all that there are.
func HeirAmong(heirs []Peer, id qpid.ItemID, stamp uint64) Member {
	var heir Member
	var best uint64
	senior := false
	for _, p := range heirs {
		old := p.Start <= int64(stamp)
		score := draw(qpid.Epoch{Num: p.Boot, Coordinator: p.Name}, id).Stamp
		if heir == (Member{}) || old && (!senior || score > best) {
			heir, best, senior = p.Member, score, old
		}
	}
	return heir
}
