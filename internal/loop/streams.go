package loop

import (
	"sync"

	"github.com/anteroom/anteroom/qpid"
)

// watchesMax is how many may watch a ticket at once: a browser's tabs share one
// stream, another may stand for a connection that is dead and not yet given up.
const watchesMax = 2

// streams wakes those who watch a ticket. Whoever opens them bounds their number
// in all.
type streams struct {
	mu  sync.Mutex
	all map[watched][]chan struct{}
}

type watched struct {
	room string
	id   qpid.ItemID
}

// Called returns a channel that gets a value whenever something happens to ticket id
// of room: it is called, parked or dropped, or its session ends. Of a ticket whose
// place is at another node that node tells, once a check-in by this one has said that
// somebody watches: so watch first, and then check in. The function ends the watch. When more than two watch a ticket, the oldest watch
// ends: its channel is closed.
func (l *Loop) Called(room string, id qpid.ItemID) (<-chan struct{}, func()) {
	return l.streams.add(watched{room, id})
}

func (s *streams) add(w watched) (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[watched][]chan struct{})
	}
	if all := s.all[w]; len(all) >= watchesMax {
		close(all[0])
		s.all[w] = append(all[:0], all[1:]...)
	}
	s.all[w] = append(s.all[w], c)
	return c, func() { s.remove(w, c) }
}

func (s *streams) remove(w watched, c chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.all[w][:0]
	for _, o := range s.all[w] {
		if o != c {
			left = append(left, o)
		}
	}
	if s.all[w] = left; len(left) == 0 {
		delete(s.all, w)
	}
}

// has reports whether somebody watches w.
func (s *streams) has(w watched) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all[w]) > 0
}

func (s *streams) wake(w watched) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.all[w] {
		select {
		case c <- struct{}{}:
		default: // it is awake already
		}
	}
}
