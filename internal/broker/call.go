package broker

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// Do carries out a call, here or where it must be. Ready brings the answer,
// exactly one, within some seconds.
func (b *Broker) Do(now Time, c Call) {
	b.read(now)
	defer b.steer()
	if b.calling >= b.c.CallsMax {
		b.answer(Answer{ID: c.ID, Result: pqueue.Result{Code: pqueue.Busy}})
		return
	}
	b.calling++
	then := func(a Answer) {
		b.calling--
		a.ID = c.ID
		b.answer(a)
	}
	if c.Command.Queue == "" && c.Command.Op != pqueue.OpStats || len(b.view.List) == 0 {
		code := pqueue.Invalid
		if len(b.view.List) == 0 {
			code = pqueue.Unavailable
		}
		then(Answer{Result: pqueue.Result{Code: code}})
		return
	}
	b.route(c, then)
}

func (b *Broker) answer(a Answer) { b.out.Answers = append(b.out.Answers, a) }

func (b *Broker) route(c Call, then func(Answer)) {
	named := c.Handle != (Handle{}) || c.Command.ID != ""
	switch c.Command.Op {
	case pqueue.OpInsert:
		b.callInsert(c.Command, then)
	case pqueue.OpAck, pqueue.OpNack, pqueue.OpExtend:
		b.callOne(c, then)
	case pqueue.OpUpdate, pqueue.OpCancel, pqueue.OpFind:
		b.callOne(c, then)
	case pqueue.OpRequeue, pqueue.OpBury:
		if named {
			b.callOne(c, then)
		} else {
			b.callAll(c.Command, b.keepers(c.Command.Queue), then)
		}
	case pqueue.OpConfigure:
		b.callConfigure(c.Command, then)
	case pqueue.OpPurge:
		b.callAll(c.Command, b.keepers(c.Command.Queue), then)
	case pqueue.OpRank:
		b.callPosition(c, then)
	case pqueue.OpPeek, pqueue.OpDead:
		b.callList(c.Command, then)
	case pqueue.OpStats:
		b.callAll(c.Command, b.view.List, then)
	case pqueue.OpMode:
		c.Command.Mode.Stamp, c.Command.Mode.By = uint64(b.now.Clock), string(b.self.Name)
		if q := b.queue(c.Command.Queue); q != nil {
			c.Command.Mode.Stamp = max(c.Command.Mode.Stamp, q.mode.Stamp+1)
		}
		b.callAll(c.Command, b.view.List, then)
	default:
		then(Answer{Result: pqueue.Result{Code: pqueue.Invalid}})
	}
}

// kindOf is the kind of a queue; those not listed are in memory.
func (b *Broker) kindOf(name string) Kind {
	if q := b.queue(name); q != nil {
		return q.c.Kind
	}
	return Memory
}

// keepers are the members that may have items of a queue.
func (b *Broker) keepers(name string) []eviction.Member {
	if b.kindOf(name) != Replicated {
		return b.view.List
	}
	if m, ok := b.leading(); ok {
		return []eviction.Member{m}
	}
	return nil
}

// leading is the member that leads the replicated queues.
func (b *Broker) leading() (eviction.Member, bool) {
	if b.shards[Replicated].leads {
		return b.self, true
	}
	for _, m := range b.view.List {
		if m.Name == b.leader && m != b.self {
			return m, true
		}
	}
	return eviction.Member{}, false
}

// leaderless is the answer where nobody leads the replicated queues.
func (b *Broker) leaderless() pqueue.Code {
	if b.shards[Replicated].room == RoomForNone {
		return pqueue.StorageFull
	}
	return pqueue.Unavailable
}

func (b *Broker) callInsert(c pqueue.Command, then func(Answer)) {
	q, code := b.use(c.Queue)
	if code != pqueue.OK {
		then(Answer{Result: pqueue.Result{Code: code}})
		return
	}
	to, ok := b.leading()
	if q.c.Kind != Replicated {
		to, ok = q.place(c, b.view.List), true
	}
	if !ok {
		then(Answer{Result: pqueue.Result{Code: b.leaderless()}})
		return
	}
	if c.Key != "" && !q.c.Limits.Exclusive && !q.c.FairKeys {
		then(Answer{Result: pqueue.Result{Code: pqueue.Invalid}})
		return
	}
	insert := func() {
		b.ask(to, c, func(r pqueue.Result) {
			then(Answer{Result: r, Handle: HandleOf(q.c.Kind, to.Name, r.Number)})
		})
	}
	former := b.formerHomes(q, c, to)
	if q.c.Kind == Replicated || len(former) == 0 {
		insert()
		return
	}
	b.scatter(former, pqueue.Command{Op: pqueue.OpFind, Queue: c.Queue, ID: c.ID}, func(parts []Part, _ []qpid.NodeID) {
		for _, p := range parts {
			if p.Result.Code == pqueue.OK || p.Result.Code == pqueue.ItemFinished {
				r := pqueue.Result{Number: p.Result.Number, State: p.Result.State, Exists: true}
				then(Answer{Result: r, Handle: HandleOf(q.c.Kind, p.Node, r.Number)})
				return
			}
		}
		insert()
	})
}

// place is the member of the list at which a new item is at home: all of one key are at
// the same, so that nobody else need be asked who has the key, or whose turn it is. Where
// keys take turns, no key is one of them.
func (q *queue) place(c pqueue.Command, list []eviction.Member) eviction.Member {
	if c.Key != "" || q.c.FairKeys {
		return winner(c.Queue, c.Key, list)
	}
	return home(c.Queue, c.ID, list)
}

const (
	formerFor = 60_000_000 // µs after a change of the list in which an insert may be a repetition of one before it
	formerMax = 8          // lists
)

// formerList is who was in the view until some time ago.
type formerList struct {
	until int64 // boot time
	list  []eviction.Member
}

// outlive remembers the list that goes.
func (b *Broker) outlive(list []eviction.Member) {
	b.former = append(b.former, formerList{b.now.Boot, list})
	b.former = b.former[max(0, len(b.former)-formerMax):]
}

// formerHomes are the members, still there, at which an item of that id was at
// home a while ago, but for its home of now.
func (b *Broker) formerHomes(q *queue, c pqueue.Command, now eviction.Member) []eviction.Member {
	var homes []eviction.Member
	for _, f := range b.former {
		if b.now.Boot-f.until >= formerFor || len(f.list) == 0 {
			continue
		}
		h := q.place(c, f.list)
		if h != now && slices.Contains(b.view.List, h) && !slices.Contains(homes, h) {
			homes = append(homes, h)
		}
	}
	return homes
}

// HandleOf names an item of a queue of that kind.
func HandleOf(k Kind, node qpid.NodeID, number uint64) Handle {
	if k == Replicated {
		node = ""
	}
	return Handle{Kind: k, Node: node, Number: number}
}

// callOne asks the node that has the item. By its id alone that is its home, or
// else, when nodes have come and gone since, anybody.
func (b *Broker) callOne(c Call, then func(Answer)) {
	kind := b.kindOf(c.Command.Queue)
	c.Command.Number = c.Handle.Number
	answer := func(to qpid.NodeID, r pqueue.Result) {
		then(Answer{Result: r, Handle: HandleOf(kind, to, r.Number)})
	}
	var to eviction.Member
	ok := true
	switch {
	case c.Handle != (Handle{}) && c.Handle.Kind != kind:
		answer("", pqueue.Result{Code: pqueue.ItemUnknown})
		return
	case kind == Replicated:
		to, ok = b.leading()
	case c.Handle != (Handle{}):
		i := slices.IndexFunc(b.view.List, func(m eviction.Member) bool { return m.Name == c.Handle.Node })
		if ok = i >= 0; ok {
			to = b.view.List[i]
		}
	default:
		to = home(c.Command.Queue, c.Command.ID, b.view.List)
	}
	if !ok {
		code := pqueue.Unavailable
		switch {
		case kind == Replicated:
			code = b.leaderless()
		case !slices.Contains(b.absent(c.Command.Queue), c.Handle.Node):
			code = pqueue.ItemUnknown // of a node that never was, or that will not bring it back
		}
		answer("", pqueue.Result{Code: code})
		return
	}
	b.ask(to, c.Command, func(r pqueue.Result) {
		if unknown(r.Code) && c.Handle == (Handle{}) && kind != Replicated {
			b.callAnybody(c.Command, to, r.Code, kind, then)
			return
		}
		answer(to.Name, r)
	})
}

func unknown(c pqueue.Code) bool { return c == pqueue.ItemUnknown || c == pqueue.QueueUnknown }

// callAnybody asks all but one for an item that is not at home there.
func (b *Broker) callAnybody(c pqueue.Command, but eviction.Member, code pqueue.Code, k Kind, then func(Answer)) {
	others := slices.DeleteFunc(slices.Clone(b.view.List), func(m eviction.Member) bool { return m == but })
	b.scatter(others, c, func(parts []Part, missing []qpid.NodeID) {
		for _, p := range parts {
			if p.Result.Code == pqueue.StorageFull {
				code = pqueue.StorageFull // whether it has the item or not
				continue
			}
			if !unknown(p.Result.Code) {
				then(Answer{Result: p.Result, Handle: HandleOf(k, p.Node, p.Result.Number), Missing: missing})
				return
			}
			if p.Result.Code == pqueue.ItemUnknown && code != pqueue.StorageFull {
				code = pqueue.ItemUnknown
			}
		}
		if len(missing) > 0 {
			code = pqueue.Unavailable // it may be there
		}
		then(Answer{Result: pqueue.Result{Code: code}, Missing: missing})
	})
}

// callAll asks members about a queue. One that none of them knows is unknown. Who
// could not do what others did is missing, as if it had not answered.
func (b *Broker) callAll(c pqueue.Command, to []eviction.Member, then func(Answer)) {
	absent := b.absent(c.Queue)
	b.scatter(to, c, func(parts []Part, missing []qpid.NodeID) {
		a := Answer{Result: pqueue.Result{Code: pqueue.Unavailable}}
		for _, p := range parts {
			if p.Result.Code == pqueue.OK {
				a.Parts = append(a.Parts, p)
				a.Result.N += p.Result.N
				a.Result.Code = pqueue.OK
				continue
			}
			if p.Result.Code != pqueue.QueueUnknown {
				missing = append(missing, p.Node)
			}
			if a.Result.Code != pqueue.OK && (a.Result.Code == pqueue.Unavailable || p.Result.Code != pqueue.QueueUnknown) {
				a.Result.Code = p.Result.Code
			}
		}
		a.Missing = lacking(absent, missing)
		then(a)
	})
}

// callPosition finds an item, then counts what goes before it everywhere.
func (b *Broker) callPosition(c Call, then func(Answer)) {
	c.Command.Op = pqueue.OpFind
	b.callOne(c, func(a Answer) {
		if a.Result.Code != pqueue.OK || a.Result.State != pqueue.Ready || len(a.Result.Items) != 1 {
			a.Result.N = 0
			then(a)
			return
		}
		i := a.Result.Items[0]
		kind := a.Handle.Kind
		w := pqueue.WeightOf(i.Priority, i.Stamp, salt(a.Handle.Node, kind), i.Number)
		a.Result.N++
		var others []eviction.Member
		if kind != Replicated {
			others = slices.DeleteFunc(slices.Clone(b.view.List), func(m eviction.Member) bool { return m.Name == a.Handle.Node })
		}
		absent := b.absent(c.Command.Queue)
		b.scatter(others, pqueue.Command{Op: pqueue.OpRank, Queue: c.Command.Queue, Weight: w}, func(parts []Part, missing []qpid.NodeID) {
			for _, p := range parts {
				a.Result.N += p.Result.N
				if p.Result.Code != pqueue.OK && p.Result.Code != pqueue.QueueUnknown {
					missing = append(missing, p.Node)
				}
			}
			a.Missing = lacking(absent, missing)
			then(a)
		})
	})
}
