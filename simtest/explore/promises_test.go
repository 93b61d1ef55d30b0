package explore

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// check holds the whole world to the promises.
func (w *world) check() {
	w.checkRoots()
	w.checkSlots()
	w.checkLimit()
}

// S4: in one epoch at most one node that is not frozen takes itself for the
// root. While the view is stable that goes for all epochs together.
func (w *world) checkRoots() {
	if w.m.room.Algorithm != eviction.ByQPID {
		return
	}
	for h := range w.m.nodes {
		for o := range h {
			x, y := w.life(h), w.life(o)
			if w.hosts[h].up && w.hosts[o].up && x.room.QPIDRoot && y.room.QPIDRoot && (w.m.demand.stable || x.room.QPIDEpoch == y.room.QPIDEpoch) {
				w.fail(broken("S4", "%v and %v are both root, of %v and %v", x.self, y.self, x.room.QPIDEpoch, y.room.QPIDEpoch))
			}
		}
	}
}

// ledgers calls fn with every account that may count: those of running nodes
// and those of the dead.
func (w *world) ledgers(fn func(l *life, dead bool)) {
	for h := range w.m.nodes {
		if w.hosts[h].life > 0 {
			fn(w.life(h), !w.hosts[h].up)
		}
	}
	for _, s := range w.corpses.all() {
		fn(w.cast.lives[s], true)
	}
}

// voided reports whether any running node holds a for void, or a is settled.
func (w *world) voided(a eviction.Account) bool {
	if w.isBuried(a) {
		return true
	}
	for h := range w.m.nodes {
		if w.hosts[h].up && covers(w.life(h).room.Voided, a) {
			return true
		}
	}
	return false
}

// S3: the slots of accounts that nobody holds for void, the dead included, and
// the slots between them, are within the limit.
func (w *world) checkSlots() {
	slots := 0
	w.ledgers(func(x *life, _ bool) {
		if x.room.Account.Born == 0 || w.voided(x.room.Account) {
			return
		}
		slots += x.room.Owned
		for _, p := range x.room.Peers {
			if p.Sent == 0 || w.voided(p.Account) {
				continue
			}
			got, gone := 0, true
			w.ledgers(func(y *life, _ bool) {
				if y.room.Account == p.Account {
					got, gone = received(y.room.Peers, x.room.Account), false
				}
			})
			if !gone {
				slots += max(0, p.Sent-got)
			}
		}
	})
	if slots > w.m.room.Target {
		w.fail(broken("S3", "%d slots exist, the limit is %d", slots, w.m.room.Target))
	}
}

// S1: the slots that nodes could use right now, and the people on the site
// whose slot is not among them, are within the limit. So are the people called
// and on the site, whatever visitors do next.
func (w *world) checkLimit() {
	usable, called := 0, 0
	for h := range w.m.nodes {
		if l := w.life(h); w.hosts[h].up && l.leased(w.m, w.now) {
			usable += l.room.Owned
			called += l.room.Called
		}
	}
	guests, others := 0, 0
	for v := range w.m.visitors {
		p := w.pass(v)
		if p == nil {
			continue
		}
		guests++
		if h := hostOf(p.Home.Name); !w.hosts[h].up || w.life(h).room.Account != p.Home || !w.life(h).leased(w.m, w.now) {
			others++
		}
	}
	limit := w.m.room.Target
	switch {
	case called+guests > limit:
		w.fail(broken("S1", "%d called and %d on the site, the limit is %d", called, guests, limit))
	case usable+others > limit:
		w.fail(broken("S1", "%d slots can be used and %d more people are on the site, the limit is %d", usable, others, limit))
	}
	for h := range w.m.nodes {
		if l := w.life(h); w.hosts[h].up && l.leased(w.m, w.now) && w.isBuried(l.room.Account) {
			w.fail(broken("S12", "%v acts for %v, which was settled", l.self, l.room.Account))
		}
	}
}

// checkGrant is S12: a wave leases nothing to an account that one of those in
// it held for void.
func (w *world) checkGrant(l, before *life) {
	if l.room.LeaseUntil <= before.room.LeaseUntil {
		return
	}
	for _, m := range l.status.List {
		y := w.life(hostOf(m.Name))
		for _, v := range y.room.Voided {
			if y.self == m && v.Member == l.self && l.room.Account.Born <= v.Epoch && v.Epoch < l.status.Installed.Num {
				w.fail(broken("S12", "%v gets a lease of %v for %v, which %v held for void since wave %d",
					l.self, l.status.Installed, l.room.Account, m, v.Epoch))
			}
		}
	}
}

// checkMint is S9: slots are made again only when no account outside the
// minter's list can act, and nobody can be on the site by it; and every listed
// node knows that those accounts are void, or has known it for so long that it
// forgot. They are settled then.
func (w *world) checkMint(l *life, o *outcome) {
	if o.minted <= 0 {
		return
	}
	w.note("mint")
	w.ledgers(func(x *life, _ bool) {
		a := x.room.Account
		if x.self == l.self || a.Born == 0 || slices.Contains(l.status.List, x.self) && !covers(l.room.Voided, a) {
			return // counted
		}
		until := x.record.actsUntil + w.m.room.Session.Microseconds()
		if w.now < until && x.room.Owned > 0 {
			w.fail(broken("S9", "%v mints %d at %s while %v, with %d slots, may have people on the site until %s",
				l.self, o.minted, clock(w.now), a, x.room.Owned, clock(until)))
		}
		for _, m := range l.status.List {
			y := w.life(hostOf(m.Name))
			if y.self == m && w.hosts[y.host].up && !covers(y.room.Voided, a) && !w.isBuried(a) {
				w.fail(broken("S9", "%v mints while %v does not hold %v for void", l.self, m, a))
			}
		}
		w.bury(eviction.Void{Member: a.Member, Epoch: a.Born})
	})
}

// checkDecisions is S6: an epoch has one commit; and of several foundings only
// one gets as far as a primary wave.
func (w *world) checkDecisions(a, b *eviction.Commit) {
	if a.Epoch == b.Epoch {
		w.fail(broken("S6", "two commits of %v: %+v and %+v", a.Epoch, a, b))
	}
	if a.Line != b.Line && a.Grade >= eviction.Primary && b.Grade >= eviction.Primary {
		w.fail(broken("S6", "two lines: %v of %v and %v of %v", a.Line, a.Epoch, b.Line, b.Epoch))
	}
}

// entitled is S7: of two tickets the lighter one is entitled no later. And no
// more people are certain of their turn than there are places, while no node
// loses touch: one that does is not counted at first, but the cut holds for its
// people too.
func (w *world) entitled(v int, epoch uint64) {
	w.visitors[v].entitled = epoch
	if !w.m.demand.stable {
		return
	}
	certain := 0
	for o := range w.m.visitors {
		u := &w.visitors[o]
		if u.entitled == 0 {
			continue
		}
		if u.answer != none && w.cast.answers.all[u.answer].State != node.Admitted {
			certain++
		}
		if u.entitled < epoch && w.weight(v).Less(w.weight(o)) {
			w.fail(broken("S7", "visitor %d, stamped %d, is entitled in epoch %d; visitor %d, stamped %d, was in %d",
				v, w.weight(v).Stamp, epoch, o, w.weight(o).Stamp, u.entitled))
		}
	}
	if w.m.lossless() && certain > w.m.room.Target {
		w.fail(broken("S7", "%d are certain of their turn, the limit is %d", certain, w.m.room.Target))
	}
}

// called is S10: a ticket is called once, and at most once more for each thing
// that happened to a node: its people may have gone on elsewhere.
func (w *world) called(v int) {
	u := &w.visitors[v]
	u.calls++
	if troubles := w.used.crashes + w.used.pauses + w.used.cuts + w.used.doubts; u.calls > 1+troubles {
		w.fail(broken("S10", "visitor %d is called for the %d. time after %d troubles", v, u.calls, troubles))
	}
}

// joined is S7 too: a cut is certified, so nobody comes to stand below one
// that is out already.
func (w *world) joined(v int) {
	if !w.m.demand.stable {
		return
	}
	for h := range w.m.nodes {
		if cut := w.life(h).room.Cut.Value; !cut.Less(w.weight(v)) {
			w.fail(broken("S7", "visitor %d is stamped %d, below the cut %v of %v", v, w.weight(v).Stamp, cut, w.life(h).self))
		}
	}
}

// weight is the place of a visitor in the order.
func (w *world) weight(v int) qpid.Weight {
	u := &w.visitors[v]
	if u.answer == none {
		return qpid.Weight{}
	}
	a := &w.cast.answers.all[u.answer]
	return qpid.Weight{Stamp: max(a.Ticket.Stamp, a.Pass.Stamp), ID: ticketID(v)}
}
