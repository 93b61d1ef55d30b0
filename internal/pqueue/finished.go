package pqueue

// finishedItem is what is remembered of an item that is gone.
type finishedItem struct {
	number, lease uint64
	id            string
	at            int64 // Unix µs
	acked         bool  // by the holder of that lease
}

// finished remembers items for a while, the oldest first to go.
type finished struct {
	byNumber map[uint64]*finishedItem
	order    []*finishedItem
	head     int // of order: those before it are gone
}

func newFinished() finished { return finished{byNumber: make(map[uint64]*finishedItem)} }

func (f *finished) len() int { return len(f.order) - f.head }

func (f *finished) add(i finishedItem) {
	f.byNumber[i.number] = &i
	f.order = append(f.order, &i)
}

func (f *finished) ack(number uint64) {
	if i := f.byNumber[number]; i != nil {
		i.acked = true
	}
}

func (f *finished) find(number uint64) (finishedItem, bool) {
	if i := f.byNumber[number]; i != nil {
		return *i, true
	}
	return finishedItem{}, false
}

// drop forgets the oldest and returns it.
func (f *finished) drop() *finishedItem {
	i := f.order[f.head]
	f.order[f.head] = nil
	f.head++
	delete(f.byNumber, i.number)
	if f.head > 64 && f.head > len(f.order)/2 {
		f.order = append([]*finishedItem(nil), f.order[f.head:]...)
		f.head = 0
	}
	return i
}

// trimFinished forgets what is too old or too much.
func (q *queue) trimFinished() {
	f := &q.finished
	for f.len() > 0 && (f.len() > q.limits.RememberMax || f.order[f.head].at+q.limits.Remember <= q.shard.now) {
		i := f.drop()
		if q.ids[i.id] == i.number {
			delete(q.ids, i.id)
		}
	}
}

// dues is a heap of items by the time at which something happens to them, then
// by number.
type dues []*item

func (d dues) less(a, b int) bool {
	return d[a].due < d[b].due || d[a].due == d[b].due && d[a].number < d[b].number
}

func (d dues) swap(a, b int) {
	d[a], d[b] = d[b], d[a]
	d[a].place, d[b].place = a, b
}

// set makes i due at that time; 0: never.
func (d *dues) set(i *item, at int64) {
	switch {
	case at == 0 && i.place < 0:
		return
	case at == 0:
		last := len(*d) - 1
		p := i.place
		d.swap(p, last)
		(*d)[last] = nil
		*d = (*d)[:last]
		i.place, i.due = -1, 0
		if p < last {
			d.fix(p)
		}
	case i.place < 0:
		i.due, i.place = at, len(*d)
		*d = append(*d, i)
		d.fix(i.place)
	default:
		i.due = at
		d.fix(i.place)
	}
}

func (d dues) fix(at int) {
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
