package eviction

import "time"

// What of a room's configuration holds: the newest that waves have brought, as of the T of
// the last of them.

// inForce is what of the settings holds: those of the cluster, and the room's as the waves
// have brought them.
//
// Invariant: now is cfg at the time at, its limit bounded; sum is that of cfg.
// Invariant: no pass alive that this node has made, or knows to have been allowed, is
// good for longer than ttl or the longest session of cfg from its making; nor is a new
// one, which session is for.
// Invariant: no pass that this node makes is good for longer than durable from its
// making. Its configuration file or its disk has that, so that who is a quorum by itself
// waits as long for such passes after a crash, though no other node knows of them.
type inForce struct {
	c        *clusterSettings // of the cluster, the node's
	cfg      Room             // the newest that a wave has brought, with its events
	sum      uint64           // of cfg
	proposed *Room            // set here, not yet brought back by a wave
	at       uint64           // the T by which: the newest of a commit about the room
	now      Room             // what of cfg holds then
	bound    int              // of the limit, see Govern; 0: none

	session  time.Duration // of new passes: the shortest that every node may assume
	durable  time.Duration // the longest that a later life of this node would reckon with; 0: it would not know the room
	filed    time.Duration // the longest of the node's configuration file; 0: that has no such room. See EndsBy
	ttl      time.Duration // the longest that a pass alive anywhere may have
	ttlUntil int64         // boot time at which ttl falls back to cfg's
}

// configure takes over a newer configuration. A session that gets longer is
// used for new passes only when everyone knows of it; one that gets shorter
// is still reckoned with until all passes of the old length have run out.
func (f *inForce) configure(c *RoomCommit, t uint64, now int64) {
	f.at = max(f.at, t)
	f.bound = c.Bound
	if c.TTL > micros(f.ttl) || c.TTL == micros(f.ttl) && !c.Agreed { // who disagrees may still give it
		f.ttl = durationOf(c.TTL)
		f.ttlUntil = now + f.delay()
	}
	if now >= f.ttlUntil {
		f.ttl = f.cfg.longest()
	}
	// Of two contents of one version, both configured by hand, the coordinator's
	// counts: what the cluster runs with, whatever a newcomer's file says.
	if c.Config != nil && (c.Config.Version.Compare(f.cfg.Version) > 0 || c.Config.Version == f.cfg.Version && c.Config.Sum() != f.sum) {
		f.ttl = max(f.ttl, f.cfg.longest(), c.Config.longest())
		f.ttlUntil = now + f.delay()
		f.setRoom(*c.Config)
	}
	f.hold()
	if c.Agreed {
		f.session = f.now.Session
	} else {
		f.session = min(f.session, f.now.Session)
	}
}

// hold finds out what of the configuration holds.
func (f *inForce) hold() {
	f.now = f.cfg.At(f.at)
	f.now.Target = f.governed(f.now.Target)
}

// governed is what the bound leaves of a limit.
func (f *inForce) governed(limit int) int {
	if f.bound > 0 {
		return min(limit, f.bound)
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

func (f *inForce) setRoom(r Room) {
	f.cfg = r.WithDefaults()
	f.hold()
	f.sum = f.cfg.Sum()
}

// newest returns the configuration to tell the coordinator about, nil if it
// has one as new.
func (f *inForce) newest(than Version) *Room {
	if f.proposed != nil && f.proposed.Version.Compare(f.cfg.Version) <= 0 {
		f.proposed = nil
	}
	r := &f.cfg
	if f.proposed != nil {
		r = f.proposed
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
	bound = max(0, bound)
	if bound != g.bound {
		g.bound = bound
		n.urge(g)
	}
}

// Bound returns the bound as of the last commit; 0: there is none.
func (f *inForce) Bound() int { return f.bound }

// Session returns how long a new pass lasts.
func (f *inForce) Session() time.Duration { return min(f.session, f.durable) }
