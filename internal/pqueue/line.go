package pqueue

import "github.com/anteroom/anteroom/qpid"

// Line is a few weights in order. Most lines have one, and cost little.
//
// Invariant: first is the lightest, and the zero weight if there is none; rest has the
// others, nil if there never were any.
type Line struct {
	first qpid.Weight
	rest  *qpid.Queue
}

// First is the lightest, and the zero weight if there is none.
func (l *Line) First() qpid.Weight { return l.first }

// Has reports whether w is in the line.
func (l *Line) Has(w qpid.Weight) bool {
	return w == l.first || l.rest != nil && l.rest.Has(w)
}

// Insert puts w in its place, if it is not there yet.
func (l *Line) Insert(w qpid.Weight) {
	switch {
	case l.first == (qpid.Weight{}):
		l.first = w
		return
	case w == l.first:
		return
	case l.rest == nil:
		l.rest = qpid.NewQueue()
	}
	if w.Less(l.first) {
		w, l.first = l.first, w
	}
	l.rest.Insert(w)
}

// Delete takes w out, if it is there.
func (l *Line) Delete(w qpid.Weight) {
	if w != l.first {
		if l.rest != nil {
			l.rest.Delete(w)
		}
		return
	}
	l.first = qpid.Weight{}
	if l.rest == nil {
		return
	}
	if next, ok := l.rest.Min(); ok {
		l.rest.Delete(next)
		l.first = next
	}
}
