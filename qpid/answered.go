package qpid

// answered remembers the last deleteMins that a node answered for good, so that
// a repeated one gets the same answer instead of a second item.
type answered struct {
	max  int
	at   map[OpID]int // place in the ring; looked up, never ranged over
	ring []Answer
	next int // place of the oldest, once the ring is full
}

func newAnswered(limit int) *answered {
	return &answered{max: limit, at: make(map[OpID]int)}
}

func (a *answered) find(op OpID) (Answer, bool) {
	i, ok := a.at[op]
	if !ok {
		return Answer{}, false
	}
	return a.ring[i], true
}

// add remembers an answer in place of the oldest.
func (a *answered) add(ans Answer) {
	if len(a.ring) < a.max {
		a.at[ans.Op] = len(a.ring)
		a.ring = append(a.ring, ans)
		return
	}
	delete(a.at, a.ring[a.next].Op)
	a.at[ans.Op] = a.next
	a.ring[a.next] = ans
	a.next = (a.next + 1) % a.max
}
