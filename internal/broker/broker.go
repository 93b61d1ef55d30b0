package broker

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// Broker is one node's part of all priority queues. It is not safe for
// concurrent use.
type Broker struct {
	c      Config
	self   eviction.Member
	now    Time
	view   View
	former []formerList  // those before it, the oldest first
	gone   []qpid.NodeID // that were in one of them, and are not in the view
	shards [kinds]shard
	queues []*queue // by name
	active []*queue // of them, by name: all with somebody who waits or watches here; others are dropped with the next Tick
	leader qpid.NodeID
	round  round

	calling   int                 // calls under way
	requests  map[uint64]*request // by Seq
	timeouts  []timeout           // of them
	takes     map[uint64]*take    // by the caller's id
	ops       map[uint64]*op      // deleteMins under way, by Seq
	opTimes   []timeout           // of them
	awake     []*queue            // whose waiters are to ask again
	delivered delivered
	held      int    // deleteMins that wait for the end of a round
	waiting   int    // takes that wait for items
	seq       uint64 // of the last request or deleteMin
	proposals map[uint64]*proposal
	purging   []func() // the next steps of purges; at most as many as calls and requests under way
	recent    recent
	looked    int   // of queues: where tidySome is
	sought    int   // of queues: where makeRoom is
	roomyAt   int64 // boot time before which it does not look, because all of them were in use
	tally     tally
	shared    []*queue                   // whose slots the nodes share, by name
	slotsAt   int64                      // boot time at which these are looked at next
	heard     map[eviction.Member]uint64 // Seq of the last message with slots
	unopened  unopened
	missed    missed
	settled   settled

	out   Ready
	stats Counts
}

// Counts are what has happened at this node since it started.
type Counts struct {
	Rounds   uint64 // installed
	Refused  uint64 // messages that made no sense, or for which there was no room
	Repeated uint64 // deleteMins asked again
	Returned uint64 // leases that nobody waited for any more
}

// New returns a broker that knows nobody yet. Its clocks begin at now.
func New(c Config, now Time) (*Broker, error) {
	c.QueuesMax = cmp.Or(c.QueuesMax, 1000)
	c.MemoryMax = cmp.Or(c.MemoryMax, 1<<30)
	c.CallsMax = cmp.Or(c.CallsMax, 10_000)
	c.WaitersMax = cmp.Or(c.WaitersMax, 10_000)
	c.PurgeSteps = cmp.Or(c.PurgeSteps, 4000)
	c.Fresh = cmp.Or(c.Fresh, 600_000)
	if c.Self.Name == "" {
		return nil, errors.New("broker: a node needs a name")
	}
	if len(c.Queues) > c.QueuesMax {
		return nil, fmt.Errorf("queues: %d are more than the %d of queueing.queues_max; list fewer, or raise it", len(c.Queues), c.QueuesMax)
	}
	b := &Broker{
		c: c, self: c.Self, now: now, seq: uint64(max(now.Clock, 0)),
		requests: map[uint64]*request{}, takes: map[uint64]*take{}, ops: map[uint64]*op{}, proposals: map[uint64]*proposal{},
		settled: settled{told: map[eviction.Member]uint64{}},
	}
	b.delivered.forgotten = b.seq // what an earlier life had given out
	b.shards[Memory] = shard{kind: Memory, state: pqueue.New(salt(c.Self.Name, Memory)), leads: true}
	b.shards[Memory].state.Follow(true)
	for _, k := range c.Logs {
		if k != Durable && k != Replicated {
			return nil, fmt.Errorf("broker: there is no log of kind %v", k)
		}
		b.shards[k] = shard{kind: k, logged: true, state: pqueue.New(salt(c.Self.Name, k))}
	}
	for _, q := range c.Queues {
		if _, ok := b.find(q.Name); ok {
			return nil, fmt.Errorf("queue %q: listed twice; give each a name of its own", q.Name)
		}
		if q.Kind >= kinds || b.shards[q.Kind].state == nil {
			return nil, fmt.Errorf("queue %q: is %v, and this node has no disk for it; set node.data", q.Name, q.Kind)
		}
		b.addQueue(q, true)
	}
	b.configure(&b.shards[Memory])
	return b, nil
}

// salt tells shards apart. That of the replicated queues is the same everywhere.
func salt(node qpid.NodeID, k Kind) uint32 {
	if k == Replicated {
		return 0
	}
	h := uint32(2166136261)
	for i := range len(node) {
		h = (h ^ uint32(node[i])) * 16777619
	}
	return h ^ uint32(k)<<31
}

func (b *Broker) find(name string) (int, bool) {
	return slices.BinarySearchFunc(b.queues, name, func(q *queue, name string) int { return cmp.Compare(q.c.Name, name) })
}

// queue returns the queue of that name, nil if this node does not know it.
func (b *Broker) queue(name string) *queue {
	if i, ok := b.find(name); ok {
		return b.queues[i]
	}
	return nil
}

// use returns the queue of that name, and makes it if it may.
func (b *Broker) use(name string) (*queue, pqueue.Code) {
	if q := b.queue(name); q != nil {
		q.used = b.now.Boot
		return q, pqueue.OK
	}
	switch {
	case !b.c.CreateOnUse:
		return nil, pqueue.QueueUnknown
	case len(b.queues) >= b.c.QueuesMax && !b.makeRoom():
		return nil, pqueue.QueuesFull
	}
	c := b.c.OnUse
	c.Name, c.Kind = name, Memory
	return b.addQueue(c, false), pqueue.OK
}

func (b *Broker) addQueue(c Queue, listed bool) *queue {
	n, err := qpid.New(qpid.Config{Self: b.self.Name, PendingMax: 1})
	if err != nil {
		panic(fmt.Sprintf("broker: queue %q: %v", c.Name, err))
	}
	q := &queue{c: c, listed: listed, q: n, used: b.now.Boot, pacer: pacer{interval: c.Interval, most: perInterval(c.PerInterval)}, turns: turns{lines: map[lineID]*line{}}}
	i, _ := b.find(c.Name)
	b.queues = slices.Insert(b.queues, i, q)
	b.tally.admit(q)
	b.reshare(q, c.Limits)
	if b.round.installed() {
		b.install(q)
	}
	return q
}

// read takes in the clocks. Neither goes back.
func (b *Broker) read(now Time) {
	b.now.Boot = max(b.now.Boot, now.Boot)
	b.now.Clock = max(b.now.Clock, now.Clock)
}

// SetView takes in what the last wave said.
func (b *Broker) SetView(now Time, v View) {
	b.read(now)
	gone := make([]eviction.Member, 0)
	for _, m := range b.view.List {
		if !slices.Contains(v.List, m) {
			gone = append(gone, m)
		}
	}
	if !b.view.Primary || v.At > b.view.At+b.c.Fresh {
		b.round.stale = true
		b.round.need = b.round.need || b.round.installed()
	}
	switch {
	case len(b.view.List) == 0: // this node is new: before, they were without it
		b.outlive(slices.DeleteFunc(slices.Clone(v.List), func(m eviction.Member) bool { return m == b.self }))
	case !slices.Equal(v.List, b.view.List):
		b.outlive(b.view.List)
	}
	b.recall(v)
	before, voters := b.view.List, b.view.Voters
	b.view = View{List: slices.Clone(v.List), Primary: v.Primary, At: v.At, Voters: slices.Clone(v.Voters)}
	for _, m := range gone {
		delete(b.heard, m)
		b.lost(m)
	}
	b.meet(before)
	if !slices.Equal(v.List, before) || !slices.Equal(v.Voters, voters) {
		b.recount()
	}
	if late := b.round.late; late.Kind != 0 && late.From == b.coordinator() {
		b.round.late = Message{}
		b.onGather(late)
	}
	b.steer()
}

// SetLeader says which node leads the log of the replicated queues; empty: it
// is not known.
func (b *Broker) SetLeader(now Time, leader qpid.NodeID) {
	b.read(now)
	b.leader = leader
}

// Broke says that messages from m, or to it, may have been lost.
func (b *Broker) Broke(now Time, m eviction.Member) {
	b.read(now)
	b.fail(m)
	delete(b.settled.told, m)
	if slices.Contains(b.round.list, m) {
		b.round.need = true
	}
	b.steer()
}

// lost gives up what was asked of a member that is gone.
func (b *Broker) lost(m eviction.Member) {
	b.fail(m)
	delete(b.settled.told, m)
	for _, q := range b.queues {
		q.askers.drop(m)
		q.watchers.drop(m)
	}
}

// Step takes in a message from another member. The error says what was wrong
// with it; the broker goes on.
func (b *Broker) Step(now Time, m Message) error {
	b.read(now)
	if m.To != b.self || m.From == b.self || m.From.Name == "" {
		return fmt.Errorf("broker: %v from %v is for %v, this is %v", m.Kind, m.From, m.To, b.self)
	}
	err := b.step(m)
	if err != nil {
		b.stats.Refused++
	}
	b.steer()
	return err
}

func (b *Broker) step(m Message) error {
	switch m.Kind {
	case MsgGather:
		b.onGather(m)
	case MsgFrozen:
		b.onFrozen(m)
	case MsgCommit:
		b.onCommit(m)
	case MsgBroken:
		b.onBroken(m)
	case MsgVouch:
		b.onVouch(m)
	case MsgVouched:
		b.onVouched(m)
	case MsgQPID:
		return b.onQPID(m)
	case MsgGranted:
		b.onGranted(m.From, m.Queue, m.Seq, m.Result, m.For)
	case MsgRequest:
		b.onRequest(m)
	case MsgResponse:
		b.onResponse(m.From, m.Seq, m.Result)
	case MsgWaiting:
		if q := b.queue(m.Queue); q != nil {
			q.askers.add(m.From, b.now.Boot+min(m.For, interestMax))
		} else if m.For > 0 {
			return b.learn(m)
		}
	case MsgWake:
		if q := b.queue(m.Queue); q != nil {
			b.wake(q)
		}
	case MsgWatch:
		return b.onWatch(m)
	case MsgFreed, MsgOffice:
		b.onFreed(m)
	case MsgKeyAsk, MsgKeyHeld, MsgKeyWant, MsgKeyLend, MsgKeyBack:
		b.onKeys(m)
	case MsgReport:
		b.onReport(m)
	case MsgShares:
		b.onShares(m)
	case MsgChange:
		b.seen(m.From.Name, m.Change)
	default:
		return errMessage
	}
	return nil
}

// learn makes a queue that another member is interested in.
func (b *Broker) learn(m Message) error {
	q, code := b.use(m.Queue)
	if code != pqueue.OK {
		return fmt.Errorf("broker: no room for queue %q, which %v asks about", m.Queue, m.From)
	}
	q.askers.add(m.From, b.now.Boot+min(m.For, interestMax))
	return nil
}

// Tick does what is due at now.
func (b *Broker) Tick(now Time) {
	b.read(now)
	for k := range b.shards {
		b.tickShard(&b.shards[k])
	}
	b.expire()
	b.tickSlots()
	b.tickKeys()
	b.tickTakes()
	b.tickPurges()
	b.askUnopened()
	b.tidySome()
	b.steer()
}

// How often Tick wants to be called, in µs: QuietEvery while this node is Quiet.
const (
	TickEvery  = 10_000
	QuietEvery = 200_000
)

// Quiet reports whether time brings little about here: there is no queue, nobody waits
// for an answer, and the round is that of the view.
func (b *Broker) Quiet() bool {
	r := &b.round
	return len(b.queues)+len(b.requests)+len(b.proposals)+len(b.purging)+b.Calls() == 0 &&
		r.installed() && !r.need && !r.frozen && !r.open && slices.Equal(r.list, b.view.List)
}

// Ready drains the work that is to be done. Call it after every input.
func (b *Broker) Ready() Ready {
	r := b.out
	b.out = Ready{}
	return r
}

// Counts returns what has happened here.
func (b *Broker) Counts() Counts { return b.stats }

func (b *Broker) send(m Message) {
	m.From = b.self
	b.out.Messages = append(b.out.Messages, m)
}

// others are the members of the view without this node.
func (b *Broker) others() []eviction.Member {
	return slices.DeleteFunc(slices.Clone(b.view.List), func(m eviction.Member) bool { return m == b.self })
}

// member returns the listed member of that name.
func (b *Broker) member(name qpid.NodeID) (eviction.Member, bool) {
	for _, list := range [][]eviction.Member{b.round.list, b.view.List} {
		for _, m := range list {
			if m.Name == name {
				return m, true
			}
		}
	}
	return eviction.Member{}, false
}

// Calls is how many calls and takes are under way here.
func (b *Broker) Calls() int { return b.calling + len(b.takes) }

// Installed reports whether this node is part of a round, so that deleteMins
// find their way.
func (b *Broker) Installed() bool { return b.round.installed() && !b.round.frozen }

// ConfigOf returns the configuration of a queue that this node knows.
func (b *Broker) ConfigOf(name string) (Queue, bool) {
	if q := b.queue(name); q != nil {
		return q.c, true
	}
	return Queue{}, false
}

// Root reports the epoch of a queue's tables at this node, and whether it is the
// root in it. For those who check.
func (b *Broker) Root(name string) (qpid.Epoch, bool) {
	q := b.queue(name)
	if q == nil {
		return qpid.Epoch{}, false
	}
	return q.q.Epoch(), q.q.IsRoot()
}

// Leased is how many items of a queue are leased at this node. For those who check.
func (b *Broker) Leased(name string) int {
	q := b.queue(name)
	if q == nil || b.shards[q.c.Kind].state == nil {
		return 0
	}
	return b.shards[q.c.Kind].state.Leased(name)
}

// Leases are the leased items of a queue at this node. For those who check.
func (b *Broker) Leases(name string) []pqueue.Item {
	q := b.queue(name)
	if q == nil || b.shards[q.c.Kind].state == nil {
		return nil
	}
	return b.shards[q.c.Kind].state.Leases(name)
}

// Offered are the items of a queue at this node that may be leased, the first one first.
// For those who check.
func (b *Broker) Offered(name string) (all []pqueue.Item) {
	if q := b.queue(name); q != nil && b.shards[q.c.Kind].leads {
		b.shards[q.c.Kind].state.EachOffered(name, func(i pqueue.Item) { all = append(all, i) })
	}
	return all
}

// Slots is how many of a queue's slots this node has, with those that it takes to be
// lost. For those who check.
func (b *Broker) Slots(name string) int {
	q := b.queue(name)
	if q == nil {
		return 0
	}
	return q.slots.have + q.slots.lost
}

// Lightest is the first item of a queue at this node, of those whose lease is not on
// its way. For those who check.
func (b *Broker) Lightest(name string) (pqueue.Item, bool) {
	q := b.queue(name)
	if q == nil || q.q.Min().IsEmpty() {
		return pqueue.Item{}, false
	}
	r := b.shards[q.c.Kind].state.Apply(pqueue.Command{Op: pqueue.OpFind, Queue: name, Number: pqueue.NumberOf(q.q.Min())})
	if len(r.Items) == 0 {
		return pqueue.Item{}, false
	}
	return r.Items[0], true
}
