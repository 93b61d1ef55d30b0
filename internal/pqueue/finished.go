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
	q.remind()
}

// remind has the shard's ticks come to q when the oldest becomes too old, and not
// before.
func (q *queue) remind() {
	at := int64(0)
	if f := &q.finished; f.len() > 0 {
		at = f.order[f.head].at + q.limits.Remember
	}
	q.shard.forgets.set(q, at)
}
