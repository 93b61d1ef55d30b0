package eviction

import (
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// join brings a visitor to a: through the open door, or into the line.
func (p *play) join(a *actor, room, visitor int) {
	g, now := a.Gates()[room], p.time(a)
	a.Now(now)
	g.Arrived(now.Boot)
	switch {
	case !a.Clear():
		p.say(a, "#%d is turned away: nobody has taken the clock for right", visitor)
		return
	case a.Open(g, now) && g.Spend(now.Boot):
		p.admit(a, room, visitor)
		p.say(a, "%s#%d walks in", p.of(room), visitor)
	default:
		w := qpid.Weight{Stamp: a.Stamp(), ID: itemOf(visitor)}
		g.Queue.Insert(w)
		p.say(a, "%s#%d waits, stamped %.6f", p.of(room), visitor, float64(w.Stamp-wallBase)/1e6)
		a.Urge(g)
	}
	p.collect(a)
}

// end lets a visitor leave the site: the slot is free where it is.
func (p *play) end(visitor int) {
	for i := range p.visits {
		v := &p.visits[i]
		if v.visitor != visitor || v.until <= p.now {
			continue
		}
		v.leaves, v.until = true, p.now
		if a := p.actors[v.at]; a.up {
			p.extend(a)
			p.collect(a)
		}
	}
}

// present lets a visitor show a pass at a. Whose account is gone needs a slot of
// a's.
func (p *play) present(a *actor, visitor int) {
	i := slices.IndexFunc(p.visits, func(v visit) bool { return v.visitor == visitor && v.until > p.now })
	if i < 0 {
		p.say(a, "#%d: the pass is over", visitor)
		return
	}
	v := &p.visits[i]
	g, now := a.Gates()[v.room], p.time(a)
	switch {
	case v.account == g.ledger.account:
		p.say(a, "#%d: %s", visitor, either(a.Admits(g, now), "extended", "good, and not extended"))
	case !a.MayAdopt(g, v.account, now):
		p.say(a, "#%d: good, and not taken over: %s may extend it", visitor, accountIn(v.account))
	case !g.ledger.Spend():
		p.say(a, "#%d: good, and not taken over: no slot is free", visitor)
		g.Wanted++
		g.Touch()
	default:
		p.say(a, "#%d: taken over from %s", visitor, accountIn(v.account))
		v.at, v.account, v.until = a.index, g.ledger.account, p.now+micros(g.Session())
	}
}
