package eviction

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/anteroom/anteroom/qpid"
)

// never is a boot time that no event has: nothing happened yet.
const never = math.MinInt64 / 4

// ever is a boot time after all others: something is not due.
const ever = math.MaxInt64 / 4

// unbounded is longer than any session.
const unbounded = time.Duration(math.MaxInt64)

// Gate is one node's part of one room. It decides whether a visitor may be called here
// and now. Each of its parts says beside its fields what is true of them at any time, and
// Wrong looks at that.
type Gate struct {
	kept
	inForce   // what of the configuration holds
	escrow    // the account: its slots, its lease, and whom it deals with
	cover     // who keeps its visits
	resumed   // and who goes on with those of before
	order     // how the queue stands, and how far down it people may be called
	purse     // pacing tokens in hand
	returning // who was lost, and may be on their way back
	roomWide  // what the last commit said of the whole room
	positions // what it said about where people stand
	turn      // when waves speak of the room, and what they ask
	drawing   // the replies to a wave that draws
	pacer     pacer
	arrivals  meter
	calls     meter

	revised  bool // see dues
	broken   bool // see GiveUp
	asserted asserted
}

// kept is kept by the owner.
type kept struct {
	Queue   *qpid.Queue                  // the waiting who are not entitled in another way
	Prepare func(t uint64)               // called before the gate replies to a wave, with the time up to which events have begun: the owner re-keys and freezes; nil: nothing to do
	Copies  func(list []Member) *Keeping // as of a wave of that list; nil: nobody is kept anywhere
	Keep    func(m *Slots) bool          // whether heirs keep the visits that m brings; else it has them do so and hands m in again
	Earlier func() []Earlier             // lives of this node whose visits its disk has; nil: there is none
	Due     int                          // entitled by a draw or a deleteMin and not yet called
	Called  int                          // have a slot and have not come yet
	Wanted  int                          // sessions of lost nodes that wait for a slot here
}

// roomWide is what the last commit said of the whole room.
//
// Invariant: waiting and bare are empty, or as long as the list of that commit.
type roomWide struct {
	waiting   []int // people at each member
	total     int   // people who wait
	active    int   // people called or on the site
	calledAll int   // of them, not yet on the site
	rate      float64
	open      bool
	closed    bool
	missing   int      // slots that cannot be made yet
	wholeAt   int64    // boot time at which they can
	bare      []uint64 // where those at each member begin whom no other keeps
	t         uint64   // the T of that commit
}

// turn is when waves speak of the room. Only a coordinator asks by it, but whoever takes
// over goes on with it.
type turn struct {
	busy     bool        // the next wave should ask: something has happened here
	learned  bool        // since this life forgot, a primary wave has spoken of it
	asked    int64       // boot time of the last wave that brought it, or that this coordinator asked with
	askedBy  qpid.NodeID // the coordinator of the last one that brought it
	digested int64       // the same, of digests
	hint     int         // how many weights the next gather asks for
	short    bool        // the last one got fewer than it could call, see upTo
	mints    bool        // a next wave will mint
}

func newGate(c *clusterSettings, r Room) *Gate {
	r = r.WithDefaults()
	return &Gate{
		kept:    kept{Queue: qpid.NewQueue()},
		inForce: inForce{c: c, cfg: r, now: r.At(0), sum: r.Sum(), session: r.Session, ttl: r.longest(), durable: unbounded},
		escrow:  escrow{heldAt: never, leasedAt: never, lapses: ever, oldHeld: never},
		turn:    turn{busy: true, asked: never, digested: never},
		purse:   purse{unsureTo: never},
		pacer:   pacer{from: never, dueTo: never, away: never, dealt: never},
	}
}

func (n *Node) addGate(r Room) *Gate {
	g := newGate(n.c, r)
	i, ok := n.find(r.Name)
	if ok {
		return n.gates[i]
	}
	if n.start.Disk {
		g.durable = 0
	}
	if n.start.Record != nil {
		g.purse.forgets(n.began)
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

// Installed tells the owner of a gate what a commit, or the lack of one,
// changed.
type Installed struct {
	Gate     *Gate
	Before   Cut           // what was permitted until now
	Entitled []qpid.Weight // drawn in a random room, in order
	Epoch    qpid.Epoch
	Delete   int           // deleteMins to run
	Twins    []qpid.Weight // copies of tickets that wait at another node too: to be parked
	Reset    bool          // the account is another one: nothing is used any more
	Resume   bool          // the visits of earlier lives go on here: Book their slots
	Visits   []Visit       // came from another account with the slots that they use
	From     Account       // that account
	QPID     *qpid.Snapshot
}

// install carries out a commit's part for this room at this node: c says it, all is the
// commit.
func (g *Gate) install(n *Node, now int64, w *wave, all *Commit, c *RoomCommit) (in Installed, out []Message) {
	in = Installed{Gate: g, Before: g.cut, Epoch: w.epoch}
	g.configure(c, w.T, w.at)
	g.missLost(now, w.list, all.Met, all.Grade, c.Line == all.Line)
	if g.cfg.OnPartition.admits(all.Grade, true, g.sides) {
		g.hear(now, c.Held)
	}
	account, line := g.ledger.account, g.line
	in.Reset, out = g.escrow.install(n, w, c, &g.inForce, all.Grade)
	if all.Grade >= Primary {
		if c.Line.Founded() {
			g.learned = true
		}
		if !same(g.said.list, w.list) {
			g.missCovers(w.list, all.Met)
		}
		g.installCovers(w, c.Covered)
		in.Resume = g.installResumption(n, now, w, c)
	}
	g.busy = g.busy || g.ledger.account != account
	g.hearOf(c.Before)
	g.applyCut(c.Cut)
	if c.Key == w.epoch && g.drawKey == w.epoch {
		in.Entitled = g.drawnTo(c.Drawn)
	}
	if w.index == 0 {
		in.Delete = c.Delete
	}
	for _, t := range c.Twins {
		if t.Index == w.index {
			in.Twins = append(in.Twins, t.Weight)
		}
	}
	if line.Founded() && g.line != line {
		g.dealtAt = w.at // who stayed behind may have dealt as long
	}
	g.purse.refill(c, w)
	g.roomWide = roomWide{
		waiting: c.Waiting, total: c.Queued, active: c.Active, calledAll: c.Called, rate: c.Rate,
		open: c.Open, closed: c.Closed, missing: c.Missing, wholeAt: w.at + c.WholeIn,
		bare: c.Bare, t: w.T,
	}
	if g.cfg.OnPartition.counts(all.Grade) {
		g.positions.install(w, c)
	}
	g.asked, g.askedBy = max(g.asked, w.at), w.epoch.Coordinator
	return in, out
}

// Copied reports whether the places of the room are kept by other nodes as well.
func (g *Gate) Copied() bool { return g.c.copied(&g.cfg) }

// Room returns the configuration in force.
func (f *inForce) Room() Room { return f.cfg }

// InForce returns what of the configuration holds, as of the last commit: that of
// its event, if it is time for one.
func (f *inForce) InForce() *Room { return &f.now }

// Ledger returns the account's book.
func (e *escrow) Ledger() *Ledger { return &e.ledger }

// Line returns the line that the gate's ledger belongs to.
func (e *escrow) Line() Line { return e.line }

// Voids returns what this gate knows to be void. It is never changed: another slice
// takes its place.
func (e *escrow) Voids() []Void { return e.voids }

// Touch notes that the next wave should ask about the room.
func (g *Gate) Touch() { g.busy = true }

// Arrived counts a join at boot time now.
func (g *Gate) Arrived(now int64) { g.arrivals.add(now) }

// Rate returns calls per second in the whole room, lately; 0: not known.
func (r *roomWide) Rate() float64 { return r.rate }

// Active returns how many people of the whole room were called or on the site
// at the last wave, and how many of them had not come yet.
func (r *roomWide) Active() (active, called int) { return r.active, r.calledAll }

// Missing returns how many slots cannot be made yet, because whoever had them
// may still act, and the boot time at which the last of them can.
func (r *roomWide) Missing() (slots int, until int64) { return r.missing, r.wholeAt }

// HeldUntil is the boot time before which nobody is called after a cold start, 0
// if it was none.
func (g *Gate) HeldUntil() int64 { return g.holdUntil }

// Closed reports whether nobody is called until the room is back at its limit.
func (r *roomWide) Closed() bool { return r.closed }

// IsOpen reports what the last commit said of newcomers.
func (r *roomWide) IsOpen() bool { return r.open }
