package eviction

import "time"

// What of a room's configuration holds: the newest that waves have brought, as of the T of
// the last of them.

// configure takes over a newer configuration. A session that gets longer is
// used for new passes only when everyone knows of it; one that gets shorter
// is still reckoned with until all passes of the old length have run out.
func (g *Gate) configure(c *RoomCommit, now int64) {
	if c.TTL > micros(g.ttl) || c.TTL == micros(g.ttl) && !c.Agreed { // who disagrees may still give it
		g.ttl = durationOf(c.TTL)
		g.ttlUntil = now + g.delay()
	}
	if now >= g.ttlUntil {
		g.ttl = g.cfg.longest()
	}
	// Of two contents of one version, both configured by hand, the coordinator's
	// counts: what the cluster runs with, whatever a newcomer's file says.
	if c.Config != nil && (c.Config.Version.Compare(g.cfg.Version) > 0 || c.Config.Version == g.cfg.Version && c.Config.Sum() != g.sum) {
		g.ttl = max(g.ttl, g.cfg.longest(), c.Config.longest())
		g.ttlUntil = now + g.delay()
		g.setRoom(*c.Config)
	}
	g.hold()
	if c.Agreed {
		g.session = g.now.Session
	} else {
		g.session = min(g.session, g.now.Session)
	}
}

// hold finds out what of the configuration holds.
func (g *Gate) hold() {
	g.now = g.cfg.At(g.at)
	g.now.Target = g.governed(g.now.Target)
}

// governed is what the bound leaves of a limit.
func (g *Gate) governed(limit int) int {
	if g.bound > 0 {
		return min(limit, g.bound)
	}
	return limit
}

// At returns the room as it is at time t: Event is the one that holds then, and
// what that sets is set. It depends on nothing but the configuration and t, so
// nodes that know the same configuration and the same t agree. T is that of a
// wave, which all of its nodes know: they all go over to an event in one wave.
func (r Room) At(t uint64) Room {
	if len(r.Events) == 0 {
		return r
	}
	r.Event = Event{}
	for i := range r.Events {
		if e := &r.Events[i]; e.holds(t) {
			r.hold(e)
			if e.waits(t) && r.Method == Passthrough {
				r.Method = FIFO // nobody walks through before the start
			}
			break
		}
	}
	return r
}

func (r *Room) hold(e *Event) {
	r.Event = *e
	if e.Set&SetTarget != 0 {
		r.Target = e.Target
	}
	if e.Set&SetNewPerMinute != 0 {
		r.NewPerMinute = e.NewPerMinute
	}
	if e.Set&SetSession != 0 {
		r.Session = e.Session
	}
	if e.Set&SetNoRenewal != 0 {
		r.NoRenewal = e.NoRenewal
	}
	if e.Set&SetMethod != 0 {
		r.Method = e.Method
	}
}

// longest is the longest session that a pass given under this configuration may
// have, whichever event holds. D is reckoned with it from the wave on that brings
// the configuration: so no pass is ever longer than those who wait for it to run
// out think, whatever their clocks say of the event.
func (r *Room) longest() time.Duration {
	d := r.Session
	for i := range r.Events {
		if r.Events[i].Set&SetSession != 0 {
			d = max(d, r.Events[i].Session)
		}
	}
	return d
}

// started reports whether the event that holds, if one does, has begun by t.
func (r *Room) started(t uint64) bool { return r.Event.Start == 0 || t >= uint64(r.Event.Start) }

func (g *Gate) setRoom(r Room) {
	g.cfg = r.WithDefaults()
	g.hold()
	g.sum = g.cfg.Sum()
}

// newest returns the configuration to tell the coordinator about, nil if it
// has one as new.
func (g *Gate) newest(than Version) *Room {
	if g.proposed != nil && g.proposed.Version.Compare(g.cfg.Version) <= 0 {
		g.proposed = nil
	}
	r := &g.cfg
	if g.proposed != nil {
		r = g.proposed
	}
	if r.Version.Compare(than) <= 0 {
		return nil
	}
	newest := *r
	return &newest
}

// SetRoom proposes a room's configuration. It takes force when a wave brings
// it back, everywhere at once.
func (n *Node) SetRoom(now Time, r Room) {
	n.read(now)
	r.Version = Version{n.clock.stamp(), n.self.Name}
	g := n.Gate(r.Name)
	if g == nil {
		empty := r
		empty.Target, empty.Version = 0, Version{}
		g = n.addGate(empty)
	}
	// What is changed now is newer than all that is known here, also if a clock
	// that was ahead has dated that.
	r.Version.Stamp = max(r.Version.Stamp, g.cfg.Version.Stamp+1)
	if g.proposed != nil {
		r.Version.Stamp = max(r.Version.Stamp, g.proposed.Version.Stamp+1)
	}
	g.proposed = &r
	g.busy = true
	n.urge(g)
}

// Govern bounds the limit of the room by n from this node's next wave on, if it is
// the coordinator; 0: the limit is the configured one. To no more than that: a bound
// above it means nothing. It goes with every commit, so that all nodes know, and
// whoever runs the waves next goes on with it. No disk has it.
func (n *Node) Govern(g *Gate, bound int) {
	if bound = max(0, bound); bound != g.bound {
		g.bound = bound
		n.urge(g)
	}
}

// Bound returns the bound as of the last commit; 0: there is none.
func (g *Gate) Bound() int { return g.bound }

// Session returns how long a new pass lasts.
func (g *Gate) Session() time.Duration { return g.session }
