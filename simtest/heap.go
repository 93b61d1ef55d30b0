package simtest

// event is something that will happen. A and b mean what kind says.
type event struct {
	at   int64
	seq  uint64 // events at one instant happen in this order
	a, b int32
	kind eventKind
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// agenda is a 4-ary heap of events: half the depth of a binary one, and the
// four children of a slot share two cache lines.
type agenda struct {
	heap []event
	seq  uint64
}

func (g *agenda) push(at int64, kind eventKind, a, b int32) {
	g.seq++
	e := event{at: at, seq: g.seq, a: a, b: b, kind: kind}
	g.heap = append(g.heap, e)
	i := len(g.heap) - 1
	for i > 0 {
		p := (i - 1) / 4
		if !e.before(&g.heap[p]) {
			break
		}
		g.heap[i] = g.heap[p]
		i = p
	}
	g.heap[i] = e
}

// pop returns the next event; the agenda must not be empty.
func (g *agenda) pop() event {
	top := g.heap[0]
	n := len(g.heap) - 1
	e := g.heap[n]
	g.heap = g.heap[:n]
	if n == 0 {
		return top
	}
	i := 0
	for {
		c := 4*i + 1
		if c >= n {
			break
		}
		least := c
		for k := c + 1; k < min(c+4, n); k++ {
			if g.heap[k].before(&g.heap[least]) {
				least = k
			}
		}
		if !g.heap[least].before(&e) {
			break
		}
		g.heap[i] = g.heap[least]
		i = least
	}
	g.heap[i] = e
	return top
}

// slab hands out indexes of reusable places.
type slab[T any] struct {
	at   []T
	free []int32
}

func (s *slab[T]) take() int32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		return i
	}
	var zero T
	s.at = append(s.at, zero)
	return int32(len(s.at) - 1)
}

func (s *slab[T]) put(i int32) {
	var zero T
	s.at[i] = zero
	s.free = append(s.free, i)
}
