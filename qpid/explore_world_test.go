package qpid

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

type eventKind int

const (
	eventInsert  eventKind = iota // a: index of the insert
	eventRemove                   // a: index of the remove
	eventCall                     // a: index of the deleteMin
	eventReply                    // a: wave, b: node
	eventInstall                  // a: wave, b: node
	eventDeliver                  // a, b: link
	eventLose                     // a, b: link
)

type event struct {
	kind eventKind
	a, b int
	text string
}

func (e event) String() string { return e.text }

// events lists what can happen next.
func (w *world) events() []event {
	var list []event
	add := func(k eventKind, a, b int, format string, args ...any) {
		list = append(list, event{k, a, b, fmt.Sprintf(format, args...)})
	}
	for i, x := range w.inserts {
		if w.inserted>>i&1 == 0 {
			add(eventInsert, i, 0, "insert %d at %s", x[1], w.ids[x[0]])
		}
	}
	for i, x := range w.removes {
		if w.removed>>i&1 == 0 && w.nodes[x[0]].queue.Has(item(x[1], 0)) {
			add(eventRemove, i, 0, "remove %d at %s", x[1], w.ids[x[0]])
		}
	}
	for i, v := range w.deletes {
		if w.called>>i&1 == 0 {
			add(eventCall, i, 0, "deleteMin at %s", w.ids[v])
		}
	}
	for k := range w.waves {
		decided := !slices.Contains(w.replied[k], false)
		for v := range w.nodes {
			// A node that has replied to a later wave has done with this one.
			later := k+1 < w.waves && slices.ContainsFunc(w.replied[k+1:], func(r []bool) bool { return r[v] })
			if !w.replied[k][v] && !later {
				add(eventReply, k, v, "%s replies to wave %d", w.ids[v], k+1)
			}
			if decided && !w.done[k][v] && !later {
				add(eventInstall, k, v, "%s installs wave %d", w.ids[v], k+1)
			}
		}
	}
	for i, link := range w.links {
		if len(link) == 0 {
			continue
		}
		add(eventDeliver, i/len(w.nodes), i%len(w.nodes), "deliver %s", show(link[0]))
		// What is lost after the last install stays lost, so that is not asked for.
		if m := link[0]; w.lost < w.losses && (m.Epoch.Num < uint64(w.waves) || m.Kind == MsgDeleteMin || m.Kind == MsgTaken) {
			add(eventLose, i/len(w.nodes), i%len(w.nodes), "lose %s", show(m))
		}
	}
	return list
}

// apply returns the world after the event.
func (e event) apply(w *world) (*world, error) {
	c := *w
	c.nodes, c.links = slices.Clone(w.nodes), slices.Clone(w.links)
	var v int
	var err error
	touch := func(i int) *Node {
		v = i
		c.nodes[i] = w.nodes[i].clone()
		return c.nodes[i]
	}
	switch e.kind {
	case eventInsert:
		c.inserted |= 1 << e.a
		x := w.inserts[e.a]
		touch(int(x[0])).Insert(item(x[1], 0))
	case eventRemove:
		c.removed |= 1 << e.a
		x := w.removes[e.a]
		touch(int(x[0])).Remove(item(x[1], 0))
	case eventCall:
		c.called |= 1 << e.a
		n := touch(w.deletes[e.a])
		n.DeleteMin(OpID{n.self, uint64(e.a)})
	case eventReply:
		n := touch(e.b)
		if w.freeze {
			n.Freeze()
		}
		c.replied = set(w.replied, e.a, e.b, true)
		own := Empty(e.b)
		if m, ok := n.queue.Min(); ok {
			own = m
		}
		c.snapshot = set(w.snapshot, e.a, e.b, own)
	case eventInstall:
		c.done = set(w.done, e.a, e.b, true)
		epoch := Epoch{Num: uint64(e.a + 1), Coordinator: "a"}
		err = touch(e.b).Install(w.topology.snapshot(e.b, epoch, w.snapshot[e.a]))
	case eventDeliver:
		i := e.a*len(w.nodes) + e.b
		m := w.links[i][0]
		c.links[i] = w.links[i][1:]
		err = touch(e.b).Step(m)
	case eventLose:
		i := e.a*len(w.nodes) + e.b
		m := w.links[i][0]
		c.links[i] = w.links[i][1:]
		c.lost++
		if m.Kind == MsgDeleteMin || m.Kind == MsgTaken {
			c.excused |= 1 << m.Op.Seq
		}
		return &c, nil
	}
	if w.losses > 0 {
		err = nil // a gap is what a loss is for
	}
	return &c, cmp.Or(err, c.collect(v))
}

func set[T any](g [][]T, row, col int, value T) [][]T {
	g = slices.Clone(g)
	g[row] = slices.Clone(g[row])
	g[row][col] = value
	return g
}

// collect moves a node's work to the links.
func (w *world) collect(v int) error {
	r := w.nodes[v].Ready()
	for _, m := range r.Messages {
		i := v*len(w.nodes) + w.index(m.To)
		w.links[i] = append(slices.Clip(w.links[i]), m)
	}
	for _, x := range r.Removed {
		if slices.Contains(w.taken, x.Weight) {
			return fmt.Errorf("%v was taken twice", x.Weight)
		}
		w.taken = append(slices.Clip(w.taken), x.Weight)
	}
	for _, a := range r.Answers {
		if w.answered>>a.Op.Seq&1 == 1 {
			return fmt.Errorf("%v was answered twice", a.Op)
		}
		w.answered |= 1 << a.Op.Seq
		if a.Outcome == Refused && w.lost == 0 {
			return fmt.Errorf("%v was refused", a.Op)
		}
	}
	return nil
}

// clone copies what an event may change. The answers remembered are left out:
// no deleteMin is repeated here.
func (n *Node) clone() *Node {
	c := *n
	c.queue = NewQueue()
	n.queue.Ascend(func(w Weight) bool { return c.queue.Insert(w) })
	c.neighbors = slices.Clone(n.neighbors)
	c.pending, c.early = slices.Clip(n.pending), slices.Clip(n.early)
	c.answered = newAnswered(n.answered.max)
	return &c
}

// key is the state in a form in which equal means equal for all the future.
// Sequence numbers only count relative to what the receiver has seen.
func (w *world) key() []byte {
	b := make([]byte, 0, 256)
	for _, n := range w.nodes {
		b = append(b, byte(n.epoch.Num), bit(n.frozen), byte(w.index(n.parent)))
		b = appendWeight(b, n.own)
		b = appendWeight(b, n.told)
		for _, nb := range n.neighbors {
			b = appendWeight(b, nb.weight)
		}
		n.queue.Ascend(func(x Weight) bool { b = appendWeight(b, x); return true })
		b = append(b, 0xfe)
		for _, m := range n.pending {
			b = w.appendMessage(b, m, 0)
		}
		b = append(b, 0xfd)
		for _, m := range n.early {
			b = w.appendMessage(b, m, 0)
		}
		b = append(b, 0xfc)
	}
	for i, link := range w.links {
		from, to := w.nodes[i/len(w.nodes)], w.nodes[i%len(w.nodes)]
		var seen uint64
		if at, ok := to.neighbor(from.self); ok && from.epoch == to.epoch {
			seen = to.neighbors[at].received
		}
		if at, ok := from.neighbor(to.self); ok {
			b = append(b, byte(from.neighbors[at].sent-seen))
		}
		for _, m := range link {
			var base uint64
			if m.Epoch == to.epoch {
				base = seen
			}
			b = w.appendMessage(b, m, base)
		}
		b = append(b, 0xfb)
	}
	for k := range w.waves {
		for v := range w.nodes {
			b = append(b, bit(w.replied[k][v])|bit(w.done[k][v])<<1)
			if w.replied[k][v] && !w.done[k][v] {
				b = appendWeight(b, w.snapshot[k][v])
			}
		}
		if slices.Contains(w.done[k], false) { // the weights still matter to others
			for v := range w.nodes {
				b = appendWeight(b, w.snapshot[k][v])
			}
		}
	}
	return append(b, byte(w.inserted), byte(w.removed), byte(w.called), byte(w.answered), byte(w.excused), byte(w.lost))
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func appendWeight(b []byte, w Weight) []byte {
	if w.IsEmpty() {
		return append(b, 0x80+byte(binary.BigEndian.Uint64(w.ID[8:])))
	}
	return append(b, byte(w.Stamp))
}

func (w *world) appendMessage(b []byte, m Message, base uint64) []byte {
	b = append(b, byte(m.Kind), byte(m.Epoch.Num), byte(m.Seq-base), byte(m.Op.Seq), byte(m.Hops), byte(m.Outcome))
	return appendWeight(b, m.Weight)
}

// describe prints the state for people.
func (w *world) describe() string {
	var s strings.Builder
	for _, n := range w.nodes {
		fmt.Fprintf(&s, "%s: epoch %d, frozen %v, parent %s, table", n.self, n.epoch.Num, n.frozen, n.parent)
		for _, e := range n.Table() {
			fmt.Fprintf(&s, " %s:%s", e.ID, showWeight(e.Weight))
		}
		fmt.Fprintln(&s)
	}
	for _, link := range w.links {
		for _, m := range link {
			fmt.Fprintln(&s, " ", show(m))
		}
	}
	return s.String()
}
