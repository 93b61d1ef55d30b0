package node

import (
	"slices"
	"testing"

	"github.com/anteroom/anteroom/qpid"
)

func TestWheel(t *testing.T) {
	var p visitors
	w := newWheel(0, &p)
	var got []byte
	expire := func(now int64) string {
		got = nil
		w.expire(now, func(v *visitor) { got = append(got, v.id[0]) })
		return string(got)
	}
	add := func(id byte, due int64) *visitor {
		v := p.add(visitor{id: qpid.ItemID{id}, due: due})
		w.add(v)
		return v
	}
	add('a', 10*slotMicros)
	b := add('b', 10*slotMicros)
	c := add('c', 20*slotMicros)
	add('d', 5*slotMicros+1)
	if got := expire(5 * slotMicros); got != "" {
		t.Errorf("at 5: %q, nobody is due", got)
	}
	if got := expire(7 * slotMicros); got != "d" {
		t.Errorf("at 7: %q, want d", got)
	}
	b.due = 30 * slotMicros // put off: looked at in its old slot, and put back
	c.due = 11 * slotMicros // brought forward
	w.add(c)
	if got := expire(15 * slotMicros); got != "ac" {
		t.Errorf("at 15: %q, want a and c", got)
	}
	if got := expire(25 * slotMicros); got != "" {
		t.Errorf("at 25: %q, c was looked at before", got)
	}
	p.remove(b) // forgotten
	if got := expire(40 * slotMicros); got != "" || len(w.order) != 0 {
		t.Errorf("at 40: %q, %d left; b was forgotten", got, len(w.order))
	}
	e := add('e', slotMicros) // overdue
	if got := expire(42 * slotMicros); got != "e" || e.slot != 0 {
		t.Errorf("at 42: %q, want e", got)
	}
}

// Each visitor is looked at once, no earlier than due and a slot late at most,
// in the same order whenever the same is done.
func TestWheelLooksAtEveryoneInTime(t *testing.T) {
	run := func() (order []int64) {
		var p visitors
		w := newWheel(1<<40, &p)
		for i := int64(0); i < 1000; i++ {
			w.add(p.add(visitor{id: qpid.ItemID{byte(i), byte(i >> 8)}, due: 1<<40 + i*i*7919%50_000_000, stamp: uint64(i)}))
		}
		for now := int64(1 << 40); now < 1<<40+60_000_000; now += 50_000 {
			w.expire(now, func(v *visitor) {
				if v.due > now || now-v.due > 2*slotMicros {
					t.Fatalf("looked at %d µs after it was due", now-v.due)
				}
				order = append(order, int64(v.stamp))
			})
		}
		return order
	}
	first := run()
	if len(first) != 1000 || !slices.Equal(first, run()) {
		t.Errorf("%d of 1000 looked at, or in another order the second time", len(first))
	}
}

// A machine may have been up for years when a room is created.
func TestWheelOfALateRoomStartsNow(t *testing.T) {
	const boot = int64(10 * 365 * 24 * 3600 * 1e6)
	var p visitors
	w := newWheel(boot, &p)
	v := p.add(visitor{due: boot + 1e6})
	w.add(v)
	steps := 0
	for now := boot; v.slot != 0; now += 100_000 {
		before := w.next
		w.expire(now, func(*visitor) {})
		steps += int(w.next - before)
	}
	if steps > 10 {
		t.Errorf("went through %d slots for one second", steps)
	}
}
