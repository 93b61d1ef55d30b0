package explore

import (
	"fmt"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// broken names the promise that does not hold.
func broken(promise, format string, args ...any) error {
	return fmt.Errorf("%s: %s", promise, fmt.Sprintf(format, args...))
}

// checkStep holds one step of one node to what needs no view of the others.
// It also works out how many slots the step minted.
func (c *cast) checkStep(b, a *life, o *outcome) error {
	in := a.in
	if in.kind == inBirth {
		return nil
	}
	var m *eviction.Message
	if in.kind == inStep {
		m = &c.messages.all[in.arg]
	}
	o.minted = minted(b, a)
	for _, err := range []error{
		checkEpochs(b, a, m), checkCut(b, a), checkPromise(b, a, in, c, o), checkLedger(a),
		checkLease(c.m, b, a, in), checkKnows(c, b, a, m, o), checkActs(c, b, a, in, o),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// S6: epochs never fall, and a node installs only what it replied to, and has
// replied to nothing newer since.
func checkEpochs(b, a *life, m *eviction.Message) error {
	if m != nil && a.status.Installed != b.status.Installed {
		if c, ok := m.Body.(*eviction.Commit); ok && c.Epoch != a.status.Installed && a.status.Installed.Coordinator != qpid.NodeID(a.self.String()) {
			return broken("S6", "%v: installs %v on the commit of %v", a.self, a.status.Installed, c.Epoch)
		}
	}
	was, is := &b.status, &a.status
	switch {
	case is.Epoch.Compare(was.Epoch) < 0 || is.Installed.Compare(was.Installed) < 0:
		return broken("S6", "%v: epoch goes from %v to %v, installed from %v to %v", a.self, was.Epoch, is.Epoch, was.Installed, is.Installed)
	case is.Installed.Compare(is.Epoch) > 0:
		return broken("S6", "%v: installed %v, has seen only %v", a.self, is.Installed, is.Epoch)
	case is.Installed == was.Installed || len(is.List) == 1 && is.List[0] == a.self:
		return nil
	case !was.Frozen || b.record.replied != is.Installed:
		return broken("S6", "%v: installs %v, but has replied to %v last (frozen: %v)", a.self, is.Installed, b.record.replied, was.Frozen)
	}
	return nil
}

// S7: the cut never falls.
func checkCut(b, a *life) error {
	was, is := &b.room.Cut, &a.room.Cut
	if is.Keying < was.Keying || a.room.Line == b.room.Line && is.Keying == was.Keying && is.Value.Less(was.Value) {
		return broken("S7", "%v: the cut falls from %v to %v", a.self, *was, *is)
	}
	return nil
}

// S8: nothing is stamped at or before the T of a wave that was replied to.
func checkPromise(b, a *life, in input, c *cast, o *outcome) error {
	if a.status.HLC < b.status.HLC || a.status.HLC < a.record.promised {
		return broken("S8", "%v: its clock goes from %d to %d, promised is %d", a.self, b.status.HLC, a.status.HLC, a.record.promised)
	}
	if in.kind != inJoin || o.answer == none {
		return nil
	}
	stamp := c.answers.all[o.answer].Ticket.Stamp
	if stamp == 0 {
		stamp = c.answers.all[o.answer].Pass.Stamp
	}
	if stamp <= b.record.promised {
		return broken("S8", "%v: stamps %d after the promise of %d", a.self, stamp, b.record.promised)
	}
	return nil
}

// S2: owned = minted + Σ received − Σ sent; what is used is owned.
func checkLedger(a *life) error {
	r := &a.room
	owned := r.Minted
	for _, p := range r.Peers {
		owned += p.Received - p.Sent
		if p.Acked > p.Sent || p.Received < 0 || p.Sent < 0 {
			return broken("S2", "%v: its books on %v are %+v", a.self, p.Account, p)
		}
	}
	if owned != r.Owned || r.Used < 0 || r.Used > r.Owned || r.Called+r.OnSite > r.Used {
		return broken("S2", "%v owns %d, its books say %d; %d used by %d called and %d on site: %+v",
			a.self, r.Owned, owned, r.Used, r.Called, r.OnSite, r.Peers)
	}
	return nil
}

// minted is how many slots a step made, apart from what closed books turn from
// received into minted.
func minted(b, a *life) int {
	n := a.room.Minted - b.room.Minted
	if a.room.Account != b.room.Account {
		return a.room.Minted
	}
	for _, p := range b.room.Peers {
		if !slices.ContainsFunc(a.room.Peers, func(q eviction.PeerAccount) bool { return q.Account == p.Account }) {
			n -= p.Received - p.Sent
		}
	}
	return n
}

// S9: a lease counts from the reply at the latest.
func checkLease(m *model, b, a *life, in input) error {
	now := m.time(a.host, in.now).Boot
	if a.room.LeaseUntil > a.status.LeaseUntil || a.status.LeaseUntil > now+m.cluster.Lease.Microseconds() {
		return broken("S9", "%v: has a lease for %v", a.self, a.status.LeaseUntil-now)
	}
	if a.status.Installed == b.record.replied && a.status.LeaseUntil > b.record.repliedAt+bootZero+m.cluster.Lease.Microseconds() {
		return broken("S9", "%v: replied at %s and has a lease until %s", a.self, clock(b.record.repliedAt), clock(a.status.LeaseUntil-bootZero))
	}
	if a.status.LeaseUntil > b.status.LeaseUntil && a.status.Installed == b.status.Installed {
		return broken("S9", "%v: its lease grows without a wave", a.self)
	}
	return nil
}

// S9: knowledge comes from a primary wave, or from having been at a founding.
func checkKnows(c *cast, b, a *life, m *eviction.Message, o *outcome) error {
	if !a.status.Knows || b.status.Knows || a.in.kind == inBirth {
		return nil
	}
	var earned bool
	earn := func(m *eviction.Message) {
		if c, ok := m.Body.(*eviction.Commit); ok {
			earned = earned || c.Epoch == a.status.Installed && (c.Grade >= eviction.Primary || c.Founding)
		}
	}
	if m != nil {
		earn(m)
	}
	for _, i := range o.sent { // a coordinator's own commit
		earn(&c.messages.all[i])
	}
	if !earned {
		return broken("S9", "%v: knows without a primary wave, and was at no founding", a.self)
	}
	return nil
}

// S12: nobody is called, let in or kept on the site without a lease, or by a
// void account.
func checkActs(c *cast, b, a *life, in input, o *outcome) error {
	acts := in.kind == inRefresh && o.answer != none && c.answers.all[o.answer].Pass.Expires > c.answers.all[in.arg].Pass.Expires
	for _, l := range o.log {
		acts = acts || l.Event == node.CalledIn || l.Event == node.AdmittedQ || l.Event == node.AdmittedO
	}
	if !acts {
		return nil
	}
	if !a.leased(c.m, in.now) {
		return broken("S12", "%v: acts without a lease: %+v", a.self, a.status)
	}
	if covers(a.room.Voided, a.room.Account) {
		return broken("S12", "%v: acts for the void account %v", a.self, a.room.Account)
	}
	return nil
}

// leased reports whether the node may call, let in and extend now.
func (l *life) leased(m *model, now int64) bool {
	s := &l.status
	if s.Quarantined || m.time(l.host, now).Boot >= l.room.LeaseUntil || l.room.Account.Born == 0 {
		return false
	}
	if m.room.OnPartition == eviction.Share {
		return s.Grade >= eviction.Side
	}
	return s.Grade >= eviction.Primary && l.room.Line == s.Line
}

// covers reports whether voids say that a is void.
func covers(voids []eviction.Void, a eviction.Account) bool {
	return slices.ContainsFunc(voids, func(v eviction.Void) bool { return v.Member == a.Member && a.Born <= v.Epoch })
}

func received(peers []eviction.PeerAccount, from eviction.Account) int {
	for _, p := range peers {
		if p.Account == from {
			return p.Received
		}
	}
	return 0
}
