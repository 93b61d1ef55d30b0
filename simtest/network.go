package simtest

import (
	"math/rand/v2"
	"slices"

	"github.com/anteroom/anteroom/eviction"
)

// link is one direction between two hosts.
type link struct {
	last int64   // arrival of the latest message, for order
	slow int64   // extra latency, µs
	gray int64   // more than that, µs, and up to half as much again: an end is gray
	gen  uint32  // raised when the link breaks with all in flight
	cut  int16   // faults that cut it
	due  int16   // of held, on the agenda again
	held []int32 // flights that arrived while it was cut
}

// flight is a message on its way.
type flight struct {
	m        eviction.Message
	from, to int32
	gen      uint32
	kind     msgKind
	freed    bool // was held and may go on
}

// wires are all links.
type wires struct {
	net       Net
	places    int32
	links     []link
	flights   slab[flight]
	rng       *rand.Rand
	rngGray   *rand.Rand
	rngCopies *rand.Rand
	base      int64
	spread    int64
	calm      bool // no loss, no repetition, no overtaking
	counts    [msgKinds]int64
	qpid      int // QPID messages in flight
}

func (x *wires) init(places int, n Net, rng, rngGray, rngCopies *rand.Rand) {
	x.net, x.places, x.rng, x.rngGray, x.rngCopies = n, int32(places), rng, rngGray, rngCopies
	x.links = make([]link, places*places)
	x.base = n.Latency.Min.Microseconds()
	x.spread = max(0, n.Latency.Max.Microseconds()-x.base) + 1
}

func (x *wires) link(from, to int32) *link { return &x.links[from*x.places+to] }

// down breaks every link to the host; what it sent already is on its way.
func (x *wires) down(h int32) {
	for from := range x.places {
		x.link(from, h).gen++
	}
}

// cut stops a link; a cut that breaks it also loses what is in flight.
func (x *wires) cut(from, to int32) {
	l := x.link(from, to)
	l.cut++
	if !x.net.Held {
		l.gen++
	}
}

// land takes a flight out of the air.
func (x *wires) land(i int32) {
	if x.flights.at[i].kind == mQPID {
		x.qpid--
	}
	x.flights.put(i)
}

// mend takes back one cut. What was held goes on before anything newer.
func (w *world) mend(from, to int32) {
	l := w.wires.link(from, to)
	w.afflict(from, -1)
	w.afflict(to, -1)
	l.cut--
	if l.cut > 0 {
		return
	}
	for _, i := range l.held {
		w.wires.flights.at[i].freed = true
		w.agenda.push(w.now, evMessage, i, 0)
	}
	l.due += int16(len(l.held))
	l.held = l.held[:0]
}

// dead reports whether nothing gets through.
func (x *wires) dead(from, to int32) bool { return x.link(from, to).cut > 0 }

// delay draws one message's latency on l.
func (x *wires) delay(l *link) int64 {
	d := x.base + x.rng.Int64N(x.spread) + l.slow
	if l.gray > 0 {
		d += l.gray + x.rngGray.Int64N(l.gray/2)
	}
	return d
}

// send puts m on its link.
func (w *world) send(from *host, m eviction.Message, kind msgKind) {
	x := &w.wires
	to := w.lives[w.lifeOf(m.To)].host
	x.counts[kind]++
	l := x.link(from.index, to)
	if to == from.index {
		w.fail("send", "%s sends a %s to itself", from.name, kind)
		return
	}
	lost := l.cut > 0 && !x.net.Held || !x.calm && chance(x.rng, x.net.Loss, 10_000)
	lost = lost || (kind == mCopies || kind == mCopiesAck) && chance(x.rngCopies, x.net.Copies, 10_000)
	if lost {
		w.printf("%s -> %s %s lost", from.name, w.hosts[to].name, w.body(m.Body))
		return
	}
	if w.o.Wire != nil {
		var err error
		if m, err = w.o.Wire(m); err != nil {
			w.fail("wire", "%s -> %s %s: %v", from.name, w.hosts[to].name, w.body(m.Body), err)
			return
		}
	}
	w.launch(flight{m: m, from: from.index, to: to, gen: l.gen, kind: kind}, l)
	if !x.calm && chance(x.rng, x.net.Twice, 10_000) {
		w.launch(flight{m: m, from: from.index, to: to, gen: l.gen, kind: kind}, l)
	}
}

func (w *world) launch(f flight, l *link) {
	x := &w.wires
	at := w.now + x.delay(l)
	if overtakes := !x.calm && chance(x.rng, x.net.Reorder, 10_000); !overtakes {
		at = max(at, l.last)
		l.last = at
	}
	i := x.flights.take()
	x.flights.at[i] = f
	if f.kind == mQPID {
		x.qpid++
	}
	w.agenda.push(at, evMessage, i, 0)
}

// arrive hands a message to its node.
func (w *world) arrive(i int32) {
	x := &w.wires
	f := x.flights.at[i]
	h := &w.hosts[f.to]
	l := x.link(f.from, f.to)
	if f.freed {
		l.due--
		x.flights.at[i].freed = false
	}
	switch {
	case f.gen != l.gen || !h.up():
		x.land(i)
		return
	case l.cut > 0 && x.net.Held:
		l.held = append(l.held, i)
		return
	case l.due > 0 && !f.freed:
		w.agenda.push(w.now, evMessage, i, 0)
		return
	case h.paused > 0:
		h.hold(event{kind: evMessage, a: i})
		return
	}
	x.land(i)
	if m, ok := f.m.Body.(*eviction.Slots); ok && len(m.Visits) > 0 {
		h.offered = append(h.offered, m)
	}
	if w.trap(h, f.kind, beforeStep) {
		return
	}
	w.note('m', uint64(f.from)<<32|uint64(f.to), uint64(f.kind))
	w.hearing(h, &f)
	err := h.n.Step(h.clock.read(w.now), f.m)
	if w.trace.print != nil {
		w.printf("%s <- %s %s%s", h.name, w.hosts[f.from].name, w.body(f.m.Body), complaint(err))
	}
	if w.tells(h, &f) {
		h.hears()
	}
	w.drain(h)
	w.trap(h, f.kind, afterStep)
}

// tells reports whether f shows h that time has passed while it stood still: a word
// of one whose clock its last wave measured.
func (w *world) tells(h *host, f *flight) bool {
	p, ok := f.m.Body.(*eviction.Probe)
	return ok && slices.Contains(h.seen.status.List, f.m.From) && p.Sent-(h.seen.status.Clock+h.clock.boot(w.now)-h.seen.status.ClockAt) > 2*w.o.Cluster.MaxSkew.Microseconds()
}

// msgKind is a message's kind as a small number.
type msgKind uint8

const (
	mGather msgKind = iota
	mReply
	mCommit
	mNack
	mProbe
	mProbeAck
	mUrgent
	mSlots
	mSlotsAck
	mQPID
	mSyncRequest
	mSyncReply
	mGoodbye
	mAsk
	mCopies
	mCopiesAck
	mOther
	msgKinds
)

func (k msgKind) String() string {
	return [...]string{
		"gather", "reply", "commit", "nack", "probe", "probe_ack", "urgent", "slots", "slots_ack", "qpid",
		"sync_request", "sync_reply", "goodbye", "ask", "copies", "copies_ack", "other",
	}[k]
}

func kindOf(b eviction.Body) msgKind {
	switch b.(type) {
	case *eviction.Gather:
		return mGather
	case *eviction.Reply:
		return mReply
	case *eviction.Commit:
		return mCommit
	case *eviction.Nack:
		return mNack
	case *eviction.Probe:
		return mProbe
	case *eviction.ProbeAck:
		return mProbeAck
	case *eviction.Urgent:
		return mUrgent
	case *eviction.Slots:
		return mSlots
	case *eviction.SlotsAck:
		return mSlotsAck
	case *eviction.RoomQPID:
		return mQPID
	case *eviction.SyncRequest:
		return mSyncRequest
	case *eviction.SyncReply:
		return mSyncReply
	case *eviction.Goodbye:
		return mGoodbye
	case *eviction.Ask:
		return mAsk
	case *eviction.Copies:
		return mCopies
	case *eviction.CopiesAck:
		return mCopiesAck
	}
	return mOther
}
