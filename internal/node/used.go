package node

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// A used ticket is refused by its home for as long as that lives: it is not among
// those that wait there. Others may take over what a lost node had, so they have
// to know what it had used up, and so has its next life:
//
//   - What a node uses up is on its disk, if it has one, a moment later, for a day
//     and as long as tickets live: then no rule honours it any more. A node reads
//     that when it starts, and tells everybody who is in waves with it.
//   - A node that says goodbye tells everybody all that it knows.
//
// What a node has heard is in memory, as hashes of ids: a stranger who could find
// an id with the hash of another would have to choose ids, which are random. Past
// Config.UsedMax the oldest eighth is forgotten: those tickets are good once more,
// as after a crash of everybody who knew of them.
type used struct {
	runs  []usedRun // by time, the oldest first
	n     int
	tells []uint64   // what others are told
	told  []toldUsed // how far each of them is
}

// usedRun is a hash table of hashes, with linear probing; 0 is an empty cell.
type usedRun struct {
	first, last int64 // pass time at which they came
	cells       []uint64
	n           int
}

// usedDay is how long after it was made a ticket may still be honoured, TicketTTL
// apart: after a restart of everything, with keys that were kept.
const usedDay = 24 * int64(time.Hour/time.Microsecond)

// usedHash is what is remembered of a used ticket.
func usedHash(id qpid.ItemID) uint64 { return max(1, hashOf(id)) }

func (u *usedRun) has(h uint64) bool {
	if u.n == 0 {
		return false
	}
	mask := uint64(len(u.cells) - 1)
	for i := h & mask; u.cells[i] != 0; i = (i + 1) & mask {
		if u.cells[i] == h {
			return true
		}
	}
	return false
}

func (u *usedRun) add(h uint64) {
	if (u.n+1)*4 > len(u.cells)*3 {
		old := u.cells
		u.cells = make([]uint64, max(cellsMin, 2*len(old)))
		for _, o := range old {
			if o != 0 {
				u.put(o)
			}
		}
	}
	u.put(h)
	u.n++
}

func (u *usedRun) put(h uint64) {
	mask := uint64(len(u.cells) - 1)
	i := h & mask
	for u.cells[i] != 0 {
		i = (i + 1) & mask
	}
	u.cells[i] = h
}

func (u *used) has(h uint64) bool {
	for i := range u.runs {
		if u.runs[i].has(h) {
			return true
		}
	}
	return false
}

// add reports whether h is new. Runs are cut so that the oldest can be forgotten
// as a whole: every hour, and when one has an eighth of all.
func (u *used) add(h uint64, at int64, most int) bool {
	if u.has(h) {
		return false
	}
	last := len(u.runs) - 1
	if last < 0 || at-u.runs[last].first >= usedDay/24 || u.runs[last].n >= max(1, most/8) {
		u.runs = append(u.runs, usedRun{first: at})
		last++
	}
	u.runs[last].add(h)
	u.runs[last].last = at
	for u.n++; u.n > most; {
		u.n -= u.runs[0].n
		u.runs = u.runs[1:]
	}
	return true
}

// all calls fn for every hash, the oldest runs first.
func (u *used) all(fn func(uint64)) {
	for i := range u.runs {
		for _, h := range u.runs[i].cells {
			if h != 0 {
				fn(h)
			}
		}
	}
}

// toldUsed is how much of the list a member has, and when it was told last.
type toldUsed struct {
	member eviction.Member
	upto   uint64
	at     int64 // boot time
}

// loadUsed takes up what earlier lives of this node had kept.
func (n *Node) loadUsed(kept []eviction.UsedBatch) {
	for _, b := range kept {
		for _, h := range b.Tickets {
			if n.used.add(h, b.At, n.c.UsedMax) {
				n.used.tells = append(n.used.tells, h)
			}
		}
	}
	n.used.tells = n.used.tells[max(0, len(n.used.tells)-n.c.UsedMax):]
}

// use notes that a ticket is used up here.
func (n *Node) use(id qpid.ItemID) {
	if n.c.Disk {
		n.fresh = append(n.fresh, usedHash(id))
	}
}

// isUsed tells everybody that a ticket is used up here that another node has in line.
func (n *Node) isUsed(id qpid.ItemID, now eviction.Time) {
	if n.noteUsed(id, now) {
		n.tellUsed(now)
	}
}

// noteUsed has others hear of it when they are told next, and reports whether it is new.
func (n *Node) noteUsed(id qpid.ItemID, now eviction.Time) bool {
	h := usedHash(id)
	if len(n.used.tells) >= n.c.UsedMax || !n.used.add(h, n.ev.Now(now), n.c.UsedMax) {
		return false
	}
	n.used.tells = append(n.used.tells, h)
	return true
}

// forgetUsed drops what no rule would honour any more.
func (n *Node) forgetUsed(now eviction.Time) {
	clock := n.ev.Now(now)
	if len(n.used.runs) == 0 || clock-n.used.runs[0].last <= usedDay {
		return // however short tickets live
	}
	life := int64(0)
	for _, r := range n.rooms {
		life = max(life, r.gate.Room().TicketTTL.Microseconds()+4*r.skew())
	}
	for len(n.used.runs) > 0 && clock-n.used.runs[0].last > usedDay+life {
		n.used.n -= n.used.runs[0].n
		n.used.runs = n.used.runs[1:]
	}
	if len(n.used.runs) == 0 {
		n.used.tells, n.used.told = nil, nil
	}
}

// tellUsed goes on telling the members of the last wave.
func (n *Node) tellUsed(now eviction.Time) {
	if len(n.used.tells) == 0 {
		return
	}
	n.used.told = slices.DeleteFunc(n.used.told, func(t toldUsed) bool { return !n.ev.Listed(t.member) })
	for _, m := range n.ev.Members() {
		if m != n.c.Self.Member {
			n.tellUsedTo(m, now)
		}
	}
}

// tellAgain is how soon what was not acknowledged is repeated, µs.
const tellAgain = 1_000_000

func (n *Node) tellUsedTo(m eviction.Member, now eviction.Time) {
	i := slices.IndexFunc(n.used.told, func(t toldUsed) bool { return t.member == m })
	if i < 0 {
		i, n.used.told = len(n.used.told), append(n.used.told, toldUsed{m, 0, now.Boot - tellAgain})
	}
	t := &n.used.told[i]
	rest := n.used.tells[min(t.upto, uint64(len(n.used.tells))):]
	if len(rest) == 0 || now.Boot-t.at < tellAgain {
		return
	}
	t.at = now.Boot
	n.out = append(n.out, eviction.Message{From: n.c.Self.Member, To: m, Body: &eviction.Used{
		From: t.upto, Tickets: slices.Clone(rest[:min(len(rest), eviction.UsedMax)]),
	}})
}

// onUsed hears of used tickets. One that waits here, taken over before this came,
// is not called any more.
func (n *Node) onUsed(now eviction.Time, from eviction.Member, b *eviction.Used) {
	clock := n.ev.Now(now)
	for _, h := range b.Tickets {
		if !n.used.add(h, clock, n.c.UsedMax) {
			continue
		}
		if n.c.Disk {
			n.fresh = append(n.fresh, h)
		}
		for _, r := range n.rooms {
			v := r.visitors.hashed(h)
			if v != nil && v.has(unheard) {
				v.marks &^= unheard
			}
			if v != nil && v.stage <= parked && v.stage != called && r.broken == nil {
				r.safely(now, func(now eviction.Time) {
					r.withdraw(v, now)
					r.record(Dropped, v.weight(), 0, qpid.Weight{})
					r.retire(v, spent, now)
				})
			}
		}
	}
	n.out = append(n.out, eviction.Message{From: n.c.Self.Member, To: from, Body: &eviction.UsedAck{Upto: b.From + uint64(len(b.Tickets))}})
}

func (n *Node) onUsedAck(now eviction.Time, from eviction.Member, b *eviction.UsedAck) {
	i := slices.IndexFunc(n.used.told, func(t toldUsed) bool { return t.member == from })
	if i < 0 || b.Upto <= n.used.told[i].upto || b.Upto > uint64(len(n.used.tells)) {
		return
	}
	n.used.told[i] = toldUsed{from, b.Upto, now.Boot - tellAgain}
	n.tellUsedTo(from, now)
}

// handOverUsed tells everybody all that this node knows of used tickets: those of
// people who were on the site, and of whom it still refuses copies, too.
func (n *Node) handOverUsed(now eviction.Time) {
	var listed usedRun // they are told already; places in the list must stay what they are
	for _, h := range n.used.tells {
		listed.add(h)
	}
	n.used.all(func(h uint64) {
		if !listed.has(h) {
			n.used.tells = append(n.used.tells, h)
		}
	})
	for _, r := range n.rooms {
		r.visitors.all(func(v *visitor) {
			if v.stage >= onSite && !v.has(unheard) && !n.used.has(usedHash(v.id)) {
				n.used.tells = append(n.used.tells, usedHash(v.id))
			}
		})
	}
	n.tellUsed(now)
}
