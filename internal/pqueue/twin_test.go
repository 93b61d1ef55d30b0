package pqueue_test

import (
	"cmp"
	"slices"

	"github.com/anteroom/anteroom/internal/pqueue"
)

// twin is a queue as slow and as plain as can be: one slice of everything that
// ever was.
type twin struct {
	now   int64
	l     pqueue.Limits
	items []*twinItem
	mode  pqueue.Mode
	gone  int // items finished
}

type twinItem struct {
	pqueue.Item
	acked bool
	gone  int64 // when it was finished
	nth   int   // as which one
	died  uint64
}

func (m *twin) in(s ...pqueue.State) (found []*twinItem) {
	for _, i := range m.items {
		if slices.Contains(s, i.State) {
			found = append(found, i)
		}
	}
	return found
}

// line is the items of a state in their order.
func (m *twin) line(s pqueue.State) []*twinItem {
	r := m.in(s)
	slices.SortStableFunc(r, func(a, b *twinItem) int {
		if c := cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Stamp, b.Stamp)); c != 0 {
			return c
		}
		return pqueue.WeightOf(a.Priority, a.Stamp, 7, a.Number).Compare(pqueue.WeightOf(b.Priority, b.Stamp, 7, b.Number))
	})
	return r
}

func (m *twin) ready() []string {
	names := []string{}
	for _, i := range m.line(pqueue.Ready) {
		names = append(names, i.ID)
	}
	return names
}

func (m *twin) byID(id string) *twinItem {
	for _, i := range slices.Backward(m.items) {
		if i.ID == id && i.State != pqueue.None {
			return i
		}
	}
	return nil
}

func (m *twin) finish(i *twinItem) {
	m.gone++
	i.State, i.gone, i.nth = pqueue.Finished, m.now, m.gone
	m.trim()
}

func (m *twin) trim() {
	f := m.in(pqueue.Finished)
	slices.SortStableFunc(f, func(a, b *twinItem) int { return cmp.Compare(a.nth, b.nth) })
	for k, i := range f {
		if len(f)-k > m.l.RememberMax || i.gone+m.l.Remember <= m.now {
			i.State = pqueue.None
		}
	}
}

// wait is how long an item waits by itself after a lease.
func (m *twin) wait(i *twinItem) int64 {
	d := m.l.Backoff.Base
	for range i.Attempts - 1 {
		d = d * m.l.Backoff.Factor / 1000
	}
	return min(d, m.l.Backoff.Max)
}

func (m *twin) putBack(i *twinItem, back int64) {
	i.Until = 0
	switch {
	case i.Expires != 0 && i.Expires <= m.now:
		m.finish(i)
	case m.l.AttemptsMax > 0 && int(i.Attempts) >= m.l.AttemptsMax:
		i.State, i.died = pqueue.Dead, i.Lease
		dead := m.in(pqueue.Dead)
		slices.SortFunc(dead, func(a, b *twinItem) int { return cmp.Compare(a.died, b.died) })
		for len(dead) > m.l.DeadMax {
			m.finish(dead[0])
			dead = dead[1:]
		}
	default:
		if back > m.now {
			i.NotBefore = max(i.NotBefore, back)
		}
		m.stand(i)
	}
}

// tick does all that is due, the earliest first.
func (m *twin) tick() {
	for {
		var next *twinItem
		at := int64(0)
		for _, i := range m.items {
			due := int64(0)
			switch i.State {
			case pqueue.Leased:
				due = i.Until
			case pqueue.Ready:
				due = i.Expires
			case pqueue.Delayed:
				if due = i.NotBefore; i.Expires != 0 {
					due = min(due, i.Expires)
				}
			default:
			}
			if due != 0 && due <= m.now && (next == nil || due < at || due == at && i.Number < next.Number) {
				next, at = i, due
			}
		}
		if next == nil {
			m.trim()
			return
		}
		switch {
		case next.State == pqueue.Leased:
			m.putBack(next, next.Until+m.wait(next))
		case next.Expires != 0 && next.Expires <= m.now:
			m.finish(next)
		default:
			next.State, next.NotBefore = pqueue.Ready, 0
		}
	}
}

// update changes what c says; no fields mean the priority.
func (m *twin) update(i *twinItem, c pqueue.Command) {
	if c.Fields == 0 || c.Fields&pqueue.FieldPriority != 0 {
		i.Priority = c.Priority
	}
	if c.Fields&pqueue.FieldPayload != 0 {
		i.Payload = c.Payload
	}
	if c.Fields&pqueue.FieldNotBefore == 0 {
		return
	}
	i.NotBefore, i.Stamp = 0, min(i.Stamp, m.now)
	if c.NotBefore > m.now {
		i.NotBefore, i.Stamp = c.NotBefore, c.NotBefore
	}
	if i.State == pqueue.Ready || i.State == pqueue.Delayed {
		m.stand(i)
	}
}

// stand puts an item where it stands when nobody has it.
func (m *twin) stand(i *twinItem) {
	if i.State = pqueue.Delayed; i.NotBefore <= m.now {
		i.State, i.NotBefore = pqueue.Ready, 0
	}
}

// held reports whether another item of i's key is leased.
func (m *twin) held(i *twinItem) bool {
	return m.l.Exclusive && i.Key != "" && slices.ContainsFunc(m.in(pqueue.Leased), func(o *twinItem) bool { return o.Key == i.Key })
}

// offered are the numbers of the items that may be leased: of each key the first one.
func (m *twin) offered() map[uint64]bool {
	all, taken := map[uint64]bool{}, map[string]bool{}
	for _, i := range m.line(pqueue.Ready) {
		if m.l.Exclusive && i.Key != "" && (taken[i.Key] || m.held(i)) {
			continue
		}
		taken[i.Key], all[i.Number] = true, true
	}
	return all
}
