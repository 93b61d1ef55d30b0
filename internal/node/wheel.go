package node

import (
	"math"
	"slices"
)

// slotMicros is the width of a wheel slot: what is due is done at most this
// much late.
const slotMicros = 1 << 18 // 0.26 s

// wheel remembers when to look at visitors. Each is in the wheel at the
// earliest time at which something may be due, and put back if nothing is, so
// that a check-in costs nothing here.
type wheel struct {
	began    int64               // boot time of slot 0
	slots    map[uint32][]uint32 // record numbers of visitors, by time since began / slotMicros
	order    []uint32            // the keys of slots, the earliest first
	next     uint32              // slots before it have been emptied
	visitors *visitors
}

// gone is the slot of a record that was removed.
const gone = math.MaxUint32

func newWheel(now int64, p *visitors) wheel {
	return wheel{began: now, slots: make(map[uint32][]uint32), visitors: p}
}

// add looks at v at boot time v.due, or a little later.
func (w *wheel) add(v *visitor) {
	slot := max(w.slotOf(v.due)+1, w.next)
	if v.slot != 0 && v.slot <= slot && v.slot >= w.next {
		return // looked at soon enough
	}
	v.slot = slot
	numbers, known := w.slots[slot]
	w.slots[slot] = append(numbers, v.number)
	if !known {
		i, _ := slices.BinarySearch(w.order, slot)
		w.order = slices.Insert(w.order, i, slot)
	}
}

// slotOf is good for 34 years after the room began.
func (w *wheel) slotOf(boot int64) uint32 { return uint32(max(boot-w.began, 0) / slotMicros) }

// expire calls fn for each visitor that is due by now, in the order in which
// they were added.
func (w *wheel) expire(now int64, fn func(*visitor)) {
	end := w.slotOf(now)
	for len(w.order) > 0 && w.order[0] <= end {
		at := w.order[0]
		w.order = w.order[1:]
		slot := w.slots[at]
		delete(w.slots, at)
		w.next = at + 1
		for _, number := range slot {
			v := w.visitors.at(number)
			if v == nil || v.slot != at {
				continue // it is in an earlier slot as well, or somebody else's record now
			}
			v.slot = 0
			if v.due <= now {
				fn(v)
			} else {
				w.add(v)
			}
		}
	}
	w.next = max(w.next, end+1)
}

// deadline returns the boot time at which expire should be called next.
func (w *wheel) deadline() int64 {
	if len(w.order) == 0 {
		return ever
	}
	return w.began + int64(w.order[0])*slotMicros
}
