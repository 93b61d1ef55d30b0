package node

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// A place goes on to another browser by a link, which the home of the place makes
// and knows. The browser that opens it may ask any node: the first two bytes of the
// link say which home to ask. Whoever takes the place over gets a ticket with a hand
// more, and those of fewer hands are refused from then on: so is a link made for
// them. Other nodes hear of the hand with the place, or from the ticket that has it.
//
// A link is good for linkLife and for the home that made it: when that has gone, the
// place is elsewhere and whoever has it may have another link made.
//
// Invariant: of is the links of order that are good, by id; a place has one at most.
type links struct {
	of    map[qpid.ItemID]offered
	order []qpid.ItemID // the oldest first; some were used or replaced since
}

// offered is a place that may go on.
type offered struct {
	visitor qpid.ItemID
	hand    uint8
	until   int64 // pass time
}

const (
	linkLife = int64(5 * time.Minute / time.Microsecond)
	linksMax = 1 << 16 // per room; past it the oldest are no good any more
)

// Offer makes a link by which another browser takes the place of t over, and checks
// t in. While there is a link that is good for half its time yet, it is that one.
func (n *Node) Offer(now eviction.Time, t Ticket, id qpid.ItemID) (a Answer, err error) {
	defer n.guard(t.Room, now, &err)
	a, err = n.CheckIn(now, t)
	if err != nil || a.Forward != (eviction.Member{}) {
		return a, err
	}
	if a.State == Admitted {
		return Answer{}, ticket.ErrUsed // there is no place any more
	}
	r, err := n.room(t.Room)
	if err != nil {
		return Answer{}, err
	}
	v := r.visitors.get(a.Ticket.ID)
	if v == nil || r.broken != nil {
		return Answer{}, ticket.ErrUnavailable // it is a lost node's, and not taken over yet
	}
	clock := n.ev.Now(now)
	p := r.pasts[v.id]
	if old, ok := r.links.of[p.link]; ok && old.hand == p.hand && old.until-clock > linkLife/2 {
		a.Link = ticket.Link{ID: p.link, Until: old.until}
		return a, nil
	}
	if p.hand == math.MaxUint8 {
		return Answer{}, ticket.ErrBusy
	}
	delete(r.links.of, p.link)
	p.link = linkOf(n.c.Self.Member, id)
	r.pasts[v.id] = p
	r.links.put(p.link, offered{v.id, p.hand, clock + linkLife}, clock)
	a.Link = ticket.Link{ID: p.link, Until: clock + linkLife}
	return a, nil
}

// Take has another browser take over the place that a link was made for.
func (n *Node) Take(now eviction.Time, name string, link qpid.ItemID) (a Answer, err error) {
	defer n.guard(name, now, &err)
	r, err := n.offered(name)
	if err != nil {
		return Answer{}, err
	}
	n.clock(now)
	if !n.ev.Clear() || r.broken != nil || n.leaveBy != 0 { // its places are on their way to others
		return Answer{}, ticket.ErrUnavailable
	}
	o, known := r.links.of[link]
	if !known {
		return n.elsewhere(link)
	}
	v := r.visitors.get(o.visitor)
	p := r.pasts[o.visitor]
	if v == nil || v.stage > parked || p.hand != o.hand || n.ev.Now(now) >= o.until {
		return Answer{}, ticket.ErrLinkOver
	}
	t := Ticket{Room: r.name, ID: v.id, Stamp: v.stamp, Home: n.c.Self.Member, Gen: v.gen, Hand: p.hand + 1}
	if a, err = n.CheckIn(now, t); err != nil || a.Forward != (eviction.Member{}) {
		return a, err
	}
	delete(r.links.of, link)
	n.use(successor(o.visitor, uint64(o.hand)))
	r.record(HandedOn, qpid.Weight{Stamp: t.Stamp, ID: t.ID}, 0, qpid.Weight{})
	return a, nil
}

// elsewhere has the home answer that made a link.
func (n *Node) elsewhere(link qpid.ItemID) (Answer, error) {
	all := n.ev.Members()
	for _, m := range all[slices.Index(all, n.c.Self.Member)+1:] {
		if linkOf(m, link) == link {
			return Answer{Forward: m}, nil
		}
	}
	if linkOf(n.c.Self.Member, link) == link {
		return Answer{}, ticket.ErrLinkOver
	}
	for _, m := range all {
		if linkOf(m, link) == link {
			return Answer{Forward: m}, nil
		}
	}
	return Answer{}, ticket.ErrLinkOver
}

// linkOf is the link of home with the random part of id: short enough to be typed.
func linkOf(home eviction.Member, id qpid.ItemID) (link qpid.ItemID) {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(home.Name), home.Boot))
	copy(link[:2], sum[:])
	copy(link[2:ticket.LinkLen], id[2:])
	return link
}

func (l *links) put(id qpid.ItemID, o offered, clock int64) {
	if l.of == nil {
		l.of = make(map[qpid.ItemID]offered)
	}
	l.of[id] = o
	l.order = append(l.order, id)
	for len(l.order) > linksMax || l.of[l.order[0]].until <= clock {
		delete(l.of, l.order[0])
		l.order = l.order[1:]
	}
}

// handedOn reports whether another browser has the place of t by now. One that
// comes with a hand more has taken it over at a home that is lost.
func (r *room) handedOn(v *visitor, t Ticket) bool {
	if t.Hand == 0 && !v.has(handed) {
		return false
	}
	p := r.pasts[v.id]
	if t.Hand > p.hand {
		r.passOn(v, t.Hand)
	}
	return t.Hand < p.hand
}

// passOn notes that the ticket with that hand has the place of v.
func (r *room) passOn(v *visitor, hand uint8) {
	if hand == 0 {
		return
	}
	p := r.pasts[v.id]
	p.hand = hand
	r.pasts[v.id] = p
	v.marks |= handed
	r.copy(v)
}
