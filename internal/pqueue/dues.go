package pqueue

// deadline is when something happens by itself to that of which it is part.
type deadline struct {
	due   int64 // Unix µs; 0: never
	place int   // in its dues; -1: it is not there
}

func (d *deadline) at() *deadline { return d }

// timed has a deadline, and a place among those of the same time.
type timed[T any] interface {
	at() *deadline
	precedes(o T) bool
}

// dues is a heap of what has a deadline, the first due at its top.
type dues[T timed[T]] []T

func (d dues[T]) less(a, b int) bool {
	x, y := d[a].at().due, d[b].at().due
	return x < y || x == y && d[a].precedes(d[b])
}

func (d dues[T]) swap(a, b int) {
	d[a], d[b] = d[b], d[a]
	d[a].at().place, d[b].at().place = a, b
}

// set makes t due at that time; 0: never.
func (d *dues[T]) set(t T, at int64) {
	is := t.at()
	switch {
	case at == 0 && is.place < 0, at != 0 && is.place >= 0 && is.due == at:
	case at == 0:
		last, p := len(*d)-1, is.place
		d.swap(p, last)
		var none T
		(*d)[last] = none
		*d = (*d)[:last]
		is.place, is.due = -1, 0
		if p < last {
			d.fix(p)
		}
	case is.place < 0:
		is.due, is.place = at, len(*d)
		*d = append(*d, t)
		d.fix(is.place)
	default:
		is.due = at
		d.fix(is.place)
	}
}

func (d dues[T]) fix(at int) {
	for at > 0 {
		up := (at - 1) / 2
		if !d.less(at, up) {
			break
		}
		d.swap(at, up)
		at = up
	}
	for {
		least := at
		for _, c := range []int{2*at + 1, 2*at + 2} {
			if c < len(d) && d.less(c, least) {
				least = c
			}
		}
		if least == at {
			return
		}
		d.swap(at, least)
		at = least
	}
}
