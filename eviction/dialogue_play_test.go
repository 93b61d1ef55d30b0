package eviction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom/qpid"
)

// play is what a dialogue is played with: nodes, the links between them, and
// visitors, who are called as package internal/node would call them.
type play struct {
	rooms  []Room
	actors []*actor
	links  map[[2]int][]Message
	last   map[string]Message // the last one of a kind that left each link
	lists  map[qpid.Epoch][]Member
	parts  []string // sides of the split; nil: none
	now    int64    // µs since the play began
	since  int64    // of them, when the command began
	visits []visit  // on the site
	lines  []Line   // by the numbers that they are shown under
	out    strings.Builder
	loud   bool // show messages as they are sent
	timed  bool // show when things happen
	over   int  // people beyond the limit, as last shown
}

// actor is one machine.
type actor struct {
	*Node
	index  int
	name   qpid.NodeID
	boot   uint64
	expect int
	joins  bool
	disk   bool
	record *Record
	ahead  int64 // µs that its wall clock is ahead of the true time
	up     bool
	asleep bool
	due    [][]int // by room: drawn and not called yet
	was    glimpse
}

// visit is a visitor with a pass.
type visit struct {
	visitor int
	room    int
	at      int // index of the actor
	account Account
	until   int64 // µs of true time at which nobody takes the pass for good any more
	leaves  bool  // it is not extended any more
}

// bootBase and wallBase are what clocks show when a play begins.
const (
	bootBase = 1_000_000_000
	wallBase = 1_700_000_000_000_000
	beat     = 50_000 // µs between two ticks of a node
)

// playConfig makes D short enough to wait for: 4.45 s with sessions of 2 s.
func playConfig() Config {
	return Config{
		Period: 100 * time.Millisecond, Urgent: 100 * time.Millisecond, Deadline: 200 * time.Millisecond, Lease: 2 * time.Second,
		MaxSkew: 100 * time.Millisecond, ExcludeAfter: 500 * time.Millisecond, Margin: 50 * time.Millisecond,
	}.WithDefaults()
}

func (p *play) time(a *actor) Time {
	return Time{Boot: bootBase + p.now, Wall: wallBase + p.now + a.ahead}
}

// open adds machines, which are started by boot.
func (p *play) open(names []string, expect int, joins, disk bool) {
	for _, name := range names {
		p.actors = append(p.actors, &actor{index: len(p.actors), name: qpid.NodeID(name), expect: expect, joins: joins, disk: disk})
	}
}

func (p *play) boot(a *actor) {
	a.boot++
	now := p.time(a)
	start := Start{Self: Peer{Member{a.name, a.boot}, wallBase + p.now + int64(a.index)}, Expect: a.expect, Joins: a.joins}
	if a.disk {
		start.Record = a.record
	}
	a.Node = NewNode(playConfig(), start, p.rooms, now)
	a.up, a.asleep, a.due = true, false, make([][]int, len(p.rooms))
	a.was = p.glance(a)
}

func (p *play) kill(a *actor) {
	a.record = a.Record()
	a.up, a.Node = false, nil
	for link := range p.links {
		if link[0] == a.index || link[1] == a.index {
			delete(p.links, link)
		}
	}
}

// meet tells every node's failure detector whom it can reach.
func (p *play) meet() {
	for _, a := range p.actors {
		if !a.up {
			continue
		}
		var peers []Peer
		for _, b := range p.actors {
			if b.up && p.reach(a, b) {
				peers = append(peers, b.self)
			}
		}
		a.SetView(p.time(a), NewView(peers))
		p.collect(a)
	}
}

func (p *play) reach(a, b *actor) bool {
	return a == b || p.parts == nil || slices.ContainsFunc(p.parts, func(side string) bool {
		return strings.Contains(side, string(a.name)) && strings.Contains(side, string(b.name))
	})
}

// at returns the machine on which m lives.
func (p *play) at(m Member) *actor {
	i := slices.IndexFunc(p.actors, func(a *actor) bool { return a.up && a.self.Member == m })
	if i < 0 {
		return nil
	}
	return p.actors[i]
}

// collect carries out what a node's last input led to: installs first, then
// calls, then messages.
func (p *play) collect(a *actor) {
	messages, done := a.Take()
	for _, in := range done {
		p.installed(a, in)
	}
	p.notice(a)
	p.call(a)
	for _, m := range messages {
		if g, ok := m.Body.(*Gather); ok {
			if p.lists[g.Epoch] == nil {
				p.lists[g.Epoch] = a.wave.list
			}
		}
		b := p.at(m.To)
		if b == nil || !p.reach(a, b) {
			continue
		}
		if quiet(m.Body) && !b.asleep {
			_ = b.Step(p.time(b), m)
			p.collect(b)
			continue
		}
		link := [2]int{a.index, b.index}
		p.links[link] = append(p.links[link], m)
		if p.loud {
			fmt.Fprintf(&p.out, "  %s\n", p.show(m))
		}
	}
}

// quiet bodies arrive at once and are not shown: who could be listed, how late
// it is, and what became of tickets.
func quiet(b Body) bool {
	switch b.(type) {
	case *Probe, *ProbeAck, *Urgent, *SyncRequest:
		return true
	}
	return false
}

func (p *play) installed(a *actor, in Installed) {
	r := slices.Index(a.Gates(), in.Gate)
	for _, w := range in.Entitled {
		in.Gate.Queue.Delete(w)
		in.Gate.Due++
		a.due[r] = append(a.due[r], visitorOf(w))
	}
	p.visits = slices.DeleteFunc(p.visits, func(v visit) bool { return v.until <= p.now })
}

// call calls whoever may be called at a.
func (p *play) call(a *actor) {
	for r, g := range a.Gates() {
		var called []string
		for a.Calls(g, p.time(a)) {
			w, ok := g.Queue.Min()
			drawn := len(a.due[r]) > 0
			if !drawn && (!ok || g.Cut().Value.Less(w)) || !g.Spend(p.time(a).Boot) {
				break
			}
			visitor := visitorOf(w)
			if drawn {
				visitor, a.due[r] = a.due[r][0], a.due[r][1:]
				g.Due--
			} else {
				g.Queue.Delete(w)
			}
			p.admit(a, r, visitor)
			called = append(called, fmt.Sprintf("#%d", visitor))
		}
		if called != nil {
			p.say(a, "%scalls %s", p.of(r), strings.Join(called, " "))
		}
	}
}

// admit gives a visitor who has a slot of a's a pass.
func (p *play) admit(a *actor, room, visitor int) {
	g := a.Gates()[room]
	p.visits = append(p.visits, visit{visitor, room, a.index, g.ledger.account, p.now + micros(g.Session()), false})
}

// extend is what browsers do all the time: every pass is as new as it can be.
// What has run out gives its slot back.
func (p *play) extend(a *actor) {
	for i := range p.visits {
		v := &p.visits[i]
		if v.at != a.index {
			continue
		}
		g, now := a.Gates()[v.room], p.time(a)
		if v.account != g.ledger.account {
			continue
		}
		if !v.leaves && a.Admits(g, now) && v.until > p.now {
			v.until = p.now + micros(g.Session())
		}
		if v.until <= p.now {
			g.ledger.Release()
			g.Touch()
			v.account = Account{}
		}
	}
}

// tick lets one node look at the clock.
func (p *play) tick(a *actor) {
	if !a.up || a.asleep {
		return
	}
	a.Tick(p.time(a))
	p.collect(a)
	p.extend(a)
	p.call(a)
	p.notice(a)
}

// beat lets time go on by 50 ms: every node ticks and all messages arrive.
func (p *play) beat() {
	p.now += beat
	for _, a := range p.actors {
		p.tick(a)
		p.deliverAll()
	}
	p.count()
}

// count looks whether there are more people on the site than the limit says.
func (p *play) count() {
	for r := range p.rooms {
		if over := p.inside(r) - p.rooms[r].Target; over > p.over {
			p.over = over
			fmt.Fprintf(&p.out, "  %s! %d more people on the site than the limit\n", p.stamp(), over)
		}
	}
}

func (p *play) inside(room int) (n int) {
	for _, v := range p.visits {
		if v.room == room && v.until > p.now {
			n++
		}
	}
	return n
}

// busy lists the links with messages for nodes that are awake.
func (p *play) busy() (links [][2]int) {
	for link, ms := range p.links {
		if len(ms) > 0 && !p.actors[link[1]].asleep {
			links = append(links, link)
		}
	}
	slices.SortFunc(links, func(a, b [2]int) int { return cmp.Or(a[0]-b[0], a[1]-b[1]) })
	return links
}

func (p *play) deliverAll() {
	for links := p.busy(); len(links) > 0; links = p.busy() {
		p.deliver(links[0])
	}
}

func (p *play) deliver(link [2]int) {
	m := p.pop(link)
	if p.loud && !quiet(m.Body) {
		fmt.Fprintf(&p.out, "%s\n", p.show(m))
	}
	p.step(m)
}

func (p *play) pop(link [2]int) Message {
	m := p.links[link][0]
	p.links[link] = p.links[link][1:]
	p.last[p.key(link, m.Body.Kind())] = m
	return m
}

func (p *play) key(link [2]int, kind string) string { return fmt.Sprint(link, kind) }

func (p *play) step(m Message) {
	b := p.at(m.To)
	if b == nil {
		return
	}
	if err := b.Step(p.time(b), m); err != nil {
		p.say(b, "error: %v", err)
	}
	p.collect(b)
}

// stamp is when something happens, since the command began.
func (p *play) stamp() string {
	if !p.timed {
		return ""
	}
	return fmt.Sprintf("%5.2fs ", float64(p.now-p.since)/1e6)
}

func (p *play) say(a *actor, format string, args ...any) {
	fmt.Fprintf(&p.out, "  %s%s: %s\n", p.stamp(), a.name, fmt.Sprintf(format, args...))
}

// of names a room where there are several.
func (p *play) of(room int) string {
	if len(p.rooms) == 1 {
		return ""
	}
	return p.rooms[room].Name + ": "
}
