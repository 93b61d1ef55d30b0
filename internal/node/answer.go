package node

import (
	"math"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
)

// answer says where v stands.
func (r *room) answer(now eviction.Time, v *visitor) (Answer, error) {
	n := r.node
	a := Answer{Queued: r.waiting(), Paused: n.paused()}
	switch v.stage {
	case onSite:
		if n.ev.Now(now) >= v.expires {
			return Answer{}, ticket.ErrUsed
		}
		if r.passUntil(v) <= n.ev.Now(now) {
			return Answer{}, ticket.ErrUnavailable
		}
		a.State, a.Pass, a.Wave = Admitted, r.pass(v), v.wave
		return a, nil
	case spent:
		return Answer{}, ticket.ErrUsed
	case dropped:
		return Answer{}, ticket.ErrExpired
	case called:
		a.State, a.Position, a.Wave = Called, max(1, int(v.shown)), v.wave
		r.tell(v, now)
		v.refresh = r.refreshAfter(v, 0)
	default:
		at, draw := 1, r.gate.DrawComes(v.stamp, n.ev.Now(now))
		switch {
		case draw > 0:
			v.shown = 0 // whatever it was
		case r.gate.InForce().Method != eviction.Random:
			known := true
			if v.stage == queued {
				at, known = r.gate.Position(r.gate.Key(v.weight()))
			}
			if v.shown == 0 && known || v.shown > 0 && at < int(v.shown) {
				v.shown = uint32(at)
			}
			a.Position = int(v.shown)
		}
		a.Queued = max(1, a.Queued, a.Position) // the digests and the counts may be of different waves
		place := max(at, a.Position)
		if turn := r.turn(place); turn > 0 {
			v.refresh = r.refreshAfter(v, turn)
		} else {
			v.refresh = r.refreshAfter(v, math.MaxInt64) // nobody knows
		}
		switch {
		case draw > 0:
			v.refresh = r.refreshAfter(v, max(0, time.Duration(draw-n.ev.Now(now))*time.Microsecond))
		case r.gate.InForce().Method == eviction.Random || a.Position > 0:
			a.Wait = later(r.wait(now, place), v.asleep(now))
		}
		r.watch(v, now)
	}
	a.Refresh = time.Duration(v.refresh) * time.Millisecond
	a.Ticket = Ticket{
		Room: r.name, ID: v.id, Stamp: v.stamp, Home: n.c.Self.Member, Gen: v.gen, Position: v.shown, Issued: n.ev.Now(now),
		Missed: v.missed, Slept: v.slept, Anew: v.has(anew), Quiet: v.has(quiet),
	}
	if v.gen > 0 || v.has(handed) {
		p := r.pasts[v.id]
		a.Ticket.Past, a.Ticket.Hand = p.homes, p.hand
	}
	return a, nil
}

func (n *Node) paused() ticket.Pause {
	if !n.ev.IsAside() {
		return ""
	}
	return n.waiting(n.ev.Status())
}

func (r *room) pass(v *visitor) Pass {
	p := Pass{Room: r.name, ID: v.id, Stamp: v.stamp, Home: r.gate.Ledger().Account(), Expires: r.passUntil(v)}
	if g := r.visits[v.id]; g != nil {
		r.becomes(g, g.kept, max(g.out, p.Expires))
	}
	if r.gate.Room().SessionMax > 0 {
		p.Started = v.seen
	}
	return p
}
