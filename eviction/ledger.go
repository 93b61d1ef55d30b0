package eviction

import (
	"fmt"
	"slices"
)

// Ledger is one account's book of slots. Slots are only ever moved, minted
// and burned by the rules of the wave, so what a ledger owns it may spend
// without asking anyone: this is escrow (O'Neil 1986; bounded counters,
// Balegas et al. 2015).
//
// Invariant: owned = minted + Σ received − Σ sent.
// Invariant: used ≤ owned; 0 ≤ used. Of a closed account all are 0.
// Invariant: a use is of one account. Who gives it away takes it off its books
// before the message leaves, and whoever receives it books slot and use as one.
type Ledger struct {
	account Account
	minted  int
	owned   int
	used    int // called and on the site
	peers   []PeerAccount
	given   []*Slots // with visits, not acknowledged, in order
}

// Account returns whose ledger it is.
func (l *Ledger) Account() Account { return l.account }

// Used returns how many slots back a called ticket or a session.
func (l *Ledger) Used() int { return l.used }

// Free returns how many slots may be spent or sent.
func (l *Ledger) Free() int { return l.owned - l.used }

// Spend takes a free slot for a visitor.
func (l *Ledger) Spend() bool {
	if l.Free() <= 0 {
		return false
	}
	l.used++
	return true
}

// Release ends a use.
func (l *Ledger) Release() {
	l.used--
	if l.used < 0 {
		panic(&Broken{What: "a ledger releases no more than it uses", State: l.account.String()})
	}
}

// send takes n free slots off and returns the message that carries them: see escrow.carry, which says in which room.
func (l *Ledger) send(to Account, n int) *Slots {
	n = min(n, l.Free())
	if n <= 0 || to == l.account || l.gives(to) {
		return nil
	}
	p := l.peer(to)
	p.Sent += n
	l.owned -= n
	return &Slots{From: l.account, To: to, Total: p.Sent}
}

// give takes used slots off, with the visits that use them, and returns the message
// that carries both. A later message to the same account would count them as free
// if this one were lost: there is none until this one has arrived.
func (l *Ledger) give(to Account, visits []Visit) *Slots {
	if to == l.account || len(visits) > l.used {
		panic(&Broken{What: "a ledger gives away visits that use its slots, to another", State: fmt.Sprintf("%d of %d of %v to %v", len(visits), l.used, l.account, to)})
	}
	p := l.peer(to)
	p.Sent += len(visits)
	l.owned -= len(visits)
	l.used -= len(visits)
	m := &Slots{From: l.account, To: to, Total: p.Sent, Visits: visits}
	l.given = append(l.given, m)
	return m
}

// gives reports whether visits are on their way to an account.
func (l *Ledger) gives(to Account) bool {
	return slices.ContainsFunc(l.given, func(m *Slots) bool { return m.To == to })
}

// receive books arriving slots and returns the acknowledgement, and the visits that
// came with them for the first time.
func (l *Ledger) receive(m *Slots) (*SlotsAck, []Visit) {
	p := l.peer(m.From)
	more, visits := m.Total-p.Received, []Visit(nil)
	switch {
	case more <= 0:
	case len(m.Visits) == 0:
		p.Received += more
		l.owned += more
	case more == len(m.Visits):
		p.Received += more
		l.owned += more
		l.used += more
		visits = m.Visits
	default: // what comes before them was lost, and is repeated before them
	}
	return &SlotsAck{Room: m.Room, From: m.From, To: m.To, Total: p.Received}, visits
}

// Took reports whether the slots of m have come to this account.
func (l *Ledger) Took(m *Slots) bool {
	i, ok := l.find(m.From)
	return ok && l.account == m.To && l.peers[i].Received >= m.Total
}

// unacked returns what to repeat to the account of p, in order.
func (l *Ledger) unacked(p PeerAccount) (out []*Slots) {
	before := p.Sent
	for _, m := range l.given {
		if m.To == p.Account {
			before = min(before, m.Total-len(m.Visits))
			out = append(out, m)
		}
	}
	if p.Acked < before {
		out = slices.Insert(out, 0, &Slots{From: l.account, To: p.Account, Total: before})
	}
	return out
}

// acked notes what has arrived.
func (l *Ledger) acked(m *SlotsAck) {
	if i, ok := l.find(m.To); ok {
		l.peers[i].Acked = max(l.peers[i].Acked, min(m.Total, l.peers[i].Sent))
		l.given = slices.DeleteFunc(l.given, func(g *Slots) bool { return g.To == m.To && g.Total <= m.Total })
	}
}

func (l *Ledger) mint(n int) {
	l.minted += n
	l.owned += n
}

// burn destroys up to n free slots and returns how many.
func (l *Ledger) burn(n int) int {
	n = min(n, max(0, l.Free()))
	l.mint(-n)
	return n
}

// fold closes the books on accounts of v: nothing of theirs moves any more.
func (l *Ledger) fold(v Void) {
	l.peers = slices.DeleteFunc(l.peers, func(p PeerAccount) bool {
		if p.Member != v.Member || p.Born > v.Epoch {
			return false
		}
		l.minted += p.Received - p.Sent
		return true
	})
	l.given = slices.DeleteFunc(l.given, func(m *Slots) bool { return m.To.Member == v.Member && m.To.Born <= v.Epoch })
}

// reset opens another account that owns nothing.
func (l *Ledger) reset(a Account) { *l = Ledger{account: a} }

func (l *Ledger) find(a Account) (int, bool) {
	return slices.BinarySearchFunc(l.peers, a, func(p PeerAccount, a Account) int { return p.Account.compare(a) })
}

// peer returns the record of a, which it makes if need be. The pointer is
// good until the next call.
func (l *Ledger) peer(a Account) *PeerAccount {
	i, ok := l.find(a)
	if !ok {
		l.peers = slices.Insert(l.peers, i, PeerAccount{Account: a})
	}
	return &l.peers[i]
}

// Owned returns how many slots the account has, used or not.
func (l *Ledger) Owned() int { return l.owned }

// Minted returns slots made minus slots burned here, folded accounts included.
func (l *Ledger) Minted() int { return l.minted }

// Peers returns a copy of the records of other accounts.
func (l *Ledger) Peers() []PeerAccount { return slices.Clone(l.peers) }
