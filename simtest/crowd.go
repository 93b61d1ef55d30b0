package simtest

import (
	"encoding/binary"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// crowd is everybody who ever comes, and what became of them.
type crowd struct {
	visitors slab[visitor]
	requests slab[request]
	tickets  []place
	came     int // visitors so far
	active   int // visitors not done, second tabs and cheats included
	served   int // visitors who were let in
	rooms    []*eviction.Room
	kept     []visitor             // copies of used tickets, for when their nodes are back or gone
	renewed  map[qpid.ItemID]int32 // places of tickets that were stamped anew, by id
}

func (c *crowd) init(o Options) {
	c.renewed = map[qpid.ItemID]int32{}
	for i := range o.Rooms {
		c.rooms = append(c.rooms, &o.Rooms[i])
	}
}

// stage of a visit.
type stage uint8

const (
	coming stage = iota
	waiting
	called
	inside
)

// trait is what a visitor may do against the rules or our hopes.
type trait uint16

const (
	vanishes trait = 1 << iota
	goesSilent
	cancels
	comesLate
	comesEarly
	opensTwo
	replays
	noShow  // goes on asking when it is called, and does not come
	program // as programs that look at the number being served, and at nothing else
	cheat   // a copy of someone else's ticket or pass; tries it and goes
	copied
)

// visitor is one browser tab. It holds no pointers, so that a million of them
// cost the garbage collector nothing.
type visitor struct {
	id       qpid.ItemID
	stamp    uint64
	issued   int64
	expires  int64  // of the pass
	born     uint64 // of the account behind the pass
	key      uint64 // what its ticket or pass is sealed with
	since    int64  // true time at which it came
	told     int64  // true time at which a node made what it heard last of its place
	leaveAt  int64  // true time at which its visit ends
	ticket   int32  // place in crowd.tickets
	session  int32
	home     int32    // life that issued the ticket, or the pass
	req      int32    // request under way
	host     int32    // where it asked last
	past     [2]int32 // lives that had the ticket before home; only with a gen
	pos, gen uint32
	traits   trait
	room     uint8
	stage    stage
	asks     uint8 // check-ins before it acts on its traits
	tries    uint8 // failures in a row
	again    uint8 // times that it joined anew
}

// place is the truth about one join, for the oracles.
type place struct {
	id         qpid.ItemID
	stamp      uint64
	joined     int64 // true time at which the visitor first tried to join
	since      int64 // true time at which home became it
	entitledAt int64 // true time; 0: not yet
	calledAt   int64
	epoch      uint64
	key        qpid.Weight
	session    int32    // newest; none
	home       int32    // host
	life       int32    // of home when it became it
	past       [2]int32 // lives that had it before, as the newest copy says; with a generation
	gen        uint32
	base       int32 // mishaps of home when it became it
	eraNow     int32 // when it was entitled
	turnAt     int32 // host where it was
	allow      int32 // further live passes that faults of former homes allow
	room       uint8
	state      ticketState
	touched    bool // parked or taken over: it came back late
	clean      bool // entitled untouched at a home without a mishap
	open       bool // walked straight in
	admitted   bool
	usedBy     int32 // the life that let its bearer in, 1 + number, once that is on its disk, if it has one
	heard      int64 // true time at which home heard of it last
	patience   int64 // for how long it may be silent from then on, in µs, by what home told it
	told       bool  // its browser was told of the call that stands
	tried      bool  // its bearer came on that call, and the node could not let them in
	abandoned  bool  // its bearer has asked a node to end it
	over       bool  // stamped anew: its ticket stands for another place
	missed     int32
}

type ticketState uint8

const (
	unqueued ticketState = iota
	queued
	parked
	calledIn
	gone
)

// newID makes a ticket id that says where the truth about it is.
func (w *world) newID() qpid.ItemID {
	var id qpid.ItemID
	binary.BigEndian.PutUint64(id[:8], w.rngLoad.Uint64())
	binary.BigEndian.PutUint32(id[12:], uint32(len(w.crowd.tickets)))
	return id
}

// ticketOf finds the truth about a ticket.
func (w *world) ticketOf(id qpid.ItemID) int32 {
	if i, ok := w.crowd.renewed[id]; ok {
		return i
	}
	return numberIn(id)
}

// numberIn is the place of a ticket in crowd.tickets that newID wrote into its id.
func numberIn(id qpid.ItemID) int32 { return int32(binary.BigEndian.Uint32(id[12:])) }

// arrival is the true time at which person i comes.
func (c *crowd) arrival(w *world, i int) int64 {
	span := w.o.Span.Microseconds() * 9 / 10
	users := int64(w.o.Users)
	flash := int64(w.o.Load.Flash)
	if flash == 0 {
		return 500_000 + span*int64(i)/users
	}
	crowd := int64(i) * flash / users
	first := (crowd*users + flash - 1) / flash
	size := (users + flash - 1) / flash
	return 1_000_000 + span*crowd/flash + 1_000_000*(int64(i)-first)/size
}

// nextUser brings person i.
func (w *world) nextUser(i int32) {
	c := &w.crowd
	v := w.newVisitor()
	p := &c.visitors.at[v]
	p.room = uint8(w.rngLoad.IntN(len(w.o.Rooms)))
	p.traits = w.drawTraits()
	p.asks = uint8(w.rngLoad.IntN(6))
	p.host = w.anyHost(none)
	c.came++
	if int(i)+1 < w.o.Users {
		w.agenda.push(max(w.now, c.arrival(w, int(i)+1)), evUser, i+1, 0)
	}
	w.wake(v)
}

func (w *world) newVisitor() int32 {
	c := &w.crowd
	v := c.visitors.take()
	c.visitors.at[v] = visitor{since: w.now, ticket: none, session: none, home: none, req: none, host: none}
	c.active++
	return v
}

func (w *world) drawTraits() (t trait) {
	l := &w.o.Load
	for _, x := range [...]struct {
		share int
		trait trait
	}{
		{l.Vanish, vanishes},
		{l.Silent, goesSilent},
		{l.Cancel, cancels},
		{l.Late, comesLate},
		{l.Early, comesEarly},
		{l.Twice, opensTwo},
		{l.Replay, replays},
		{l.NoShow, noShow},
	} {
		if chance(w.rngLoad, x.share, 100) {
			t |= x.trait
		}
	}
	if chance(w.rngQuiet, l.Quiet, 100) {
		t |= program
	}
	return t
}

// done ends a visitor.
func (w *world) done(v int32) {
	w.crowd.visitors.put(v)
	w.crowd.active--
	if w.crowd.active == 0 {
		w.everybodyDone()
	}
}

// wakeIn lets a visitor act after µs.
func (w *world) wakeIn(v int32, after int64) {
	w.agenda.push(w.now+max(after, 0), evWake, v, 0)
}

// wake does what the visitor does next.
func (w *world) wake(v int32) {
	p := &w.crowd.visitors.at[v]
	if w.phase >= healing && w.o.After == Demand {
		p.traits &^= vanishes | goesSilent | cancels | comesLate | opensTwo | replays | noShow
		p.leaveAt = min(p.leaveAt, w.now+1_000_000)
	}
	patience := w.o.Load.Patience.Microseconds()
	if p.stage <= waiting && patience > 0 && w.now-p.since > patience {
		w.reached.n[reachGaveUp]++
		w.done(v)
		return
	}
	switch p.stage {
	case coming:
		w.submit(v, opJoin)
	case waiting:
		w.wakeWaiting(v, p)
	case called:
		w.submit(v, opLeave)
	case inside:
		w.wakeInside(v, p)
	}
}

func (w *world) wakeWaiting(v int32, p *visitor) {
	switch {
	case p.traits&program != 0 && w.phase < healing && !w.served(p) && p.tries == 0:
		w.wakeIn(v, quietLooks)
		return
	case p.asks > 0:
		p.asks--
		w.submit(v, opCheckIn)
		return
	}
	switch {
	case p.traits&cheat != 0:
		w.done(v)
	case p.traits&goesSilent != 0:
		w.reached.n[reachSilent]++
		w.done(v)
	case p.traits&cancels != 0:
		w.submit(v, opAbandon)
	case p.traits&opensTwo != 0:
		p.traits &^= opensTwo
		w.reached.n[reachClone]++
		w.copy(v, copied)
		w.submit(v, opCheckIn)
	default:
		w.submit(v, opCheckIn)
	}
}

// quietLooks is how often, in µs, a program that does not check in looks at the number
// being served.
const quietLooks = 500_000

// served reports whether the line has come up to p somewhere, or p has not asked for so
// long that it had better.
func (w *world) served(p *visitor) bool {
	if w.now-w.crowd.tickets[p.ticket].heard > w.o.Rooms[p.room].TicketTTL.Microseconds()/2 {
		return true
	}
	return slices.ContainsFunc(w.hosts, func(h host) bool {
		if !h.running() {
			return false
		}
		r := &h.seen.rooms[p.room]
		return r.Open || r.Now.Method == eviction.Random || r.Cut.Value.Stamp >= p.stamp
	})
}

func (w *world) wakeInside(v int32, p *visitor) {
	switch {
	case w.now < p.leaveAt && p.traits&cheat == 0:
		if chance(w.rngLoad, 1, 4) {
			w.submit(v, opVisit)
		} else {
			w.submit(v, opRefresh)
		}
	case p.traits&cheat != 0 && chance(w.rngLoad, 1, 2):
		w.submit(v, opVisit)
	case p.traits&cheat != 0:
		w.submit(v, opRefresh)
	case p.traits&vanishes != 0:
		w.reached.n[reachVanish]++
		w.done(v)
	default:
		w.submit(v, opEnd)
	}
}

// copy opens a second tab with what v has, somewhere else.
func (w *world) copy(v int32, as trait) {
	o := w.newVisitor()
	p, q := &w.crowd.visitors.at[v], &w.crowd.visitors.at[o]
	*q = *p
	q.req, q.tries, q.traits = none, 0, as|p.traits&program
	q.asks = uint8(1 + w.rngLoad.IntN(3))
	q.host = w.anyHost(p.host)
	w.wakeIn(o, w.rngLoad.Int64N(1_500_000))
}

// anyHost picks a host that was started, other than but if there is one.
func (w *world) anyHost(but int32) int32 {
	n := int32(len(w.hosts))
	h := int32(w.rngLoad.IntN(int(n)))
	for range n {
		if h != but && w.hosts[h].started && !w.hosts[h].gone {
			return h
		}
		h = (h + 1) % n
	}
	return max(h, 0)
}

// roomIndex finds a room by name.
func (w *world) roomIndex(name string) int {
	for i := range w.o.Rooms {
		if w.o.Rooms[i].Name == name {
			return i
		}
	}
	return none
}

// held makes the full ticket that the browser holds.
func (w *world) heldTicket(p *visitor) node.Ticket {
	t := node.Ticket{
		Room: w.o.Rooms[p.room].Name, ID: p.id, Stamp: p.stamp, Home: w.lives[p.home].member,
		Gen: p.gen, Position: p.pos, Issued: p.issued, Quiet: p.traits&program != 0,
	}
	for i := range min(int(p.gen), len(t.Past)) {
		if p.past[i] != none {
			t.Past[i] = w.lives[p.past[i]].member
		}
	}
	return t
}

func (w *world) heldPass(p *visitor) node.Pass {
	s := node.Pass{Room: w.o.Rooms[p.room].Name, ID: p.id, Stamp: p.stamp, Expires: p.expires}
	if p.home != none {
		s.Home = eviction.Account{Member: w.lives[p.home].member, Born: p.born}
	}
	return s
}
