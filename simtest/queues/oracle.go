package queues

import (
	"fmt"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// oracle knows what may be and what may not.
type oracle struct {
	w       *World
	err     error
	items   map[key]*item
	all     []*item // in the order in which they were first heard of
	grants  map[string][]int64
	given   map[string]bool        // leases that were seen, by receipt
	within  map[string]qpid.Epoch  // the round in which another node was first told of one
	lost    map[qpid.NodeID]uint64 // the highest number of an item that may have been at a node when it crashed last
	last    map[string]pqueue.Item
	rounds  map[qpid.Epoch]begun
	gone    map[entry]int64 // what durable logs have given up, and when by the node's clock
	letters map[entry]int64 // items that came from a dead letter queue, and when
	hear    func(broker.Answer)
	purges  []*purge
	settings
	safe       follower // of the log of the replicated queues
	exclusives follower
	fairness   map[string]*turnsOf // by queue
}

// key names an item: the shard it is in, and its number there.
type key struct {
	queue  string
	handle broker.Handle
}

type item struct {
	key
	id      string
	put     bool // its insert was acknowledged
	life    uint64
	lease   *lease // the last one that reached a client
	began   int64  // when its insert did
	putAt   int64  // when that was
	acked   bool
	left    bool // may be gone: an ack of it is not answered
	fetched bool
	updated bool // its payload, and that was acknowledged
}

func (o *oracle) item(queue string, h broker.Handle, id string) *item {
	k := key{queue, h}
	i := o.items[k]
	if i == nil {
		i = &item{key: k, id: id}
		if h.Node != "" {
			i.life = o.w.node(h.Node).m.Boot
		}
		o.items[k] = i
		o.all = append(o.all, i)
	}
	return i
}

type lease struct {
	queue   string
	handle  broker.Handle
	item    *item
	number  uint64
	granted int64 // by the clock of the shard
	until   int64
	given   bool  // given back, or it may have been
	back    int64 // when, Unix µs at the earliest; 0: it was not
	own     bool  // with a delay of its own
	leases  uint32
	keeps   bool // its holder extends it time and again
	over    bool
}

func (o *oracle) init(w *World) {
	*o = oracle{w: w, items: map[key]*item{}, lost: map[qpid.NodeID]uint64{}, grants: map[string][]int64{}, given: map[string]bool{}, within: map[string]qpid.Epoch{}, last: map[string]pqueue.Item{}, rounds: map[qpid.Epoch]begun{}, gone: map[entry]int64{}, letters: map[entry]int64{}, fairness: map[string]*turnsOf{}}
	o.settings = settings{seen: map[int]pqueue.Settings{}, acked: map[string]pqueue.Settings{}, paces: map[string][]pace{}}
}

func (o *oracle) fail(format string, args ...any) {
	if o.err == nil {
		o.err = fmt.Errorf("at %.3f s: "+format, append([]any{float64(o.w.now) / second}, args...)...)
	}
}
