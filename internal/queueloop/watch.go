package queueloop

import (
	"slices"
	"sync/atomic"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
)

// Watch is somebody who looks on at a queue.
type Watch struct {
	events chan broker.Seen
	missed atomic.Uint64
}

const (
	watchesMax = 1000 // at a time
	eventsMax  = 1024 // that wait for one who looks on
)

// Events brings what happens. It is closed when the node stops.
func (w *Watch) Events() <-chan broker.Seen { return w.events }

// Missed returns how much there was no room for since it was last asked.
func (w *Watch) Missed() uint64 { return w.missed.Swap(0) }

// Watch begins to watch a queue; the function ends it. The code says why there
// is no watch.
func (l *Loop) Watch(queue string) (w *Watch, done func(), code pqueue.Code) {
	l.with(func(b *broker.Broker, now broker.Time) {
		if l.watching >= watchesMax || l.stopped {
			code = pqueue.Busy
			return
		}
		if code = b.Watch(now, queue, true); code != pqueue.OK {
			return
		}
		w = &Watch{events: make(chan broker.Seen, eventsMax)}
		l.watches[queue] = append(l.watches[queue], w)
		l.watching++
	})
	return w, func() { l.unwatch(queue, w) }, code
}

func (l *Loop) unwatch(queue string, w *Watch) {
	l.with(func(b *broker.Broker, now broker.Time) {
		l.watching--
		left := slices.DeleteFunc(l.watches[queue], func(o *Watch) bool { return o == w })
		if l.watches[queue] = left; len(left) == 0 {
			delete(l.watches, queue)
			b.Watch(now, queue, false)
		}
	})
}

// tell passes on what was seen. It does not wait for those who are slow.
func (l *Loop) tell(s broker.Seen) {
	for _, w := range l.watches[s.Change.Queue] {
		select {
		case w.events <- s:
		default:
			w.missed.Add(1)
		}
	}
}
