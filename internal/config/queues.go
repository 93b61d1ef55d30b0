package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Queueing is what holds for all priority queues of a node.
type Queueing struct {
	CreateOnUse bool `json:"create_on_use"` // an Insert makes a queue that is not listed
	QueuesMax   int  `json:"queues_max"`    // at one node, listed ones included
	MemoryMax   int  `json:"memory_max"`    // bytes of items at one node
}

// Queue is one priority queue.
type Queue struct {
	Name           string   `json:"name"` // or namespace/name
	Durable        bool     `json:"durable"`
	Replicas       int      `json:"replicas"`
	MaxItems       int      `json:"max_items"` // at one node; of a replicated queue in all
	MaxPayload     int      `json:"max_payload"`
	Lease          Duration `json:"lease"`
	LeaseMax       Duration `json:"lease_max"`
	MaxAttempts    int      `json:"max_attempts"` // 0: no bound
	DeadLettersMax int      `json:"dead_letters_max"`
	DeadLetters    string   `json:"dead_letter_queue"` // where they go; empty: they stay
	Remember       Duration `json:"remember"`          // ids of finished items
	RememberMax    int      `json:"remember_max"`
	Interval       Duration `json:"interval"` // 0: none
	PerInterval    int      `json:"per_interval"`
	MaxInFlight    int      `json:"max_in_flight"` // leased at once; 0: no bound
	ExclusiveKeys  bool     `json:"exclusive_keys"`
	FairKeys       bool     `json:"fair_keys"`
	Backoff        Backoff  `json:"backoff"`
}

// Backoff is for how long an item waits after a lease that ran out, or whose holder
// gave the item back without saying for how long.
type Backoff struct {
	Base   Duration `json:"base"`   // after the first lease; 0: not at all
	Factor int      `json:"factor"` // after each further one so many times as long
	Max    Duration `json:"max"`
}

// DefaultQueueing returns what holds if the file says nothing.
func DefaultQueueing() Queueing {
	return Queueing{CreateOnUse: true, QueuesMax: 1000, MemoryMax: 1 << 30}
}

// DefaultQueue returns a queue of which the file says nothing but its name. It
// is what an unlisted one gets, too.
func DefaultQueue() Queue {
	return Queue{
		Replicas: 1, MaxItems: 1_000_000, MaxPayload: 64 << 10,
		Lease: Duration(30 * time.Second), LeaseMax: Duration(12 * time.Hour), MaxAttempts: 5, DeadLettersMax: 10_000,
		Remember: Duration(5 * time.Minute), RememberMax: 100_000, PerInterval: 1,
		Backoff: Backoff{Factor: 2, Max: Duration(5 * time.Minute)},
	}
}

// Logged reports whether any queue needs a disk, and how many replicas the one
// with the most of them has.
func (c Config) Logged() (durable bool, replicas int) {
	for _, q := range c.Queues {
		durable = durable || q.Durable && q.Replicas < 2
		replicas = max(replicas, q.Replicas)
	}
	if replicas < 2 {
		replicas = 0
	}
	return durable, replicas
}

// queuePattern is a name, or a namespace and a name.
const queuePattern = `^[A-Za-z0-9][A-Za-z0-9._-]{0,62}(/[A-Za-z0-9][A-Za-z0-9._-]{0,62})?$`

// QueueName reports whether name can be that of a queue.
func QueueName(name string) bool { return matches(queuePattern, name) }

const (
	queuesMax    = 100_000
	itemsMax     = 100_000_000
	payloadMax   = 192 << 10 // a message between nodes holds an item, and is 256 kB at most
	replicasMax  = 7
	attemptsMax  = 1_000_000
	intervalMax  = 1000 // items
	factorMax    = 100
	queueTimeMax = 365 * 24 * time.Hour
	memoryMin    = 1 << 20
)

func (f *File) checkQueues() {
	g := f.Config.Queueing
	f.within("queueing.queues_max", g.QueuesMax, 1, queuesMax)
	if g.MemoryMax < memoryMin {
		f.fault("queueing.memory_max", "%d bytes; give at least %d", g.MemoryMax, memoryMin)
	}
	if n := len(f.Config.Queues); n > g.QueuesMax {
		f.fault("queues", "%d are more than the %d of queueing.queues_max; list fewer, or raise it", n, g.QueuesMax)
	}
	names := map[string]int{}
	for i, q := range f.Config.Queues {
		key := "queues" + index(i)
		f.checkDeadLetters(key+".dead_letter_queue", q)
		if first, ok := names[q.Name]; ok && q.Name != "" {
			f.fault(key+".name", "%q is the name of queues[%d] too; give each queue its own", q.Name, first)
		}
		names[q.Name] = i
		if !f.unread[key] {
			f.checkQueue(key, q)
		}
	}
}

// kind is what keeps the items of q.
func (q Queue) kind() string {
	switch {
	case q.Replicas > 1:
		return "replicated"
	case q.Durable:
		return "durable"
	default:
		return "in memory"
	}
}

// checkDeadLetters holds q's dead letter queue to what can be: a dead letter goes
// there in one step, so the same node, disk or log keeps both.
func (f *File) checkDeadLetters(key string, q Queue) {
	listed := func(name string) (Queue, bool) {
		i := slices.IndexFunc(f.Config.Queues, func(o Queue) bool { return o.Name == name })
		if i < 0 {
			return Queue{}, false
		}
		return f.Config.Queues[i], true
	}
	if q.DeadLetters == "" {
		return
	}
	to, ok := listed(q.DeadLetters)
	switch {
	case !ok:
		f.fault(key, "%q is not listed; list it under queues", q.DeadLetters)
		return
	case to.kind() != q.kind():
		f.fault(key, "%q is %s, and this queue is %s; make both the same", q.DeadLetters, to.kind(), q.kind())
	case q.MaxAttempts == 0:
		f.warn(key, "%q, and max_attempts: 0: there are no dead letters", q.DeadLetters)
	}
	for range f.Config.Queues {
		if to.Name == q.Name {
			f.fault(key, "%q leads back to this queue; the last of them needs to have none", q.DeadLetters)
			return
		}
		if to, ok = listed(to.DeadLetters); !ok {
			return
		}
	}
}

// within notes an error if v is not between least and most.
func (f *File) within(key string, v, least, most int) {
	if v < least || v > most {
		f.fault(key, "%d; give a number from %d to %d", v, least, most)
	}
}

func (f *File) checkQueue(key string, q Queue) {
	switch {
	case !f.given(key + ".name"):
		f.fault(key+".name", "missing; give the queue a name, such as jobs or mail/outgoing")
	case !QueueName(q.Name):
		f.fault(key+".name", "%q is no name; give name or namespace/name, each of up to 63 letters, digits, dots, - and _", q.Name)
	}
	f.within(key+".replicas", q.Replicas, 1, replicasMax)
	f.checkSettings(key, q)
	if (q.Durable || q.Replicas > 1) && f.Config.Node.Data == "" {
		what := "durable"
		if q.Replicas > 1 {
			what = "replicas"
		}
		f.fault(key+"."+what, "needs a disk; set node.data")
	}
	if e, least := f.Config.Node.Expect, 2*q.Replicas-2; q.Replicas > 1 && e > 0 && e < least {
		f.warn(key+".replicas", "%d, and node.expect: %d: with fewer than %d nodes nothing can be inserted", q.Replicas, e, least)
	}
}

// CheckQueue says what is wrong with the settings of a queue; nil: nothing.
func CheckQueue(q Queue) error {
	f := &File{}
	f.checkSettings("queue", q)
	var errs []error
	for _, p := range f.Errors {
		errs = append(errs, fmt.Errorf("%s: %s", strings.TrimPrefix(p.Key, "queue."), p.Text))
	}
	return errors.Join(errs...)
}

// checkSettings looks at what can be changed while the queue runs.
func (f *File) checkSettings(key string, q Queue) {
	f.within(key+".max_items", q.MaxItems, 1, itemsMax)
	f.within(key+".max_payload", q.MaxPayload, 0, payloadMax)
	f.within(key+".max_attempts", q.MaxAttempts, 0, attemptsMax)
	f.within(key+".dead_letters_max", q.DeadLettersMax, 0, itemsMax)
	f.within(key+".remember_max", q.RememberMax, 0, itemsMax)
	f.within(key+".per_interval", q.PerInterval, 1, intervalMax)
	f.within(key+".max_in_flight", q.MaxInFlight, 0, itemsMax)
	f.within(key+".backoff.factor", q.Backoff.Factor, 1, factorMax)
	for _, d := range []struct {
		name  string
		d     Duration
		least time.Duration
	}{
		{"lease", q.Lease, time.Second},
		{"lease_max", q.LeaseMax, time.Second},
		{"remember", q.Remember, 0},
		{"interval", q.Interval, 0},
		{"backoff.base", q.Backoff.Base, 0},
		{"backoff.max", q.Backoff.Max, time.Millisecond},
	} {
		if v := d.d.value(); v < d.least || v > queueTimeMax {
			f.fault(key+"."+d.name, "%v; give a time from %v to %v", d.d, Duration(d.least), Duration(queueTimeMax))
		}
	}
	if q.Lease > q.LeaseMax {
		f.fault(key+".lease", "%v is more than lease_max, %v; give less, or raise that", q.Lease, q.LeaseMax)
	}
	if b := q.Backoff.Base.value(); b > 0 && b < time.Millisecond {
		f.fault(key+".backoff.base", "%v; give at least 1ms, or 0 for none", q.Backoff.Base)
	}
	if q.Backoff.Base > q.Backoff.Max {
		f.fault(key+".backoff.base", "%v is more than backoff.max, %v; give less, or raise that", q.Backoff.Base, q.Backoff.Max)
	}
	if i := q.Interval.value(); i > 0 && i < time.Millisecond {
		f.fault(key+".interval", "%v; give at least 1ms, or 0 for none", q.Interval)
	}
}
