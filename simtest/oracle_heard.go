package simtest

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// S28, what is relied on is known. Where slots have been made in a wave all of whose nodes held an account for void, they may be
// slots of that. As long as it is open at its own node, of each quorum of the voters somebody knows that it is
// void: else that node could go on with them in a wave of others who do not.
//
// It is looked at when voters take force, and when a node begins to vote, as that is when quorums become others. Who is down
// knows what it knew, if it has a disk; who does not vote yet is in no quorum.
func (w *world) checkHeard(h *host) {
	s := &h.seen.status
	for r := range w.checker.rooms {
		c := &w.checker.rooms[r]
		if h.seen.rooms[r].Line != s.Line || c.sides > 0 || w.o.Rooms[r].Method == eviction.Passthrough {
			continue
		}
		relied := voidsOf(c.relied, s.Line)
		if len(relied) > 0 {
			w.reached.n[reachHeard]++
		}
		for i := range c.accounts {
			a := &c.accounts[i]
			if !covers(relied, a.Account) || a.owned == 0 || !w.valid(r, a, s.Line, nil) || w.lives[a.life].over {
				continue
			}
			ignorant := func(name qpid.NodeID) bool {
				return !slices.ContainsFunc(w.hosts, func(o host) bool {
					votes := o.up() && o.seen.status.Knows || !o.up() && w.o.Faults.Disk
					return o.name == name && (!votes || covers(o.seen.rooms[r].Voided, a.Account))
				})
			}
			if half(s.Voters.Names, ignorant) {
				w.fail("S28", "room %s: account %s is void and open, and of a quorum of %v nobody knows it: %s", c.name, w.account(a.Account), s.Voters.Names, w.ledgers(r))
				return
			}
		}
	}
}

// relies notes what h goes by when it has made slots.
func (w *world) relies(h *host, r int) {
	s, rs, c := &h.seen.status, &h.seen.rooms[r], &w.checker.rooms[r]
	for _, v := range rs.Voided {
		if !slices.ContainsFunc(s.List, func(m eviction.Member) bool {
			l := w.lifeOf(m)
			return w.lives[l].over || !covers(w.hosts[w.lives[l].host].seen.rooms[r].Voided, eviction.Account{Member: v.Member, Born: v.Epoch})
		}) {
			c.relied = keepVoids(c.relied, rs.Line, []eviction.Void{v})
		}
	}
}
