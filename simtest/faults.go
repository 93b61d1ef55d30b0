package simtest

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// Fault is a kind of hardship.
type Fault uint8

// The kinds of faults. Those of the crash family bring the node back some time
// later under the same name.
const (
	Crash           Fault = iota // a node
	CrashLead                    // the coordinator
	CrashRich                    // the node with most slots
	CrashRoot                    // the QPID root of a room
	CrashTwo                     // two neighbours in seniority
	CrashMost                    // all but one
	CrashAll                     // the whole cluster
	CrashInWave                  // a node, just before or after it sends or gets a certain message
	CrashAfterFirst              // the coordinator after its first commit message, and the node that got it
	Rolling                      // every node in turn
	Pause                        // a node
	PauseInWave                  // a node, in the middle of a wave
	PauseInAnswer                // a node, between an operation and its answer
	CutPair                      // two nodes do not reach each other; gossip goes around
	CutOneWay                    // the same, one way
	CutOff                       // one node from all
	Halves                       // two sides
	Bridge                       // two sides that share one node
	Ring                         // everyone reaches only two others
	FlipMajority                 // the middle node changes sides, and forgets
	Swizzle                      // links of some nodes go one by one, and come back in another order
	SlowLink                     // one link is slow, for a while
	Suspicion                    // all hold one for dead
	Flapping                     // some hold one for dead, again and again
	ClockStep                    // a wall clock moves within its bounds
	ClockJump                    // a wall clock jumps, milliseconds to hours
	Add                          // a new node
	Leave                        // a node says goodbye
	Retarget                     // a room's limit changes
	Remode                       // a room is held, drained or released
	faultKinds                   // those above are drawn for a mix

	// Standstill is a machine that stops with its clocks: the node that goes on
	// takes no time to have passed. Those that last longer than clocks may be
	// apart begin with a gap: until it hears from another node it cannot know,
	// and whom it lets in meanwhile is not held against it (docs/operating.md
	// says so). The world keeps visitors from it for so long.
	Standstill
	Resession   // a room's session gets longer or shorter
	Repolicy    // what sides do in a room is changed, on whatever side
	BadDisk     // no save of a node gets through: it goes on, and nothing that follows from what is not saved is sent
	CrashInSave // a node, before a step of a save
	Gray        // the links of a node are so slow that its replies miss the deadline, until the end
	Twin        // a node is cut off, and another starts under its name; then each has some of the others, and who had the name before goes for good
)

func (f Fault) String() string {
	return [...]string{
		"crash", "crash of the coordinator", "crash of the richest", "crash of the root", "crash of two",
		"crash of all but one", "crash of all", "crash inside a wave", "crash after the first commit", "rolling restart", "pause",
		"pause inside a wave", "pause inside an answer", "cut", "cut one way", "cut off", "halves", "bridge", "ring",
		"flip of the majority", "swizzle", "slow link", "suspicion", "flapping", "clock step", "clock jump", "add", "leave",
		"retarget", "change of mode", "", "standstill", "change of session", "change of policy", "bad disk", "crash inside a save", "gray node", "second node of a name",
	}[f]
}

// nemesis makes things go wrong.
type nemesis struct {
	troubles []trouble
	traps    []trap
	gone     int
}

// trouble is a fault that goes on for a while, or in stages.
type trouble struct {
	kind  Fault
	stage int
	over  bool
	host  int32
	at    []int32 // hosts
	cuts  []cut   // links that it holds cut
	pairs []int32 // gossip pairs that it holds suspected
	last  int64   // µs per stage
}

type cut struct{ from, to int32 }

// addsMax is how many nodes the mix can add.
func (o *Options) addsMax() int {
	for _, f := range o.Faults.Mix {
		if f == Add {
			return 4
		}
	}
	return 0
}

// plan puts the faults on the agenda.
func (n *nemesis) plan(w *world) {
	f := &w.o.Faults
	span := w.o.Span.Microseconds()
	spread := func(count int, kinds ...Fault) {
		for i := range count {
			at := span/10 + span*8/10*int64(i)/int64(count) + w.rngFaults.Int64N(span/10)
			w.agenda.push(at, evExtra, int32(kinds[i%len(kinds)]), 0)
		}
	}
	spread(f.Kills, Crash)
	spread(f.Adds, Add)
	spread(f.Partitions, Halves, CutOff)
	spread(f.Standstills, Standstill)
	spread(f.Resessions, Resession)
	spread(f.Policies, Repolicy)
	spread(f.Saves, BadDisk, CrashInSave)
	spread(f.Grays, Gray)
	spread(f.Twins, Twin)
	spread(f.PowerCuts, CrashAll)
	if f.Every > 0 && len(f.Mix) > 0 {
		w.agenda.push(2_000_000+w.rngFaults.Int64N(2*f.Every.Microseconds()), evFault, 0, 0)
	}
}

// nextFault strikes with a fault of the mix.
func (w *world) nextFault() {
	if w.phase != storm {
		return
	}
	f := &w.o.Faults
	w.strike(f.Mix[w.rngFaults.IntN(len(f.Mix))])
	w.agenda.push(w.now+1+w.rngFaults.Int64N(2*f.Every.Microseconds()), evFault, 0, 0)
}

// strike begins one fault, if there is anything that it can befall.
func (w *world) strike(f Fault) {
	if w.phase != storm {
		return
	}
	last := w.o.Faults.Last.draw(w.rngFaults)
	victim := w.victim(f)
	if victim == none {
		return
	}
	h := &w.hosts[victim]
	w.printf("FAULT %v: %s for %v", f, h.name, micros(last))
	switch f {
	case Crash, CrashLead, CrashRich, CrashRoot:
		w.crashFor(h, last, f.String())
	case CrashTwo, CrashMost, CrashAll:
		w.crashMany(f, h, last)
	case CrashInWave, PauseInWave, PauseInAnswer, CrashAfterFirst, CrashInSave:
		w.setTrap(f, h, last)
	case Pause:
		w.reached.n[reachPause]++
		w.pause(h, last)
	case Add:
		w.addNode()
	case Leave:
		w.sayGoodbye(h)
	case Retarget:
		w.retarget(h)
	case Remode:
		w.remode(h)
	case ClockStep, ClockJump:
		w.turnClock(f, h)
	case Standstill:
		w.standstill(h, last)
	case Resession:
		w.resession(h)
	case Repolicy:
		w.repolicy(h)
	case Gray:
		w.turnGray(h)
	default:
		w.trouble(f, h, last)
	}
}

// victim picks the host that a fault befalls; none if there is none.
func (w *world) victim(f Fault) int32 {
	best, found := 0, int32(none)
	for _, i := range w.rngFaults.Perm(len(w.hosts)) {
		h := &w.hosts[i]
		if !h.running() || h.leaving {
			continue
		}
		fit := 1
		switch f {
		case CrashLead, CrashAfterFirst:
			if h.seen.status.Leading {
				fit = 2
			}
		case CrashRich:
			for r := range h.seen.rooms {
				fit += h.seen.rooms[r].Owned
			}
		case CrashRoot:
			for r := range h.seen.rooms {
				if h.seen.rooms[r].QPIDRoot {
					fit = 2
				}
			}
		default: // anyone will do
		}
		if fit > best {
			best, found = fit, int32(i)
		}
	}
	return found
}

// crashFor crashes the host and brings it back, unless it is one of those that
// never return.
func (w *world) crashFor(h *host, last int64, why string) {
	w.crash(h, why)
	if w.nemesis.gone < w.o.Faults.Gone && chance(w.rngFaults, 1, 3) {
		w.nemesis.gone++
		return // enter(healing) decides
	}
	if chance(w.rngFaults, 1, 3) { // a quick restart: gossip may never see it gone
		last = min(last, 200_000+w.rngFaults.Int64N(300_000))
	}
	w.agenda.push(w.now+last, evStart, h.index, 0)
}

func (w *world) crashMany(f Fault, h *host, last int64) {
	all := w.runningHosts()
	switch {
	case f == CrashTwo && len(all) > 2:
		next := all[(int(w.rank(all, h.index))+1)%len(all)]
		all = []int32{h.index, next}
	case f == CrashMost || f == CrashTwo:
		all = without(all, h.index)
	}
	for _, i := range all {
		w.crashFor(&w.hosts[i], last+w.rngFaults.Int64N(500_000), f.String())
	}
}

func (w *world) runningHosts() (all []int32) {
	for i := range w.hosts {
		if w.hosts[i].running() && !w.hosts[i].leaving {
			all = append(all, int32(i))
		}
	}
	return all
}

func (w *world) rank(all []int32, h int32) int32 {
	for i, x := range all {
		if x == h {
			return int32(i)
		}
	}
	return 0
}

func without(all []int32, h int32) (rest []int32) {
	for _, x := range all {
		if x != h {
			rest = append(rest, x)
		}
	}
	return rest
}

// addNode starts a node that was never there. A cluster of one was told of
// nobody to join, and would begin anew if it restarted beside others.
func (w *world) addNode() {
	if len(w.hosts) == cap(w.hosts) || w.o.Nodes == 1 {
		return
	}
	w.reached.n[reachAdd]++
	h := w.addHost(0)
	w.start(h)
}

// sayGoodbye lets a node leave, as long as enough others stay.
func (w *world) sayGoodbye(h *host) {
	staying := 0
	for i := range w.hosts {
		if !w.hosts[i].gone {
			staying++
		}
	}
	if staying > 2 {
		w.goodbye(h)
	}
}

// retarget changes a room's limit at some node, up or down.
func (w *world) retarget(h *host) {
	r := w.rngFaults.IntN(len(w.o.Rooms))
	if r >= len(h.seen.rooms) || h.seen.rooms[r].Room.Name == "" {
		return
	}
	room := h.seen.rooms[r].Room
	room.Target = w.rngFaults.IntN(2*max(room.Target, w.o.Rooms[r].Target) + 2)
	w.reached.n[reachRetarget]++
	w.setRoom(h, r, room)
}

// remode holds, drains or releases a room at some node.
func (w *world) remode(h *host) {
	r := w.rngFaults.IntN(len(w.o.Rooms))
	if r >= len(h.seen.rooms) || h.seen.rooms[r].Room.Name == "" {
		return
	}
	room := h.seen.rooms[r].Room
	room.Mode = [...]eviction.Mode{eviction.Normal, eviction.Held, eviction.Draining}[w.rngFaults.IntN(3)]
	w.reached.n[reachMode]++
	w.setRoom(h, r, room)
}

// resession changes how long a room's visits last, at some node: from half a second
// to as long as any room of a swarm has.
func (w *world) resession(h *host) {
	r := w.rngFaults.IntN(len(w.o.Rooms))
	if r >= len(h.seen.rooms) || h.seen.rooms[r].Room.Name == "" {
		return
	}
	room := h.seen.rooms[r].Room
	room.Session = time.Duration(Range{500 * time.Millisecond, 14 * time.Second}.draw(w.rngFaults)) * time.Microsecond
	w.reached.n[reachResession]++
	w.setRoom(h, r, room)
}

// repolicy changes what sides do in a room, at some node.
func (w *world) repolicy(h *host) {
	r := w.rngFaults.IntN(len(w.o.Rooms))
	if r >= len(h.seen.rooms) || h.seen.rooms[r].Room.Name == "" {
		return
	}
	room := h.seen.rooms[r].Room
	room.OnPartition = [...]eviction.Policy{eviction.Majority, eviction.Majority, eviction.Share, eviction.Share, eviction.Stop}[w.rngFaults.IntN(5)]
	w.reached.n[reachPolicy]++
	w.setRoom(h, r, room)
}

// setRoom proposes a configuration at h.
func (w *world) setRoom(h *host, r int, room eviction.Room) {
	w.printf("%s is told that room %s is %v and has a limit of %d; its sides: %v", h.name, room.Name, room.Mode, room.Target, room.OnPartition)
	c := &w.checker.rooms[r]
	c.hard, c.session = max(c.hard, room.Target), max(c.session, room.Session)
	c.shares = c.shares || room.OnPartition == eviction.Share
	if err := h.n.SetRoom(h.clock.read(w.now), room); err != nil {
		w.fail("config", "%s: SetRoom: %v", h.name, err)
	}
	w.drain(h)
}

// standstill stops a machine and its clocks: for so long that all such stops together
// are no more than clocks may be apart, or for so long that others notice. Most clocks
// stay right, and no node goes on alone: its clock would then count as right for as long
// as visitors are there, however far behind it is, and the others would be left out.
func (w *world) standstill(h *host, last int64) {
	skew := w.o.Cluster.MaxSkew.Microseconds()
	alone := slices.ContainsFunc(w.o.Rooms, func(r eviction.Room) bool { return r.Survivor != 0 })
	if chance(w.rngFaults, 1, 2) || alone || 2*(w.wrongClocks(h)+1) >= w.o.Nodes {
		last = min(last%(skew/2), max(0, skew+h.clock.ahead))
	}
	w.freeze(h, last)
}

// freeze stops a machine and its clocks for a while.
func (w *world) freeze(h *host, last int64) {
	w.reached.n[reachStandstill]++
	if last > w.o.Cluster.MaxSkew.Microseconds()/2 {
		w.reached.n[reachLongStandstill]++
		h.stopped = true
	}
	h.clock.stop(w.now, last)
	w.pause(h, last)
}

// turnClock moves a wall clock. Most clocks stay right: with most of them wrong
// nobody can tell which are.
func (w *world) turnClock(f Fault, h *host) {
	off := w.offset()
	if f == ClockJump && 2*(w.wrongClocks(h)+1) < w.o.Nodes {
		w.reached.n[reachJump]++
		off = 1000 << w.rngFaults.IntN(23) // 1 ms to 70 minutes
		off += w.rngFaults.Int64N(off)
		if chance(w.rngFaults, 1, 2) {
			off = -off
		}
		off += h.clock.ahead
	}
	w.printf("%s has its wall clock set %v wrong", h.name, micros(off))
	w.mishap(h)
	h.clock.set(w.now, off)
}

// wrongClocks counts the hosts beside h whose clock is out of bounds.
func (w *world) wrongClocks(h *host) int {
	wrong := 0
	for i := range w.hosts {
		if o := &w.hosts[i]; o != h && !w.clockRight(o) {
			wrong++
		}
	}
	return wrong
}

// clockRight reports whether a host's wall clock is within its bounds.
func (w *world) clockRight(h *host) bool {
	off, o := h.clock.ahead, w.o.Clocks.Offset.Microseconds()
	return -o <= off && off <= o
}
