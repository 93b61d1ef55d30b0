package peraddress

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

const (
	// burst is the time, in µs, of which the joins may come at once: with 600 a
	// minute 1,000.
	burst = 100e6
	// wide is how many times as much as a /64 a /48 may have.
	wide = 4
)

// Auto is an Active that goes by the room's limit: a quarter of it, at least 10.
const Auto = -1

// Limits are those of a room. 0: none.
type Limits struct {
	Joins   int // a minute; those of 100 s may come at once
	Places  int // waiting
	Active  int // on the site, or Auto
	Streams int // open
}

// activeMax is how many of an address may be on the site of a room. With Auto a
// /48 has half of the limit at most: four quarters would be all of it.
func (l Limits) activeMax(r *eviction.Room) most {
	if l.Active != Auto {
		return times(l.Active)
	}
	return most{max(10, r.Target/4), max(10, r.Target/2)}
}

// Bound is one of them, by its key in the configuration.
type Bound string

// What is bounded.
const (
	Joins   Bound = "joins_per_address"
	Places  Bound = "places_per_address"
	Active  Bound = "active_per_address"
	Streams Bound = "streams_per_address"
)

// Error is the refusal of a request because of its address.
type Error struct {
	Bound      Bound
	RetryAfter int // seconds
}

func (e *Error) Error() string { return "the address has reached " + string(e.Bound) }

// Detail says what was reached, for people.
func (e *Error) Detail() string {
	switch e.Bound {
	case Joins:
		return "Too many people on your network came at the same time (joins_per_address). Try again after the time in Retry-After."
	case Places:
		return "As many people on your network are in line as one address may have (places_per_address). Try again after the time in Retry-After."
	case Active:
		return "As many people on your network are on the site as one address may have (active_per_address). No place is lost. Try again after the time in Retry-After."
	default:
		return "Your network has as many streams open as one address may have (streams_per_address). Check in instead, or try again after the time in Retry-After."
	}
}

// Config is what a table needs.
type Config struct {
	Clock   func() int64   // pass time, Unix microseconds
	Proxies []netip.Prefix // trusted ones: a private address among them is not exempt
	// Did hears what became of each request; nil: nobody does.
	Did func(op ticket.Op, room string, a ticket.Answer, err error)
}

// Table has the bounds of all rooms at this node. A nil one bounds nothing.
type Table struct {
	c        Config
	rooms    atomic.Pointer[map[string]Limits]
	count    *count
	refusals *prometheus.CounterVec
}

// New returns a table without bounds; see SetRooms.
func New(c Config) *Table {
	t := &Table{c: c, count: newCount(addressesMax, ticketsMax), refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "anteroom_address_refusals_total", Help: "Requests refused because their address had reached a bound, by room and bound.",
	}, []string{"room", "bound"})}
	t.rooms.Store(&map[string]Limits{})
	return t
}

// SetRooms replaces the bounds of all rooms. What is counted stays counted.
func (t *Table) SetRooms(rooms map[string]Limits) { t.rooms.Store(&rooms) }

// Metrics are what there is to register.
func (t *Table) Metrics() []prometheus.Collector {
	return []prometheus.Collector{t.refusals, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "anteroom_address_tickets", Help: "Places and visits that are counted for the address that they came from.",
	}, func() float64 { return float64(t.count.n.Load()) })}
}

// Exempt reports whether an address has no bounds. An invalid one is that of no
// network.
func (t *Table) Exempt(a netip.Addr) bool {
	switch {
	case !a.IsValid() || a.IsLoopback():
		return true
	case !a.IsPrivate() && !a.IsLinkLocalUnicast():
		return false
	}
	for _, p := range t.c.Proxies {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

func (t *Table) refuse(room string, b Bound, after int) *Error {
	t.refusals.WithLabelValues(room, string(b)).Inc()
	return &Error{b, after}
}

// Visitor is who asks: at which address, in a room in which state. The zero one
// is somebody of whom nothing is bounded any more: they have a pass, or leave.
type Visitor struct {
	Addr netip.Addr
	Room *ticket.RoomState
}

// Ask puts a request to the queue.
type Ask func(context.Context, ticket.Request) (ticket.Answer, error)

// Do has ask carry out q for v, within the bounds. It fails with an *Error where
// one is reached.
func (t *Table) Do(ctx context.Context, v Visitor, q ticket.Request, ask Ask) (ticket.Answer, error) {
	if t == nil {
		return ask(ctx, q)
	}
	a, err := t.do(ctx, v, q, ask)
	if t.c.Did != nil {
		t.c.Did(q.Op, q.Room, a, err)
	}
	return a, err
}

func (t *Table) do(ctx context.Context, v Visitor, q ticket.Request, ask Ask) (ticket.Answer, error) {
	limits, ok := (*t.rooms.Load())[q.Room]
	if bounded := ok && limits != (Limits{}); !bounded && t.count.n.Load() == 0 {
		return ask(ctx, q)
	}
	if v.Room != nil && !t.Exempt(v.Addr) {
		b := bounded{t, v, limits, v.Addr.WithZone("")}
		switch q.Op {
		case ticket.Join:
			return b.join(ctx, q, ask)
		case ticket.Leave:
			return b.leave(ctx, q, ask)
		case ticket.CheckIn:
			return b.checkIn(ctx, q, ask)
		default:
		}
	}
	a, err := ask(ctx, q)
	t.learn(v, &q, &a, err)
	return a, err
}

// learn notes what an answer says of a ticket that may be counted.
func (t *Table) learn(v Visitor, q *ticket.Request, a *ticket.Answer, err error) {
	if t.count.n.Load() == 0 {
		return
	}
	id := q.Ticket.ID
	switch q.Op {
	case ticket.Refresh, ticket.Visit, ticket.End:
		id = q.Pass.ID
	case ticket.Join:
		return // of an exempt address
	default:
	}
	over := errors.Is(err, ticket.ErrExpired) || errors.Is(err, ticket.ErrUsed) || errors.Is(err, ticket.ErrPassExpired)
	switch {
	case over || err == nil && (q.Op == ticket.Abandon || q.Op == ticket.End || q.Op == ticket.Leave && a.State == ticket.Admitted):
		t.count.release(id)
	case err != nil:
	case a.State == ticket.Admitted:
		t.count.lives(id, id, a.Pass.Expires)
	case v.Room != nil:
		t.count.lives(id, a.Ticket.ID, t.c.Clock()+v.Room.Room.TicketTTL.Microseconds())
	}
}

// bounded is a request of somebody who is not exempt.
type bounded struct {
	t      *Table
	v      Visitor
	limits Limits
	addr   netip.Addr
}

func (b *bounded) activeMax() most { return b.limits.activeMax(&b.v.Room.Room) }

func (b *bounded) placeUntil(now int64) int64 { return now + b.v.Room.Room.TicketTTL.Microseconds() }

// checkIn has somebody wait on who is called while their address is full. Whom
// that has happened to is held back from the start: a slot would be on its way for
// nothing.
func (b *bounded) checkIn(ctx context.Context, q ticket.Request, ask Ask) (ticket.Answer, error) {
	c := b.t.count
	held := c.held.Load() > 0 && c.isHeld(q.Ticket.ID)
	q.Hold = held && b.full(q.Room)
	a, err := ask(ctx, q)
	if err == nil && a.State == ticket.Called && !q.Hold && b.full(q.Room) {
		if c.mark(q.Ticket.ID, true) {
			q.Ticket, q.Hold = a.Ticket, true
			a, err = ask(ctx, q)
		}
	} else if held && !q.Hold {
		c.mark(q.Ticket.ID, false)
	}
	b.t.learn(b.v, &q, &a, err)
	return a, err
}

// full reports whether the address has as many on the site as it may.
func (b *bounded) full(room string) bool {
	most := b.activeMax()
	if most.one <= 0 || b.t.count.n.Load() < int64(most.one) {
		return false
	}
	c := b.t.count
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.full(c.find(room, b.addr), most, b.t.c.Clock(), active)
}

// join counts before it asks: of two hundred who come at once none slips through.
func (b *bounded) join(ctx context.Context, q ticket.Request, ask Ask) (ticket.Answer, error) {
	opens := b.v.Room.HasRoom()
	if err := b.mayJoin(q.Room, q.ID, opens); err != nil {
		return ticket.Answer{}, err
	}
	a, err := ask(ctx, q)
	c, now := b.t.count, b.t.c.Clock()
	switch {
	case err != nil || a.State == ticket.Admitted && a.Pass.Home == (eviction.Account{}): // which takes no slot
		c.release(q.ID)
	case a.State != ticket.Admitted:
		c.becomes(q.ID, false, b.placeUntil(now))
	case opens:
		c.becomes(q.ID, true, a.Pass.Expires)
	default: // nobody was in line any more
		if e := b.enter(q.Room, q.ID, a.Pass.Expires); e != nil {
			c.release(q.ID)
			_, _ = ask(ctx, ticket.Request{Op: ticket.End, Room: q.Room, Pass: a.Pass}) // else the slot is free when the pass has run out
			return ticket.Answer{}, e
		}
	}
	return a, err
}

// mayJoin counts a join, and what comes of it: a visit where there is room, else
// a place.
func (b *bounded) mayJoin(room string, id qpid.ItemID, visit bool) error {
	c, now := b.t.count, b.t.c.Clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	from := c.find(room, b.addr)
	if visit && c.full(from, b.activeMax(), now, active) {
		return b.t.refuse(room, Active, retryActive)
	}
	if !visit && c.full(from, times(b.limits.Places), now, places) {
		return b.t.refuse(room, Places, retryPlaces)
	}
	if b.limits.Joins > 0 {
		if wait := c.join(from, b.limits.Joins, now); wait > 0 {
			return b.t.refuse(room, Joins, int((wait+999_999)/1e6))
		}
	}
	if b.limits.Places > 0 || b.activeMax().one > 0 {
		c.hold(id, from, visit, now, b.placeUntil(now))
	}
	return nil
}

// How soon it is worth asking again, in seconds: slots and places get free as
// people come and go, joins by the clock alone.
const (
	retryActive  = 10
	retryPlaces  = 30
	retryStreams = 10
)

// leave takes somebody called onto the site, if their address may have one more
// there. If not, the slot goes on to the next, and the place is kept.
func (b *bounded) leave(ctx context.Context, q ticket.Request, ask Ask) (ticket.Answer, error) {
	c := b.t.count
	if refused := b.enter(q.Room, q.Ticket.ID, b.placeUntil(b.t.c.Clock())); refused != nil {
		q.Op, q.Hold = ticket.CheckIn, true
		a, err := ask(ctx, q)
		b.t.learn(b.v, &q, &a, err)
		if err != nil || a.State == ticket.Admitted { // long since
			return a, err
		}
		b.t.count.mark(a.Ticket.ID, true)
		return ticket.Answer{}, refused
	}
	a, err := ask(ctx, q)
	switch over := errors.Is(err, ticket.ErrExpired) || errors.Is(err, ticket.ErrUsed); {
	case over || err == nil && a.State == ticket.Admitted && a.Pass.Home == (eviction.Account{}):
		c.release(q.Ticket.ID)
	case err == nil && a.State == ticket.Admitted:
		c.becomes(q.Ticket.ID, true, a.Pass.Expires)
	default:
		c.becomes(q.Ticket.ID, false, b.placeUntil(b.t.c.Clock()))
	}
	return a, err
}

// enter counts a visit for the address: of a ticket that was counted as a place,
// perhaps of another address, or of one that was not counted here.
func (b *bounded) enter(room string, id qpid.ItemID, until int64) error {
	c, now := b.t.count, b.t.c.Clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.ids[idOf(id)]
	if ok && c.tickets[i].visit {
		c.tickets[i].until = max(c.tickets[i].until, until)
		return nil
	}
	from := c.find(room, b.addr)
	if c.full(from, b.activeMax(), now, active) {
		return b.t.refuse(room, Active, retryActive)
	}
	if b.limits.Places <= 0 && b.activeMax().one <= 0 {
		return nil
	}
	if i, ok = c.ids[idOf(id)]; ok { // still: there was a sweep
		c.drop(i)
	}
	c.hold(id, from, true, now, until)
	return nil
}

// Stream counts an event stream, until done is called.
func (t *Table) Stream(room string, a netip.Addr) (done func(), err error) {
	limits := Limits{}
	if t != nil {
		limits = (*t.rooms.Load())[room]
	}
	if limits.Streams <= 0 || t.Exempt(a) {
		return func() {}, nil
	}
	c, a := t.count, a.WithZone("")
	c.mu.Lock()
	defer c.mu.Unlock()
	from := c.find(room, a)
	if c.over(from, times(limits.Streams), streams) {
		return nil, t.refuse(room, Streams, retryStreams)
	}
	c.add(from, counts{streams: +1})
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.add(c.find(room, a), counts{streams: -1})
	}, nil
}

// release forgets a ticket.
func (c *count) release(id qpid.ItemID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i, ok := c.ids[idOf(id)]; ok {
		c.drop(i)
	}
}

// isHeld reports whether a ticket is held back.
func (c *count) isHeld(id qpid.ItemID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tickets[c.ids[idOf(id)]].held
}

// mark notes whether a ticket is held back. One that is not counted here cannot
// be.
func (c *count) mark(id qpid.ItemID, held bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.ids[idOf(id)]
	if i == 0 {
		return false
	}
	c.setHeld(i, held)
	return true
}

// lives puts off when a ticket is taken to be gone. It may have become another,
// of a new id.
func (c *count) lives(id, now qpid.ItemID, until int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.ids[idOf(id)]
	if !ok {
		return
	}
	c.tickets[i].until = until
	if id != now {
		delete(c.ids, idOf(id))
		c.tickets[i].id = idOf(now)
		c.ids[idOf(now)] = i
	}
}

// becomes makes a visit of a ticket, or a place.
func (c *count) becomes(id qpid.ItemID, visit bool, until int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.ids[idOf(id)]
	if !ok {
		return
	}
	t := &c.tickets[i]
	c.add(t.from, t.of(-1))
	t.visit, t.until = visit, until
	c.add(t.from, t.of(+1))
}
