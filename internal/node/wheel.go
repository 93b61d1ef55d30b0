package node

// slotMicros is the width of a wheel slot: what is due is done at most this
// much late.
const slotMicros = 1 << 18 // 0.26 s

// wheel remembers when to look at visitors. Each is in the wheel at the
// earliest time at which something may be due, and put back if nothing is, so
// that a check-in costs nothing here.
type wheel struct {
	slots map[int64][]*visitor // by boot time / slotMicros
	next  int64                // slots before it have been emptied
	n     int
}

func newWheel(now int64) wheel {
	return wheel{slots: make(map[int64][]*visitor), next: now / slotMicros}
}

// add looks at v at boot time v.due, or a little later.
func (w *wheel) add(v *visitor) {
	slot := max(v.due/slotMicros+1, w.next)
	if v.slot != 0 && v.slot <= slot && v.slot >= w.next {
		return // looked at soon enough
	}
	v.slot = slot
	w.slots[slot] = append(w.slots[slot], v)
	w.n++
}

// expire calls fn for each visitor that is due by now, in the order in which
// they were added.
func (w *wheel) expire(now int64, fn func(*visitor)) {
	for end := now / slotMicros; w.next <= end; {
		if w.n == 0 {
			w.next = end + 1
			return
		}
		at := w.next
		slot := w.slots[at]
		delete(w.slots, at)
		w.n -= len(slot)
		w.next++
		for _, v := range slot {
			if v.slot != at {
				continue // it is in an earlier slot as well, or forgotten
			}
			v.slot = 0
			if v.due <= now {
				fn(v)
			} else {
				w.add(v)
			}
		}
	}
}

// deadline returns the boot time at which expire should be called next.
func (w *wheel) deadline() int64 {
	if w.n == 0 {
		return 1 << 62
	}
	return w.next * slotMicros
}
