package queues

import (
	"fmt"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/qpid"
)

// way is the link from one node to another.
type way struct {
	last int64 // arrival of the last message
	gen  int   // raised by a break: what is on the way then is lost
	down bool  // until the break is reported
}

func (w *World) way(from, to qpid.NodeID) *way {
	key := [2]string{string(from), string(to)}
	if w.links[key] == nil {
		w.links[key] = &way{}
	}
	return w.links[key]
}

func (w *World) node(name qpid.NodeID) *node {
	i := slices.IndexFunc(w.nodes, func(n *node) bool { return n.m.Name == name })
	return w.nodes[i]
}

// sent puts a message on its way, in its encoding.
func (w *World) sent(from *node, m broker.Message) {
	w.oracle.sent(m)
	body, to := m.Encode(), w.node(m.To.Name)
	l := w.way(from.m.Name, to.m.Name)
	w.note("%v>%v %v", m.From, m.To, summary(m))
	if l.down {
		return
	}
	l.last = max(l.last, w.now+1+w.net.Int64N(w.o.Delay))
	gen := l.gen
	times := 1
	if w.net.IntN(1000) < w.o.Repeat && !w.resting {
		times = 2
		w.Reached.Repeated++
	}
	for range times {
		w.after(l.last-w.now, func() {
			if l.gen == gen && to.up && to.m == m.To {
				to.do(0, func() { to.receive(m.From, body) })
			}
		})
	}
}

func (n *node) receive(from eviction.Member, body []byte) {
	m, err := broker.Decode(body)
	if err != nil {
		n.w.oracle.fail("%v cannot read what %v sent: %v", n.m, from, err)
		return
	}
	m.From, m.To = from, n.m
	if m.Kind == broker.MsgQPID && m.QPID.Kind == qpid.MsgFindRoot {
		n.w.Reached.FindRoots++
	}
	_ = n.b.Step(n.time(), m) // what it refuses, it counts
}

// breaks loses what is on the way between two nodes, in both directions. Both
// hear of it, sometimes late, and nothing arrives before they have.
func (w *World) breaks(a, b *node, report int64) {
	w.Reached.Breaks++
	w.trouble(0)
	for _, p := range [][2]*node{{a, b}, {b, a}} {
		l := w.way(p[0].m.Name, p[1].m.Name)
		l.gen++
		l.down = true
		gen := l.gen
		from, to := p[0], p[1]
		w.after(report, func() { w.mend(from, to, gen) })
	}
}

// mend reports a break and lets messages pass again, unless the two are cut off
// from each other.
func (w *World) mend(from, to *node, gen int) {
	l := w.way(from.m.Name, to.m.Name)
	if l.gen != gen {
		return // it broke again
	}
	if from.up && to.up && from.side != to.side {
		w.after(500*milli, func() { w.mend(from, to, gen) })
		return
	}
	l.down = false
	l.last = w.now
	w.trouble(0)
	for _, p := range [][2]*node{{from, to}, {to, from}} {
		other := p[1].m
		p[0].do(0, func() { p[0].b.Broke(p[0].time(), other) })
	}
}

// replicated is the log of the replicated queues: it is always right, and
// slow, and who leads it changes.
type replicated struct {
	log    [][]byte
	leader *node
	life   uint64
	term   int
}

func (n *node) catchUp(to int) {
	if n.applied < to {
		have := n.applied + len(n.apply(broker.Replicated, n.w.group.log[n.applied:to]))
		n.write(broker.Replicated, n.w.group.log[n.applied:have])
		n.applied = have
	}
}

// propose carries a command through a log. A crash may come before or after it
// is written.
func (n *node) propose(p broker.Proposal) {
	w := n.w
	life := n.m.Boot
	if p.Kind == broker.Durable {
		n.writing(p.Command)
	}
	w.note("%v proposes to the %v log: %d", n.m, p.Kind, p.Token)
	w.after(w.net.Int64N(3*milli), func() {
		switch {
		case n.m.Boot != life:
		case !n.up && p.Kind == broker.Durable && w.o.Disk == nil:
			if w.net.IntN(2) == 0 {
				n.disk = append(n.disk, p.Command)
			}
		case !n.up:
		default:
			n.do(0, func() { n.committed(p) })
		}
	})
}

func (n *node) committed(p broker.Proposal) {
	w := n.w
	w.note("%v: %d is committed, or not", n.m, p.Token)
	switch {
	case n.lacks(p.Command), n.stopped[p.Kind]:
		w.oracle.nobodyHas(n, p)
		n.b.Proposed(n.time(), p.Token, nil, false, false)
		return
	case w.unlucky():
		w.oracle.nobodyHas(n, p)
		n.b.Proposed(n.time(), p.Token, nil, true, false)
		return
	case n.room == broker.RoomForNone:
		n.noRoom(p)
		return
	case n.brims(p):
		w.oracle.nobodyHas(n, p)
		n.b.Proposed(n.time(), p.Token, nil, false, false)
		return
	case p.Kind == broker.Durable:
		n.disk, n.doubt = append(n.disk, p.Command), nil
		r := n.apply(broker.Durable, [][]byte{p.Command})
		n.write(broker.Durable, [][]byte{p.Command})
		n.b.Proposed(n.time(), p.Token, r[0], false, false)
		return
	case w.group.leader != n || w.group.life != n.m.Boot:
		n.b.Proposed(n.time(), p.Token, nil, w.net.IntN(2) == 0, false)
		return
	case !w.majority(n):
		n.do(second, func() { n.b.Proposed(n.time(), p.Token, nil, false, false) })
		return
	}
	n.catchUp(len(w.group.log))
	w.group.log = append(w.group.log, p.Command)
	if w.unlucky() { // it is applied, and nobody here is told how
		n.b.Proposed(n.time(), p.Token, nil, false, false)
		n.catchUp(len(w.group.log))
		w.oracle.nobodyHas(n, p)
		return
	}
	n.applied++
	r := n.apply(broker.Replicated, [][]byte{p.Command})
	n.write(broker.Replicated, [][]byte{p.Command})
	n.b.Proposed(n.time(), p.Token, r[0], false, false)
}

// noRoom is a command on a disk that is full: it is refused, or nobody knows. What
// is there all the same shows after a crash, or on other nodes' disks.
func (n *node) noRoom(p broker.Proposal) {
	w := n.w
	n.b.SetRoom(n.time(), p.Kind, n.room)
	refused := w.disks.IntN(2) == 0
	n.b.Proposed(n.time(), p.Token, nil, refused, false)
	switch {
	case refused:
	case p.Kind == broker.Durable:
		n.overflow(p.Command)
	case w.group.leader == n && w.group.life == n.m.Boot && w.majority(n) && w.disks.IntN(2) == 0:
		n.catchUp(len(w.group.log))
		w.group.log = append(w.group.log, p.Command)
		n.catchUp(len(w.group.log))
	}
}

// majority reports whether n and those it can reach are more than half.
func (w *World) majority(n *node) bool {
	count := 0
	for _, o := range w.alive() {
		if o.side == n.side {
			count++
		}
	}
	return 2*count > len(w.nodes)
}

// elect sees that a node leads the log if one can, and that the followers follow.
func (w *World) elect() {
	defer w.after(100*milli+w.net.Int64N(200*milli), w.elect)
	g := &w.group
	for _, n := range w.alive() {
		if w.majority(n) {
			to := n.applied + w.net.IntN(len(g.log)-n.applied+1)
			n.do(0, func() { n.catchUp(to) })
		}
	}
	if l := g.leader; l != nil && l.up && !l.paused && l.m.Boot == g.life && w.majority(l) && !l.stopped[broker.Replicated] && !w.unlucky() {
		return
	}
	able := slices.DeleteFunc(w.alive(), func(n *node) bool { return !w.majority(n) || n.stopped[broker.Replicated] })
	if old := g.leader; old != nil && old.leads {
		old.leads = false
		late := w.net.Int64N(2 * second)
		w.trouble(late)
		old.do(late, func() { old.b.Leads(old.time(), broker.Replicated, old.leads) })
	}
	g.leader = nil
	if len(able) == 0 || w.net.IntN(3) > 0 {
		return
	}
	n := able[w.net.IntN(len(able))]
	g.leader, g.life = n, n.m.Boot
	g.term++
	w.Reached.Leaders++
	n.leads = true
	n.do(0, func() {
		n.catchUp(len(g.log))
		w.trouble(0)
		n.leads = n.leads && !n.stopped[broker.Replicated]
		n.b.Leads(n.time(), broker.Replicated, n.leads)
	})
	for _, o := range w.alive() {
		o.do(w.net.Int64N(300*milli), func() { o.b.SetLeader(o.time(), n.m.Name) })
	}
}

// wave tells every side who is in it, as the waves of the waiting rooms do.
func (w *World) wave() {
	defer w.after(200*milli, w.wave)
	done := map[int]bool{}
	for _, n := range w.alive() {
		if done[n.side] {
			continue
		}
		done[n.side] = true
		w.waveOf(n.side)
	}
}

const excludeAfter = 2 * second

func (w *World) waveOf(side int) {
	var in []*node
	for _, n := range w.alive() {
		if n.side == side {
			in = append(in, n)
		}
	}
	slices.SortFunc(in, func(a, b *node) int {
		return eviction.Seniority(eviction.Peer{Member: a.m, Start: a.start}, eviction.Peer{Member: b.m, Start: b.start})
	})
	var list []eviction.Member
	for _, n := range in {
		list = append(list, n.m)
	}
	for _, m := range in[0].list { // those that it does not do without yet
		if !slices.Contains(list, m) && w.now-in[0].seen[m] < w.net.Int64N(excludeAfter) {
			return
		}
	}
	primary := 2*len(in) > len(w.nodes)
	voters := w.names()
	for _, n := range in {
		for _, m := range list {
			n.seen[m] = w.now
		}
		n.list = list
		at := w.now + n.offset
		n.do(w.net.Int64N(30*milli), func() { n.b.SetView(n.time(), broker.View{List: list, Primary: primary, At: at, Voters: voters}) })
	}
}

// summary is a message in a line of the trace.
func summary(m broker.Message) string {
	switch m.Kind {
	case broker.MsgQPID:
		return fmt.Sprintf("%s %v", m.Queue, m.QPID)
	case broker.MsgGranted, broker.MsgResponse:
		return fmt.Sprintf("%v %s %d: %d, item %d, lease %d", m.Kind, m.Queue, m.Seq, m.Result.Code, m.Result.Number, m.Result.Lease)
	case broker.MsgRequest:
		return fmt.Sprintf("request %d: %d %s %s %d", m.Seq, m.Command.Op, m.Command.Queue, m.Command.ID, m.Command.Number)
	default:
		return fmt.Sprintf("%v %v %s", m.Kind, m.Epoch, m.Queue)
	}
}

// unlucky says when a log does what it seldom does.
func (w *World) unlucky() bool { return !w.healed && w.net.IntN(200) == 0 }
