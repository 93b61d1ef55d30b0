package simtest

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// Swarm draws a run's options from its seed: every run is another corner of
// what a cluster may have to live with, extremes included.
func Swarm(seed uint64) Options {
	d := dice{rand.New(rand.NewPCG(seed, streamOptions))}
	o := Options{Seed: seed, Nodes: d.nodes(), Users: d.users(), Span: d.between(12*time.Second, 35*time.Second)}
	o.Limit = 4 * time.Minute
	o.Net = d.network()
	o.Cluster = d.cluster(o.Net)
	for i := range d.pick(1, 1, 1, 2, 3) {
		o.Rooms = append(o.Rooms, d.room(i, o))
	}
	o.Load = d.load()
	if slices.ContainsFunc(o.Rooms, func(r eviction.Room) bool { return r.Algorithm == eviction.ByQPID }) {
		o.Users = min(o.Users, 400) // one at a time takes its time
	}
	// Two clocks are further apart than one is from the truth, and are measured
	// no better than a message's way allows.
	o.Clocks = Clocks{Offset: d.upTo((o.Cluster.MaxSkew - o.Net.Latency.Max - 10*time.Millisecond) * 2 / 5), Drift: d.pick(0, 50, 200)}
	o.Faults = d.faults(o)
	if len(o.Rooms) > 1 && d.one(2) {
		o.Cluster.WaveBytes = d.pick(1, 4_000, 16_000) // rooms take turns
	}
	o.Load.NoShow = d.pick(0, 0, 10, 30)
	for i := range o.Rooms {
		if r := &o.Rooms[i]; d.one(10) {
			r.ClaimWindow, r.ClaimsMax = d.between(11*time.Second, 15*time.Second), 1 // told, one has 10 s of it
			r.TicketTTL = max(r.TicketTTL, r.ClaimWindow)
		} else {
			r.ClaimsMax = d.pick(1, 2, 3)
		}
	}
	// From numbers of its own, so that seeds without it stay the worlds they were.
	if e := (dice{rand.New(rand.NewPCG(seed, streamStandstill))}); o.Faults.Every > 0 && e.one(6) {
		o.Faults.Standstills = e.pick(1, 2, 3)
	}
	if e := (dice{rand.New(rand.NewPCG(seed, streamResession))}); o.Faults.Every > 0 && e.one(5) {
		o.Faults.Resessions = e.pick(1, 2, 6)
	}
	if e := (dice{rand.New(rand.NewPCG(seed, streamSaves))}); o.Faults.Every > 0 && o.Faults.Disk && e.one(2) {
		o.Faults.Saves = e.pick(1, 2, 4, 8)
	}
	if e := (dice{rand.New(rand.NewPCG(seed, streamVisits))}); o.Faults.Disk {
		o.Faults.Visits = e.one(2)
		if o.Faults.Every > 0 && e.one(2) {
			o.Faults.PowerCuts, o.Faults.Damage = e.pick(1, 2, 3), e.pick(0, 0, 10)
		}
		if o.Faults.Every > 0 {
			o.Faults.Hangs = e.pick(0, 2, 20)
		}
	}
	// In a room that shares its slots, to start another under a name says that the first
	// is off for good: an operator answers for that.
	shares := slices.ContainsFunc(o.Rooms, func(r eviction.Room) bool { return r.OnPartition == eviction.Share })
	if e := (dice{rand.New(rand.NewPCG(seed, streamTwins))}); o.Nodes > 2 && !shares && o.Faults.Every > 0 && e.one(6) {
		o.Faults.Twins = e.pick(1, 1, 2)
	}
	// Where another may have the name, as above, no room may begin to share.
	if e := (dice{rand.New(rand.NewPCG(seed, streamPolicies))}); o.Nodes > 1 && o.Faults.Twins == 0 && o.Faults.Every > 0 && e.one(5) {
		o.Faults.Policies = e.pick(1, 2, 4)
	}
	// Founders that forget all, with no keys from before, begin anew at once, and know
	// nothing of others who do not: see TestScenarioFoundersThatForgotWaitForD.
	if e := (dice{rand.New(rand.NewPCG(seed, streamExpect))}); o.Nodes > 2 && (o.Faults.Disk || o.Faults.KeepKeys) && e.one(4) {
		o.Expect = min(o.Nodes, o.expectMin()+e.IntN(o.Nodes-o.Nodes/2))
	}
	// Where nothing else happens the waves are held to their bound.
	if e := (dice{rand.New(rand.NewPCG(seed, streamGray))}); o.Nodes > 1 && (o.Faults.Every == 0 && e.one(2) || e.one(10)) {
		o.Faults.Grays = 1
	}
	if e := (dice{rand.New(rand.NewPCG(seed, streamCopies))}); e.one(2) {
		o.Cluster.Copies, o.Net.Copies = 1, e.pick(0, 0, 300, 3000, 9000)
	}
	if e := (dice{rand.New(rand.NewPCG(seed, streamQuiet))}); e.one(3) {
		o.Load.Quiet = e.pick(10, 30)
	}
	// The nodes' files differ, and what a node starts with next is as in another one.
	if e := (dice{rand.New(rand.NewPCG(seed, streamFiles))}); o.Nodes > 1 && o.Faults.Every > 0 && o.Faults.Grays == 0 && e.one(4) {
		for range e.pick(1, 1, 2, 3) {
			o.Others = append(o.Others, e.file(o.Cluster))
		}
	}
	return o
}

// file is another file's settings. All that a node may act by, or reckon with, differs.
func (d dice) file(c eviction.Config) eviction.Config {
	c.Period = d.between(60*time.Millisecond, 200*time.Millisecond)
	c.Urgent = min(c.Urgent, c.Period)
	c.Deadline = d.between(c.Deadline, 2*c.Deadline)
	c.ExcludeAfter = max(c.Deadline, 2*c.Period, d.between(c.ExcludeAfter*2/3, 2*c.ExcludeAfter))
	c.Lease = max(2*c.ExcludeAfter, d.between(1500*time.Millisecond, 10*time.Second))
	c.Margin = d.between(10*time.Millisecond, 300*time.Millisecond)
	return c
}

type dice struct{ *rand.Rand }

func (d dice) pick(of ...int) int { return of[d.IntN(len(of))] }

// one reports true once in n times.
func (d dice) one(n int) bool { return d.IntN(n) == 0 }

func (d dice) between(low, high time.Duration) time.Duration {
	return low + time.Duration(d.Int64N(int64(high-low)/1000+1))*1000
}

func (d dice) upTo(high time.Duration) time.Duration { return d.between(0, high) }

func (d dice) nodes() int {
	switch x := d.IntN(100); {
	case x < 6:
		return 1
	case x < 16:
		return 2
	case x < 50:
		return 3
	case x < 75:
		return 4 + d.IntN(2)
	case x < 94:
		return 6 + d.IntN(3)
	}
	return 9 + d.IntN(8)
}

func (d dice) users() int {
	if d.one(20) {
		return 1000 + d.IntN(1500)
	}
	return 30 + d.IntN(370)
}

func (d dice) network() Net {
	n := Net{}
	switch d.IntN(4) {
	case 0:
		n.Latency = Range{100 * time.Microsecond, time.Millisecond}
	case 1, 2:
		n.Latency = Range{time.Millisecond, d.between(2*time.Millisecond, 15*time.Millisecond)}
	case 3:
		n.Latency = Range{time.Millisecond, d.between(15*time.Millisecond, 60*time.Millisecond)}
	}
	if d.one(2) {
		n.Loss = d.pick(1, 10, 100, 300)
	}
	if d.one(3) {
		n.Twice = d.pick(1, 100, 300)
	}
	if d.one(10) {
		n.Reorder = d.pick(10, 300)
	}
	n.Held = d.one(3)
	return n
}

func (d dice) cluster(n Net) eviction.Config {
	c := eviction.Config{
		Period:       d.between(60*time.Millisecond, 200*time.Millisecond),
		Deadline:     d.between(150*time.Millisecond, 400*time.Millisecond),
		Lease:        d.between(2*time.Second, 4*time.Second),
		MaxSkew:      d.between(50*time.Millisecond, 400*time.Millisecond),
		Margin:       d.between(20*time.Millisecond, 200*time.Millisecond),
		ExcludeAfter: d.between(500*time.Millisecond, time.Second),
		Fanout:       d.pick(2, 3, 8, 8),
		Exact:        d.pick(2, 8, 64, 512),
		Samples:      d.pick(4, 16, 64),
	}
	c.Deadline = max(c.Deadline, 10*n.Latency.Max+100*time.Millisecond) // depth 3, three ways, and loss
	c.ExcludeAfter = max(c.ExcludeAfter, c.Deadline)
	c.Lease = max(c.Lease, 2*c.ExcludeAfter)
	c.MaxSkew = max(c.MaxSkew, 3*n.Latency.Max)
	c.Urgent = d.between(10*time.Millisecond, c.Period)
	return c
}

func (d dice) room(i int, o Options) eviction.Room {
	r := eviction.Room{
		Name:        [...]string{"shop", "tickets", "library"}[i],
		Target:      1 + d.IntN(60),
		Session:     d.between(time.Second, 6*time.Second),
		Refresh:     d.between(400*time.Millisecond, 2*time.Second),
		ClaimWindow: d.between(500*time.Millisecond, 2*time.Second),
		QueueAll:    d.one(4),
		NoRenewal:   d.one(8),
		OnPartition: eviction.Policy(d.pick(0, 0, 0, 0, 1, 2)),
	}
	if d.one(5) { // long enough to be taken over from a lost node before it runs out
		r.Session = d.between(8*time.Second, 14*time.Second)
	}
	r.TicketTTL = r.Refresh + d.between(2*time.Second, 6*time.Second)
	switch d.IntN(20) {
	case 0:
		r.Target = 0
	case 1:
		r.Target = 100 + d.IntN(100)
	case 2, 3:
		r.Target = 1 + d.IntN(3)
	}
	switch d.IntN(20) {
	case 0, 1, 2:
		r.Method = eviction.Random
	case 3:
		r.Method = eviction.Reject
	case 4:
		r.Method = eviction.Passthrough
	case 5, 6, 7, 8:
		r.Algorithm = eviction.ByQPID
	}
	if d.one(5) {
		r.NewPerMinute = d.pick(6, 300, 1200, 6000)
	}
	if d.one(6) && r.Algorithm == eviction.ByCut {
		r.Event = eviction.Event{Start: wallAt(d.between(4*time.Second, o.Span/2+4*time.Second).Microseconds()), Shuffle: d.one(2)}
		for i := range r.Event.Seed {
			r.Event.Seed[i] = byte(d.Uint32())
		}
	}
	if d.one(4) && r.Algorithm == eviction.ByCut && r.Event.Start == 0 {
		r.Events = d.events(o)
	}
	switch d.IntN(10) {
	case 0:
		r.Survivor = eviction.SurvivorAuto
	case 1, 2:
		r.Survivor = d.between(time.Second, 8*time.Second)
	}
	return r
}

// events are one to three, one after the other, some without a break.
func (d dice) events(o Options) (events []eviction.Event) {
	at := d.between(3*time.Second, o.Span/3)
	for range d.pick(1, 1, 2, 3) {
		e := eviction.Event{Prequeue: wallAt(at.Microseconds()), Shuffle: d.one(2)}
		at += d.upTo(3 * time.Second)
		e.Start = wallAt(at.Microseconds())
		at += d.between(time.Second, 8*time.Second)
		e.End = wallAt(at.Microseconds())
		at += time.Duration(d.pick(0, 0, 1)) * d.upTo(3*time.Second)
		for i := range e.Seed {
			e.Seed[i] = byte(d.Uint32())
		}
		e.Set = eviction.Set(d.pick(0, 0, int(eviction.SetTarget), int(eviction.SetTarget|eviction.SetSession), d.IntN(32)))
		e.Target, e.NewPerMinute = d.pick(0, 1+d.IntN(10), 1+d.IntN(80), 100+d.IntN(100)), d.pick(0, 300, 1200)
		e.Session, e.NoRenewal = d.between(time.Second, 10*time.Second), d.one(2)
		e.Method = eviction.Method(d.pick(0, 0, int(eviction.Random), int(eviction.Passthrough), int(eviction.Reject)))
		events = append(events, e)
	}
	return events
}

func (d dice) load() Load {
	l := Load{
		Flash:   d.pick(0, 0, 1, 2, 4),
		Browse:  Range{d.upTo(time.Second), d.between(time.Second, 4*time.Second)},
		Timeout: d.between(500*time.Millisecond, 3*time.Second),
		Sticky:  d.one(2),
		Takes:   d.pick(0, 60, 300, 1200),
	}
	if d.one(4) {
		l.Browse.Max = d.between(4*time.Second, 20*time.Second)
	}
	if d.one(2) {
		l.HTTP = Range{time.Millisecond, d.between(2*time.Millisecond, 80*time.Millisecond)}
	}
	for _, share := range []*int{&l.Vanish, &l.Silent, &l.Cancel, &l.Late, &l.Early, &l.Twice, &l.Replay} {
		if d.one(2) {
			*share = d.pick(2, 10, 30)
		}
	}
	if d.one(2) {
		l.Lost = d.pick(5, 30, 100)
	}
	if d.one(6) {
		l.Patience = d.between(8*time.Second, 25*time.Second)
	}
	return l
}

func (d dice) faults(o Options) Faults {
	f := Faults{
		Last:   Range{500 * time.Millisecond, d.between(time.Second, 12*time.Second)},
		Detect: Range{500 * time.Millisecond, d.between(700*time.Millisecond, 3*time.Second)},
		Disk:   d.one(2), KeepKeys: d.one(2),
	}
	if d.one(8) {
		return f // a run without faults: order must be exact
	}
	f.Every = d.between(time.Second, 8*time.Second)
	for range 1 + d.IntN(6) {
		f.Mix = append(f.Mix, Fault(d.IntN(int(faultKinds))))
	}
	if d.one(3) {
		f.Gone = d.IntN((o.Nodes + 1) / 2)
	}
	return f
}
