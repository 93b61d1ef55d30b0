package pqueue

import (
	"encoding/binary"

	"github.com/anteroom/anteroom/qpid"
)

// State is where an item stands.
type State uint8

const (
	None     State = iota // there is no such item
	Ready                 // waits for a lease
	Delayed               // not ready before its time
	Leased                // somebody works on it
	Dead                  // was leased too often
	Finished              // acknowledged, cancelled or expired; its id is remembered
)

// Mode is what an operator lets a queue do.
type Mode uint8

const (
	Running  Mode = iota
	Paused        // nothing is leased
	Draining      // nothing is inserted
)

// ModeSetting is a mode and who set it when. Of two, that with the higher stamp
// holds, on all nodes.
type ModeSetting struct {
	Mode  Mode
	Stamp uint64 // Unix microseconds
	By    string
}

// Newer reports whether m holds over o.
func (m ModeSetting) Newer(o ModeSetting) bool {
	return m.Stamp > o.Stamp || m.Stamp == o.Stamp && m.By > o.By
}

// Limits are the bounds of one queue.
type Limits struct {
	ItemsMax    int   // ready, delayed and leased
	BytesMax    int64 // of payloads, with CostOfItem each
	AttemptsMax int   // leases before an item is dead; 0: no bound
	DeadMax     int   // dead letters kept
	RememberMax int   // ids of finished items kept
	Remember    int64 // µs for which they are
	LeaseMax    int64 // µs
	Backoff     Backoff
	DeadTo      string // the queue of the same shard into which items go that are dead; empty: they stay
	InFlightMax int    // leased at once, in this shard; 0: no bound
	Exclusive   bool   // of the items of one key, one is leased at a time in this shard
}

// Valid reports whether l makes sense.
func (l Limits) Valid() bool {
	return min(l.ItemsMax, l.AttemptsMax, l.DeadMax, l.RememberMax, l.InFlightMax) >= 0 && min(l.BytesMax, l.Remember, l.LeaseMax) >= 0 && l.Backoff.valid()
}

// Backoff is for how long an item waits after a lease that came to nothing: one
// that ran out, or whose holder gave the item back without a delay of its own. The
// zero value is not at all.
type Backoff struct {
	Base   int64 // µs after the first lease
	Factor int64 // thousandths: after each further one so many times as long
	Max    int64 // µs
}

// Settings are what a queue was told at run time to be like, and who told it when. Of
// two, that with the higher stamp holds, on all nodes. A shard goes by its Limits; the
// rest it keeps for who leads it.
type Settings struct {
	Stamp       uint64 // Unix microseconds; 0: the queue is as the configuration says
	By          string
	Lease       int64 // µs, of a deleteMin that asks for none
	PayloadMax  int   // bytes
	Interval    int64 // µs; 0: items go out as fast as they are asked for
	PerInterval int   // items in any Interval
	FairKeys    bool  // of the items of one priority, those of each key go out in turn
}

// Newer reports whether s holds over o.
func (s Settings) Newer(o Settings) bool {
	return s.Stamp > o.Stamp || s.Stamp == o.Stamp && s.By > o.By
}

// PerIntervalMax bounds PerInterval, and payloadMax what is no payload any more.
const (
	PerIntervalMax = 1000
	payloadMax     = 1 << 30
)

// Valid reports whether s makes sense.
func (s Settings) Valid() bool {
	if s.Stamp == 0 {
		return s == Settings{}
	}
	return s.Lease > 0 && max(s.Lease, s.Interval) <= waitMax && min(s.Interval, int64(s.PayloadMax)) >= 0 && s.PayloadMax <= payloadMax &&
		s.PerInterval >= 1 && s.PerInterval <= PerIntervalMax
}

// factorMax bounds Factor, and waitMax the rest: so no product of two is too large.
const (
	factorMax = 100_000
	waitMax   = 366 * 24 * 3600 * 1_000_000
)

// valid reports whether b makes sense.
func (b Backoff) valid() bool {
	return b == Backoff{} || b.Base > 0 && b.Base <= b.Max && b.Max <= waitMax && b.Factor >= 1000 && b.Factor <= factorMax
}

// After is how long it is after so many leases, in µs.
func (b Backoff) After(attempts uint32) int64 {
	d := b.Base
	for n := uint32(1); n < attempts && d < b.Max; n++ {
		longer := d * b.Factor / 1000
		if longer == d {
			break
		}
		d = longer
	}
	return min(d, b.Max)
}

// CostOfItem is what an item is taken to need beside its payload, in bytes.
const CostOfItem = 300

// Taker names one deleteMin: who asks, and which of its requests it is.
type Taker struct {
	Node string
	Seq  uint64
}

// Item is a copy of an item. Its payload is shared and must not be changed.
type Item struct {
	Number    uint64 // never used twice in a shard
	ID        string
	Priority  uint32
	Stamp     int64 // Unix µs: its place among those of its priority
	Inserted  int64
	NotBefore int64 // 0: at once
	Expires   int64 // 0: never
	State     State
	Attempts  uint32
	Lease     uint64 // number of the last lease; 0: never leased
	Until     int64  // of the lease, if it is leased
	Reason    string
	Origin    string // the queue into which it was put, if it came from there as a dead letter
	Key       string // empty: none
	Payload   []byte
}

// stampMax keeps the heaviest item lighter than an empty queue. It is in the
// year 286,000.
const stampMax = 1<<63 - 1

// WeightOf is the place of an item among all of its queue, on whatever shard:
// by priority, then by stamp. What is equal in both comes in an order that
// favours no shard. The number of the item is part of it; see NumberOf.
func WeightOf(priority uint32, stamp int64, salt uint32, number uint64) qpid.Weight {
	t := uint64(min(max(stamp, 0), stampMax))
	w := qpid.Weight{Stamp: uint64(priority)<<32 | t>>32}
	binary.BigEndian.PutUint32(w.ID[:], uint32(t))
	binary.BigEndian.PutUint32(w.ID[4:], scramble(salt, number))
	binary.BigEndian.PutUint64(w.ID[8:], number)
	return w
}

// NumberOf is the number of the item whose weight w is.
func NumberOf(w qpid.Weight) uint64 { return binary.BigEndian.Uint64(w.ID[8:]) }

// Restamped is w with another stamp.
func Restamped(w qpid.Weight, stamp int64) qpid.Weight {
	t := uint64(min(max(stamp, 0), stampMax))
	w.Stamp = w.Stamp>>32<<32 | t>>32
	binary.BigEndian.PutUint32(w.ID[:], uint32(t))
	return w
}

// StampOf and PriorityOf are what WeightOf made w of.
func StampOf(w qpid.Weight) int64 {
	return int64(w.Stamp&(1<<32-1)<<32 | uint64(binary.BigEndian.Uint32(w.ID[:])))
}

func PriorityOf(w qpid.Weight) uint32 { return uint32(w.Stamp >> 32) }

// scramble is the finalizer of MurmurHash3 over both numbers.
func scramble(salt uint32, number uint64) uint32 {
	h := number ^ uint64(salt)<<32 ^ uint64(salt)
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return uint32(h)
}

// Code says how a command went.
type Code uint8

const (
	OK Code = iota
	QueueUnknown
	ItemUnknown
	LeaseLost    // the item was leased to somebody else since, or is not leased
	ItemFinished // it is acknowledged, cancelled or expired
	IsDraining
	IsPaused
	NotReady // the item to be leased is not ready
	Full
	Invalid      // the command makes no sense
	Unavailable  // nobody could carry it out; it may have happened all the same
	QueuesFull   // no room for another queue
	Busy         // too much to do just now
	Empty        // nothing waits
	LogUnready   // a log takes nothing just now; nothing has happened
	StorageFull  // a disk has no room; nothing has happened
	StorageDoubt // a disk had no room; it may have happened all the same
	AllLeased    // as many items are leased as may be
	codes
)

// Op is what a command is for.
type Op uint8

const (
	OpConfigure Op = iota + 1 // Queue, Limits, Settings: makes the queue if it is not there
	OpInsert                  // Queue, ID, Priority, Payload, NotBefore, Expires, Key
	OpLease                   // Queue, Number, Taker, For, Lease: its number at least
	OpAck                     // Queue, Number, Lease
	OpNack                    // Queue, Number, Lease, For: delay, 0: the queue's own, less: none, Text: reason
	OpRelease                 // Queue, Number, Lease: the lease never reached its taker, and does not count
	OpExtend                  // Queue, Number, Lease, For
	OpUpdate                  // Queue, Number or ID, Fields: which of Priority, Payload and NotBefore
	OpCancel                  // Queue, Number or ID
	OpMode                    // Queue, Mode
	OpTick                    // Max: steps at most
	OpRequeue                 // Queue, Number or ID; neither: all
	OpBury                    // Queue, Number or ID; neither: all. Drops dead letters
	OpForget                  // Queue: drops it if nothing is in it
	OpPeek                    // Queue, Max, Weight: after it; reads only, as all below
	OpFind                    // Queue, Number or ID
	OpRank                    // Queue, Weight
	OpDead                    // Queue, Max, Weight: after it
	OpStats                   // Queue; empty: all
	// Logs and other nodes know an operation by its number: a new one is the last.
	OpPurge // Queue, Max, Number: drops so many ready and delayed items, none younger than that; 0: than now
	opEnd
)

// Reads reports whether the operation changes nothing.
func (o Op) Reads() bool { return o >= OpPeek && o <= OpStats }

// Fields are what an OpUpdate changes. None is the priority, as in logs of before
// there was more.
type Fields uint8

const (
	FieldPriority Fields = 1 << iota
	FieldPayload
	FieldNotBefore
	fieldsEnd
)

// Command is what a shard is told. Each Op says which fields it uses.
type Command struct {
	Op        Op
	Queue     string
	Now       int64 // Unix µs
	Number    uint64
	ID        string
	Lease     uint64
	Priority  uint32
	Payload   []byte
	NotBefore int64
	Expires   int64
	Key       string
	For       int64 // µs
	Taker     Taker
	Text      string
	Max       int
	Mode      ModeSetting
	Limits    Limits
	Settings  Settings
	Weight    qpid.Weight
	Fields    Fields
}

// Result is how a command went.
type Result struct {
	Code   Code
	Number uint64
	State  State // where the item stands now; OpCancel: where it stood
	Lease  uint64
	Until  int64
	N      uint64 // OpTick, OpRequeue, OpBury, OpPurge: how many; OpRank: how many ready ones are lighter; OpPeek, OpDead: how many come after Items
	Exists bool   // OpInsert: it was there before; OpPurge: there may be more that are no younger than Number
	Items  []Item
	Stats  []Stats
}

// Counters only grow.
type Counters struct {
	Inserted, Leased, Acked, Nacked, Lapsed, Cancelled, Expired, Died, Repeated uint64
}

// Plus returns c and o together.
func (c Counters) Plus(o Counters) Counters {
	for i, v := range o.all() {
		*c.all()[i] += *v
	}
	return c
}

// Minus returns what c has more than o.
func (c Counters) Minus(o Counters) Counters {
	for i, v := range o.all() {
		*c.all()[i] -= *v
	}
	return c
}

// Stats is one queue of a shard.
type Stats struct {
	Queue                        string
	Mode                         ModeSetting
	Ready, Delayed, Leased, Dead int
	Bytes                        int64
	Oldest                       int64 // when the first ready item was inserted, Unix µs; 0: none is ready
	Counters                     Counters
	// What package broker adds for its node: whether the first item of the whole
	// queue is thought to be there, and how many callers wait there.
	Root    bool
	Waiters int
	Kind    string
	Blocked int // of the ready ones, those that wait for another one of their key
	// Not told to other nodes:
	SlotsLost    int  // of what may be leased at once, at nodes that are gone
	KeysHeldBack bool // items with a key wait for those nodes
}

// Kind is what has happened to an item.
type Kind uint8

const (
	WasInserted Kind = iota + 1
	WasLeased
	WasAcked
	WasNacked
	HasLapsed
	WasCancelled
	WasUpdated
	HasExpired
	HasDied
	WasRequeued
	WasExtended
	ModeChanged // of the queue
	BecameReady // its time has come
)

// Change is what has happened to an item. The weights say what that means to
// the ready ones.
type Change struct {
	Queue string
	Kind  Kind // 0: nothing, but whether it may be leased: others of its key have come or gone
	At    int64
	Item  Item // without its payload
	Mode  Mode
	Left  bool // Out may not be leased any more
	Came  bool // In may be leased now
	Out   qpid.Weight
	In    qpid.Weight
}
