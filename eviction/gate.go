package eviction

import (
	"math"
	"math/bits"
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

type drawnTicket struct{ place, queued qpid.Weight }

func newGate(c Config, r Room) *Gate {
	r = r.WithDefaults()
	return &Gate{
		cfg: r, now: r.At(0), sum: r.Sum(), c: c, Queue: qpid.NewQueue(), heldAt: never, leasedAt: never, oldHeld: never, session: r.Session, ttl: r.longest(),
		busy: true, asked: never, digested: never, pacer: pacer{from: never},
	}
}

// Room returns the configuration in force.
func (g *Gate) Room() Room { return g.cfg }

// InForce returns what of the configuration holds, as of the last commit: that of
// its event, if it is time for one.
func (g *Gate) InForce() *Room { return &g.now }

// waits reports whether an event keeps everybody waiting at clock t of this node.
// Its pre-queue begins by the node's own clock, its doors open with a wave alone:
// nobody is called too early here because the clock is wrong.
func (g *Gate) waits(t uint64) bool {
	if !g.now.started(g.at) {
		return true
	}
	t = max(t, g.at)
	for i := range g.cfg.Events {
		if e := &g.cfg.Events[i]; e.holds(t) {
			return g.at < uint64(e.Start)
		}
	}
	return false
}

// Ledger returns the account's book.
func (g *Gate) Ledger() *Ledger { return &g.ledger }

// Cut returns the permission to call.
func (g *Gate) Cut() Cut { return g.cut }

// Keying says which weights the queue holds: 0, or the start of the event that
// re-keyed it.
func (g *Gate) Keying() uint64 { return g.keying }

// Session returns how long a new pass lasts.
func (g *Gate) Session() time.Duration { return g.session }

// Touch notes that the next wave should ask about the room.
func (g *Gate) Touch() { g.busy = true }

// Arrived counts a join at boot time now.
func (g *Gate) Arrived(now int64) { g.arrivals.add(now) }

// delay is D: this long after a wave with a node, nothing of that node's can
// act any more.
func (g *Gate) delay() int64 { return g.delayFor(0) }

// delayFor is D where passes may last for ttl, in microseconds, if that is longer
// than all that this gate knows of.
func (g *Gate) delayFor(ttl int64) int64 {
	c := g.c
	ttl = max(ttl, micros(max(g.ttl, g.cfg.longest())))
	return drifted(micros(c.Deadline+c.Lease)+ttl) + micros(2*c.MaxSkew+c.Margin)
}

// survivorAfter is how long a side without a quorum waits; ok is false for never.
func (g *Gate) survivorAfter() (µs int64, ok bool) {
	switch g.cfg.Survivor {
	case 0:
		return 0, false
	case SurvivorAuto:
		return max(micros(5*time.Minute), g.delay()), true
	default:
	}
	return max(micros(g.cfg.Survivor), g.delay()), true
}

// voided reports whether account a may never act again.
func (g *Gate) voided(a Account) bool {
	i, ok := findVoid(g.voids, a.Member)
	return ok && a.Born <= g.voids[i].Epoch
}

// current reports whether a is an account that the last commit listed. Only
// such accounts exchange slots: to refuse what is known to be void is not
// enough, since that is forgotten in time, and a link may be stuck for longer.
func (g *Gate) current(a Account) bool {
	i := slices.Index(g.members, a.Member)
	return i >= 0 && i < len(g.born) && g.born[i] == a.Born && !g.voided(a)
}

// isSafe reports whether every node of a primary wave knew a to be void.
func (g *Gate) isSafe(a Account) bool {
	i, ok := findVoid(g.safe, a.Member)
	return ok && a.Born <= g.safe[i].Epoch
}

func findVoid(vs []Void, m Member) (int, bool) {
	return slices.BinarySearchFunc(vs, m, func(v Void, m Member) int { return v.Member.compare(m) })
}

// addVoid records v in sorted vs; a later epoch covers an earlier one.
func addVoid(vs []Void, v Void) []Void {
	i, ok := findVoid(vs, v.Member)
	if !ok {
		return slices.Insert(vs, i, v)
	}
	vs[i].Epoch = max(vs[i].Epoch, v.Epoch)
	return vs
}

// reply is the node's own part of a wave's reply about the room.
func (g *Gate) reply(w *wave, rg RoomGather, now Time) RoomReply {
	n := RoomNode{
		Index: w.index, Born: g.ledger.account.Born, Line: g.line, Lapsed: -1, OldAge: -1, Shut: g.shutBorn, Holds: g.supply.holds(), Minted: g.ledger.minted,
		Free: g.ledger.Free(), Used: g.ledger.used, Called: g.Called, Due: g.Due, Wanted: g.Wanted, Version: g.cfg.Version, Sum: g.sum, Keying: g.keying, TTL: micros(max(g.ttl, g.cfg.longest())),
		Arrivals: g.arrivals.rate(now.Boot), Calls: g.calls.rate(now.Boot), Lightest: qpid.Empty(w.index),
		Spent: g.spent, Tokens: max(0, g.Tokens(now.Boot)),
	}
	if g.keying > rg.Keying {
		n.Seed = g.seed
	}
	if g.leasedAt != never {
		n.Lapsed = now.Boot - g.leasedAt
	}
	if g.oldHeld != never {
		n.OldAge = now.Boot - g.oldHeld
	}
	n.Queued = g.Queue.CountLE(qpid.UpTo(w.T))
	if m, ok := g.Queue.Min(); ok {
		n.Lightest = m
	}
	if rg.Digest {
		g.sampled = digest(g.Queue)
		if m, ok := g.Queue.Select(g.Queue.CountLE(g.cut.Value)); ok {
			n.First = m.Stamp
		}
	}
	r := RoomReply{Room: rg.Room, Supply: g.supply, Newest: g.newest(rg.Version)}
	if rg.Digest {
		r.Digest = g.sampled
	}
	r.Front = g.front(w, rg, n.Queued)
	for _, p := range g.ledger.peers {
		r.Net = append(r.Net, Net{p.Account, p.Received - p.Sent})
	}
	for _, v := range g.voids {
		r.Voids = append(r.Voids, VoidCount{v.Member, v.Epoch, v.Epoch, 1})
	}
	r.Nodes = []RoomNode{n}
	g.busy = false
	g.spentThen = g.spent
	return r
}

// Govern bounds the limit of the room by n from this node's next wave on, if it is
// the coordinator; 0: the limit is the configured one. To no more than that: a bound
// above it means nothing. It goes with every commit, so that all nodes know, and
// whoever runs the waves next goes on with it. No disk has it.
func (n *Node) Govern(g *Gate, bound int) {
	if bound = max(0, bound); bound != g.bound {
		g.bound = bound
		n.urge(g)
	}
}

// Bound returns the bound as of the last commit; 0: there is none.
func (g *Gate) Bound() int { return g.bound }

// governed is what the bound leaves of a limit.
func (g *Gate) governed(limit int) int {
	if g.bound > 0 {
		return min(limit, g.bound)
	}
	return limit
}

// hold finds out what of the configuration holds.
func (g *Gate) hold() {
	g.now = g.cfg.At(g.at)
	g.now.Target = g.governed(g.now.Target)
}

func (g *Gate) setRoom(r Room) {
	g.cfg = r.WithDefaults()
	g.hold()
	g.sum = g.cfg.Sum()
}

// newest returns the configuration to tell the coordinator about, nil if it
// has one as new.
func (g *Gate) newest(than Version) *Room {
	if g.proposed != nil && g.proposed.Version.Compare(g.cfg.Version) <= 0 {
		g.proposed = nil
	}
	r := &g.cfg
	if g.proposed != nil {
		r = g.proposed
	}
	if r.Version.Compare(than) <= 0 {
		return nil
	}
	newest := *r
	return &newest
}

// lost reports whether a member at which people waited is not in list.
func (g *Gate) lost(list []Member) bool {
	if same(g.members, list) {
		return false
	}
	for i, m := range g.members {
		if i < len(g.waiting) && g.waiting[i] > 0 && !slices.Contains(list, m) {
			return true
		}
	}
	return false
}

// comeback is the wait for the people of lost nodes. Those who were next in line
// are back within seconds; without it the slots that came free while the loss
// was being noticed would all go to others, in the first wave after it.
type comeback struct {
	from  qpid.Weight // nobody heavier is entitled until then; the zero Weight: nobody is missing
	until int64       // boot time
	due   bool        // until is not known yet: nobody can take them over on a side without a quorum
}

// soon is the longest interval after which somebody near the front of the line
// checks in again.
const soon = 2 * time.Second

// awaitLost returns the wait as of a wave of list. It begins when list lacks a
// member at which people waited, as soon as others may take them over. The
// coordinator decides by it, and every node that installs the wave keeps it.
func (g *Gate) awaitLost(list []Member, now int64, mayTakeOver bool) comeback {
	b := g.back
	if !b.due && now >= b.until {
		b = comeback{}
	}
	for i, m := range g.members {
		if same(g.members, list) {
			break
		}
		if i >= len(g.waiting) || g.waiting[i] == 0 || slices.Contains(list, m) {
			continue
		}
		if w := g.lightestOf(m); b.from == (qpid.Weight{}) || w.Less(b.from) {
			b.from = w
		}
		b.due = true
	}
	if b.due && mayTakeOver {
		b.due, b.until = false, now+micros(min(soon, g.cfg.Refresh)*11/10+g.c.Deadline)
	}
	return b
}

// lightestOf is where m's people beyond the cut begin, as of the last digest, or a little before.
func (g *Gate) lightestOf(m Member) qpid.Weight {
	if i := slices.Index(g.digestOf, m); i >= 0 && i < len(g.first) && g.first[i] > 0 {
		if w := (qpid.Weight{Stamp: g.digest.Marks[g.first[i]-1].Stamp}); g.cut.Value.Less(w) {
			return w
		}
	}
	return g.cut.Value
}

func (g *Gate) front(w *wave, rg RoomGather, queued int) Front {
	g.drawn, g.drawKey = g.drawn[:0], qpid.Epoch{}
	if rg.Want == 0 {
		return Front{Complete: queued == 0}
	}
	if rg.Key == (qpid.Epoch{}) {
		return front(g.c, w.index, rg.Want, queued, g.within(rg, queued), func(i int) qpid.Weight { w, _ := g.Queue.Select(i); return w })
	}
	g.drawKey = rg.Key
	g.Queue.Ascend(func(q qpid.Weight) bool {
		if len(g.drawn) == queued {
			return false
		}
		g.drawn = append(g.drawn, drawnTicket{draw(rg.Key, q.ID), q})
		return true
	})
	slices.SortFunc(g.drawn, func(a, b drawnTicket) int { return a.place.Compare(b.place) })
	return front(g.c, w.index, rg.Want, queued, queued, func(i int) qpid.Weight { return g.drawn[i].place })
}

// within returns how many of the queued tickets a gather asks for by their stamp.
func (g *Gate) within(rg RoomGather, queued int) int {
	if rg.UpTo == 0 {
		return queued
	}
	return min(queued, g.Queue.CountLE(qpid.UpTo(rg.UpTo)))
}

// upTo is a stamp that by the digest about as many of the room's tickets precede as the
// next gather wants, so that all nodes together report about as many, not each of
// them. The digest is a little old, and those before it may have left: who gets fewer
// than it could call asks the next time without a bound.
func (g *Gate) upTo() uint64 {
	if g.digest == nil || g.short {
		return 0
	}
	called := g.digest.rank(keyOf(g.cut.Value).next())
	stamp, ok := g.digest.at(int(called) + g.hint)
	if !ok {
		return 0
	}
	return stamp
}

// merge adds another subtree's reply about the same room.
func (r *RoomReply) merge(o RoomReply, want int) {
	r.Nodes = append(r.Nodes, o.Nodes...)
	r.Front.merge(o.Front, want)
	for _, n := range o.Net {
		i, ok := slices.BinarySearchFunc(r.Net, n.Account, func(n Net, a Account) int { return n.Account.compare(a) })
		if ok {
			r.Net[i].Slots += n.Slots
		} else {
			r.Net = slices.Insert(r.Net, i, n)
		}
	}
	for _, v := range o.Voids {
		i, ok := slices.BinarySearchFunc(r.Voids, v.Member, func(v VoidCount, m Member) int { return v.Member.compare(m) })
		if !ok {
			r.Voids = slices.Insert(r.Voids, i, v)
			continue
		}
		p := &r.Voids[i]
		p.Min, p.Max, p.Nodes = min(p.Min, v.Min), max(p.Max, v.Max), p.Nodes+v.Nodes
	}
	if o.Newest != nil && (r.Newest == nil || o.Newest.Version.Compare(r.Newest.Version) > 0) {
		r.Newest = o.Newest
	}
	r.Supply = r.Supply.merge(o.Supply)
}

// halfLife of the rates that nodes report, in microseconds.
const halfLife = 60_000_000

// meter is an exponentially decaying event counter.
type meter struct {
	sum   float64
	at    int64
	since int64 // of the first event
}

func (m *meter) add(now int64) {
	if m.since == 0 {
		m.since = now
	}
	m.decay(now)
	m.sum++
}

func (m *meter) decay(now int64) {
	if now > m.at {
		m.sum *= math.Exp2(-float64(now-m.at) / halfLife)
		m.at = now
	}
}

// rate returns events per second.
func (m *meter) rate(now int64) float64 {
	if m.sum == 0 {
		return 0
	}
	m.decay(now)
	age := float64(max(now-m.since, 1_000_000))
	return m.sum * math.Ln2 / (halfLife / 1e6) / (1 - math.Exp2(-age/halfLife))
}

// Key returns the weight under which a ticket waits: its own, or its place in
// the draw among those who gathered before an event with a shuffle.
func (g *Gate) Key(w qpid.Weight) qpid.Weight {
	if g.keying == 0 || w.Stamp >= g.keying {
		return w
	}
	return g.shuffled(w)
}

// shuffled is apart from Key, which else would allocate what it returns as it was.
func (g *Gate) shuffled(w qpid.Weight) qpid.Weight {
	return qpid.Weight{Stamp: g.places.of(g.seed, g.keying, w.ID), ID: w.ID}
}

// scaled is ⌊x × below / 2⁶⁴⌋.
func scaled(x, below uint64) uint64 {
	hi, _ := bits.Mul64(x, below)
	return hi
}

// Rate returns calls per second in the whole room, lately; 0: not known.
func (g *Gate) Rate() float64 { return g.rate }

// Waiting returns how many people wait in the whole room: at this node just now, at
// the others as of the last wave.
func (g *Gate) Waiting(self Member) int {
	waiting := g.Queue.Len() + g.Due
	for i, m := range g.members {
		if m != self && i < len(g.waiting) {
			waiting += g.waiting[i]
		}
	}
	return waiting
}

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

// Line returns the line that the gate's ledger belongs to.
func (g *Gate) Line() Line { return g.line }

// Voids returns a copy of what this gate knows to be void.
func (g *Gate) Voids() []Void { return slices.Clone(g.voids) }

// Tokens returns the pacing tokens in hand at boot time now; -1: not paced.
func (g *Gate) Tokens(now int64) int {
	switch {
	case !g.paced:
		return -1
	case now >= g.tokenTo:
		return 0
	}
	return g.tokens
}

// SendTo moves up to n free slots to the account of the listed node called
// name. The message is nil if there is nobody or nothing to send.
func (g *Gate) SendTo(self Member, name qpid.NodeID, n int) *Message {
	for i, m := range g.members {
		if m.Name == name && m != self && i < len(g.born) && g.born[i] > 0 {
			if s := g.ledger.send(g.cfg.Name, Account{m, g.born[i]}, n); s != nil {
				return &Message{From: self, To: m, Body: s}
			}
		}
	}
	return nil
}

// Give has the account of a listed node go on with visits, on the slots that they
// use. It returns false if that node has no account.
func (g *Gate) Give(self, to Member, visits []Visit) ([]Message, bool) {
	i := slices.Index(g.members, to)
	if i < 0 || to == self || i >= len(g.born) || g.born[i] == 0 {
		return nil, false
	}
	var out []Message
	for part := range slices.Chunk(visits, VisitsMax) {
		out = append(out, Message{From: self, To: to, Body: g.ledger.give(g.cfg.Name, Account{to, g.born[i]}, part)})
	}
	return out, true
}

// TicketLife is how old an untouched ticket of a lost node may be at boot time
// now, in microseconds. After a cold start everyone gets a day.
func (g *Gate) TicketLife(now int64) int64 {
	if now < g.graceUntil {
		return micros(24 * time.Hour)
	}
	return micros(g.cfg.TicketTTL)
}

// coldStart gives people of before the time to come back first.
func (g *Gate) coldStart(now int64) {
	g.holdUntil = now + micros(g.cfg.Refresh)*11/10
	g.graceUntil = now + micros(g.cfg.TicketTTL)
}
