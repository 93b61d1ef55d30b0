package broker

import (
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// turns are whose turn it is, in a queue whose keys take turns. See package comment,
// Fair keys.
type turns struct {
	lines map[lineID]*line
	last  int64 // the latest that was given here, or of which the office of the root brought word; Unix µs, or ahead of that
}

// line is what may go out of one key, in one priority, at this node. No key is one, too.
//
// Invariant: the first item is in QPID, by the line's turn, and no other one is.
type line struct {
	pqueue.Line
	turn int64
}

type lineID struct {
	key      string
	priority uint32
}

func lineOf(key string, w qpid.Weight) lineID { return lineID{key, pqueue.PriorityOf(w)} }

// front is what QPID knows of the line; zero: nothing is in it.
func (l *line) front() qpid.Weight {
	if l.First() == (qpid.Weight{}) {
		return qpid.Weight{}
	}
	return pqueue.Restamped(l.First(), l.turn)
}

// put has an item go out when it is the first: of all, or of its key and then of all.
func (b *Broker) put(q *queue, key string, w qpid.Weight) {
	if !q.c.FairKeys {
		q.q.Insert(w)
		return
	}
	l := q.turns.lines[lineOf(key, w)]
	if l == nil {
		l = &line{turn: b.nextTurn(q)}
		q.turns.lines[lineOf(key, w)] = l
	}
	q.change(l, func() { l.Insert(w) })
}

// drop takes back what was put, and reports whether it was there.
func (b *Broker) drop(q *queue, key string, w qpid.Weight) bool {
	if !q.c.FairKeys {
		return q.q.Remove(w)
	}
	l := q.turns.lines[lineOf(key, w)]
	if l == nil || !l.Has(w) {
		return false
	}
	q.change(l, func() { l.Delete(w) })
	q.tidyLine(key, w, l)
	return true
}

func (q *queue) tidyLine(key string, w qpid.Weight, l *line) {
	if l.First() == (qpid.Weight{}) {
		delete(q.turns.lines, lineOf(key, w))
	}
}

// change changes a line, and with it what QPID knows of it.
func (q *queue) change(l *line, change func()) {
	was := l.front()
	change()
	now := l.front()
	if now == was {
		return
	}
	if now != (qpid.Weight{}) {
		q.q.Insert(now) // before the other one goes, or the office of the root might with it
	}
	if was != (qpid.Weight{}) {
		q.q.Remove(was)
	}
}

// inLine is the weight by which an item was put that QPID knows by another, maybe.
func (q *queue) inLine(key string, front qpid.Weight) qpid.Weight {
	if l := q.turns.lines[lineOf(key, front)]; q.c.FairKeys && l != nil && l.front() == front {
		return l.First()
	}
	return front
}

// nextTurn comes after all that were given wherever the office of the root has been.
func (b *Broker) nextTurn(q *queue) int64 {
	q.turns.last = max(q.turns.last+1, b.now.Clock)
	return q.turns.last
}

// heardTurn takes in what the office of the root brings.
func (b *Broker) heardTurn(q *queue, last int64) {
	if last <= b.now.Clock+epochLeapMax {
		q.turns.last = max(q.turns.last, last)
	}
}

// turnUsed is an item that may go out, and by which turn QPID knows it. Zero: none.
type turnUsed struct {
	key          string
	place, front qpid.Weight
}

// letOut has the turn pass, before the first item of all goes, to the next one of its
// line: so the office of the root does not go elsewhere, and come back for that one.
func (b *Broker) letOut(q *queue) turnUsed {
	front := q.q.Min()
	if !q.c.FairKeys || !q.q.IsRoot() || front.IsEmpty() {
		return turnUsed{}
	}
	key := b.shards[q.c.Kind].state.KeyOf(q.c.Name, pqueue.NumberOf(front))
	l := q.turns.lines[lineOf(key, front)]
	if l == nil || l.front() != front {
		return turnUsed{}
	}
	u := turnUsed{key, l.First(), front}
	l.Delete(u.place)
	l.turn = b.nextTurn(q)
	if next := l.front(); next != (qpid.Weight{}) {
		q.q.Insert(next)
	}
	q.tidyLine(key, front, l)
	return u
}

// stayed puts an item back that did not go after all, as where a deleteMin comes twice.
func (b *Broker) stayed(q *queue, u turnUsed) {
	if u == (turnUsed{}) || q.q.Min() != u.front {
		return
	}
	b.put(q, u.key, u.place)
	q.turnBack(u.key, u.place, pqueue.StampOf(u.front))
}

// turnBack gives a line the turn back of an item whose lease came to nothing.
func (q *queue) turnBack(key string, w qpid.Weight, turn int64) {
	if l := q.turns.lines[lineOf(key, w)]; q.c.FairKeys && l != nil {
		q.change(l, func() { l.turn = min(l.turn, turn) })
	}
}

// released gives the turn back by which an item went out whose lease has not reached its
// taker.
func (b *Broker) released(q *queue, number uint64) {
	s := b.shards[q.c.Kind].state
	if s == nil || !q.c.FairKeys {
		return
	}
	i, ok := s.Offered(q.c.Name, number)
	taker := s.TakerOf(q.c.Name, number)
	grant, known := b.recent.find(qpid.OpID{Caller: qpid.NodeID(taker.Node), Seq: taker.Seq})
	if ok && known && pqueue.NumberOf(grant.weight) == number {
		q.turnBack(i.Key, pqueue.WeightOf(i.Priority, i.Stamp, s.Salt(), number), pqueue.StampOf(grant.weight))
		b.pump(q)
	}
}

// takeTurns has the keys of q take turns from now on, or no more.
func (b *Broker) takeTurns(q *queue, fair bool) {
	s := b.shards[q.c.Kind].state
	if q.c.FairKeys == fair {
		return
	}
	var in []pqueue.Item
	if s != nil {
		s.EachOffered(q.c.Name, func(i pqueue.Item) {
			if b.drop(q, i.Key, pqueue.WeightOf(i.Priority, i.Stamp, s.Salt(), i.Number)) {
				in = append(in, i)
			}
		})
	}
	q.c.FairKeys = fair
	q.turns.lines = map[lineID]*line{}
	for _, i := range in {
		b.put(q, i.Key, pqueue.WeightOf(i.Priority, i.Stamp, s.Salt(), i.Number))
	}
	b.pump(q)
}
