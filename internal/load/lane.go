package load

import (
	"sync"
	"time"
)

// lane is the visitors of one gateway who want something, now or later.
type lane struct {
	to    *target
	clock func() int64 // µs since the start

	mu   sync.Mutex
	due  []entry   // a heap: the earliest is first
	idle sync.Cond // connections with nothing to do, but one
	led  bool      // that one waits for the earliest visitor
	wake chan bool // tells it of an earlier one, or of the end
	over bool
	next func() *visitor // who comes after an arrival was taken; nil: nobody
}

// entry is when a visitor wants something. The time is here rather than in the
// visitor so that the heap sorts within its own memory.
type entry struct {
	at int64 // µs since the start
	v  *visitor
}

func newLane(to *target, clock func() int64) *lane {
	l := &lane{to: to, clock: clock, wake: make(chan bool, 1)}
	l.idle.L = &l.mu
	return l
}

// put has v wait until v.due.
func (l *lane) put(v *visitor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.push(entry{v.due, v})
	if l.due[0].v == v {
		l.nudge()
	}
}

// nudge has somebody look at the heap. The lock is held.
func (l *lane) nudge() {
	if !l.led {
		l.idle.Signal()
		return
	}
	select {
	case l.wake <- true:
	default: // it is being woken already
	}
}

// take returns the visitor who has been due longest and waits until there is
// one; nil when it is all over. One of those who wait sleeps until the earliest
// is due, the others until they are called.
func (l *lane) take() *visitor {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.over {
		wait := time.Hour
		if len(l.due) > 0 {
			wait = time.Duration(l.due[0].at-l.clock()) * time.Microsecond
		}
		switch {
		case wait <= 0:
			v := l.pop()
			if v.arriving() && l.next != nil {
				if n := l.next(); n != nil {
					l.push(entry{n.due, n})
				}
			}
			if !l.led {
				l.idle.Signal() // it is for somebody else to wait for the next
			}
			return v
		case l.led:
			l.idle.Wait()
		default:
			l.lead(wait)
		}
	}
	return nil
}

// lead sleeps that long, or until there is an earlier visitor. The lock is held,
// but for the sleep.
func (l *lane) lead(wait time.Duration) {
	l.led = true
	l.mu.Unlock()
	t := time.NewTimer(wait)
	select {
	case <-t.C:
	case <-l.wake:
	}
	t.Stop()
	l.mu.Lock()
	l.led = false
}

// end sends everyone who takes from the lane home.
func (l *lane) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.idle.Broadcast()
	select {
	case l.wake <- true:
	default:
	}
}

// push and pop keep the heap: no entry is earlier than the one it hangs on.
func (l *lane) push(e entry) {
	l.due = append(l.due, e)
	for i := len(l.due) - 1; i > 0; {
		on := (i - 1) / 2
		if l.due[on].at <= l.due[i].at {
			return
		}
		l.due[on], l.due[i] = l.due[i], l.due[on]
		i = on
	}
}

func (l *lane) pop() *visitor {
	first, last := l.due[0], len(l.due)-1
	l.due[0] = l.due[last]
	l.due[last] = entry{} // lets go of the visitor
	l.due = l.due[:last]
	for i := 0; ; {
		least := 2*i + 1
		if least >= last {
			return first.v
		}
		if right := least + 1; right < last && l.due[right].at < l.due[least].at {
			least = right
		}
		if l.due[i].at <= l.due[least].at {
			return first.v
		}
		l.due[i], l.due[least] = l.due[least], l.due[i]
		i = least
	}
}
