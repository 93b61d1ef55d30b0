package eviction

import (
	"fmt"

	"github.com/anteroom/anteroom/qpid"
)

// Broken says that something is not so that must be so of a room, whatever others
// do or fail to do: a fault of this program or of its machine. What a peer sends is
// checked before it is used (validate), and is no reason for it.
//
// The core panics with it where it cannot go on. The owner recovers, gives the room
// up (GiveUp), and has its node go on with the others: what is known of a room that
// is wrong in one place is not to be built on, and what others reckon with is no
// more than with a node that is lost.
type Broken struct {
	Room  string
	What  string // must be so and is not
	State string // that shows it
}

func (b *Broken) Error() string {
	return fmt.Sprintf("room %q: %s: %s", b.Room, b.What, b.State)
}

// asserted is what the books of a gate were when they were looked at last.
type asserted struct {
	epoch qpid.Epoch
	cut   Cut
}

// Wrong looks at what must be true of a room at any time, as each part of the gate says
// beside its fields, and says what is not; nil: all is well. It takes as long as the ledger
// has peers: once a wave is enough, and WrongUse is for every step. Epochs, and the cut
// within a keying, are compared with those of the last time.
func (g *Gate) Wrong(installed qpid.Epoch) *Broken {
	was := g.asserted
	g.asserted = asserted{installed, g.cut}
	if what := g.ledger.wrong(); what != "" {
		return g.wrong(what)
	}
	if what := g.inForce.wrong(); what != "" {
		return g.wrong(what)
	}
	if g.sides && g.cfg.OnPartition != Share {
		return g.wrong("an account acts on a side only where the room shares")
	}
	if installed.Compare(was.epoch) < 0 {
		return g.wrong(fmt.Sprintf("epochs never fall, and %v came before %v", was.epoch, installed))
	}
	if what := g.order.wrong(was.cut, installed, g.at); what != "" {
		g.cut = was.cut // the next gather would tell the others
		return g.wrong(what)
	}
	return g.WrongUse()
}

// WrongUse is what of Wrong can be told at a glance.
func (g *Gate) WrongUse() *Broken {
	for _, what := range [...]string{g.ledger.wrongUse(), g.escrow.wrong(), g.purse.wrong()} {
		if what != "" {
			return g.wrong(what)
		}
	}
	return nil
}

// wrong says what of the book is not so, "": all is.
func (l *Ledger) wrong() string {
	owned := l.minted
	for i := range l.peers {
		p := &l.peers[i]
		if p.Sent < 0 || p.Received < 0 || p.Acked < 0 || p.Acked > p.Sent {
			return "a ledger counts slots that were sent, acknowledged and received up from 0, and none is acknowledged before it is sent"
		}
		owned += p.Received - p.Sent
	}
	if owned != l.owned {
		return "a ledger owns what was minted and received less what was sent"
	}
	return l.wrongUse()
}

// wrongUse is what of wrong can be told at a glance.
func (l *Ledger) wrongUse() string {
	switch {
	case l.used < 0 || l.used > l.owned:
		return "a ledger uses no less than nothing and no more than it owns"
	case l.account.Born == 0 && l.owned != 0:
		return "a closed account owns nothing"
	}
	return ""
}

// wrong says what of the lease is not so, "": all is.
func (e *escrow) wrong() string {
	switch born := e.ledger.account.Born; {
	case born == 0 && e.heldAt != never:
		return "nothing is held by a closed account"
	case born > 0 && born <= e.shutBorn:
		return "an account is born after all that were closed here"
	case len(e.members) != len(e.born):
		return "every listed member has its account, if it has one, in its place"
	}
	return ""
}

// wrong says what is not so, "": all is.
func (f *inForce) wrong() string {
	if f.session > max(f.ttl, f.cfg.longest()) {
		return "no pass is good for longer than D reckons with"
	}
	return ""
}

// wrong says what of the cut is not so, which was another one and was last set by wave
// installed, of which T is at; "": all is.
func (o *order) wrong(was Cut, installed qpid.Epoch, at uint64) string {
	switch {
	case o.cut.Keying < was.Keying, o.cut.Keying == was.Keying && o.cut.Value.Less(was.Value):
		return "the cut never falls within a keying"
	case o.cut.Keying != o.keying:
		return "the cut speaks of the weights that the queue holds"
	case o.cut.Epoch == installed.Num && o.cut != o.before && qpid.UpTo(at).Less(o.cut.Value):
		return "the cut reaches nobody who may have joined since the gather"
	}
	return ""
}

// wrong says what is not so, "": all is.
func (p *purse) wrong() string {
	if p.tokens < 0 || p.spentThen > p.spent {
		return "no token is spent twice"
	}
	return ""
}

// WrongPass says what is wrong with a call, an admission or an extension of a pass of g
// here and now: it takes a lease of the account, which is not known to be void. That is
// what Admits asks, told in another way.
func (n *Node) WrongPass(g *Gate, now Time) *Broken {
	switch {
	case now.Boot >= n.leaseUntil, now.Boot >= g.heldAt+micros(n.c.Lease), g.heldAt < n.clock.stoodTo, g.ledger.account.Born == 0:
		return g.wrong(fmt.Sprintf("nobody is let in without a lease, and that of the node ends at %d, of the room at %d", n.leaseUntil, g.heldAt+micros(n.c.Lease)))
	case g.voided(g.ledger.account):
		return g.wrong("nobody is let in by an account that is void")
	}
	return nil
}

// wrong names the state.
func (g *Gate) wrong(what string) *Broken { return &Broken{g.cfg.Name, what, g.State()} }

// State is what the assertions go by, for the log.
func (g *Gate) State() string {
	l := &g.ledger
	return fmt.Sprintf("account %v, line %v, minted %d, owned %d, used %d, peers %+v, cut %+v, at %d, last looked at %+v, leased at %d and %d",
		l.account, g.line, l.minted, l.owned, l.used, l.peers, g.cut, g.at, g.asserted, g.heldAt, g.leasedAt)
}

// GiveUp ends what this node does in a room that is broken, until it starts anew. The
// account is closed as one is whose lease has lapsed: the others hear that it was, void
// it, and make its slots again when D is over. Another one opens then, as everywhere
// else, since D is reckoned by it; it calls nobody and lets nobody in. The owner takes
// everybody out of line, and honours the passes that are out until they end.
func (n *Node) GiveUp(g *Gate) {
	g.broken = true
	g.reopen(Account{Member: n.self.Member})
	g.busy = true
	g.Queue, g.Due, g.Called, g.Wanted = qpid.NewQueue(), 0, 0, 0
	g.drawn, g.drawKey, g.tokens = nil, qpid.Epoch{}, 0
	kept := n.out[:0]
	for _, m := range n.out {
		if s, ok := m.Body.(*Slots); !ok || s.Room != g.cfg.Name {
			kept = append(kept, m)
		}
	}
	n.out = kept
	n.changed(g)
}
