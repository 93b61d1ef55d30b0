package loop

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// listeners are the nodes at which somebody watches a ticket whose place is at this
// one. A check-in that comes from such a node says so, and when something happens to
// the ticket that node is told, once, and asks (see Links.Hint). Nothing else rests on
// it: who is not told, because a hint was lost or there were too many, asks when it
// would have asked anyway.
//
// Whoever watches asks again before the answer's Refresh is over, by a check-in that
// says so anew. A node that has not by then is not told any more.
//
// Invariant: len(of) <= max, and no entry is all zero.
type listeners struct {
	mu      sync.Mutex
	max     int // tickets
	of      map[watched][watchesMax]listener
	sweepAt int64 // boot time at which to look for those whose time is over
	refused atomic.Uint64
}

// listener is a node that is told. The zero one is none.
type listener struct {
	at    eviction.Member
	until int64 // boot time
}

const (
	listensLate = 10 * time.Second // how much later than it was told a stream may ask again
	sweepEvery  = 10 * time.Second
)

// add has at told of what happens to w before boot time until. Of more nodes than may
// watch a ticket those are told that will be for longest: the ones that asked last.
func (s *listeners) add(w watched, at eviction.Member, now, until int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now >= s.sweepAt {
		s.sweep(now)
	}
	all, known := s.of[w]
	if !known && len(s.of) >= s.max {
		s.refused.Add(1)
		return
	}
	first := 0 // to end
	for i := range all {
		if all[i].at == at {
			first = i
			break
		}
		if all[i].until < all[first].until {
			first = i
		}
	}
	all[first] = listener{at, until}
	if s.of == nil {
		s.of = make(map[watched][watchesMax]listener)
	}
	s.of[w] = all
}

// remove has at told no more of w.
func (s *listeners) remove(w watched, at eviction.Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, known := s.of[w]
	if !known {
		return
	}
	for i := range all {
		if all[i].at == at {
			all[i] = listener{}
		}
	}
	s.put(w, all)
}

func (s *listeners) put(w watched, all [watchesMax]listener) {
	if all == ([watchesMax]listener{}) {
		delete(s.of, w)
	} else {
		s.of[w] = all
	}
}

// take returns those to be told of w at boot time now, and forgets them: they ask, and
// say then whether they go on watching.
func (s *listeners) take(w watched, now int64) [watchesMax]listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, known := s.of[w]
	if !known {
		return all
	}
	delete(s.of, w)
	return current(all, now)
}

// sweep forgets those whose time is over.
func (s *listeners) sweep(now int64) {
	s.sweepAt = now + sweepEvery.Microseconds()
	for w, all := range s.of {
		s.put(w, current(all, now))
	}
}

// current is all but those whose time is over.
func current(all [watchesMax]listener, now int64) [watchesMax]listener {
	for i := range all {
		if all[i].until <= now {
			all[i] = listener{}
		}
	}
	return all
}

// expect has the node that asks told of what happens while q is answered.
func (l *Loop) expect(q *ticket.Request) {
	now := l.c.Clock().Boot
	l.remote.add(watched{q.Room, q.Ticket.ID}, q.Listener, now, now+(l.c.Answer+listensLate).Microseconds())
}

// expectMore has it told until it asks again, if the place is here. It may have
// become another one.
func (l *Loop) expectMore(q *ticket.Request, a *ticket.Answer, err error) {
	w := watched{q.Room, q.Ticket.ID}
	here := err == nil && a.Forward == (eviction.Member{}) && a.State != ticket.Admitted
	if !here || a.Ticket.ID != w.id {
		l.remote.remove(w, q.Listener)
	}
	if here {
		w.id = a.Ticket.ID
		now := l.c.Clock().Boot
		l.remote.add(w, q.Listener, now, now+(max(a.Refresh, time.Second)+listensLate).Microseconds())
	}
}

// happened wakes those who watch a ticket, wherever they are.
func (l *Loop) happened(w watched, now int64) {
	l.streams.wake(w)
	for _, to := range l.remote.take(w, now) {
		if to != (listener{}) {
			l.c.Links.Hint(to.at, w.room, w.id)
		}
	}
}

// Hint hears from the home of a ticket that something has happened to it.
func (l *Loop) Hint(room string, id qpid.ItemID) { l.streams.wake(watched{room, id}) }

// Unheard returns how often a node was not told of what happens to a ticket that it
// asked for because there were too many.
func (l *Loop) Unheard() uint64 { return l.remote.refused.Load() }
