package eviction

import "github.com/anteroom/anteroom/qpid"

// Census is how many slots there were, at most, when a wave that was not Sure counted them: all but
// what those who were lost could use, of whom nobody knew how many they had. It is what makes a
// room Sure again D later, whoever is lost meanwhile, if a quorum of those who know of it live on: a wave that
// lacks some of them leaves it as it is until they are void (see Supply). Without it a node that
// comes and goes more often than that would keep the room from all of its slots for ever, if everything was
// down before.
//
// Invariant: at any time Σ owned or under way in the accounts of the listed and of those who were
// lost since ≤ Slots, less what was burned since.
//
// Proof. It holds in the wave that counts: each listed account is valid and has replied what it
// owns; what is on its way between them is in the sum, too, as sent and not yet received; and
// every node has replied that all others which may act (8) are void. So no slot of these is taken from
// then on, nor any sent to them, and who is listed later opens an account that owns nothing. Nothing but
// a mint adds to the sum, and while nothing is Sure none is minted; and visits of earlier lives that go
// on. A wave says so (Resume) only if none of its nodes holds a census any more: so of a quorum that
// goes on with one later, which by lemma 6 has somebody of that wave, that one has taken it up since, and
// the wave that took it had heard. By the argument at Supply a quorum that remembers a census since its
// nodes began knows of every later supply.
//
// Those who were lost before the census act no more when D has passed since: nobody has leased their
// accounts since every node of a wave knew them to be void, be it that they are members again. Of
// nobody else anything is unknown. So from then on Slots is all that there is, as of a Sure supply: who
// was lost since is newly lost in the sense of that, and gets a claim.
//
// The age of a census is kept by each node from when it heard of it, and only what has been heard
// before is added: it is never too high, but for a clock's drift, which D has a term for.
type Census struct {
	At    qpid.Epoch // of the wave that counted
	Slots int
	Age   int64 // µs since then, as of a reply or a commit
}

// aged is e's census as this node says it at boot time now.
func (e *escrow) aged(now int64) *Census {
	c := e.supply.Census
	if c == nil {
		return nil
	}
	return &Census{At: c.At, Slots: c.Slots, Age: max(0, now-e.countedAt)}
}

// censusOf is what a supply that a quorum holds leaves of its census.
func censusOf(s Supply) *Census {
	if s.Census == nil {
		return nil
	}
	return &Census{At: s.Census.At, Slots: max(0, s.Census.Slots-s.Burned), Age: s.Census.Age}
}

// count decides about the supply while it is not Sure: c has what is left of the census, if a quorum
// holds one. It reports whether a next wave will mint.
func (g *Gate) count(d *decision, rs *roomSums, s Supply, c *RoomCommit, inside int, b *books, safe map[Member]uint64) (mints bool) {
	c.Supply = max(s.left(), inside)
	switch {
	case len(b.lost) == 0:
		c.Sure, c.Supply = true, max(rs.target, inside)
	case c.Stands != nil: // a later wave may know how many there are
		return false
	case rs.shared || c.From.Founded(): // others may have slots that no D ends, or that are of another line
	case c.Census == nil && known(b.lost, safe):
		c.Census = &Census{At: d.epoch, Slots: inside}
		return false
	case c.Census == nil:
		return false
	case c.Census.Age >= g.delayWith(d, rs):
		c.Sure, c.Supply = true, c.Census.Slots
	default:
		b.wait = min(b.wait, g.delayWith(d, rs)-c.Census.Age)
		return false
	}
	c.Census = nil
	return c.Sure && rs.target > inside
}
