package simtest

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// S2, the books of all. Every ledger adds up by itself (checkLedger). All of them
// together own, with what is under way between them, what waves have minted less what
// was burned, because of two things more: nobody has received more from an account
// than that one has sent, and a ledger mints and burns only what a commit says.

// checkBooks looks at what has changed in one ledger.
func (w *world) checkBooks(h *host, r int, old, rs *node.RoomStatus) {
	if rs.Account.Born == 0 {
		return
	}
	c := &w.checker.rooms[r]
	if rs.Account != old.Account || !slices.Equal(rs.Peers, old.Peers) {
		a := c.accountOf(rs.Account)
		for i := range rs.Peers {
			p := &rs.Peers[i]
			b := c.accountOf(p.Account)
			c.sent[transfer{a, b}] = max(c.sent[transfer{a, b}], p.Sent)
			if sent := c.sent[transfer{b, a}]; p.Received > sent {
				w.fail("S2", "room %s: account %s has received %d slots from %s, which has sent %d: %s",
					c.name, w.account(rs.Account), p.Received, w.account(p.Account), sent, w.ledgers(r))
			}
		}
	}
	if rs.Account == old.Account {
		w.checkMade(h, c, old, rs)
	}
}

// transfer is one direction between two accounts.
type transfer struct{ from, to int32 }

// checkMade compares what a ledger has minted or burned with the commit that its node
// has installed. Books that were closed on settled accounts are part of what a ledger
// says it has minted.
func (w *world) checkMade(h *host, c *roomCheck, old, rs *node.RoomStatus) {
	made := rs.Minted - old.Minted
	for i := range old.Peers {
		p := &old.Peers[i]
		if !slices.ContainsFunc(rs.Peers, func(o eviction.PeerAccount) bool { return o.Account == p.Account }) {
			made -= p.Received - p.Sent
		}
	}
	if made == 0 {
		return
	}
	st := &h.seen.status
	d, ok := w.checker.makes[making{st.Installed, c.name}]
	if !ok && (len(st.List) == 1 || st.Unwritten && st.List[0] == w.lives[h.life].member) {
		return // a wave of one has no commit that anybody could see, nor that of a coordinator whose disk takes nothing
	}
	mint, burn := 0, 0
	for _, b := range d.burn {
		if st.List[b.Index] == w.lives[h.life].member {
			burn += b.N
		}
	}
	if st.List[0] == w.lives[h.life].member {
		mint = d.mint
	}
	if d.resume && w.o.Faults.Visits {
		mint += h.disk.visits.early[w.roomIndex(c.name)]
	}
	if made > mint || made < -burn {
		w.fail("S2", "room %s: %s has made %d slots, and wave %v has it mint %d and burn up to %d", c.name, h.name, made, st.Installed, mint, burn)
	}
}

// making is one room in one wave, made what that wave has made and burned.
type (
	making struct {
		epoch qpid.Epoch
		room  string
	}
	made struct {
		mint int
		burn []eviction.Deal

		resume bool
	}
)

// decides files what the commits that a node is about to send make and burn: its
// ledgers show it already. After another founding numbers may come again.
func (w *world) decides(h *host, r *node.Ready) {
	for i := range r.Messages {
		m, ok := r.Messages[i].Body.(*eviction.Commit)
		if !ok {
			continue
		}
		for j := range m.Rooms {
			rc := &m.Rooms[j]
			w.crosses(h, m.Epoch, rc)
			w.mints(rc)
			if rc.Mint > 0 || len(rc.Burn) > 0 || rc.Resume {
				w.checker.makes[making{m.Epoch, rc.Room}] = made{rc.Mint, rc.Burn, rc.Resume}
			}
		}
	}
}
