// Package loop runs one node: a goroutine owns the pure state machine of
// package node and feeds it messages, views, visitors' requests and the time,
// and does what it says: save, send, tell. Only a visitor's request that finds the
// node free borrows it for a moment, instead of being handed over and back.
//
//	l, err := loop.New(loop.Config{Node: …, Clock: loop.SystemClock(), …})
//	go l.Run(ctx)
//	answer, err := l.Do(ctx, ticket.Request{Op: ticket.Join, Room: "shop", ID: id})
//
// The loop decides nothing about the queue. What it does decide is what happens
// when more comes in than it can handle: messages from other nodes are dropped,
// which the protocol bears, and visitors are told to come again
// (ticket.ErrBusy). Nothing that it holds grows without a bound.
package loop

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// Links reaches the other members.
type Links interface {
	// Send queues m for m.To and returns at once. It arrives at most once, and
	// what arrives on one link is in order.
	Send(m eviction.Message)
	// Forward has another node answer q.
	Forward(ctx context.Context, to eviction.Member, q ticket.Request) (ticket.Answer, error)
	// Hint tells another node that something has happened to a ticket that is watched
	// there, and returns at once. It may get lost.
	Hint(to eviction.Member, room string, id qpid.ItemID)
}

// Config says what a loop runs and what stands around it.
type Config struct {
	Node  node.Config
	Links Links
	Clock func() eviction.Time // reads both clocks
	// Save makes a record durable before it returns. Nil: nothing is kept. If it
	// fails, nothing is sent, and it is tried again a little later.
	Save func(*eviction.Record) error
	// Used keeps used tickets. Nil: they are not. What fails is tried again.
	Used func([]uint64) error
	// Visits makes a batch durable before it returns. It is called by a goroutine of its own. If
	// it fails it is tried again. Not nil if and only if Node.Visits is not.
	Visits   func(*eviction.VisitsBatch) error
	Log      func(node.Admission) // hears of every step of every visitor; must not block
	Told     func(*ticket.Answer) // hears of every answer about a place that is here, by whatever node it was asked for. Nil: nobody does
	Logger   *slog.Logger
	Messages int           // from other nodes, waiting to be handled [8192]
	Requests int           // of visitors, waiting to be handled [4096]
	Listened int           // tickets that are watched at other nodes, to tell them [65536]
	Answer   time.Duration // a forwarded request is answered within this or given up [2s]
}

// Loop runs one node. Its methods are safe for concurrent use.
type Loop struct {
	c        Config
	mu       sync.Mutex // of node and borrowed; Run holds it but for short, others only try, but heardOf
	node     *node.Node
	borrowed int           // requests answered since Run last did what follows from them
	wake     chan struct{} // has a value when there are any
	messages chan eviction.Message
	requests chan *request
	orders   chan func(*node.Node, eviction.Time)
	done     chan struct{} // closed when Run has returned
	stopped  atomic.Bool   // likewise
	streams  streams
	remote   listeners // of watches at other nodes
	joins    joins
	relays   relays
	aside    atomic.Bool // see node.Aside
	snapshot atomic.Pointer[Snapshot]
	shown    chan struct{} // has a value when there is a snapshot that nobody was told of
	waves    waves
	visits   visits
	dropped  atomic.Uint64
	refused  atomic.Uint64
	unsaved  *eviction.Record   // Save has failed; these messages wait for it
	held     []eviction.Message // bounded by heldMax
	spent    []uint64           // used tickets that Used has not kept yet, at most usedMax
	spentAt  int64              // boot time before which Used is not tried again
	saveAt   int64              // boot time before which Save is not tried again
	tellAt   int64              // boot time before which the log is not told again that it fails
	shownAt  int64              // boot time of the last snapshot
	tickAt   int64              // boot time at which Tick is due: the earliest Deadline since the last one
}

// request is one visitor's, on its way through the loop.
type request struct {
	ticket.Request
	answer ticket.Answer
	err    error
	kept   <-chan struct{} // closed when the answer may go out; nil: at once
	done   chan struct{}
	gone   atomic.Bool // nobody waits for the answer any more
}

// Snapshot is the state of the node a moment ago.
type Snapshot struct {
	At     eviction.Time
	Status node.Status
	Met    []eviction.Member // that were in a wave with the node
	Absent []eviction.Member // those of them who may be at another side of a split
	Rooms  []node.RoomStatus // by name
}

const (
	snapshotEvery = 50_000     // µs
	saveEvery     = 100_000    // µs between tries while they fail
	tellEvery     = 60_000_000 // µs between lines about it
	batchMax      = 256        // inputs handled before what they lead to is done
	heldMax       = 4096
	usedMax       = 1 << 20
)

// New makes a loop. The error lists everything that is wrong with c.Node.
func New(c Config) (*Loop, error) {
	if c.Messages == 0 {
		c.Messages = 8192
	}
	if c.Requests == 0 {
		c.Requests = 4096
	}
	if c.Answer == 0 {
		c.Answer = 2 * time.Second
	}
	if c.Listened == 0 {
		c.Listened = 1 << 16
	}
	n, err := node.New(c.Node, c.Clock())
	if err != nil {
		return nil, err
	}
	l := &Loop{
		c: c, node: n, messages: make(chan eviction.Message, c.Messages), requests: make(chan *request, c.Requests),
		wake: make(chan struct{}, 1), shown: make(chan struct{}, 1),
		orders: make(chan func(*node.Node, eviction.Time)), done: make(chan struct{}),
		remote: listeners{max: c.Listened}, visits: newVisits(),
		saveAt: math.MinInt64, tellAt: math.MinInt64, tickAt: math.MaxInt64,
	}
	l.publish(c.Clock())
	return l, nil
}

// Run runs the node until ctx ends. Call it once.
func (l *Loop) Run(ctx context.Context) error {
	defer close(l.done)
	defer l.stopped.Store(true)
	timer := time.NewTimer(0)
	defer timer.Stop()
	if l.c.Visits != nil {
		ctx, stop := context.WithCancel(ctx)
		var writer sync.WaitGroup
		defer writer.Wait()
		defer stop()
		writer.Go(func() { l.writeVisits(ctx) })
	}
	for {
		var do func()
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			do = func() {
				l.tickAt = math.MaxInt64
				l.node.Tick(l.c.Clock())
				l.joins.look(l.node)
			}
		case m := <-l.messages:
			do = func() { l.step(m) }
		case q := <-l.requests:
			do = func() { l.handle(q) }
		case <-l.wake:
			do = func() {}
		case order := <-l.orders:
			do = func() { order(l.node, l.c.Clock()) }
		case err := <-l.visits.written:
			do = func() { l.wroteVisits(err) }
		}
		timer.Reset(l.settle(l.work(do)))
	}
}

// work has the node do something, and what else has come in, and returns what
// it leads to.
func (l *Loop) work(do func()) (eviction.Time, node.Ready) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
	l.drain()
	l.borrowed = 0
	now := l.c.Clock()
	r := l.node.Ready(now)
	l.joins.kept(l.node, r.Kept)
	return now, r
}

// drain handles what else has come in, within bounds, so that one send and one
// save serve many inputs.
func (l *Loop) drain() {
	for range batchMax {
		select {
		case m := <-l.messages:
			l.step(m)
		case q := <-l.requests:
			l.handle(q)
		default:
			return
		}
	}
}

func (l *Loop) step(m eviction.Message) {
	if err := l.node.Step(l.c.Clock(), m); err != nil {
		l.c.Logger.Debug("message refused", "from", m.From.String(), "err", err)
	}
}

// handle leaves out a join that nobody waits for any more: after a stall
// thousands of them would take places, and slots, that no browser knows of. All
// else is worth doing late.
func (l *Loop) handle(q *request) {
	if q.Op == ticket.Join && q.gone.Load() {
		return
	}
	q.answer, q.err = Ask(l.node, l.c.Clock(), q.Request)
	q.kept = l.joins.watch(l.node, &q.Request, &q.answer, q.err)
	close(q.done)
}

// Ask puts a visitor's request to a node.
func Ask(n *node.Node, now eviction.Time, q ticket.Request) (ticket.Answer, error) {
	switch q.Op {
	case ticket.Join:
		return n.Join(now, q.Room, q.ID, q.Ticket.Quiet)
	case ticket.CheckIn:
		if q.Hold {
			return n.HoldBack(now, q.Ticket)
		}
		return n.CheckIn(now, q.Ticket)
	case ticket.Leave:
		return n.Leave(now, q.Ticket)
	case ticket.Abandon:
		return n.Abandon(now, q.Ticket)
	case ticket.Refresh:
		return n.Refresh(now, q.Pass)
	case ticket.End:
		return n.End(now, q.Pass)
	case ticket.Visit:
		return n.Visit(now, q.Pass)
	case ticket.Offer:
		return n.Offer(now, q.Ticket, q.ID)
	case ticket.Take:
		return n.Take(now, q.Room, q.ID)
	default:
		return ticket.Answer{}, fmt.Errorf("request of unknown kind %d", q.Op)
	}
}

// settle does what the inputs have led to and returns the time until the next
// thing is due.
func (l *Loop) settle(now eviction.Time, r node.Ready) time.Duration {
	if r.Save != nil {
		l.unsaved = r.Save
	}
	for i := range r.Broken {
		b := &r.Broken[i]
		l.c.Logger.Error("a room is not as it must be, so this node calls nobody in it until it is restarted; please report this line", "room", b.Room, "fault", b.What, "state", b.State)
	}
	if r.Visits != nil {
		l.visits.batches <- r.Visits // there is no other
	}
	l.keepUsed(now, r.Used)
	l.send(now, r.Messages)
	for i := range r.Log {
		if a := &r.Log[i]; a.Event != node.Entitled {
			l.happened(watched{a.Room, a.Weight.ID}, now.Boot)
		}
		if l.c.Log != nil {
			l.c.Log(r.Log[i])
		}
	}
	for _, p := range r.LetGo {
		l.happened(watched{p.Room, p.ID}, now.Boot)
	}
	l.waves.passed(l.show(now))
	// A Deadline may count from now. Inputs must not push the Tick ahead of them
	// for as long as they keep coming.
	l.tickAt = min(l.tickAt, r.Deadline)
	next := l.tickAt
	if l.unsaved != nil {
		next = min(next, l.saveAt)
	}
	return max(0, time.Duration(next-now.Boot)*time.Microsecond)
}

// show publishes the node's state if that has changed enough, and returns the
// last wave that it was in.
func (l *Loop) show(now eviction.Time) qpid.Epoch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if aside := l.node.Aside(now); l.aside.Swap(aside) && !aside {
		l.relays.clear()
	}
	installed := l.node.Installed()
	if installed != l.Snapshot().Status.Installed || now.Boot-l.shownAt >= snapshotEvery {
		l.publish(now)
	}
	return installed
}

// send lets nothing out before the record that it follows from is durable.
func (l *Loop) send(now eviction.Time, messages []eviction.Message) {
	if l.unsaved != nil && l.c.Save != nil && !l.save(now) {
		l.held = append(l.held, messages...)
		l.held = l.held[max(0, len(l.held)-heldMax):]
		return
	}
	l.unsaved = nil
	for _, m := range l.held {
		l.c.Links.Send(m)
	}
	l.held = nil
	for _, m := range messages {
		l.c.Links.Send(m)
	}
}

// keepUsed has used tickets kept. A node that cannot write them goes on: what it
// loses is what one without a disk does.
func (l *Loop) keepUsed(now eviction.Time, tickets []uint64) {
	if l.c.Used == nil {
		return
	}
	l.spent = append(l.spent, tickets...)
	if len(l.spent) == 0 || now.Boot < l.spentAt {
		return
	}
	err := l.c.Used(l.spent)
	if err == nil {
		l.spent = l.spent[:0]
		return
	}
	if l.spentAt == 0 {
		l.c.Logger.Warn("used tickets cannot be written, so that they are good again should this node start anew; free space in node.data or make it writable", "err", err)
	}
	l.spentAt = now.Boot + tellEvery
	l.spent = l.spent[max(0, len(l.spent)-usedMax):]
}

// save reports whether the record is durable. While it cannot be, neither the
// disk nor the log hears of it with every input.
func (l *Loop) save(now eviction.Time) bool {
	if now.Boot < l.saveAt {
		return false
	}
	err := l.c.Save(l.unsaved)
	if err == nil {
		l.mu.Lock()
		l.node.Saved(l.unsaved)
		l.mu.Unlock()
	}
	switch {
	case err == nil && l.tellAt != math.MinInt64:
		l.saveAt, l.tellAt = math.MinInt64, math.MinInt64
		l.c.Logger.Info("what this node must not forget can be written again")
	case err != nil:
		l.saveAt = now.Boot + saveEvery
		if now.Boot >= l.tellAt {
			l.tellAt = now.Boot + tellEvery
			l.c.Logger.Error("what this node must not forget cannot be written, so it says nothing to the others; free space in node.data or make it writable", "err", err)
		}
	}
	return err == nil
}

func (l *Loop) publish(now eviction.Time) {
	l.shownAt = now.Boot
	s := &Snapshot{At: now, Status: l.node.Status(), Met: l.node.Met(), Absent: l.node.Absent()}
	for _, name := range l.node.Rooms() {
		room, _ := l.node.Room(name, now)
		s.Rooms = append(s.Rooms, room)
	}
	l.snapshot.Store(s)
	select {
	case l.shown <- struct{}{}:
	default: // it is told already
	}
}

// Shown has a value whenever Snapshot has another; for one goroutine.
func (l *Loop) Shown() <-chan struct{} { return l.shown }

// Snapshot returns the node's state of at most a wave ago. It must not be changed.
func (l *Loop) Snapshot() *Snapshot { return l.snapshot.Load() }

// Shed returns how many messages and how many requests were turned away because
// the loop had too much to do.
func (l *Loop) Shed() (messages, requests uint64) { return l.dropped.Load(), l.refused.Load() }

// Deliver hands in a message from another node. It does not block: with too
// many of them waiting it is dropped, as if it were lost on the way.
func (l *Loop) Deliver(m eviction.Message) {
	select {
	case l.messages <- m:
	default:
		l.dropped.Add(1)
	}
}

// errStopped is what is left to say when the loop has ended.
var errStopped = fmt.Errorf("%w: the node is stopping", ticket.ErrUnavailable)

// order has f run by the loop and waits for it.
func (l *Loop) order(f func(*node.Node, eviction.Time)) error {
	done := make(chan struct{})
	select {
	case l.orders <- func(n *node.Node, now eviction.Time) { f(n, now); close(done) }:
		<-done
		return nil
	case <-l.done:
		return errStopped
	}
}

// SetView hands in what the failure detector believes.
func (l *Loop) SetView(v eviction.View) {
	l.relays.see(l.c.Clock().Boot, v)
	_ = l.order(func(n *node.Node, now eviction.Time) { n.SetView(now, v) }) // a loop that has ended needs none
}

// SetRoom proposes a room's configuration, new or changed.
func (l *Loop) SetRoom(r eviction.Room) error {
	var refused error
	if err := l.order(func(n *node.Node, now eviction.Time) { refused = n.SetRoom(now, r) }); err != nil {
		return err
	}
	return refused
}

// Govern bounds the limit of a room, see node.Node.
func (l *Loop) Govern(room string, bound int) error {
	return l.order(func(n *node.Node, now eviction.Time) { n.Govern(now, room, bound) })
}

// Before tells a room how long visits lasted, see node.Node.
func (l *Loop) Before(room string, terms uint32, lasted []node.Lasted) error {
	return l.order(func(n *node.Node, _ eviction.Time) { n.Before(room, terms, lasted) })
}

// Adopt replaces the settings that all nodes of a cluster share. It fails with
// eviction.ErrSettled once the node was in a wave.
func (l *Loop) Adopt(c eviction.Config) error {
	var refused error
	if err := l.order(func(n *node.Node, now eviction.Time) { refused = n.Adopt(now, c) }); err != nil {
		return err
	}
	return refused
}

// Goodbye begins a graceful leave: visits, places and free slots go to the others.
// Let the loop run on until half a second after the Status says that it has left.
func (l *Loop) Goodbye() error {
	return l.order(func(n *node.Node, now eviction.Time) { n.Goodbye(now) })
}

// PassTime is the clock by which passes, tickets and the items of queues are timed, Unix
// microseconds. It goes on from when the node read it: a snapshot is made some time after
// that, which is long on a machine that has much else to do.
func (l *Loop) PassTime() int64 {
	return l.Snapshot().PassTime(l.c.Clock().Boot)
}

// PassTime is that clock at a boot time, µs.
func (s *Snapshot) PassTime(boot int64) int64 { return s.Status.Clock + boot - s.Status.ClockAt }

// Room returns one room of the snapshot.
func (s *Snapshot) Room(name string) (*node.RoomStatus, bool) {
	i, ok := slices.BinarySearchFunc(s.Rooms, name, func(r node.RoomStatus, name string) int { return cmp.Compare(r.Room.Name, name) })
	if !ok {
		return nil, false
	}
	return &s.Rooms[i], true
}
