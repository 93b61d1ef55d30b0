package explore

import (
	"fmt"
	"slices"
)

type eventKind uint8

const (
	evDeliver eventKind = iota // a: link
	evDrop                     // a: link
	evTick                     // a: host
	evVisit                    // a: visitor
	evView                     // a: host that hears whether b is there
	evDoubt                    // a: host that takes b for dead
	evCrash                    // a: host
	evSilent                   // a: host that crashes, and all it sent is lost
	evRestart                  // a: host
	evPause                    // a: host
	evResume                   // a: host
	evCut                      // a: cut
	evHeal                     //
	evTime                     // to the next moment of the schedule
)

type event struct {
	kind eventKind
	a, b uint8
}

// events lists what can happen next.
func (w *world) events(can []event) []event {
	add := func(may bool, k eventKind, a, b int) {
		if may {
			can = append(can, event{k, uint8(a), uint8(b)})
		}
	}
	f, u, m := &w.m.faults, &w.used, int(w.moment)
	trouble := f.until == 0 || m < f.until
	for i := range w.links {
		if len(w.links[i]) > 0 {
			add(w.carries(i), evDeliver, i, 0)
			add(f.drops.more(u.drops, w.kind(i)), evDrop, i, 0)
		}
	}
	for h := range w.m.nodes {
		t := &w.hosts[h]
		add(w.runs(h) && !t.ticked, evTick, h, 0)
		for o := range w.m.nodes {
			news := w.news(h, o)
			add(news, evView, h, o)
			add(!news && t.believes[o] != 0 && u.doubts < f.doubts && slices.Contains(f.doubtable, [2]int{h, o}), evDoubt, h, o)
		}
		add(t.paused, evResume, h, 0)
		crash := trouble && t.up && f.crashes.more(u.crashes, h)
		add(crash, evCrash, h, 0)
		add(crash && slices.ContainsFunc(w.links[link(h, 0):link(h+1, 0)], func(l list) bool { return l != "" }), evSilent, h, 0)
		add(trouble && !t.up && u.restarts < f.restarts, evRestart, h, 0)
		add(trouble && w.runs(h) && f.pauses.more(u.pauses, h), evPause, h, 0)
	}
	for v := range w.m.visitors {
		add((w.m.coarse.deeds == 0 || m < w.m.coarse.deeds) && w.useful(v), evVisit, v, 0)
	}
	for i := range f.cuts {
		add(trouble && w.cutNow == none && w.cutsMade>>i&1 == 0, evCut, i, 0)
	}
	add(w.cutNow != none && u.heals < f.heals, evHeal, 0, 0)
	add(w.timePasses(), evTime, 0, 0)
	return can
}

// news reports whether host h has yet to hear that o is there, or is not.
func (w *world) news(h, o int) bool {
	t := &w.hosts[h]
	if h == o || !w.runs(h) {
		return false
	}
	if w.reaches(o, h) {
		return t.believes[o] != w.hosts[o].life
	}
	return t.believes[o] != 0
}

// timePasses reports whether the next moment may come: everyone has had a
// tick, and nothing is under way or it may be late.
func (w *world) timePasses() bool {
	if int(w.moment) >= len(w.m.schedule) {
		return false
	}
	for h := range w.m.nodes {
		if w.runs(h) && !w.hosts[h].ticked {
			return false
		}
		for o := range w.m.nodes {
			if w.m.coarse.patient && w.news(h, o) {
				return false
			}
		}
	}
	for i := range w.links {
		if w.carries(i) && !w.m.faults.late.more(w.used.late, w.kind(i)) {
			return false
		}
	}
	return true
}

// busy reports whether a message could arrive now.
func (w *world) busy() (busy bool) {
	for i := range w.links {
		busy = busy || w.carries(i)
	}
	return busy
}

// apply makes e happen, and whatever the model has follow at once.
func (w *world) apply(e event) {
	a, b := int(e.a), int(e.b)
	switch e.kind {
	case evDeliver:
		w.deliver(a)
	case evDrop:
		w.used.drops++
		w.shift(a)
	case evTick:
		w.hosts[a].ticked = true
		w.input(a, input{kind: inTick})
	case evVisit:
		w.visit(a)
	case evView:
		w.hear(a, b)
	case evDoubt:
		w.used.doubts++
		w.hosts[a].believes[b] = 0
		w.hear(a)
	case evCrash, evSilent:
		w.used.crashes++
		w.crash(a, e.kind == evSilent)
	case evRestart:
		w.used.restarts++
		w.start(a)
		w.hear(a, w.everyone()...)
	case evPause:
		w.used.pauses++
		w.hosts[a].paused = true
	case evResume:
		w.hosts[a].paused = false
	case evCut:
		w.used.cuts++
		w.cutsMade |= 1 << a
		w.cutNow = int8(a)
		for _, l := range w.m.faults.cuts[a].links {
			w.cut |= 1 << link(l[0], l[1])
		}
	case evHeal:
		w.used.heals++
		w.cut, w.cutNow = 0, none
	case evTime:
		w.nextMoment()
	}
	w.follow()
}

// follow makes happen what the model does not explore.
func (w *world) follow() {
	for h := range w.m.nodes {
		for o := range w.m.nodes {
			if w.m.coarse.told && w.news(h, o) {
				w.hear(h, o)
			}
		}
	}
	w.hurry()
	w.idle()
	w.check()
}

// hurry delivers the messages that the model has arrive at once.
func (w *world) hurry() {
	for again := true; again; {
		again = false
		for i := range w.links {
			for w.carries(i) && slices.Contains(w.m.coarse.eager, w.kind(i)) {
				w.deliver(i)
				again = true
			}
		}
	}
}

// idle spares the ticks that do nothing.
func (w *world) idle() {
	for h := range w.m.nodes {
		t := &w.hosts[h]
		if !w.runs(h) || t.ticked {
			continue
		}
		// A deadline that is due shows as the next microsecond.
		t.ticked = w.life(h).deadline > bootZero+w.now+1
		if !t.ticked {
			o := w.cast.do(t.state, input{kind: inTick, now: w.now})
			t.ticked = o.to == t.state && len(o.sent) == 0 && o.fault == nil
		}
	}
}

func (w *world) nextMoment() {
	m := w.m.schedule[w.moment]
	if w.busy() {
		w.used.late++
	}
	w.moment++
	if m.quiet {
		w.quiet(ms(m.at))
	} else {
		w.goTo(ms(m.at))
	}
}

func (w *world) goTo(now int64) {
	if now <= w.now {
		panic(fmt.Sprintf("explore: the schedule goes back, from %s to %s", clock(w.now), clock(now)))
	}
	w.now = now
	for h := range w.m.nodes {
		w.hosts[h].ticked = false
	}
}

// quiet lets the world run by itself until a time: what is sent arrives at
// once, in one order, and every node ticks when it wants to.
func (w *world) quiet(until int64) {
	for w.calm(); w.broken == nil && w.now < until; w.calm() {
		next := until
		for h := range w.m.nodes {
			if w.runs(h) {
				next = min(next, w.life(h).deadline-bootZero)
			}
		}
		if w.m.lie.clock != nil {
			next = max(next, w.now+ms(100)) // a clock that stands still is always due
		}
		w.goTo(max(next, w.now+1))
		for h := range w.m.nodes {
			if w.runs(h) && w.life(h).deadline <= bootZero+w.now {
				w.hosts[h].ticked = true
				w.input(h, input{kind: inTick})
				w.check()
			}
		}
	}
}

// calm delivers all that can arrive.
func (w *world) calm() {
	for w.busy() && w.broken == nil {
		for i := range w.links {
			if w.carries(i) {
				w.deliver(i)
				w.check()
			}
		}
	}
}
