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

// Gate is one node's part of one room: its ledger, the cut, and what the last
// commit said. It decides whether a visitor may be called here and now.
type Gate struct {
	cfg     Room   // with its events
	now     Room   // what of it holds
	at      uint64 // the T by which: the newest of a commit about the room
	c       Config
	Queue   *qpid.Queue    // the waiting who are not entitled in another way; kept by the owner
	Prepare func(t uint64) // called before the gate replies to a wave that asks up to t: the owner re-keys and freezes; nil: nothing to do
	Due     int            // entitled by a draw or a deleteMin and not yet called; kept by the owner
	Called  int            // have a slot and have not come yet; kept by the owner
	Wanted  int            // sessions of lost nodes that wait for a slot here; kept by the owner
	line    Line
	voters  Voters // of line, if the node has gone on to another one
	ledger  Ledger

	heldAt   int64         // boot time of the last wave that asked about the room and let the account act
	leasedAt int64         // the same, of primary waves and of any account here
	oldHeld  int64         // heldAt of earlier accounts of this life
	shutBorn uint64        // Born of the last account closed here; none up to it is opened again
	session  time.Duration // of new passes: the shortest that every node may assume
	ttl      time.Duration // the longest that a pass alive anywhere may have
	ttlUntil int64         // boot time at which ttl falls back to cfg.Session

	voids     []Void
	safe      []Void
	cut       Cut
	keying    uint64 // of the queue's weights
	told      uint64 // the coordinator's keying, and its seed
	toldSeed  [32]byte
	seed      [32]byte // of the draw that keying speaks of, whatever the configuration says by now
	places    places
	open      bool
	closed    bool
	paced     bool
	tokens    int
	tokenTo   int64  // boot time at which they lapse
	spent     uint64 // tokens, ever
	spentThen uint64 // by the last reply
	supply    Supply
	bound     int  // see Govern
	mints     bool // as coordinator: a next wave will mint
	total     int
	active    int
	calledAll int
	rate      float64

	digest     *Digest  // of the room, for positions
	sampled    *Digest  // of this node's queue, as it replied last; a part of digest once that is installed
	own        *Digest  // of this node's queue, in digest
	first      []int    // see RoomCommit.First
	digestOf   []Member // whose queues digest describes
	digestT    uint64   // who joined later is not in it
	waiting    []int    // people at each member as of the last commit
	members    []Member // its list
	born       []uint64 // their accounts
	proposed   *Room    // set here, not yet brought back by a wave
	hint       int      // how many weights the next gather asks for
	short      bool     // the last one got fewer than it could call, see upTo
	busy       bool
	arrivals   meter
	calls      meter
	drawn      []drawnTicket // of the open wave
	drawKey    qpid.Epoch
	pacer      pacer
	shyUntil   int64  // boot time until which the room is not open: people of a lost node may be on their way
	missing    int    // slots that cannot be made yet, as of the last commit
	wholeAt    int64  // boot time at which they can
	holdUntil  int64  // boot time until which nobody is called after a cold start
	sum        uint64 // of cfg
	back       comeback
	graceUntil int64 // boot time until which a ticket up to a day old counts as unexpired
	asked      int64 // boot time of the last wave that brought it, or that this coordinator asked with
	digested   int64
	revised    bool // see dues
	broken     bool // see GiveUp
	asserted   asserted
}

func newGate(c Config, r Room) *Gate {
	r = r.WithDefaults()
	return &Gate{
		cfg: r, now: r.At(0), sum: r.Sum(), c: c, Queue: qpid.NewQueue(), heldAt: never, leasedAt: never, oldHeld: never, session: r.Session, ttl: r.longest(),
		busy: true, asked: never, digested: never, pacer: pacer{from: never},
	}
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
	Visits   []Visit       // came from another account with the slots that they use
	From     Account       // that account
	QPID     *qpid.Snapshot
}

// install carries out a commit's part for this room at this node.
func (g *Gate) install(n *Node, w *wave, c *RoomCommit, grade Grade) (Installed, []Message) {
	in := Installed{Gate: g, Before: g.cut, Epoch: w.epoch}
	now := w.at
	g.at = max(g.at, w.T)
	g.bound = c.Bound
	g.configure(c, now)
	g.installAccount(n, w, c, &in)
	g.lease(n, w, c, grade)
	if w.index == 0 && c.Born[0] == g.ledger.account.Born {
		g.ledger.mint(c.Mint)
	}
	burned := 0
	for _, b := range c.Burn {
		if b.Index == w.index {
			burned += g.ledger.burn(b.N)
		}
	}
	g.applyCut(c.Cut)
	if c.Key == w.epoch && g.drawKey == w.epoch {
		for _, d := range g.drawn {
			if c.Drawn.Less(d.place) {
				break
			}
			in.Entitled = append(in.Entitled, d.queued)
		}
	}
	if w.index == 0 {
		in.Delete = c.Delete
	}
	for _, t := range c.Twins {
		if t.Index == w.index {
			in.Twins = append(in.Twins, t.Weight)
		}
	}
	g.open, g.closed, g.total, g.active, g.calledAll, g.rate = c.Open, c.Closed, c.Queued, c.Active, c.Called, c.Rate
	g.missing, g.wholeAt = c.Missing, now+c.WholeIn
	if grade >= Primary {
		g.supply = Supply{Line: c.Line, Slots: c.Supply, At: w.epoch, Voters: n.voters.Version, Sure: c.Sure, Claims: c.Claims}
	}
	g.supply.Burned += burned // a side knows what it burns, not what others have minted
	if g.paced = c.Paced; g.paced {
		g.tokens, g.tokenTo = 0, now+tokenLife
		for _, t := range c.Tokens {
			if t.Index == w.index {
				g.tokens = max(0, t.N-int(g.spent-g.spentThen))
			}
		}
	}
	g.waiting, g.members, g.born, g.asked = c.Waiting, w.list, c.Born, max(g.asked, w.at)
	if c.Digest != nil {
		g.installDigest(w, c)
	}
	return in, g.moves(w, c)
}

// Room returns the configuration in force.
func (g *Gate) Room() Room { return g.cfg }

// InForce returns what of the configuration holds, as of the last commit: that of
// its event, if it is time for one.
func (g *Gate) InForce() *Room { return &g.now }

// Ledger returns the account's book.
func (g *Gate) Ledger() *Ledger { return &g.ledger }

// Line returns the line that the gate's ledger belongs to.
func (g *Gate) Line() Line { return g.line }

// Voids returns a copy of what this gate knows to be void.
func (g *Gate) Voids() []Void { return slices.Clone(g.voids) }

// Touch notes that the next wave should ask about the room.
func (g *Gate) Touch() { g.busy = true }

// Arrived counts a join at boot time now.
func (g *Gate) Arrived(now int64) { g.arrivals.add(now) }

// Rate returns calls per second in the whole room, lately; 0: not known.
func (g *Gate) Rate() float64 { return g.rate }

// Active returns how many people of the whole room were called or on the site
// at the last wave, and how many of them had not come yet.
func (g *Gate) Active() (active, called int) { return g.active, g.calledAll }

// Missing returns how many slots cannot be made yet, because whoever had them
// may still act, and the boot time at which the last of them can.
func (g *Gate) Missing() (slots int, until int64) { return g.missing, g.wholeAt }

// HeldUntil is the boot time before which nobody is called after a cold start, 0
// if it was none.
func (g *Gate) HeldUntil() int64 { return g.holdUntil }

// Closed reports whether nobody is called until the room is back at its limit.
func (g *Gate) Closed() bool { return g.closed }

// IsOpen reports what the last commit said of newcomers.
func (g *Gate) IsOpen() bool { return g.open }
