package node

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// A node that leaves gives away what it has, to those who would take it over once it
// is gone, and says goodbye when they have it, or after leaveWait.
//
// Everybody on the site goes along with the slot that they use. The slot moves as a
// free one does, by escrow: it is on the books of the leaver until the message goes
// out, under way, and from then on the receiver's. Whoever has it on its books is
// the only one to extend the pass, to end the visit and to free the slot. What is
// lost on the way is waited out, like everything else that the leaver had: a pass
// that nobody can extend ends within D.
//
// Calls are taken back, and everybody who waits goes on waiting at their own place
// elsewhere. Until the heir says that it has them, as it says of a ticket that it has
// taken over, they are counted here too: a wave may count somebody twice, and call one
// less, but never pass anybody over. Free slots go where a wave sends them.

// leaveWait is how long a node that leaves waits for others to take what it gives.
// It takes a tenth of that, but on a machine that is busy, or a slow network. What they
// have not taken by then is for their browsers to bring, and for D.
const leaveWait = 2 * time.Second

// offersMax bounds the places of a room that are on their way, not yet acknowledged.
const offersMax = 8 * eviction.PlacesMax

// giving is what a room of a node that leaves has given away so far.
type giving struct {
	rest   []qpid.ItemID // who waits here and was not offered yet, in order
	offers []offer       // not acknowledged
	at     int64         // boot time at which they were sent last
	wave   qpid.Epoch    // the last one when visits were given away
	vain   bool          // then nobody was there to be offered anything
}

type offer struct {
	id   qpid.ItemID
	heir eviction.Member
}

// Goodbye begins a graceful leave: calls are taken back, and visits, places and free
// slots go to the others, who are told when all is given, or after leaveWait. Stop half
// a second after its Status says that it has left: the transfers have been repeated then.
func (n *Node) Goodbye(now eviction.Time) {
	if n.leaveBy != 0 {
		return
	}
	n.clock(now) // an account that has lapsed has no calls to take back
	n.ev.Leave(now)
	n.leaveBy = now.Boot + leaveWait.Microseconds()
	for _, r := range n.rooms {
		if r.broken == nil {
			r.safely(now, r.giveUse)
		}
	}
	n.advance(now)
	n.handOverUsed(now)
	n.giveAway(now)
}

// giveAway goes on with it.
func (n *Node) giveAway(now eviction.Time) {
	if n.leaveBy == 0 {
		return
	}
	if n.ev.Left() { // what came after that, of others who leave and had not heard of it
		for _, r := range n.rooms {
			if r.broken == nil && r.onSite+len(r.held) > 0 && !r.gate.Promised() && r.mayGiveVisits() {
				r.safely(now, r.giveVisits)
			}
		}
		return
	}
	alone := len(n.ev.Members()) <= 1 // nobody is there to take anything
	all := n.ev.Released() && n.copiesSettled(now)
	for _, r := range n.rooms {
		if r.broken == nil && r.gate.Promised() {
			if r.gate.Retract() { // visits go when all may know that
				n.ev.Urge(r.gate)
			}
			all = all && r.onSite+len(r.held) == 0
		} else if in := n.ev.Installed(); r.broken == nil && r.onSite+len(r.held) > 0 && r.giving.wave != in && r.mayGiveVisits() {
			r.giving.wave = in // whoever had no account may have one by now
			r.giveVisits(now)
		}
		given := n.ev.Given(r.gate)
		if given {
			r.strikeGiven()
		}
		all = r.givePlaces(now) && given && len(r.changed) == 0 && all
	}
	all = all && (!n.visitLog.leaving || n.mayGive()) && n.visitLog.flight == nil
	if all || alone || now.Boot >= n.leaveBy {
		n.ev.Goodbye(now)
		n.advance(now)
	}
}

// hearOfLeave notes that m leaves: nobody else gives away places or visits, or says goodbye. Of two who
// leave at once each may be the other's heir, and what they give each other would go back and
// forth until one of them has gone with it.
func (n *Node) hearOfLeave(m eviction.Member) {
	if !n.ev.Listed(m) || slices.Contains(n.leavers, m) {
		return
	}
	n.leavers = slices.DeleteFunc(n.leavers, func(m eviction.Member) bool { return !n.ev.Listed(m) })
	n.leavers = append(n.leavers, m)
}

// heirWhoStays is who goes on with what this node, which leaves, has of a ticket: zero if
// all others leave as well.
func (n *Node) heirWhoStays(id qpid.ItemID, stamp uint64) eviction.Member {
	heirs := n.ev.Heirs()
	if len(n.leavers) > 0 {
		heirs = slices.DeleteFunc(slices.Clone(heirs), func(p eviction.Peer) bool { return slices.Contains(n.leavers, p.Member) })
	}
	return eviction.HeirAmong(heirs, id, stamp)
}

// giveUse gives up the use of all slots: calls are taken back, and visits given away.
func (r *room) giveUse(now eviction.Time) {
	r.takeBackCalls(now)
	r.wanting, r.gate.Wanted = nil, 0
	if !r.gate.Promised() && r.mayGiveVisits() {
		r.giveVisits(now)
	}
}

// mayGiveVisits reports whether visits may be given away. The disk has that first, if there are
// some, and somebody to give them to: without, a next life goes on with them.
func (r *room) mayGiveVisits() bool {
	n := r.node
	if r.onSite+len(r.held) > 0 && n.heirWhoStays(qpid.ItemID{}, 0) != (eviction.Member{}) {
		n.visitLog.leaving = true
	}
	return n.mayGive()
}

// giveVisits gives everybody on the site of a node that leaves to their heirs.
func (r *room) giveVisits(now eviction.Time) {
	self := r.node.c.Self.Member
	heirs := make(map[eviction.Member][]eviction.Visit)
	var order []eviction.Member
	give := func(visit eviction.Visit) {
		heir := r.node.heirWhoStays(visit.ID, visit.Stamp)
		if heirs[heir] == nil {
			order = append(order, heir)
		}
		heirs[heir] = append(heirs[heir], visit)
	}
	for _, v := range r.sortedVisitors() {
		if v.stage == onSite {
			give(r.visitOf(v))
		}
	}
	for _, until := range r.held {
		give(eviction.Visit{Expires: until - 2*r.skew()})
	}
	for _, heir := range order {
		messages, ok := r.gate.Give(self, heir, heirs[heir])
		if !ok {
			continue
		}
		r.node.out = append(r.node.out, messages...)
		for i := range heirs[heir] {
			r.visitGiven(now, heir, &heirs[heir][i])
		}
	}
}

func (r *room) visitOf(v *visitor) eviction.Visit {
	visit := eviction.Visit{ID: v.id, Stamp: v.stamp, Gen: v.gen + 1, Expires: v.expires, Started: v.seen, Hand: r.pasts[v.id].hand}
	if p := r.pasts[v.id]; p.adopted != (eviction.Account{}) {
		visit.Homes = append([]eviction.Account{p.adopted}, p.earlier...)
		visit.Homes = visit.Homes[:min(len(visit.Homes), eviction.HomesMax)]
	}
	return visit
}

// visitGiven lets go of a visit that an heir goes on with.
func (r *room) visitGiven(now eviction.Time, heir eviction.Member, visit *eviction.Visit) {
	v := r.visitors.get(visit.ID)
	if v == nil || v.stage != onSite { // a use of nobody that is known here
		i := slices.Index(r.held, visit.Expires+2*r.skew())
		r.held = slices.Delete(r.held, i, i+1)
		return
	}
	r.node.used.add(usedHash(v.id), r.node.ev.Now(now), r.node.c.UsedMax) // everybody is told
	r.onSite--
	r.waits.visits.Forget(v.seen, r.node.ev.LastNow())
	r.remove(v)
	if l := r.lines[visit.ID]; l != nil {
		l.state = lineGiven
	}
	r.moved.put(visit.ID, movedTo{heir, visit.Gen, r.ticketEnds(now)}, movedMax)
	r.plan()
}

// takeIn goes on with a visit that came with its slot. If there is something else
// under the same id, as of a ticket that was called at two nodes, the slot is used
// until the pass has run out.
func (r *room) takeIn(now eviction.Time, from eviction.Account, visit *eviction.Visit) {
	if visit.ID == (qpid.ItemID{}) || r.atHome(r.visitors.get(visit.ID), math.MaxUint32) != nil {
		r.held = append(r.held, visit.Expires+2*r.skew())
		r.writeNobodys(visit.Expires)
		return
	}
	r.makeWay(visit.ID)
	v := r.visitors.add(visitor{
		id: visit.ID, stamp: visit.Stamp, gen: visit.Gen, stage: onSite, seen: visit.Started, expires: visit.Expires, due: now.Boot,
	})
	v.marks |= entitled
	r.pasts[v.id] = past{adopted: from, earlier: visit.Homes}
	r.passOn(v, visit.Hand)
	r.moved.back(v.id)
	r.onSite++
	r.waits.visits.Begin(v.seen, r.node.ev.LastNow())
	r.guardOut(v, now)
	r.write(v, now)
	r.schedule(v)
	r.record(Given, v.weight(), 0, v.weight())
}

// releaseHeld frees the slots of passes that have run out.
func (r *room) releaseHeld(now eviction.Time) {
	if len(r.held) == 0 {
		return
	}
	clock := r.node.ev.Now(now)
	r.held = slices.DeleteFunc(r.held, func(until int64) bool {
		if clock < until {
			return false
		}
		r.release(nil, now)
		return true
	})
}

// givePlaces offers everybody who waits, and the parked, to their heirs, and reports
// whether nobody waits here any more. A room of QPID keeps its line: there a ticket is
// at one node only, whatever happens on the way. So does a node that does not know
// whether its places have gone elsewhere already.
func (r *room) givePlaces(now eviction.Time) bool {
	if r.gate.InForce().Algorithm == eviction.ByQPID || !r.node.ev.InTouch(r.gate, now) {
		return true
	}
	g := &r.giving
	g.offers = slices.DeleteFunc(g.offers, func(o offer) bool {
		return !r.visitors.get(o.id).hasPlace() || slices.Contains(r.node.leavers, o.heir) // who takes in nothing
	})
	again := now.Boot-g.at >= r.node.c.Cluster.WithDefaults().Period.Microseconds()
	if len(g.rest)+len(g.offers) == 0 && (again || r.gate.Queue.Len()+r.gate.Due > 0) && !(g.vain && !again) {
		g.rest = r.lineHere()
	}
	var send []offer
	if again {
		send = slices.Clone(g.offers)
	}
	for len(g.rest) > 0 && len(g.offers) < offersMax {
		v := r.visitors.get(g.rest[0])
		g.rest = g.rest[1:]
		if !v.hasPlace() {
			continue
		}
		if heir := r.node.heirWhoStays(v.id, v.stamp); heir != (eviction.Member{}) {
			g.offers = append(g.offers, offer{v.id, heir})
			send = append(send, offer{v.id, heir})
		}
	}
	g.vain = len(g.offers) == 0
	if again || len(send) > 0 {
		g.at = now.Boot
		r.offer(send, now)
	}
	return r.gate.Queue.Len()+r.gate.Due == 0
}

// hasPlace reports whether v waits, or is parked. v may be nil.
func (v *visitor) hasPlace() bool { return v != nil && v.stage <= parked && v.stage != called }

// lineHere is everybody who has a place here: in the order of their turn, the parked last.
func (r *room) lineHere() (ids []qpid.ItemID) {
	for _, id := range r.due.ids {
		if v := r.visitors.get(id); v != nil && v.stage == drawn {
			ids = append(ids, id)
		}
	}
	all := r.sortedVisitors()
	for _, s := range []stage{queued, parked} {
		for _, v := range all {
			if v.stage == s {
				ids = append(ids, v.id)
			}
		}
	}
	return ids
}

// offer sends places to their heirs.
func (r *room) offer(offers []offer, now eviction.Time) {
	slices.SortStableFunc(offers, func(a, b offer) int {
		return cmp.Or(cmp.Compare(a.heir.Name, b.heir.Name), cmp.Compare(a.heir.Boot, b.heir.Boot))
	})
	for len(offers) > 0 {
		heir := offers[0].heir
		m := &eviction.Places{Room: r.name}
		for len(offers) > 0 && offers[0].heir == heir && len(m.Places) < eviction.PlacesMax {
			m.Places = append(m.Places, r.placeOf(r.visitors.get(offers[0].id), now))
			offers = offers[1:]
		}
		r.node.out = append(r.node.out, eviction.Message{From: r.node.c.Self.Member, To: heir, Body: m})
	}
}

func (r *room) placeOf(v *visitor, now eviction.Time) eviction.Place {
	return eviction.Place{
		ID: v.id, Stamp: v.stamp, Gen: v.gen + 1, Past: r.pasts[v.id].homes[0], Silent: now.Boot - v.seen, Refresh: v.refresh,
		Missed: v.missed, Slept: v.slept, Anew: v.has(anew), Entitled: v.has(entitled), Wave: v.wave, Parked: v.stage == parked, Hand: r.pasts[v.id].hand,
	}
}

// onPlaces goes on with places of a node that leaves. One that leaves itself does
// not, nor one that does not know what became of its own: the browsers bring them to
// the next heir.
func (n *Node) onPlaces(now eviction.Time, from eviction.Member, b *eviction.Places) {
	r, err := n.room(b.Room)
	if err != nil || n.leaveBy != 0 || !n.ev.Listed(from) || !n.ev.InTouch(r.gate, now) || r.gate.InForce().Algorithm == eviction.ByQPID {
		return
	}
	taken := &eviction.SyncReply{More: true} // this is not all that was taken over from it
	for i := range b.Places {
		if gen := r.takePlace(now, from, &b.Places[i]); gen > 0 {
			taken.Taken = append(taken.Taken, eviction.TakenTicket{Room: r.name, ID: b.Places[i].ID, Gen: gen})
		}
	}
	n.ev.Urge(r.gate)
	n.out = append(n.out, eviction.Message{From: n.c.Self.Member, To: from, Body: taken})
}

// takePlace goes on with one place, and returns the generation of its ticket here, 0
// if there is no room for it.
func (r *room) takePlace(now eviction.Time, from eviction.Member, p *eviction.Place) uint32 {
	v := r.atHome(r.visitors.get(p.ID), p.Gen)
	switch {
	case r.node.used.has(usedHash(p.ID)):
		return p.Gen
	case v != nil && v.stage == onSite: // as by a pass that nobody may have seen, of an earlier life: whoever waits is let in by it
		v.gen = max(v.gen, p.Gen)
		return v.gen
	case v != nil && (v.gen >= p.Gen || v.stage > parked):
		return max(v.gen, p.Gen) // it came already, or is no place any more
	case v == nil && r.full():
		return 0
	case v == nil:
		v = r.addPlace(now, p)
		r.record(Given, v.weight(), 0, qpid.Weight{})
		r.markLate(v)
	}
	r.keptHere(p.ID, from)
	r.follow(v, from, p, now)
	return v.gen
}

// follow has v go on with the place that was from's.
func (r *room) follow(v *visitor, from eviction.Member, p *eviction.Place, now eviction.Time) {
	v.gen = p.Gen
	r.moved.back(v.id)
	r.pasts[v.id] = past{homes: Homes{from, p.Past}, hand: r.pasts[v.id].hand}
	r.passOn(v, max(p.Hand, r.pasts[v.id].hand))
	r.copy(v)
	r.tookOver(v, Ticket{Home: from, Past: Homes{p.Past}}, now)
	r.heardElsewhere(v, now)
	r.gate.Touch()
}

// heardElsewhere has patience with somebody who may have asked at another node until now,
// and been told there to wait for as long as anybody is.
func (r *room) heardElsewhere(v *visitor, now eviction.Time) {
	v.seen = now.Boot
	if longest := uint32(r.longestRefresh().Milliseconds()); v.refresh < longest {
		v.refresh = longest
	}
	if v.stage <= drawn {
		r.watch(v, now)
	}
}

// addPlace puts somebody in line who waited elsewhere, at the same place. Who was
// parked stays so, and has to listen anew.
func (r *room) addPlace(now eviction.Time, p *eviction.Place) *visitor {
	r.makeWay(p.ID)
	v := r.visitors.add(visitor{
		id: p.ID, stamp: p.Stamp, seen: now.Boot, refresh: p.Refresh, missed: p.Missed, slept: min(p.Slept, sleptMost), wave: p.Wave,
	})
	if p.Anew {
		v.marks |= anew
	}
	if p.Entitled {
		v.marks |= entitled
	}
	if p.Parked {
		v.stage, v.expires = parked, math.MaxInt64
		r.parked++
	} else {
		r.enqueue(v)
	}
	r.watch(v, now)
	return v
}

// leaveDue is the boot time at which to look again at what a leaving node gives away.
func (n *Node) leaveDue() int64 {
	if n.leaveBy == 0 || n.ev.Left() {
		return math.MaxInt64
	}
	return n.leaveBy
}
