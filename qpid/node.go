package qpid

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// ErrGap says that a message from a neighbour is missing. The node has frozen
// and stays so until the next install: the caller should ask for a wave.
var ErrGap = errors.New("qpid: a message is missing")

// Config is what New needs. A bound of zero means its default.
type Config struct {
	Self  NodeID
	Queue *Queue // owned by the node from now on; nil: a new one

	// PendingMax bounds the deleteMins that wait here while the node is
	// frozen; more are refused. Default 1024.
	PendingMax int
	// EarlyMax bounds the messages kept of epochs that are not installed here
	// yet; more are dropped, and the node then freezes again at the install of
	// that epoch and waits for the next one. Default 1024.
	EarlyMax int
	// AnsweredMax bounds the answers kept for repeated deleteMins; the oldest
	// go first. Default 1024.
	AnsweredMax int
	// HopsMax bounds the links that a deleteMin may cross; then it is refused.
	// It must exceed the diameter of the tree. Default 64.
	HopsMax uint32
}

// neighbor is one entry of the weight table, and the state of the link.
type neighbor struct {
	id NodeID
	// weight is the lightest on the neighbour's side. It is exact for those
	// whose parent this node is, but for updates on the way; that of the parent
	// may be out of date.
	weight   Weight
	sent     uint64 // Seq of the last message to it in this epoch
	received uint64 // Seq of the last message from it in this epoch
}

// Node is one node's part of a distributed priority queue. It is not safe for
// concurrent use.
type Node struct {
	self     NodeID
	queue    *Queue
	position int // in the member list of the installed epoch

	epoch     Epoch
	frozen    bool
	own       Weight     // this node's own entry of the weight table
	neighbors []neighbor // sorted by id
	// parent is where the root is, as far as this node knows; itself if it is
	// the root. Invariant, unless frozen: the root's own entry is the lightest
	// of its table.
	parent NodeID
	// told is what the parent's table says about this node, once all messages
	// have arrived. Invariant, unless frozen or root: told == Report(parent).
	told Weight

	pending  []Message // deleteMins that arrived while frozen
	early    []Message // of epochs that are not installed yet
	overflow Epoch     // the highest of which one was dropped for want of room
	answered *answered

	pendingMax int
	earlyMax   int
	hopsMax    uint32
	ready      Ready
}

// New returns a node that is frozen until the first install.
func New(c Config) (*Node, error) {
	if c.Self == "" {
		return nil, errors.New("qpid: a node needs a name")
	}
	if c.PendingMax < 0 || c.EarlyMax < 0 || c.AnsweredMax < 0 {
		return nil, fmt.Errorf("qpid: negative bound in %+v", c)
	}
	if c.Queue == nil {
		c.Queue = NewQueue()
	}
	n := &Node{
		self:       c.Self,
		queue:      c.Queue,
		frozen:     true,
		parent:     c.Self,
		answered:   newAnswered(cmp.Or(c.AnsweredMax, 1024)),
		pendingMax: cmp.Or(c.PendingMax, 1024),
		earlyMax:   cmp.Or(c.EarlyMax, 1024),
		hopsMax:    cmp.Or(c.HopsMax, 64),
	}
	n.own = n.Min()
	return n, nil
}

// Insert adds an item to this node's queue and reports whether it was not there
// yet. It cannot fail half-way: a node that is frozen counts the item at the
// next install.
func (n *Node) Insert(w Weight) bool {
	ok := n.queue.Insert(w)
	n.settle()
	return ok
}

// Remove takes an item out of this node's queue, for whatever reason: it left,
// expired or was called. It reports whether the item was there.
func (n *Node) Remove(w Weight) bool {
	ok := n.queue.Delete(w)
	n.settle()
	return ok
}

// Refill puts items in the place of all that this node's queue holds, in much
// less time than one by one. They are unique; the slice is sorted here.
func (n *Node) Refill(items []Weight) {
	n.queue.refill(items)
	n.settle()
}

// DeleteMin asks for the lightest item of the network. Ready brings the answer,
// unless a message is lost.
func (n *Node) DeleteMin(op OpID) {
	if op.Caller != n.self {
		panic(fmt.Sprintf("qpid: deleteMin %v called at %s", op, n.self))
	}
	n.deleteMin(Message{Kind: MsgDeleteMin, From: n.self, To: n.self, Op: op})
}

// Step handles a message from another node. An error says that the message was
// refused; unless it is ErrGap there is nothing to do about it but to tell.
func (n *Node) Step(m Message) error {
	if m.To != n.self || m.From == n.self || m.From == "" {
		return fmt.Errorf("qpid: %s got a message that is not for it: %v", n.self, m)
	}
	switch m.Kind {
	case MsgUpdate, MsgFindRoot:
		return n.stepTree(m)
	case MsgDeleteMin:
		if m.Op.Caller == "" {
			return fmt.Errorf("qpid: deleteMin without a caller: %v", m)
		}
		n.deleteMin(m)
		return nil
	case MsgTaken:
		if m.Op.Caller != n.self || m.Outcome < Taken || m.Outcome > Refused || m.Outcome == Taken && m.Weight.IsEmpty() {
			return fmt.Errorf("qpid: %s cannot use the answer %v", n.self, m)
		}
		n.ready.Answers = append(n.ready.Answers, m.answer())
		return nil
	default:
		return fmt.Errorf("qpid: message of unknown kind: %v", m)
	}
}

// Ready drains the work that has come up since it was last called.
func (n *Node) Ready() Ready {
	r := n.ready
	n.ready = Ready{}
	return r
}

// stepTree sorts a message of a tree out by its epoch. Those of an older epoch
// than the installed one have no meaning any more. A frozen node drops those of
// its own epoch too: what they say is part of the sender's next snapshot.
func (n *Node) stepTree(m Message) error {
	switch c := m.Epoch.Compare(n.epoch); {
	case c < 0:
		return nil
	case c > 0:
		n.keep(m)
		return nil
	}
	if n.frozen {
		return nil
	}
	i, ok := n.neighbor(m.From)
	if !ok {
		return fmt.Errorf("qpid: %s is no neighbour of %s in epoch %v: %v", m.From, n.self, n.epoch, m)
	}
	nb := &n.neighbors[i]
	if m.Seq <= nb.received {
		return nil // a duplicate
	}
	if m.Seq != nb.received+1 {
		n.Freeze()
		return fmt.Errorf("%w: %s has seen %d from %s, not what follows before %v", ErrGap, n.self, nb.received, m.From, m)
	}
	if m.Kind == MsgFindRoot && m.From != n.parent {
		// The root is where the parent pointer leads, so it comes from there.
		n.Freeze()
		return fmt.Errorf("qpid: %s, whose parent is %s, froze on %v", n.self, n.parent, m)
	}
	nb.received = m.Seq
	nb.weight = m.Weight
	if m.Kind == MsgFindRoot {
		n.parent = n.self
	}
	n.settle()
	return nil
}

// keep buffers a message of an epoch that is not installed yet.
func (n *Node) keep(m Message) {
	if len(n.early) < n.earlyMax {
		n.early = append(n.early, m)
	} else if m.Epoch.Compare(n.overflow) > 0 {
		n.overflow = m.Epoch
	}
}

// settle is the one rule of the protocol, run after every change to the queue
// or to the weight table. The root goes where the table is lightest; everybody
// else keeps the parent's entry for it right, be it lighter or heavier than
// before. A frozen node does neither. A tie leaves the root where it is.
func (n *Node) settle() {
	if n.frozen {
		return
	}
	n.own = n.Min()
	if n.parent != n.self {
		if w := n.Report(n.parent); w != n.told {
			n.told = w
			n.sendUpdate()
		}
		return
	}
	if to := n.lightest(); to != n.self {
		n.parent = to
		n.told = n.Report(to)
		n.send(MsgFindRoot, to, n.told)
	}
}

// deleteMin takes the lightest item if this node is the root, and passes the
// request towards the root if it is not.
func (n *Node) deleteMin(m Message) {
	if a, ok := n.answered.find(m.Op); ok {
		n.answer(a)
		return
	}
	if n.frozen {
		if len(n.pending) < n.pendingMax {
			n.pending = append(n.pending, m)
		} else {
			n.answer(Answer{Op: m.Op, Outcome: Refused, Home: n.self})
		}
		return
	}
	if n.parent != n.self {
		if m.Hops >= n.hopsMax {
			n.answer(Answer{Op: m.Op, Outcome: Refused, Home: n.self})
			return
		}
		m.From, m.To = n.self, n.parent
		m.Hops++
		n.ready.Messages = append(n.ready.Messages, m)
		return
	}
	a := Answer{Op: m.Op, Outcome: NothingWaits, Home: n.self}
	if w, ok := n.queue.Min(); ok {
		if w != n.own {
			panic(fmt.Sprintf("qpid: the lightest item of %s is %v, its weight table says %v: the queue was changed behind its back",
				n.self, w, n.own))
		}
		a.Outcome, a.Weight = Taken, w
		n.ready.Removed = append(n.ready.Removed, Removal{Op: m.Op, Weight: w})
	}
	n.answered.add(a)
	n.answer(a)
	if a.Outcome == Taken {
		n.Remove(a.Weight)
	}
}

// answer tells the caller how its deleteMin ended.
func (n *Node) answer(a Answer) {
	if a.Op.Caller == n.self {
		n.ready.Answers = append(n.ready.Answers, a)
		return
	}
	n.ready.Messages = append(n.ready.Messages, Message{
		Kind: MsgTaken, From: n.self, To: a.Op.Caller, Op: a.Op, Outcome: a.Outcome, Weight: a.Weight,
	})
}

// sendUpdate tells the parent what this node now reports. If the last message
// is an update that nobody has taken from Ready yet, the new one replaces it:
// many removals in a row cost one message.
func (n *Node) sendUpdate() {
	if last := len(n.ready.Messages) - 1; last >= 0 {
		m := &n.ready.Messages[last]
		if m.Kind == MsgUpdate && m.To == n.parent && m.Epoch == n.epoch {
			m.Weight = n.told
			return
		}
	}
	n.send(MsgUpdate, n.parent, n.told)
}

func (n *Node) send(k Kind, to NodeID, w Weight) {
	i, ok := n.neighbor(to)
	if !ok {
		panic(fmt.Sprintf("qpid: %s sends %v to %s, which is not in its table %v", n.self, k, to, n.Table()))
	}
	n.neighbors[i].sent++
	n.ready.Messages = append(n.ready.Messages, Message{
		Kind: k, From: n.self, To: to, Epoch: n.epoch, Seq: n.neighbors[i].sent, Weight: w,
	})
}

// neighbor returns the place of a neighbour in the table.
func (n *Node) neighbor(id NodeID) (int, bool) {
	return slices.BinarySearchFunc(n.neighbors, id, func(nb neighbor, id NodeID) int { return cmp.Compare(nb.id, id) })
}
