package simtest

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/qpid"
)

var traceScenarios = flag.Bool("story", false, "print what happens in scenarios")

// script directs one world: it runs it up to a moment, does something to it,
// and runs it on. Nothing happens that the script does not say, and all the
// oracles of the world look on.
type script struct {
	*world
	t testing.TB
	// tap decides about each message when it arrives; nil: all pass.
	tap    func(f *flight) verdict
	kept   []int32 // flights that the tap keeps
	strict bool    // look for S3 after every event, not ten times a second
	splits []*trouble
}

type verdict uint8

const (
	pass verdict = iota
	lose
	keep // until release
)

// short is a cluster whose D is short enough to wait for: 4.45 s with sessions
// of 2 s.
func short(nodes int) Options {
	return Options{
		Seed: 1, Nodes: nodes,
		Cluster: eviction.Config{
			Period: 100 * time.Millisecond, Urgent: 20 * time.Millisecond, Deadline: 200 * time.Millisecond, Lease: 2 * time.Second,
			MaxSkew: 100 * time.Millisecond, ExcludeAfter: 500 * time.Millisecond, Margin: 50 * time.Millisecond,
		},
		Rooms: []eviction.Room{{
			Name: "shop", Target: 12, Session: 2 * time.Second, Refresh: 500 * time.Millisecond, ClaimWindow: time.Second,
			TicketTTL: 5 * time.Second,
		}},
		Load:   Load{Sticky: true, Browse: Range{time.Second, time.Second}, Timeout: time.Second},
		Faults: Faults{Detect: Range{300 * time.Millisecond, 600 * time.Millisecond}, KeepKeys: true},
	}
}

// direct sets up a world and starts its nodes one after the other, so that
// n00 is the most senior.
func direct(t testing.TB, o Options) *script {
	t.Helper()
	s := assemble(t, o)
	s.launch()
	return s
}

// launch starts all nodes 100 ms apart, so that seniority follows their numbers
// even where clocks differ.
func (s *script) launch() {
	for i := range s.hosts {
		s.agenda.push(s.now+int64(i)*100_000, evStart, int32(i), 0)
	}
}

// assemble sets up a world in which no node runs yet.
func assemble(t testing.TB, o Options) *script {
	t.Helper()
	o = o.withDefaults()
	o.Users = 0
	if err := o.validate(); err != nil {
		t.Fatal(err)
	}
	if *traceScenarios {
		o.Trace = func(line string) { fmt.Println(line) }
	}
	s := &script{world: newWorld(o), t: t}
	s.scripted = true
	s.agenda = agenda{}
	s.agenda.push(samplePeriod, evSample, 0, 0)
	return s
}

// founded is a world that has run until every node has a lease on the whole list.
func founded(t testing.TB, o Options) *script {
	t.Helper()
	s := assemble(t, o)
	s.begin()
	return s
}

// begin launches all nodes and runs until they are together and slots are spread.
func (s *script) begin() {
	s.t.Helper()
	s.launch()
	s.until(5*time.Second, "one wave of all", func() bool { return s.together(s.o.Nodes) })
	s.run(time.Second)
}

// together reports whether n nodes run and all of them are in the same wave.
func (s *script) together(n int) bool {
	for i := range s.hosts {
		h := &s.hosts[i]
		if !h.up() {
			continue
		}
		n--
		if len(h.seen.status.List) == 0 || h.seen.status.Grade < eviction.Primary || !s.leased(h) ||
			len(h.seen.status.List) != s.upCount() {
			return false
		}
	}
	return n == 0
}

// next lets one event happen.
func (s *script) next() {
	e := s.agenda.pop()
	s.now = e.at
	if e.kind == evMessage && s.tap != nil {
		f := &s.wires.flights.at[e.a]
		switch s.tap(f) {
		case lose:
			s.printf("%s -> %s %s is lost", s.hosts[f.from].name, s.hosts[f.to].name, f.kind)
			s.wires.land(e.a)
			return
		case keep:
			s.printf("%s -> %s %s is kept", s.hosts[f.from].name, s.hosts[f.to].name, f.kind)
			s.kept = append(s.kept, e.a)
			return
		default:
		}
	}
	s.happen(e)
	if s.strict {
		for r := range s.checker.rooms {
			s.checkSupply(r)
		}
	}
}

// release lets the messages that were kept arrive now, whatever became of
// their link: they were in a buffer on the way.
func (s *script) release() {
	for _, i := range s.kept {
		f := &s.wires.flights.at[i]
		f.gen = s.wires.link(f.from, f.to).gen
		s.agenda.push(s.now, evMessage, i, 0)
	}
	s.kept = nil
	tap := s.tap
	s.tap = nil
	for len(s.agenda.heap) > 0 && s.agenda.heap[0].at <= s.now && s.broken == nil {
		s.next()
	}
	s.tap = tap
}

// run lets time pass.
func (s *script) run(d time.Duration) {
	s.t.Helper()
	end := s.now + d.Microseconds()
	for s.broken == nil && !s.over && s.agenda.heap[0].at <= end {
		s.next()
	}
	s.now = max(s.now, end)
	s.check()
}

// until lets time pass until done, at most for d.
func (s *script) until(d time.Duration, what string, done func() bool) {
	s.t.Helper()
	end := s.now + d.Microseconds()
	for !done() {
		if s.broken != nil || s.over || s.agenda.heap[0].at > end {
			s.check()
			s.t.Fatalf("%v passed without %s: %s%s", d, what, s.statuses(), s.ledgers(0))
		}
		s.next()
	}
	s.check()
}

// check ends the test if a promise broke.
func (s *script) check() {
	s.t.Helper()
	if s.broken != nil {
		s.t.Fatal(s.broken)
	}
}

// finish ends all faults and lets everybody get in and leave; then the room
// must be whole.
func (s *script) finish() {
	s.t.Helper()
	s.tap, s.strict = nil, false
	s.mend()
	s.enter(healing)
	for s.broken == nil && !s.over {
		s.next()
	}
	s.check()
}

// split cuts every link between hosts of different sides. Hosts that are in no
// side keep all links.
func (s *script) split(sides ...[]int32) {
	t := &trouble{kind: Halves}
	for i := range sides {
		for j := i + 1; j < len(sides); j++ {
			s.world.split(t, sides[i], sides[j])
		}
	}
	s.splits = append(s.splits, t)
	s.topology()
	s.printf("SPLIT %v", sides)
}

// mend takes back every split.
func (s *script) mend() {
	for _, t := range s.splits {
		s.end(t)
	}
	s.splits = nil
	s.topology()
}

func hosts(i ...int32) []int32 { return i }

// down ends a host's process; nothing brings it back but the script.
func (s *script) down(i int) { s.crash(&s.hosts[i], "the script") }

// boot starts a host again.
func (s *script) boot(i int) { s.start(&s.hosts[i]) }

// reboot ends a process and starts the next at once. Without a disk and keys
// it has forgotten everything.
func (s *script) reboot(i int) {
	s.down(i)
	s.boot(i)
}

// stall pauses a host.
func (s *script) stall(i int, d time.Duration) { s.pause(&s.hosts[i], d.Microseconds()) }

// visitors brings n visitors to a host at once.
func (s *script) arrive(host, n int) { s.arriveOver(host, n, 0) }

// peopleOver brings n visitors to a host, evenly over d; to any if host is none.
func (s *script) arriveOver(host, n int, d time.Duration) {
	for i := range n {
		v := s.newVisitor()
		p := &s.crowd.visitors.at[v]
		p.host = int32(host)
		if host == none {
			p.host = int32(i % s.o.Nodes)
		}
		if d == 0 {
			s.wake(v)
			continue
		}
		p.since = s.now + d.Microseconds()*int64(i)/int64(n)
		s.agenda.push(p.since, evWake, v, 0)
	}
}

// calls counts who was called or walked in since true time from, at any of the
// hosts; at all of them if none is given.
func (s *script) calls(from int64, at ...int32) (n int) {
	for i := range s.crowd.tickets {
		if t := &s.crowd.tickets[i]; t.calledAt != 0 && t.calledAt >= from && (len(at) == 0 || slices.Contains(at, t.home)) {
			n++
		}
	}
	return n
}

// queuedNow counts who waits, by the nodes that run.
func (s *script) queuedNow() (n int) {
	for i := range s.hosts {
		if h := &s.hosts[i]; h.up() {
			n += h.seen.rooms[0].Queued
		}
	}
	return n
}

// owned counts the slots of the nodes that run, used counts those in use.
func (s *script) ownedNow(at ...int) (owned, used int) {
	for i := range s.hosts {
		if h := &s.hosts[i]; h.up() && (len(at) == 0 || slices.Contains(at, i)) {
			owned, used = owned+h.seen.rooms[0].Owned, used+h.seen.rooms[0].Used
		}
	}
	return owned, used
}

// delay is D of the first room.
func (s *script) delay() time.Duration {
	c := s.o.Cluster
	return c.Deadline + c.Lease + s.o.Rooms[0].Session + 2*c.MaxSkew + c.Margin
}

// inOrder demands that of those who were entitled after true time from nobody
// overtook anybody, and returns how many they were.
func (s *script) inOrder(from int64) int {
	s.t.Helper()
	var of []fairness.Admission
	for _, a := range s.admissions(0) {
		if !a.Open && a.EntitledAt > from {
			of = append(of, a)
		}
	}
	r := fairness.Measure(of, 0)
	if r.DiscordantPairs != 0 {
		s.fail("S7", "%d of %d pairs were entitled in the wrong order", r.DiscordantPairs, r.N*(r.N-1)/2)
		s.check()
	}
	return r.N
}

// coordinator returns the host that leads; of several the one with the newest wave.
func (s *script) coordinator() int {
	found := none
	for i := range s.hosts {
		h := &s.hosts[i]
		if h.up() && h.seen.status.Leading &&
			(found == none || h.seen.status.Installed.Compare(s.hosts[found].seen.status.Installed) > 0) {
			found = i
		}
	}
	return found
}

// ofKind matches messages of one kind on one link; none stands for any end.
func ofKind(k msgKind, from, to int32) func(*flight) bool {
	return func(f *flight) bool {
		return f.kind == k && (from == none || f.from == from) && (to == none || f.to == to)
	}
}

// lists reports whether a gather lists name.
func (s *script) lists(f *flight, name qpid.NodeID) bool {
	g, ok := f.m.Body.(*eviction.Gather)
	if ok && g.List == nil { // it is that of the last wave
		return slices.ContainsFunc(s.hosts[f.from].seen.status.List, func(m eviction.Member) bool { return m.Name == name })
	}
	return ok && slices.ContainsFunc(g.List, func(m eviction.Member) bool { return m.Name == name })
}
