package simtest

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// none stands for no host, life, visitor, ticket, session or request.
const none = -1

// host is one machine and the process on it, if one runs.
type host struct {
	index    int32
	name     qpid.NodeID
	clock    clock
	file     eviction.Config // its `cluster:` settings
	expect   int             // founding, from its configuration file
	life     int32
	n        *node.Node
	paused   int32 // pauses that overlap
	stopped  bool  // its clocks stood still for too long, and it has not heard of it: see Standstill
	deaf     bool  // in scripts: not all that is sent to it arrives
	pauseTo  int64
	tickAt   int64 // true time of the earliest evTick in the agenda; 0: none
	started  bool  // ran before
	gone     bool  // said goodbye, or never returns
	leaving  bool
	disk     disk
	leftAt   int64      // true time at which it said goodbye,
	audience []audience // to them
	knows    []int32    // lives that told this one, on leaving, what they had used
	keys     uint64     // set of signing keys
	inbox    []event
	joins    []joining
	view     eviction.View // what its node was told last
	relays   node.Relays
	cuts     int32  // links of its that are cut, and suspicions of it
	calm     int64  // true time at which the last of them ended
	since    uint64 // number of the last primary wave that the node installed, or of the first that listed it,
	metIn    uint64 // and of the last that others were in with it
	knew     knowledge
	mishaps  int32   // faults that may cost a visitor's place or double a pass: see S10
	mishapAt int64   // true time of the last of them
	apartAt  int64   // true time at which the members of its waves were others last
	metAt    []int64 // by host: true time of the last wave of its that listed a life of that
	seen     seen
	offered  []*eviction.Slots // visits that came, and that it may not have taken in yet
}

// life is one run of a host's process, and the member it was.
type life struct {
	member eviction.Member
	peer   eviction.Peer
	host   int32
	over   bool
}

// up reports whether the host's process exists; it may be paused.
func (h *host) up() bool { return h.life != none }

// running reports whether the host's process takes input now.
func (h *host) running() bool { return h.life != none && h.paused == 0 }

// mishap counts a fault of h.
func (w *world) mishap(h *host) { h.mishaps, h.mishapAt = h.mishaps+1, w.now }

// addHost makes a place for one more machine. It does not start it.
func (w *world) addHost(expect int) *host {
	i := int32(len(w.hosts))
	r, o := w.rngFaults, w.o.Clocks
	c := clock{since: w.now, base: 1_000_000 + r.Int64N(1_000_000_000)}
	if o.Drift > 0 {
		c.drift = r.Int64N(int64(2*o.Drift)+1) - int64(o.Drift)
	}
	c.set(w.now, w.offset())
	w.hosts = append(w.hosts, host{
		index: i, name: qpid.NodeID(fmt.Sprintf("n%02d", i)), clock: c, file: w.o.Cluster, expect: expect, life: none,
	})
	h := &w.hosts[i]
	return h
}

// offset draws how wrong a wall clock is.
func (w *world) offset() int64 {
	o := w.o.Clocks.Offset.Microseconds()
	if o == 0 {
		return 0
	}
	return w.rngFaults.Int64N(2*o+1) - o
}

// start boots the host's process.
func (w *world) start(h *host) {
	if h.up() || h.gone {
		return
	}
	if len(w.lives) > 0xffff {
		panic("simtest: more than 65,536 lives")
	}
	now := h.clock.read(w.now)
	member := eviction.Member{Name: h.name, Boot: w.rngFaults.Uint64()<<16 | uint64(len(w.lives))}
	if n := len(w.o.Others); n > 0 && !w.scripted {
		h.file = slices.Concat([]eviction.Config{w.o.Cluster}, w.o.Others)[w.rngFiles.IntN(n+1)]
		if h.file != w.o.Cluster {
			w.reached.n[reachOtherFile]++
		}
	}
	c := node.Config{
		Self:   eviction.Peer{Member: member, Start: now.Wall},
		Expect: h.expect, Joins: w.o.Nodes > 1 || h.index > 0, KeptKeys: w.o.Faults.KeepKeys && h.keys != 0,
		Cluster: h.file, Rooms: w.o.Rooms[:len(w.o.Rooms)-w.unmade], Disk: w.o.Faults.Disk, Persisted: h.disk.kept, Used: h.disk.used,
	}
	c.Visits, c.DiskWait = w.beginVisits(h, member), w.o.Faults.DiskWait
	n, err := node.New(c, now)
	if err != nil {
		w.fail("start", "%s: New: %v", h.name, err)
		return
	}
	h.life, h.n, h.started, h.relays = int32(len(w.lives)), n, true, node.Relays{}
	w.lives = append(w.lives, life{member: member, peer: c.Self, host: h.index})
	w.checker.born(h)
	w.reached.n[reachRestart] += int64(min(1, h.life/int32(w.o.Nodes)))
	h.since = 0
	if h.disk.kept == nil {
		h.knew = knowledge{}
	}
	if h.disk.kept != nil {
		w.reached.n[reachDisk]++
		h.since = h.disk.kept.Since
	}
	w.note('s', uint64(h.index), uint64(h.life))
	w.printf("%s starts as %s, disk %t, kept keys %t", h.name, w.name(member), h.disk.kept != nil, c.KeptKeys)
	h.knows = nil
	w.replayUsed(h)
	w.gossip.forget(h.index)
	w.tellView(h)
	w.topology()
}

// crash ends the process at once. Requests in it get no answer.
func (w *world) crash(h *host, why string) {
	if !h.up() {
		return
	}
	w.note('c', uint64(h.index), uint64(h.life))
	w.printf("%s crashes: %s", h.name, why)
	w.lives[h.life].over = true
	w.mishap(h)
	w.checker.died(w, h)
	w.lose(h)
	h.life, h.n, h.tickAt, h.leaving = none, nil, 0, false
	h.paused, h.stopped = 0, false
	h.clock.goOn(w.now)
	w.wires.down(h.index)
	inbox := h.inbox
	h.inbox = nil
	for _, e := range inbox {
		w.refuse(e)
	}
	for _, j := range h.joins {
		w.agenda.push(w.now, evJoined, j.req, none)
	}
	h.joins = nil
	if !w.o.Faults.KeepKeys || h.gone {
		w.loseKeysOf(h)
	}
	if w.upCount() == 0 {
		w.reached.n[reachAllDown]++
	}
	w.topology()
}

func (w *world) upCount() int {
	n := 0
	for i := range w.hosts {
		if w.hosts[i].up() {
			n++
		}
	}
	return n
}

// goodbye makes the node hand over what it has and stop a second later, or half a
// second after it has said goodbye.
func (w *world) goodbye(h *host) {
	if !h.running() || h.leaving {
		return
	}
	w.printf("%s says goodbye", h.name)
	w.note('g', uint64(h.index), 0)
	w.reached.n[reachGoodbye]++
	h.leaving, h.gone = true, true
	w.mishap(h)
	w.takesLeave(h)
	h.n.Goodbye(h.clock.read(w.now))
	w.drain(h)
	w.agenda.push(w.now+1_000_000, evStop, h.index, h.life)
}

// stop ends a process that said goodbye; its gossip says so too.
func (w *world) stop(h *host, life int32) {
	if h.life == life {
		if h.running() && !h.n.Status().Left {
			w.agenda.push(w.now+500_000, evStop, h.index, h.life)
			return
		}
		w.handedOver(h)
		w.replayUsed(h)
		w.crash(h, "has left")
	}
}

// pause stops the process for a while: nothing is read, nothing is sent.
func (w *world) pause(h *host, last int64) {
	if !h.up() {
		return
	}
	w.printf("%s is paused for %v", h.name, micros(last))
	w.note('p', uint64(h.index), uint64(last))
	w.mishap(h)
	h.paused = 1
	h.pauseTo = max(h.pauseTo, w.now+last)
	w.agenda.push(h.pauseTo, evResume, h.index, 0)
	w.topology()
}

// resume lets the process go on; what waited for it arrives now, in order.
func (w *world) resume(h *host, at int64) {
	if h.paused == 0 || at < h.pauseTo {
		return
	}
	w.printf("%s goes on", h.name)
	h.paused = 0
	h.clock.goOn(w.now)
	inbox := h.inbox
	h.inbox = nil
	late := chance(w.rngFaults, 1, 2)
	if !late { // timers first, or what arrived first
		w.wakeTick(h)
	}
	for _, e := range inbox {
		w.agenda.push(w.now, e.kind, e.a, e.b)
	}
	if late {
		w.wakeTick(h)
	}
	w.topology()
}

func (w *world) wakeTick(h *host) {
	h.tickAt = w.now
	w.agenda.push(w.now, evTick, h.index, 0)
}

// hold keeps e for when the host's pause ends.
func (h *host) hold(e event) { h.inbox = append(h.inbox, e) }

// tick runs the node's timer.
func (w *world) tick(h *host, at int64) {
	if at != h.tickAt || !h.up() {
		return // an earlier deadline took its place
	}
	h.tickAt = 0
	if h.paused > 0 {
		return // resume ticks
	}
	h.n.Tick(h.clock.read(w.now))
	w.drain(h)
}

// drain does what the node wants done, and lets the oracles look. The host may
// be down afterwards.
func (w *world) drain(h *host) {
	r := h.n.Ready(h.clock.read(w.now))
	if h.n.Status().Quarantined {
		h.hears()
	}
	w.followLease(h)
	w.givenUp(h, &r)
	w.decides(h, &r)
	for i := range r.Log {
		e := &r.Log[i]
		w.logged(h, e)
		if e.Event == node.Ended && w.visited != nil {
			w.visited(e.Visit)
		}
	}
	if w.trapped(h, beforeSave, &r) {
		return
	}
	w.writeVisits(h, r.Visits)
	if w.o.Faults.Visits && h.n.WentOn() {
		w.reached.n[reachResume]++
	}
	w.keepUsed(h, &r)
	w.lookOver(h)
	for i := range r.Messages {
		if s, ok := r.Messages[i].Body.(*eviction.Slots); ok {
			w.checkSent(h, s)
		}
	}
	life := h.life
	messages := w.passOn(h, &r)
	if h.life != life {
		return
	}
	w.observe(h)
	for i := range messages {
		kind := kindOf(messages[i].Body)
		if w.trap(h, kind, beforeSend) {
			return
		}
		w.sent(h, &messages[i], kind)
		w.send(h, messages[i], kind)
		if w.trap(h, kind, afterSend) {
			return
		}
	}
	for _, a := range r.Taken {
		w.taken(h, a)
	}
	w.keptJoins(h)
	if h.disk.unsaved != nil {
		r.Deadline = min(r.Deadline, h.disk.saveAt)
	}
	w.schedule(h, r.Deadline)
}

// schedule makes sure that the node gets its Tick.
func (w *world) schedule(h *host, deadline int64) {
	if deadline <= 0 {
		return
	}
	at := max(w.now+1, h.clock.when(deadline))
	if h.tickAt == 0 || at < h.tickAt {
		h.tickAt = at
		w.agenda.push(at, evTick, h.index, 0)
	}
}

// keys are the signing keys that some process or disk still has.
type keys struct {
	made int // keys made so far
	live uint64
}

// install follows the keys: the founding coordinator makes one, and rings
// merge by union at every commit.
func (w *world) share(h, lead *host) {
	if h.keys|lead.keys == 0 {
		lead.keys = 1 << min(w.keys.made, 63)
		w.keys.made++
		w.printf("%s makes signing key %d", lead.name, w.keys.made)
	}
	h.keys |= lead.keys
	lead.keys = h.keys
	w.keys.live |= h.keys
}

// loseKeysOf forgets the keys of a host, and voids what was sealed under those that
// nobody else has. Of a host that never returns they are lost with its disk: who holds a
// ticket of theirs must not wait for it.
func (w *world) loseKeysOf(h *host) {
	h.keys = 0
	live := uint64(0)
	for i := range w.hosts {
		live |= w.hosts[i].keys
	}
	lost := w.keys.live &^ live
	w.keys.live = live
	if lost != 0 {
		w.printf("%d signing keys are lost", bits.OnesCount64(lost))
		w.checker.unseal(w, lost)
	}
}

// activeKey is what the host seals with: the newest it has; 0: it has none.
func (h *host) activeKey() uint64 {
	if h.keys == 0 {
		return 0
	}
	return 1 << (63 - bits.LeadingZeros64(h.keys))
}
