package explore

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// world is one state of a model.
type world struct {
	*explorer
	state
	broken error // the first broken promise
}

// state is all that the future depends on. It is comparable.
type state struct {
	now      int64 // µs since the start of the model
	moment   int8  // of the schedule, the next
	hosts    [hostsMax]host
	links    [hostsMax * hostsMax]list // messages under way, first in first out, by link
	visitors [visitorsMax]visitor
	used     used
	cut      uint16 // links that carry nothing
	cutsMade uint8  // bit set of cuts
	cutNow   int8   // the one that lasts; none
	corpses  list   // last states of earlier lives, in order of death
	commits  list   // that were sent, sorted
	buried   list   // voids: accounts whose slots were made again, or that are void and forgotten; sorted
}

// used counts what faults bounds.
type used struct{ drops, late, crashes, restarts, pauses, cuts, heals, doubts uint8 }

// host is a place for one node after the other.
type host struct {
	state    int32 // of its node; the last one while it is down
	life     uint8 // the number of the life; 0: none yet
	disk     int32 // what is kept there; none
	up       bool
	paused   bool
	ticked   bool            // at this time, or it has no need
	believes [hostsMax]uint8 // which life of each host it takes for alive; 0: none
	started  [4]int64        // when each of its lives started
}

// visitor is how far a script is.
type visitor struct {
	step     uint8
	calls    uint8 // how often its ticket was called
	ended    bool
	first    int32  // the first ticket; none
	answer   int32  // the last ticket or pass; none
	entitled uint64 // number of the epoch in which its turn became certain; 0: not yet
}

// list is an immutable list of numbers.
type list string

func (l list) at(i int) int32 { return int32(binary.LittleEndian.Uint32([]byte(l[4*i:]))) }

func (l list) all() (numbers []int32) {
	for i := range len(l) / 4 {
		numbers = append(numbers, l.at(i))
	}
	return numbers
}

func (l list) add(n int32) list {
	return l + list(binary.LittleEndian.AppendUint32(nil, uint32(n)))
}

// with adds n to a sorted list that has each number once.
func (l list) with(n int32) list {
	i := 0
	for ; i < len(l); i += 4 {
		if m := l.at(i / 4); m == n {
			return l
		} else if m > n {
			break
		}
	}
	return l[:i].add(n) + l[i:]
}

// key stands for a state: equal states, equal keys, and with 64 bits hardly
// ever the other way round.
func (w *world) key() uint64 { return maphash.Comparable(w.seed, w.state) }

func (w *world) copy() *world {
	c := *w
	return &c
}

func link(from, to int) int { return from*hostsMax + to }

// life returns what is known of a host's node.
func (w *world) life(h int) *life { return w.cast.lives[w.hosts[h].state] }

// runs reports whether inputs reach a host's node.
func (w *world) runs(h int) bool { return w.hosts[h].up && !w.hosts[h].paused }

// carries reports whether the head of a link can arrive.
func (w *world) carries(i int) bool {
	return len(w.links[i]) > 0 && w.cut>>i&1 == 0 && w.runs(i%hostsMax)
}

// reaches reports whether host h could hear of host o's node.
func (w *world) reaches(o, h int) bool { return w.runs(o) && w.cut>>link(o, h)&1 == 0 }

// kind is that of the head of a link.
func (w *world) kind(i int) string { return w.cast.messages.all[w.links[i].at(0)].Body.Kind() }

func (w *world) fail(err error) {
	if w.broken == nil {
		w.broken = err
	}
}

// input does one thing to a host's node and takes in what comes of it.
func (w *world) input(h int, in input) *outcome {
	in.now = w.now
	o, before := w.cast.do(w.hosts[h].state, in), w.life(h)
	w.fail(o.fault)
	if o.refused != nil && in.kind == inStep && w.m.lossless() {
		w.fail(fmt.Errorf("refused: %w", o.refused))
	}
	w.hosts[h].state = o.to
	if o.saved != none {
		w.hosts[h].disk = o.saved
	}
	for _, m := range o.sent {
		w.send(h, m)
	}
	for i := range o.log {
		w.logged(in.kind, &o.log[i])
	}
	l := w.life(h)
	if l.status.Installed != before.status.Installed {
		w.note(l.status.Grade.String() + " wave")
	}
	if len(l.room.Voided) > len(before.room.Voided) {
		w.note("void")
	}
	for _, v := range before.room.Voided {
		if !covers(l.room.Voided, eviction.Account{Member: v.Member, Born: v.Epoch}) {
			w.bury(v) // forgotten
		}
	}
	w.checkGrant(l, before)
	w.checkMint(l, o)
	return o
}

// logged takes in one line of a node's admission log.
func (w *world) logged(k inputKind, l *node.Admission) {
	v := visitorOf(l.Weight.ID)
	switch l.Event {
	case node.Entitled:
		w.note("entitled")
		w.entitled(v, l.Epoch)
	case node.CalledIn:
		w.note("called")
		w.called(v)
	case node.TakenOver:
		w.note(k.String() + " elsewhere")
	default:
	}
}

// send puts a message on its link. What is sent to a life that is over, or
// into a partition, is lost.
func (w *world) send(h int, m int32) {
	msg := &w.cast.messages.all[m]
	w.note(msg.Body.Kind())
	c, commits := msg.Body.(*eviction.Commit)
	if commits {
		w.committed(c)
	}
	to := hostOf(msg.To.Name)
	i := link(h, to)
	if !w.hosts[to].up || uint64(w.hosts[to].life) != msg.To.Boot || w.cut>>i&1 == 1 {
		return
	}
	if commits && w.cutNow != none && w.m.faults.cuts[w.cutNow].loses == [2]int{h, to} {
		return
	}
	w.links[i] = w.links[i].add(m)
}

// shift takes the head off a link.
func (w *world) shift(i int) int32 {
	m := w.links[i].at(0)
	w.links[i] = w.links[i][4:]
	return m
}

// deliver hands the head of a link to the node at its end.
func (w *world) deliver(i int) { w.input(i%hostsMax, input{kind: inStep, arg: w.shift(i)}) }

// hear tells host h which of others are there.
func (w *world) hear(h int, others ...int) {
	t := &w.hosts[h]
	for _, o := range others {
		t.believes[o] = 0
		if w.reaches(o, h) {
			t.believes[o] = w.hosts[o].life
		}
	}
	var peers []eviction.Peer
	for o, life := range t.believes {
		if life > 0 {
			peers = append(peers, peer(o, life, w.hosts[o].started[life-1]))
		}
	}
	w.input(h, input{kind: inView, arg: w.cast.views.of(w.cast.print, eviction.NewView(peers))})
}

// everyone lists the hosts.
func (w *world) everyone() []int { return []int{0, 1, 2, 3}[:w.m.nodes] }

// start brings up a host's next life, which has heard of nobody yet.
func (w *world) start(h int) {
	t := &w.hosts[h]
	if t.life > 0 {
		w.corpses = w.corpses.add(t.state)
	}
	t.life++
	t.state, t.up, t.paused, t.ticked = 0, true, false, false
	t.started[t.life-1] = w.now
	w.input(h, input{kind: inBirth, arg: birthArg(h, t.life, t.disk)})
	t.believes = [hostsMax]uint8{}
}

// crash ends a host's life. What it sent before may still arrive, unless it
// dies in silence.
func (w *world) crash(h int, silent bool) {
	w.hosts[h].up, w.hosts[h].paused = false, false
	for o := range hostsMax {
		w.links[link(o, h)] = ""
		if silent {
			w.links[link(h, o)] = ""
		}
	}
}

// deed is the next thing of a visitor's script; ok is false if there is none,
// or nobody to do it with.
func (w *world) deed(v int) (h int, in input, ok bool) {
	u := &w.visitors[v]
	if int(u.step) >= len(w.m.visitors[v]) {
		return 0, in, false
	}
	d := w.m.visitors[v][u.step]
	in = input{kind: d.kind, arg: u.answer, now: w.now}
	ok = w.runs(d.host)
	switch d.kind {
	case inJoin:
		in.arg = int32(v)
	case inDelete:
		in.arg = 0
	case inCheckIn, inLeave:
		if d.old {
			in.arg = u.first
		}
		ok = ok && in.arg != none && w.cast.answers.all[in.arg].State != node.Admitted
	default:
		ok = ok && w.pass(v) != nil
	}
	return d.host, in, ok
}

// visit does the next thing of a visitor's script.
func (w *world) visit(v int) {
	h, in, _ := w.deed(v)
	old := w.m.visitors[v][w.visitors[v].step].old
	if w.life(h).status.Frozen {
		w.note("frozen " + in.kind.String())
	}
	o := w.input(h, in)
	u := &w.visitors[v]
	u.step++
	if o.answer == none {
		return
	}
	a := &w.cast.answers.all[o.answer]
	switch {
	case a.Forward != eviction.Member{}:
	case in.kind == inEnd:
		u.ended = true
	default:
		u.answer, u.ended = o.answer, u.ended && !old
	}
	if in.kind == inJoin {
		u.first = o.answer
		w.joined(v)
	}
}

// useful reports whether the next thing of a visitor's script can be done and
// gets somewhere: a check-in to another node, leaving the queue onto the site.
func (w *world) useful(v int) bool {
	h, in, ok := w.deed(v)
	if !ok {
		return false
	}
	o := w.cast.do(w.hosts[h].state, in)
	if o.refused != nil {
		return false
	}
	switch in.kind {
	case inCheckIn:
		return w.cast.answers.all[o.answer].Ticket.Gen > w.cast.answers.all[in.arg].Ticket.Gen
	case inLeave:
		return w.cast.answers.all[o.answer].State == node.Admitted
	default:
		return true
	}
}

// pass returns the pass that a visitor has, nil if none or if it has run out.
func (w *world) pass(v int) *node.Pass {
	u := &w.visitors[v]
	if u.answer == none || u.ended {
		return nil
	}
	a := &w.cast.answers.all[u.answer]
	if a.State != node.Admitted || a.Pass.Expires <= wallZero+w.now {
		return nil
	}
	return &a.Pass
}

// committed takes in a commit that is sent.
func (w *world) committed(c *eviction.Commit) {
	plain := *c
	plain.RestMin = nil // differs from one subtree to the other
	if plain.Carried {
		plain.Voters = eviction.Voters{} // left out for some
	}
	d := w.cast.commits.of(w.cast.print, plain)
	if l := w.commits.with(d); l != w.commits {
		for _, o := range w.commits.all() {
			w.checkDecisions(&w.cast.commits.all[o], c)
		}
		w.commits = l
	}
}

// bury notes that nothing of the accounts of v may act any more.
func (w *world) bury(v eviction.Void) { w.buried = w.buried.with(w.cast.voids.of(w.cast.print, v)) }

// isBuried reports whether that is so of a.
func (w *world) isBuried(a eviction.Account) bool {
	return slices.ContainsFunc(w.buried.all(), func(i int32) bool { return covers(w.cast.voids.all[i:i+1], a) })
}
