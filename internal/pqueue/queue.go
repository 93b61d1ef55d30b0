package pqueue

import (
	"cmp"

	"github.com/anteroom/anteroom/qpid"
)

// item is one in a queue.
type item struct {
	queue     *queue
	number    uint64
	id        string
	priority  uint32
	state     State
	attempts  uint32
	stamp     int64
	inserted  int64
	notBefore int64
	expires   int64
	lease     uint64
	until     int64 // of the lease; of a dead letter: when it is to go on, 0: never
	taker     Taker
	reason    string
	origin    string // the queue into which it was put, if it is another
	key       string // of which one item is leased at a time; empty: it has none
	payload   []byte

	deadline // of its lease, its delay or its life
}

// precedes breaks ties of deadlines.
func (i *item) precedes(o *item) bool { return i.number < o.number }

// queue is one named queue of a shard. An item is in items until it is
// finished, and in ready, delayed, dead or none of them according to its state.
type queue struct {
	shard  *Shard
	name   string
	limits Limits
	set    Settings
	mode   ModeSetting

	items    map[uint64]*item
	ids      map[string]uint64 // of items and of finished ones
	ready    *qpid.Queue
	keys     map[string]*keyed // of ready and leased items
	waits    int               // of the ready ones, those that wait for another one of their key if keys are exclusive
	delayed  *qpid.Queue       // by the place that they will have
	dead     *qpid.Queue       // by the number of the lease that was the last: the longest dead first
	finished finished
	leased   int
	bytes    int64
	counters Counters

	deadline // of the oldest that is finished
}

func (q *queue) precedes(o *queue) bool { return q.name < o.name }

func newQueue(s *Shard, name string) *queue {
	return &queue{
		shard: s, name: name, items: make(map[uint64]*item), ids: make(map[string]uint64), keys: make(map[string]*keyed),
		ready: qpid.NewQueue(), delayed: qpid.NewQueue(), dead: qpid.NewQueue(), finished: newFinished(),
		deadline: deadline{place: -1},
	}
}

func (i *item) weight() qpid.Weight {
	return WeightOf(i.priority, i.stamp, i.queue.shard.salt, i.number)
}

// grave is the item's place among the dead.
func (i *item) grave() qpid.Weight { return GraveOf(i.lease, i.number) }

// GraveOf is the place of a dead letter among the dead, by the number of the lease
// that was its last.
func GraveOf(lease, number uint64) qpid.Weight {
	w := WeightOf(0, 0, 0, number)
	w.Stamp = lease
	return w
}

func (i *item) cost() int64 {
	return int64(len(i.payload)+len(i.id)+len(i.reason)+len(i.origin)+len(i.key)) + CostOfItem
}

func (i *item) copied() Item {
	return Item{
		Number: i.number, ID: i.id, Priority: i.priority, Stamp: i.stamp, Inserted: i.inserted, NotBefore: i.notBefore, Expires: i.expires,
		State: i.state, Attempts: i.attempts, Lease: i.lease, Until: i.until, Reason: i.reason, Origin: i.origin, Key: i.key, Payload: i.payload,
	}
}

// told is a note of the item before something happens to it.
type told struct {
	offered bool
	weight  qpid.Weight
	keyed   bool // and has an exclusive key
	turn    qpid.Weight
}

func (i *item) before() told {
	q := i.queue
	was := told{offered: q.offered(i), weight: i.weight()}
	if was.keyed = q.exclusive(i); was.keyed {
		was.turn = q.turn(i.key)
	}
	return was
}

// tell notes a change for whoever follows the shard.
func (q *queue) tell(k Kind, i *item, was told) {
	if !q.shard.follow {
		return
	}
	c := Change{Queue: q.name, Kind: k, At: q.shard.now, Item: i.copied(), Left: was.offered, Out: was.weight, Came: q.offered(i), In: i.weight()}
	c.Item.Payload = nil
	if c.Left && c.Came && c.Out == c.In {
		c.Left, c.Came = false, false
	}
	q.shard.changes = append(q.shard.changes, c)
	q.turned(i, was)
}

// move puts i into another state; Finished takes it away.
func (q *queue) move(i *item, to State) {
	switch i.state {
	case Ready:
		q.outOfLine(i)
	case Delayed:
		q.delayed.Delete(i.weight())
	case Leased:
		q.countLeased(i, -1)
		i.until = 0
	case Dead:
		q.dead.Delete(i.grave())
		i.until = 0
	default:
	}
	i.state = to
	due := int64(0)
	switch to {
	case Ready:
		q.inLine(i)
		due = i.expires
	case Delayed:
		q.delayed.Insert(i.weight())
		if due = i.notBefore; i.expires != 0 {
			due = min(due, i.expires)
		}
	case Leased:
		q.countLeased(i, +1)
		due = i.until
	case Dead:
		q.dead.Insert(i.grave())
		due = i.until
	default:
	}
	q.shard.due.set(i, due)
}

func (q *queue) insert(c Command) Result {
	if n, ok := q.ids[c.ID]; ok && c.ID != "" {
		q.counters.Repeated++
		if i := q.items[n]; i != nil {
			return Result{Number: n, State: i.state, Exists: true}
		}
		return Result{Number: n, State: Finished, Exists: true}
	}
	s := q.shard
	i := &item{
		queue: q, id: c.ID, priority: c.Priority, payload: c.Payload, inserted: s.now, stamp: s.now,
		notBefore: c.NotBefore, expires: c.Expires, key: c.Key, deadline: deadline{place: -1},
	}
	switch {
	case c.ID == "" || len(c.Key) > KeyMax:
		return Result{Code: Invalid}
	case q.mode.Mode == Draining:
		return Result{Code: IsDraining}
	case q.full(i):
		return Result{Code: Full}
	}
	if i.notBefore > s.now {
		i.stamp = i.notBefore
	}
	q.enter(i)
	return Result{Number: i.number, State: i.state}
}

// enter takes a new item in.
func (q *queue) enter(i *item) {
	s := q.shard
	s.next = max(s.next+1, uint64(max(s.now, 1)))
	i.number = s.next
	q.items[i.number], q.ids[i.id] = i, i.number
	q.weigh(i.cost())
	was := i.before()
	q.move(i, i.stands())
	q.counters.Inserted++
	q.tell(WasInserted, i, was)
}

// full reports whether there is no room for i.
func (q *queue) full(i *item) bool {
	return q.ready.Len()+q.delayed.Len()+q.leased >= q.limits.ItemsMax || q.bytes+i.cost() > q.limits.BytesMax
}

// weigh counts bytes.
func (q *queue) weigh(n int64) {
	q.bytes += n
	q.shard.bytes += n
}

// finish takes an item away and remembers it for a while.
func (q *queue) finish(i *item) {
	q.move(i, Finished)
	q.weigh(-i.cost())
	delete(q.items, i.number)
	q.finished.add(finishedItem{number: i.number, lease: i.lease, id: i.id, at: q.shard.now})
	q.trimFinished()
}

// find returns the item that c names, by number or by id.
func (q *queue) find(c Command) (*item, Result) {
	n := c.Number
	if n == 0 {
		n = q.ids[c.ID]
	}
	if i := q.items[n]; i != nil {
		return i, Result{Number: n}
	}
	if _, ok := q.finished.find(n); ok {
		return nil, Result{Code: ItemFinished, Number: n, State: Finished}
	}
	return nil, Result{Code: ItemUnknown}
}

func (q *queue) update(c Command) Result {
	i, r := q.find(c)
	if i == nil {
		return r
	}
	change, more := cmp.Or(c.Fields, FieldPriority), int64(0)
	if change&FieldPayload != 0 {
		more = int64(len(c.Payload) - len(i.payload))
	}
	if more > 0 && q.bytes+more > q.limits.BytesMax {
		return Result{Code: Full, Number: i.number, State: i.state}
	}
	was, stood := i.before(), i.state
	q.take(i)
	if change&FieldPriority != 0 {
		i.priority = c.Priority
	}
	if change&FieldPayload != 0 {
		i.payload = c.Payload
		q.weigh(more)
	}
	if change&FieldNotBefore != 0 {
		i.notBefore, i.stamp = 0, min(i.stamp, q.shard.now)
		if c.NotBefore > q.shard.now {
			i.notBefore, i.stamp = c.NotBefore, c.NotBefore
		}
	}
	q.putIn(i)
	if (stood == Ready || stood == Delayed) && change&FieldNotBefore != 0 {
		q.move(i, i.stands())
	}
	q.tell(WasUpdated, i, was)
	return Result{Number: i.number, State: i.state, Items: []Item{i.copied()}}
}

// stands is where an item stands that nobody has.
func (i *item) stands() State {
	if i.notBefore > i.queue.shard.now {
		return Delayed
	}
	i.notBefore = 0
	return Ready
}

// take takes an item from where its state has it by its weight, and putIn puts it there.
func (q *queue) take(i *item) {
	switch i.state {
	case Ready:
		q.outOfLine(i)
	case Delayed:
		q.delayed.Delete(i.weight())
	default:
	}
}

func (q *queue) putIn(i *item) {
	switch i.state {
	case Ready:
		q.inLine(i)
	case Delayed:
		q.delayed.Insert(i.weight())
	default:
	}
}

func (q *queue) cancel(c Command) Result {
	i, r := q.find(c)
	if i == nil {
		return r
	}
	was, stood := i.before(), i.state
	q.finish(i)
	q.counters.Cancelled++
	q.tell(WasCancelled, i, was)
	return Result{Number: i.number, State: stood}
}

// purge drops ready and delayed items, the last ones first: then the first of all
// changes only once.
func (q *queue) purge(c Command) Result {
	upTo := c.Number
	if upTo == 0 {
		upTo = q.shard.next
	}
	n := 0
	for _, line := range []*qpid.Queue{q.ready, q.delayed} {
		for at := line.Len() - 1; at >= 0 && n < c.Max; at-- {
			w, _ := line.Select(at)
			if NumberOf(w) > upTo {
				continue
			}
			i := q.items[NumberOf(w)]
			was := i.before()
			q.finish(i)
			q.counters.Cancelled++
			q.tell(WasCancelled, i, was)
			n++
		}
	}
	return Result{N: uint64(n), Number: upTo, Exists: n == c.Max && q.ready.Len()+q.delayed.Len() > 0}
}

func (q *queue) setMode(c Command) Result {
	if c.Mode.Mode > Draining {
		return Result{Code: Invalid}
	}
	if !c.Mode.Newer(q.mode) {
		return Result{}
	}
	changed := q.mode.Mode != c.Mode.Mode
	q.mode = c.Mode
	if changed && q.shard.follow {
		q.shard.changes = append(q.shard.changes, Change{Queue: q.name, Kind: ModeChanged, At: q.shard.now, Mode: q.mode.Mode})
	}
	return Result{}
}

// list shows the first items of from, the ready or the dead ones, after a weight,
// as many as fit an answer, and says how many there are after those.
func (q *queue) list(from *qpid.Queue, c Command) Result {
	var r Result
	room, last := answerMax, c.Weight
	add := func(w qpid.Weight) bool {
		i := q.items[NumberOf(w)]
		room -= int(i.cost())
		if len(r.Items) >= c.Max || room < 0 && len(r.Items) > 0 {
			return false
		}
		r.Items, last = append(r.Items, i.copied()), w
		return true
	}
	if c.Weight == (qpid.Weight{}) {
		from.Ascend(add)
	} else {
		from.AscendAfter(c.Weight, add)
	}
	r.N = uint64(from.Len() - from.CountLE(last))
	return r
}

// answerMax bounds the bytes of a Result with many items.
const answerMax = 160 << 10

func (q *queue) show(c Command) Result {
	i, r := q.find(c)
	if i == nil {
		return r
	}
	shown := i.copied()
	shown.Payload = nil
	return Result{Number: i.number, State: i.state, N: uint64(q.ready.Rank(i.weight())), Items: []Item{shown}}
}
