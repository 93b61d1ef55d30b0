package eviction

import (
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// reply is the node's own part of a wave's reply about the room.
func (g *Gate) reply(w *wave, rg RoomGather, now Time) RoomReply {
	g.purse.asks(w, now.Boot)
	n := RoomNode{
		Index: w.index, Born: g.ledger.account.Born, Line: g.line, Lapsed: -1, OldAge: -1, Shut: g.shutBorn, Holds: g.supply.holds(), Goes: g.goes, Minted: g.ledger.minted,
		Free: g.ledger.Free(), Used: g.ledger.used, Called: g.Called, Due: g.Due, Wanted: g.Wanted, Version: g.cfg.Version, Sum: g.sum, Keying: g.keying, TTL: micros(max(g.ttl, g.cfg.longest())),
		Arrivals: float32(g.arrivals.rate(now.Boot)), Lightest: qpid.Empty(w.index),
		Spent: g.spent, Tokens: max(0, g.Tokens(now.Boot)), Dealt: g.dealtBy(), DealtAge: g.dealtAge(now.Boot), Left: g.left(w, now.Boot), Held: g.held(now.Boot), Sides: g.sides,
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
	if g.cut.newer(rg.Cut) {
		n.Cut = g.cut
	}
	kept := &Keeping{}
	if g.Copies != nil {
		kept = g.Copies(w.list)
	}
	n.Bare, n.Keeps, n.Says, n.Heeds = kept.Bare, kept.Keeps, g.coverNow(kept.Covered), true
	n.Resuming = g.resuming(w)
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
	r := RoomReply{Room: rg.Room, Supply: []Supply{g.supply}, Newest: g.newest(rg.Version), Calls: g.calls.rate(now.Boot), Shared: g.Shares()}
	r.Supply[0].Census = g.aged(now.Boot)
	if rg.Digest {
		r.Digest = g.sampled
	}
	r.Covers = g.coversBut(w.list)
	r.Visits = kept.Visits
	for _, v := range g.giving() { // what is on its way to an account may count as that one's
		if !slices.Contains(w.list, v.Member) {
			r.Visits = addVisits(r.Visits, v)
		}
	}
	r.Front = g.front(w, rg, n.Queued)
	for _, p := range g.ledger.peers {
		r.Net = append(r.Net, Net{p.Account, p.Received - p.Sent})
	}
	for _, v := range g.voids {
		r.Voids = append(r.Voids, g.knows(w, v))
	}
	r.Nodes = []RoomNode{n}
	g.busy = false
	g.spentThen = g.spent
	return r
}

// drawing is what this node has replied to the open wave, if that draws.
type drawing struct {
	drawn   []drawnTicket // by place
	drawKey qpid.Epoch    // the wave; zero: it does not draw
}

type drawnTicket struct{ place, queued qpid.Weight }

func (g *Gate) front(w *wave, rg RoomGather, queued int) Front {
	g.drawn, g.drawKey = g.drawn[:0], qpid.Epoch{}
	if rg.Want == 0 {
		return Front{Complete: queued == 0}
	}
	if rg.Key == (qpid.Epoch{}) {
		return front(g.c.Config, w.index, rg.Want, queued, g.within(rg, queued), func(i int) qpid.Weight { w, _ := g.Queue.Select(i); return w })
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
	return front(g.c.Config, w.index, rg.Want, queued, queued, func(i int) qpid.Weight { return g.drawn[i].place })
}

// drawnTo returns those of this node's whose places are up to last, in order.
func (d *drawing) drawnTo(last qpid.Weight) (entitled []qpid.Weight) {
	for _, t := range d.drawn {
		if last.Less(t.place) {
			break
		}
		entitled = append(entitled, t.queued)
	}
	return entitled
}

// within returns how many of the queued tickets a gather asks for by their stamp.
func (g *Gate) within(rg RoomGather, queued int) int {
	if rg.UpTo == 0 {
		return queued
	}
	return min(queued, g.Queue.CountLE(qpid.UpTo(rg.UpTo)))
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
		i, ok := slices.BinarySearchFunc(r.Voids, v.Member, func(v VoidCount, m Member) int { return v.Member.Compare(m) })
		if !ok {
			r.Voids = slices.Insert(r.Voids, i, v)
			continue
		}
		p := &r.Voids[i]
		p.Min, p.Max, p.Nodes = min(p.Min, v.Min), max(p.Max, v.Max), p.Nodes+v.Nodes
	}
	for _, c := range o.Covers {
		r.Covers = addCover(r.Covers, c)
	}
	for _, v := range o.Visits {
		r.Visits = addVisits(r.Visits, v)
	}
	if o.Newest != nil && (r.Newest == nil || o.Newest.Version.Compare(r.Newest.Version) > 0) {
		r.Newest = o.Newest
	}
	for _, s := range o.Supply {
		if i := slices.IndexFunc(r.Supply, func(o Supply) bool { return o.Line == s.Line }); i >= 0 {
			r.Supply[i] = r.Supply[i].merge(s)
		} else {
			r.Supply = append(r.Supply, s)
		}
	}
	r.Calls += o.Calls
	r.Shared = r.Shared || o.Shared
}

// lightest returns the subtree's lightest weight.
func (r *RoomReply) lightest() qpid.Weight {
	least := qpid.Empty(1 << 30)
	for _, n := range r.Nodes {
		if n.Lightest.Less(least) {
			least = n.Lightest
		}
	}
	return least
}

// cloneRoomReply copies what merge writes to: a sent reply is immutable.
func cloneRoomReply(r RoomReply) RoomReply {
	r.Nodes, r.Net, r.Voids, r.Supply = slices.Clone(r.Nodes), slices.Clone(r.Net), slices.Clone(r.Voids), slices.Clone(r.Supply)
	r.Covers, r.Visits = slices.Clone(r.Covers), slices.Clone(r.Visits)
	r.Front.Items, r.Front.Samples = slices.Clone(r.Front.Items), slices.Clone(r.Front.Samples)
	return r
}

func mergeSightings(a, b []Sighting) []Sighting {
	for _, s := range b {
		i, ok := slices.BinarySearchFunc(a, s.Member, func(s Sighting, m Member) int { return s.Member.Compare(m) })
		if !ok {
			a = slices.Insert(a, i, s)
			continue
		}
		a[i].Age, a[i].Epoch, a[i].Wave = min(a[i].Age, s.Age), max(a[i].Epoch, s.Epoch), max(a[i].Wave, s.Wave)
		a[i].Left = a[i].Left || s.Left
	}
	return a
}
