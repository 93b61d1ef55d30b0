package broker

import (
	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// Time is one reading of a node's clocks, in microseconds.
type Time struct {
	Boot  int64 // monotonic
	Clock int64 // Unix; all nodes' agree within the cluster's max_skew
}

// Kind says what keeps the items of a queue.
type Kind uint8

const (
	Memory     Kind = iota // of the node at which they are at home
	Durable                // its disk as well
	Replicated             // the disks of several nodes; whoever leads their log has them
	kinds
)

func (k Kind) String() string { return [...]string{"memory", "durable", "replicated"}[k] }

// Room is what the log of a kind takes, as far as there is room on disks.
type Room uint8

const (
	RoomForAll   Room = iota
	RoomToRemove      // for what adds no item
	RoomForNone
)

// Queue is the configuration of one queue.
type Queue struct {
	Name        string
	Kind        Kind
	Limits      pqueue.Limits
	Lease       int64 // µs, of a deleteMin that asks for none
	PayloadMax  int   // bytes
	Interval    int64 // µs; 0: items go out as fast as they are asked for
	PerInterval int   // items in any Interval
	FairKeys    bool  // of the items of one priority, those of each key go out in turn
}

// Config is what a broker needs to know at its start.
type Config struct {
	Self        eviction.Member
	Queues      []Queue // the same on all nodes
	CreateOnUse bool
	OnUse       Queue // what a queue that is made on use is like; Kind is Memory
	QueuesMax   int   // known here, of Queues and others
	MemoryMax   int64 // bytes of items here
	CallsMax    int   // under way here
	WaitersMax  int   // deleteMins that wait for items here
	PurgeSteps  int   // items that a purge drops at once: a few milliseconds' worth
	// Logs are the kinds that have a log at this node: their commands come out as
	// Proposals, and back in through Apply.
	Logs []Kind
	// Fresh is for how long a word of authority holds, in µs: a few periods of the
	// waves. See package comment, Interval.
	Fresh int64
}

// View is what the last wave said: who takes part, most senior first, whether
// they are the ones who may act alone, and when the wave began.
type View struct {
	List    []eviction.Member
	Primary bool
	At      int64         // boot time, µs
	Voters  []qpid.NodeID // who may not be done without yet: Primary goes by them
}

// Call is an operation on one item, or on one queue.
type Call struct {
	ID      uint64 // of the call, chosen by the caller
	Command pqueue.Command
	Handle  Handle // of the item; zero: Command.ID names it, or none is meant
	Within  int64  // µs until the caller has no use for an answer any more
}

// Take is a deleteMin.
type Take struct {
	ID     uint64
	Queue  string
	Max    int   // items
	For    int64 // µs of the leases; 0: the queue's own
	Wait   int64 // µs for the first item
	Within int64 // µs, more than Wait
}

// Ask is a Call, or a Take if it has a Take.Max, of many that are begun together. Then
// hears its answer.
type Ask struct {
	ID   uint64 // chosen by who carries it out
	Call Call
	Take Take
	Then func(Answer)
}

// Part is what one node said.
type Part struct {
	Node   qpid.NodeID
	Kind   Kind // of the queue
	Result pqueue.Result
}

// weight is the place of the one item that p is about.
func (p Part) weight() qpid.Weight {
	i := p.Result.Items[0]
	return pqueue.WeightOf(i.Priority, i.Stamp, salt(p.Node, p.Kind), i.Number)
}

// Answer ends a Call or a Take.
type Answer struct {
	ID      uint64
	Result  pqueue.Result
	Handle  Handle        // of the item that Result is about
	Parts   []Part        // of operations that ask all nodes; of a Take: the leases, and of a list: the items, one each, in their order
	More    qpid.Weight   // of a list: it goes on after this; zero: that is all
	Missing []qpid.NodeID // who did not answer, or is not there to be asked: what these have is not in it
	Paused  bool          // a Take found nothing because the queue is
}

// Proposal is a command for the log of a kind.
type Proposal struct {
	Kind    Kind
	Token   uint64
	Command []byte
	Adds    bool // to what is kept, so that it takes room for good
}

// Seen is a change that somebody watches.
type Seen struct {
	Node   qpid.NodeID
	Kind   Kind // of the queue
	Change pqueue.Change
}

// Ready is the work that a broker wants done. The caller owns the slices.
type Ready struct {
	Messages  []Message // send each at most once, those to one member in this order
	Proposals []Proposal
	Answers   []Answer
	Seen      []Seen // for Watch
}
