package explore

import (
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// inputKind is one call of the node's API.
type inputKind uint8

const (
	inBirth   inputKind = iota // arg: see birthArg
	inView                     // arg: view
	inTick                     //
	inStep                     // arg: message
	inJoin                     // arg: visitor
	inCheckIn                  // arg: answer that holds a ticket
	inLeave                    // likewise
	inRefresh                  // arg: answer that holds a pass
	inEnd                      // likewise
	inDelete                   //
)

func (k inputKind) String() string {
	return [...]string{
		"is born", "gets a view", "ticks", "gets a message",
		"joins", "checks in", "leaves the queue", "refreshes the pass", "ends the session", "calls deleteMin",
	}[k]
}

// input is comparable: messages, views and answers go by their numbers.
type input struct {
	kind inputKind
	arg  int32
	now  int64
}

// life is one state that a node was in, and what the world sees of it.
type life struct {
	from   int32      // the state before; none: it is not born
	in     input      // and what led from it here
	digest digest     // tells it from all others
	live   *node.Node // an instance in this state; nil: repeat the inputs

	host     int
	self     eviction.Member
	status   node.Status
	room     node.RoomStatus
	deadline int64
	record   record
}

// record is what promises need to know of a node's past. It is part of the
// state: two pasts make two states.
type record struct {
	asked     qpid.Epoch // by the last gather
	askedT    uint64     // its T
	replied   qpid.Epoch // the last wave replied to
	repliedAt int64      // when
	promised  uint64     // the highest T of those
	actsUntil int64      // when the last lease ended that let the account act
}

// outcome is what an input did.
type outcome struct {
	to      int32
	sent    []int32 // messages
	answer  int32   // none: the input has no answer or was refused
	refused error
	log     []node.Admission
	minted  int
	saved   int32 // record to be kept on disk; none
	fault   error // a broken promise, or a panic
}

const none = -1

// cast holds every state that some node was seen in, and what each input did
// to it. Nodes are pure, so an input is tried once on each state: the worlds
// of an exploration are combinations of few node states. Nodes need no copying
// either: an instance in a given state is had by repeating the inputs that led
// there, which also shows that the same inputs lead to the same state.
type cast struct {
	m       *model
	print   *printer
	lives   []*life
	index   map[digest]int32
	done    map[doing]*outcome
	recent  [recentMax]int32 // states with an instance, a ring
	oldest  int
	repeats int        // inputs repeated
	merged  []crossing // other ways to a state that was known

	messages table[eviction.Message]
	commits  table[eviction.Commit] // what they decide
	answers  table[node.Answer]
	disks    table[eviction.Record]
	views    table[eviction.View]
	voids    table[eviction.Void]
}

type doing struct {
	life int32
	in   input
}

// crossing is another way to a state.
type crossing struct {
	doing
	to int32
}

// table numbers values.
type table[T any] struct {
	all    []T
	sums   []digest
	number map[digest]int32
}

func (t *table[T]) of(p *printer, v T) int32 {
	d := p.digest(&v)
	if i, ok := t.number[d]; ok {
		return i
	}
	if t.number == nil {
		t.number = map[digest]int32{}
	}
	i := int32(len(t.all))
	t.number[d] = i
	t.all, t.sums = append(t.all, v), append(t.sums, d)
	return i
}

// recentMax bounds how many instances are kept.
const recentMax = 4096

func newCast(m *model) *cast {
	c := &cast{m: m, print: newPrinter(m.lie.blind), index: map[digest]int32{}, done: map[doing]*outcome{}}
	c.lives = append(c.lives, &life{from: none})
	return c
}

// do returns what in does to a node in state from.
func (c *cast) do(from int32, in input) *outcome {
	k := doing{from, in}
	o, ok := c.done[k]
	if !ok {
		o = c.try(from, in)
		c.done[k] = o
	}
	return o
}

// try runs the node.
func (c *cast) try(from int32, in input) (o *outcome) {
	o = &outcome{to: from, answer: none, saved: none}
	defer func() {
		if p := recover(); p != nil {
			o.fault = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	before := c.lives[from]
	after := &life{from: from, in: in, host: before.host, record: before.record}
	if in.kind == inBirth {
		after.host = int(in.arg >> 4 & 15)
	}
	n, answer, err := c.call(c.instance(from), after.host, in)
	now := c.m.time(after.host, in.now)
	ready := c.ready(n, after.host, in)
	o.sent = c.numbers(ready.Messages)
	if o.refused = err; in.kind >= inJoin && in.kind <= inEnd && err == nil {
		o.answer = c.answers.of(c.print, answer)
	}
	if ready.Save != nil {
		o.saved = c.disks.of(c.print, *ready.Save)
	}
	o.log = ready.Log
	if c.m.lie.log != nil {
		o.log = c.m.lie.log(o.log)
	}
	after.deadline, after.status = ready.Deadline, n.Status()
	after.self = after.status.Self
	after.room, _ = n.Room(c.m.room.Name, now)
	c.note(after, o)
	o.fault = c.checkStep(before, after, o)
	if o.fault == nil {
		if err := n.Overlooked(); err != nil {
			o.fault = broken("S18", "%v", err)
		}
	}
	o.to = c.settle(after, n)
	return o
}

// numbers takes in messages that a node sends.
func (c *cast) numbers(messages []eviction.Message) (sent []int32) {
	for _, m := range messages {
		if c.m.lie.wire != nil {
			m = c.m.lie.wire(m)
		}
		sent = append(sent, c.messages.of(c.print, m))
	}
	return sent
}

// settle finds the number of the state that n is in.
func (c *cast) settle(l *life, n *node.Node) int32 {
	l.digest = c.print.digest(n, &l.record)
	i, ok := c.index[l.digest]
	if !ok {
		i = int32(len(c.lives))
		c.index[l.digest] = i
		c.lives = append(c.lives, l)
	} else {
		c.merged = append(c.merged, crossing{doing{l.from, l.in}, i})
	}
	if c.lives[i].live == nil {
		c.lives[c.recent[c.oldest]].live = nil
		c.recent[c.oldest] = i
		c.oldest = (c.oldest + 1) % recentMax
		c.lives[i].live = n
	}
	return i
}

// note records what promises need later.
func (c *cast) note(l *life, o *outcome) {
	r := &l.record
	if l.leased(c.m, l.in.now) {
		r.actsUntil = l.room.LeaseUntil - bootZero
	}
	if l.in.kind == inStep {
		if g, ok := c.messages.all[l.in.arg].Body.(*eviction.Gather); ok {
			r.asked, r.askedT = g.Epoch, g.T
		}
	}
	for _, i := range o.sent {
		switch b := c.messages.all[i].Body.(type) {
		case *eviction.Reply:
			if r.replied, r.repliedAt = b.Epoch, l.in.now; b.Epoch == r.asked {
				r.promised = max(r.promised, r.askedT)
			}
		case *eviction.Gather:
			if b.Lead.Member == l.self {
				r.replied, r.repliedAt, r.promised = b.Epoch, l.in.now, max(r.promised, b.T)
			}
		}
	}
}

// instance returns a node in state i, which is the caller's.
func (c *cast) instance(i int32) *node.Node {
	var path []input
	at, host := i, c.lives[i].host
	for ; at != 0 && c.lives[at].live == nil; at = c.lives[at].from {
		path = append(path, c.lives[at].in)
	}
	n := c.lives[at].live
	c.lives[at].live = nil
	for k := len(path) - 1; k >= 0; k-- {
		n, _, _ = c.call(n, host, path[k])
		c.ready(n, host, path[k])
		c.repeats++
	}
	if len(path) > 0 && c.print.digest(n, &c.lives[i].record) != c.lives[i].digest {
		panic(fmt.Sprintf("explore: the same inputs led %v elsewhere the second time", c.lives[i].self))
	}
	return n
}

// birthArg is how a host's life begins: with what an earlier one had on disk,
// or nothing.
func birthArg(host int, life uint8, disk int32) int32 {
	return (disk+1)<<8 | int32(host)<<4 | int32(life)
}

// call does to n what in says.
func (c *cast) call(n *node.Node, host int, in input) (_ *node.Node, a node.Answer, err error) {
	now, room := c.m.time(host, in.now), c.m.room.Name
	switch in.kind {
	case inBirth:
		config := c.m.birth(host, uint8(in.arg&15), in.now)
		if disk := in.arg>>8 - 1; disk != none {
			config.Persisted = &c.disks.all[disk]
		}
		n, err = node.New(config, now)
	case inView:
		n.SetView(now, c.views.all[in.arg])
	case inTick:
		n.Tick(now)
	case inStep:
		err = n.Step(now, c.messages.all[in.arg])
	case inJoin:
		a, err = n.Join(now, room, ticketID(int(in.arg)), false)
	case inCheckIn:
		a, err = n.CheckIn(now, c.answers.all[in.arg].Ticket)
	case inLeave:
		a, err = n.Leave(now, c.answers.all[in.arg].Ticket)
	case inRefresh:
		a, err = n.Refresh(now, c.answers.all[in.arg].Pass)
	case inEnd:
		a, err = n.End(now, c.answers.all[in.arg].Pass)
	case inDelete:
		_, err = n.DeleteMin(now, room)
	}
	return n, a, err
}

// ready is what there is to do after that; what is to be saved is, at once.
func (c *cast) ready(n *node.Node, host int, in input) node.Ready {
	r := n.Ready(c.m.time(host, in.now))
	if r.Save != nil {
		n.Saved(r.Save)
	}
	return r
}

// audit checks what the exploration rests on: nobody changed a message that
// was sent, and nodes whose states were taken for the same go on alike,
// whichever way they came.
func (c *cast) audit() error {
	for i := range c.messages.all {
		if m := &c.messages.all[i]; c.print.digest(m) != c.messages.sums[i] {
			return fmt.Errorf("explore: a message was changed after it was sent: %s", line(m))
		}
	}
	known := map[int32][]input{}
	for k := range c.done {
		known[k.life] = append(known[k.life], k.in)
	}
	for _, x := range c.merged {
		for _, in := range known[x.to] {
			if want := c.done[doing{x.to, in}]; want.fault == nil && !c.alike(x, in, want) {
				return fmt.Errorf("explore: two nodes %v in one state part on %q at %s", c.lives[x.to].self, in.kind, clock(in.now))
			}
		}
	}
	return nil
}

// alike reports whether in does to a node that came by x what want says.
func (c *cast) alike(x crossing, in input, want *outcome) bool {
	host := c.lives[x.to].host
	n, _, _ := c.call(c.instance(x.life), host, x.in)
	c.ready(n, host, x.in)
	n, a, err := c.call(n, host, in)
	ready := c.ready(n, host, in)
	if want.answer != none && (err != nil || c.answers.of(c.print, a) != want.answer) {
		return false
	}
	return slices.Equal(c.numbers(ready.Messages), want.sent) && c.print.digest(n, &c.lives[want.to].record) == c.lives[want.to].digest
}
