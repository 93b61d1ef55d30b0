package explore

import (
	"fmt"
	"strings"

	"github.com/anteroom/anteroom/eviction"
)

// name says in one line what e will do.
func (w *world) name(e event) string {
	a, b := int(e.a), int(e.b)
	switch e.kind {
	case evDeliver:
		return "deliver " + w.head(a)
	case evDrop:
		return "lose " + w.head(a)
	case evVisit:
		d := w.m.visitors[a][w.visitors[a].step]
		return fmt.Sprintf("visitor %d %v at %s", a, d.kind, hostName(d.host))
	case evView:
		return fmt.Sprintf("%s hears whether %s is there: %v", hostName(a), hostName(b), w.reaches(b, a))
	case evDoubt:
		return fmt.Sprintf("%s takes %s for dead", hostName(a), hostName(b))
	case evCut:
		return "cut " + w.m.faults.cuts[a].name
	case evHeal:
		return "heal " + w.m.faults.cuts[w.cutNow].name
	case evTime:
		m := w.m.schedule[w.moment]
		if m.quiet {
			return fmt.Sprintf("all runs quietly until %s, %s", clock(ms(m.at)), m.name)
		}
		return fmt.Sprintf("time is %s, %s", clock(ms(m.at)), m.name)
	default:
		what := map[eventKind]string{
			evTick: "ticks", evCrash: "crashes", evSilent: "crashes, and what it sent is lost", evRestart: "starts again",
			evPause: "is paused", evResume: "goes on",
		}
		return fmt.Sprintf("%s %s", hostName(a), what[e.kind])
	}
}

// head shows the head of a link.
func (w *world) head(i int) string { return line(&w.cast.messages.all[w.links[i].at(0)]) }

// line shows a message.
func line(m *eviction.Message) string {
	s := fmt.Sprintf("%v→%v %s", m.From, m.To, m.Body.Kind())
	switch b := m.Body.(type) {
	case *eviction.Gather:
		s += fmt.Sprintf(" %v of %v", b.Epoch, b.List)
	case *eviction.Reply:
		s += fmt.Sprintf(" %v", b.Epoch)
	case *eviction.Commit:
		s += fmt.Sprintf(" %v %v", b.Epoch, b.Grade)
		for _, r := range b.Rooms {
			s += fmt.Sprintf(" mint %d void %v moves %v cut %v", r.Mint, r.Void, r.Moves, r.Cut.Value)
		}
	default:
		s += fmt.Sprintf(" %+v", b)
	}
	return s
}

// describe prints the state for people.
func (w *world) describe() string {
	var s strings.Builder
	fmt.Fprintf(&s, "at %s:\n", clock(w.now))
	w.ledgers(func(l *life, dead bool) {
		st, r := &l.status, &l.room
		fmt.Fprintf(&s, "  %v (dead %v, paused %v): seen %v, installed %v %v of %v, lease until %s, knows %v, frozen %v, leading %v, list %v\n", l.self, dead,
			w.hosts[l.host].paused, st.Epoch, st.Installed, st.Grade, st.Line, clock(st.LeaseUntil-bootZero), st.Knows, st.Frozen, st.Leading, st.List)
		fmt.Fprintf(&s, "    account %v owns %d (minted %d), uses %d: %d called, %d on site, %d queued; cut %v; root %v; voids %v; books %v\n",
			r.Account, r.Owned, r.Minted, r.Used, r.Called, r.OnSite, r.Queued, r.Cut.Value, r.QPIDRoot, r.Voided, r.Peers)
	})
	for _, l := range w.links {
		for _, m := range l.all() {
			fmt.Fprintf(&s, "  %s\n", line(&w.cast.messages.all[m]))
		}
	}
	for v := range w.m.visitors {
		u := &w.visitors[v]
		fmt.Fprintf(&s, "  visitor %d: step %d, entitled %d, called %d times", v, u.step, u.entitled, u.calls)
		if u.answer != none {
			a := &w.cast.answers.all[u.answer]
			fmt.Fprintf(&s, ", %v: %+v %+v", a.State, a.Ticket, a.Pass)
		}
		fmt.Fprintln(&s)
	}
	return s.String()
}
