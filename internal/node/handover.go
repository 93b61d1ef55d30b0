package node

import (
	"math"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// takenTicket is a ticket that this node took over. Its former home is told
// when it turns out to be alive, until it has let go of its copy.
type takenTicket struct {
	id    qpid.ItemID
	gen   uint32
	home  eviction.Member // the former one
	until int64           // boot time: after it, remembered only as long as the visitor is
	at    eviction.Member // another node has it, of which home is to find out; zero: this one has
}

// Bounds of what is remembered and said of tickets taken over. Past takenMax
// the oldest are forgotten: should their first home come back, it may call
// them once more.
const (
	takenMax  = 1 << 20 // per room
	noticeMax = 4096    // per message
)

// tookOver notes whom to tell that v's place is here now. Any home may have
// gone before it could tell the one before, so all that the ticket names are
// told.
func (r *room) tookOver(v *visitor, t Ticket, now eviction.Time) {
	for _, home := range []eviction.Member{t.Home, t.Past[0], t.Past[1]} {
		if home != (eviction.Member{}) && home != r.node.c.Self.Member {
			r.toTell(v, home, now)
		}
	}
}

func (r *room) toTell(v *visitor, home eviction.Member, now eviction.Time) {
	r.note(takenTicket{id: v.id, gen: v.gen, home: home, until: r.toldUntil(now)})
}

func (r *room) note(t takenTicket) {
	if len(r.taken) >= takenMax {
		if t.at != (eviction.Member{}) {
			return // what others have to find out is told after what this node has to say
		}
		r.taken = r.taken[1:]
	}
	r.taken = append(r.taken, t)
}

// introduce has a node to which a place of this one went hear of another that says so too.
// Each has told this node, which has nothing to say to them, and either might never hear of
// the other one: two had copies of a lost home's place, or took it over on two sides of a
// split. They find out among themselves who goes on with it, by what they have by then.
func (r *room) introduce(id qpid.ItemID, gen uint32, other eviction.Member, now eviction.Time) {
	to, known := r.moved.to[id]
	if known && to.until > now.Boot && to.home != other && to.home != r.node.c.Self.Member {
		r.note(takenTicket{id: id, gen: max(gen, to.gen), home: to.home, until: r.toldUntil(now), at: other})
	}
}

// meet tells another node, which has taken over a place that is here, of this one's: or
// everybody, if whoever has it is on the site by now, or was.
func (r *room) meet(id qpid.ItemID, other eviction.Member, now eviction.Time) {
	v := r.visitors.get(id)
	switch {
	case v == nil || v.has(unheard) || other == r.node.c.Self.Member:
	case v.stage == onSite || v.stage == spent:
		r.node.isUsed(v.id, now)
	case v.stage <= parked && v.gen > 0:
		r.toTell(v, other, now)
	}
}

// toldUntil is the boot time up to which a former home is told of a place that was taken
// over now, whoever has it by then.
func (r *room) toldUntil(now eviction.Time) int64 {
	c := r.gate.Room()
	return now.Boot + max(c.TicketTTL, 3*c.Refresh).Microseconds() + c.ClaimWindow.Microseconds()
}

// contest decides between two nodes that took v's place over from the same home, on
// two sides of a split: the one whose name comes first goes on with a later generation,
// of which the other hears. Else each would keep it, and one that gave it up would say so.
func (r *room) contest(v *visitor, other eviction.Member, now eviction.Time) {
	if v.stage > parked {
		r.meet(v.id, other, now)
		return
	}
	if r.node.c.Self.Name < other.Name {
		v.gen++
		r.copy(v)
	}
	r.toTell(v, other, now)
}

// tell repeats to former homes that are back what was taken over from them.
func (n *Node) tell(now eviction.Time) {
	if now.Boot < n.tellAt {
		return
	}
	n.tellAt = now.Boot + n.c.Cluster.WithDefaults().Period.Microseconds()
	var homes []eviction.Member
	for _, r := range n.rooms {
		r.taken = slices.DeleteFunc(r.taken, func(t takenTicket) bool {
			v := r.visitors.get(t.id)
			return now.Boot >= t.until && v == nil && !n.ev.Listed(t.home) || r.moved.on(t.id, t.gen) || v != nil && v.has(unheard)
		})
		for _, t := range r.taken {
			if n.ev.Listed(t.home) && !slices.Contains(homes, t.home) {
				homes = append(homes, t.home)
			}
		}
	}
	for _, home := range homes {
		n.out = append(n.out, eviction.Message{From: n.c.Self.Member, To: home, Body: n.takenFrom(home)})
	}
}

// takenFrom lists what was taken over from home and not yet acknowledged.
func (n *Node) takenFrom(home eviction.Member) *eviction.SyncReply {
	notice := &eviction.SyncReply{}
	for _, r := range n.rooms {
		for i := range r.taken {
			t := &r.taken[i]
			if t.home != home {
				continue
			}
			if v := r.visitors.get(t.id); v != nil && t.at == (eviction.Member{}) {
				if v.has(unheard) {
					continue // they may be asking there all the while
				}
				t.gen = max(t.gen, v.gen) // of two that took it over this is the one that goes on
			}
			if len(notice.Taken) == noticeMax {
				notice.More = true
				return notice
			}
			notice.Taken = append(notice.Taken, eviction.TakenTicket{Room: r.name, ID: t.id, Gen: t.gen, At: t.at})
		}
	}
	return notice
}

// onSyncRequest tells a node that was cut off which of its tickets went on
// without it, and what else was taken over meanwhile: it may have taken the same over
// before that, from the same lost home.
func (n *Node) onSyncRequest(now eviction.Time, from eviction.Member) {
	i := slices.IndexFunc(n.asked, func(a askedBy) bool { return a.member == from })
	if i < 0 {
		n.asked = slices.DeleteFunc(n.asked, func(a askedBy) bool { return !n.ev.Listed(a.member) })
		i, n.asked = len(n.asked), append(n.asked, askedBy{from, math.MinInt64 / 2})
	}
	if now.Boot-n.asked[i].at > n.c.Cluster.WithDefaults().ExcludeAfter.Microseconds() { // else it goes on asking
		for _, r := range n.rooms {
			r.tellAll(from, now)
		}
	}
	n.asked[i].at = now.Boot
	n.out = append(n.out, eviction.Message{From: n.c.Self.Member, To: from, Body: n.takenFrom(from)})
}

// askedBy is when a member asked last what was taken over.
type askedBy struct {
	member eviction.Member
	at     int64 // boot time
}

// tellAll has m hear of all that this node has taken over from anybody, and still has: also
// where the home before has acknowledged it, which may be lost by now.
func (r *room) tellAll(m eviction.Member, now eviction.Time) {
	if len(r.pasts) == 0 {
		return // whoever is taken over has one
	}
	told := make(map[qpid.ItemID]bool)
	for _, t := range r.taken {
		if t.home == m && t.at == (eviction.Member{}) {
			told[t.id] = true
		}
	}
	r.visitors.all(func(v *visitor) {
		if v.gen > 0 && v.stage <= parked && !told[v.id] {
			r.toTell(v, m, now)
		}
	})
}

// onSyncReply lets go of tickets that the sender has taken over.
func (n *Node) onSyncReply(now eviction.Time, from eviction.Member, b *eviction.SyncReply) {
	for _, t := range b.Taken {
		if r, err := n.room(t.Room); err == nil {
			r.safely(now, func(now eviction.Time) {
				if t.At != (eviction.Member{}) {
					r.meet(t.ID, t.At, now)
				} else {
					r.letGo(now, from, t)
				}
			})
		}
	}
	if len(b.Taken) > 0 {
		n.out = append(n.out, eviction.Message{From: n.c.Self.Member, To: from, Body: &eviction.SyncAck{Taken: b.Taken}})
	}
	if !b.More {
		n.ev.Synced(from)
	}
}

// letGo gives up this node's copy of a ticket, unless it is the newer one or
// already on the site, and notes who has the place. A copy that was given up here
// meanwhile, for too long a silence, was not asked for where the place is.
func (r *room) letGo(now eviction.Time, home eviction.Member, t eviction.TakenTicket) {
	v := r.visitors.get(t.ID)
	switch {
	case v == nil, r.broken != nil:
		r.introduce(t.ID, t.Gen, home, now)
	case v.gen > t.Gen:
		r.meet(t.ID, home, now)
		return
	case v.stage == dropped:
		r.forget(v)
	case v.gen == t.Gen:
		r.contest(v, home, now)
		return
	case r.withdraw(v, now):
		r.remove(v)
	default:
		r.node.isUsed(v.id, now)
		return
	}
	r.moved.put(t.ID, movedTo{home, t.Gen, max(r.ticketEnds(now), r.toldUntil(now))}, movedMax)
	r.node.letGo = append(r.node.letGo, Place{r.name, t.ID})
	r.plan()
}

// ticketEnds is the boot time at which a ticket of now has expired, if nobody asks
// with it here.
func (r *room) ticketEnds(now eviction.Time) int64 {
	return now.Boot + max(r.gate.TicketLife(now.Boot), unreachedFor) + 2*r.skew()
}

// onSyncAck forgets what its former home has let go of.
func (n *Node) onSyncAck(from eviction.Member, b *eviction.SyncAck) {
	done := make(map[eviction.TakenTicket]bool, len(b.Taken))
	for _, t := range b.Taken {
		t.At = eviction.Member{} // an older version does not know of it
		done[t] = true
	}
	for _, r := range n.rooms {
		r.taken = slices.DeleteFunc(r.taken, func(t takenTicket) bool {
			return t.home == from && done[eviction.TakenTicket{Room: r.name, ID: t.id, Gen: t.gen}]
		})
	}
}
