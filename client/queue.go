package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

// Queue is one queue of a cluster. Any number of goroutines may use it.
//
// All methods return an *Error when they fail. Missing, wherever it is returned,
// are nodes that did not answer the one that was asked: what they keep is not in
// the answer.
type Queue struct {
	client *Client
	name   string
}

// Name is what Client.Queue was given.
func (q *Queue) Name() string { return q.name }

// Client is what the queue was made by.
func (q *Queue) Client() *Client { return q.client }

// wire is a client of a node.
type wire = anteroomv1.PriorityQueueClient

func (q *Queue) call(ctx context.Context, op string, f func(context.Context, wire) error) error {
	return q.client.call(ctx, &request{op: op, queue: q.name}, f)
}

// Put puts an item into the queue. When it returns, the item is on the disks on
// which the queue's configuration wants it. A queue that is full is tried again;
// if Put fails with ErrUnavailable or the context's error, the item may be there
// or not, and a Put with the same ID settles that.
func (q *Queue) Put(ctx context.Context, n New) (Placed, error) {
	if n.ID == "" {
		n.ID = newID()
	}
	var a *anteroomv1.InsertResponse
	err := q.call(ctx, "put", func(ctx context.Context, w wire) (err error) {
		a, err = w.Insert(ctx, &anteroomv1.InsertRequest{
			Queue: q.name, Id: n.ID, Priority: n.Priority, Payload: n.Payload, NotBefore: stamp(n.NotBefore), Ttl: span(n.TTL), Key: n.Key,
		})
		return err
	})
	return Placed{ID: n.ID, Handle: a.GetHandle(), Existed: a.GetExisted(), State: stateOf(a.GetState())}, err
}

// newID is 128 random bits.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails, and fills all of b
	return hex.EncodeToString(b[:])
}

// Want says what to take.
type Want struct {
	Items int           // at most so many [1]
	Lease time.Duration // until they go to somebody else [the queue's]
	Wait  time.Duration // for the first one, up to a minute [not at all]
}

// Taken is what there was to take.
type Taken struct {
	Leases []*Lease
	Paused bool // nothing came because the queue is paused
	// These nodes were not there: they may have items that go before those that came,
	// or the right to let any out.
	Missing []string
}

// Lease is an item that is the caller's to work on, until it is acknowledged or
// given back, or Until has passed by the node's clock.
type Lease struct {
	Item
	Receipt string    `json:"receipt"` // of this lease, for Ack, Nack and Extend of the queue
	Until   time.Time `json:"-"`       // as it was when the item was taken
	queue   *Queue
}

// Ack says that the work is done.
func (l *Lease) Ack(ctx context.Context) error { return l.queue.Ack(ctx, l.Receipt) }

// AtOnce is a delay for Nack: none, whatever the queue's backoff says.
const AtOnce = time.Duration(-1)

// Nack gives the item back, to be delivered again after delay at the earliest; 0 is
// as the queue's backoff says, which is at once if it has none.
// The reason, of up to 1,024 bytes, is for whoever looks at the item.
func (l *Lease) Nack(ctx context.Context, delay time.Duration, reason string) error {
	_, err := l.queue.Nack(ctx, l.Receipt, delay, reason)
	return err
}

// Extend makes the lease last for d from now on; 0 is as long as the queue says.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	_, err := l.queue.Extend(ctx, l.Receipt, d)
	return err
}

// Take leases the first items of the queue. That there are none is no error.
func (q *Queue) Take(ctx context.Context, want Want) (Taken, error) {
	r := &request{op: "take", queue: q.name, wait: max(0, want.Wait)}
	if want.Items < 0 || want.Items > math.MaxInt32 {
		return Taken{}, &Error{Op: r.op, Queue: q.name, Reason: ErrInvalid, Text: fmt.Sprintf("%d items; give 1 to 1000", want.Items)}
	}
	var a *anteroomv1.DeleteMinResponse
	err := q.client.call(ctx, r, func(ctx context.Context, w wire) (err error) {
		a, err = w.DeleteMin(ctx, &anteroomv1.DeleteMinRequest{
			Queue: q.name, MaxItems: uint32(want.Items), Lease: span(want.Lease), Wait: span(want.Wait),
		})
		return err
	})
	t := Taken{Paused: a.GetPaused(), Missing: a.GetMissing()}
	for _, l := range a.GetLeases() {
		t.Leases = append(t.Leases, &Lease{Item: itemOf(l.GetItem()), Receipt: l.GetReceipt(), Until: timeOf(l.GetUntil()), queue: q})
	}
	return t, err
}

// Ack says that the work on a leased item is done: the item is gone. It fails
// with ErrLeaseLost if the lease has lapsed and somebody else has the item.
func (q *Queue) Ack(ctx context.Context, receipt string) error {
	return q.call(ctx, "ack", func(ctx context.Context, w wire) error {
		_, err := w.Ack(ctx, &anteroomv1.AckRequest{Queue: q.name, Receipt: receipt})
		return err
	})
}

// Nack gives a leased item back, and says where it stands now: Ready, Delayed,
// or Dead if it was leased as often as its queue allows. The state is empty if
// an earlier try had given it back, whose answer was lost. A delay of 0 is as the
// queue's backoff says, AtOnce is none.
func (q *Queue) Nack(ctx context.Context, receipt string, delay time.Duration, reason string) (State, error) {
	r := &request{op: "nack", queue: q.name}
	wait := span(delay)
	if delay == AtOnce {
		wait = &durationpb.Duration{}
	}
	var a *anteroomv1.NackResponse
	err := q.client.call(ctx, r, func(ctx context.Context, w wire) (err error) {
		a, err = w.Nack(ctx, &anteroomv1.NackRequest{Queue: q.name, Receipt: receipt, Delay: wait, Reason: reason})
		return err
	})
	if r.repeated && gone(err) {
		return "", nil
	}
	return stateOf(a.GetState()), err
}

// Extend makes a lease last for d from now on, and says until when that is by
// the node's clock. 0 is as long as the queue says.
func (q *Queue) Extend(ctx context.Context, receipt string, d time.Duration) (time.Time, error) {
	var a *anteroomv1.ExtendResponse
	err := q.call(ctx, "extend", func(ctx context.Context, w wire) (err error) {
		a, err = w.Extend(ctx, &anteroomv1.ExtendRequest{Queue: q.name, Receipt: receipt, Lease: span(d)})
		return err
	})
	return timeOf(a.GetUntil()), err
}

// Update changes the priority of an item, named by its id or handle. Among those
// of its new priority it stands by the time at which it was put.
func (q *Queue) Update(ctx context.Context, id string, priority uint32) (Item, error) {
	return q.Change(ctx, id, Change{Priority: &priority})
}

// Change says what is to be different about an item.
type Change struct {
	Priority  *uint32   // nil: as it is
	Payload   []byte    // nil: as it is; empty, but not nil: none
	NotBefore time.Time // zero: as it is; a time that has passed: at once
}

// Change changes an item, named by its id or handle. With a new NotBefore it stands
// in line by that. Somebody may have it, as State of what is returned says: they
// work on the old payload, and NotBefore holds from when they give it back.
func (q *Queue) Change(ctx context.Context, id string, c Change) (Item, error) {
	if c.Priority == nil && c.Payload == nil && c.NotBefore.IsZero() {
		return Item{}, &Error{Op: "update", Queue: q.name, Reason: ErrInvalid, Text: "a Change of nothing; give a priority, a payload or a time"}
	}
	var a *anteroomv1.UpdateResponse
	err := q.call(ctx, "update", func(ctx context.Context, w wire) (err error) {
		a, err = w.Update(ctx, &anteroomv1.UpdateRequest{Queue: q.name, Id: id, Priority: c.Priority, Payload: c.Payload, NotBefore: stamp(c.NotBefore)})
		return err
	})
	return itemOf(a.GetItem()), err
}

// Cancel takes an item away, named by its id or handle, and says where it stood.
// Whoever works on it finds out with Extend or Ack.
func (q *Queue) Cancel(ctx context.Context, id string) (State, error) {
	var a *anteroomv1.CancelResponse
	err := q.call(ctx, "cancel", func(ctx context.Context, w wire) (err error) {
		a, err = w.Cancel(ctx, &anteroomv1.CancelRequest{Queue: q.name, Id: id})
		return err
	})
	return stateOf(a.GetState()), err
}

// Pause holds the queue on all nodes: nothing is taken until Resume. Nodes that
// are missing learn it when they are back.
func (q *Queue) Pause(ctx context.Context) (missing []string, err error) {
	err = q.call(ctx, "pause", func(ctx context.Context, w wire) error {
		a, err := w.Pause(ctx, &anteroomv1.PauseRequest{Queue: q.name})
		missing = a.GetMissing()
		return err
	})
	return missing, err
}

// Resume ends what Pause or Drain began.
func (q *Queue) Resume(ctx context.Context) (missing []string, err error) {
	err = q.call(ctx, "resume", func(ctx context.Context, w wire) error {
		a, err := w.Resume(ctx, &anteroomv1.ResumeRequest{Queue: q.name})
		missing = a.GetMissing()
		return err
	})
	return missing, err
}

// Purge drops all items that are ready or delayed when it begins, on all nodes,
// and says how many those were, of which a repeated try counts none twice. Leased
// ones stay with their holders, and dead letters where they are. Nodes that are
// missing keep what they have, or part of it.
func (q *Queue) Purge(ctx context.Context) (n uint64, missing []string, err error) {
	err = q.call(ctx, "purge", func(ctx context.Context, w wire) error {
		a, err := w.Purge(ctx, &anteroomv1.PurgeRequest{Queue: q.name})
		n, missing = a.GetPurged(), a.GetMissing()
		return err
	})
	return n, missing, err
}

// Drain lets the queue run empty: Put fails with ErrDraining until Resume.
func (q *Queue) Drain(ctx context.Context) (missing []string, err error) {
	err = q.call(ctx, "drain", func(ctx context.Context, w wire) error {
		a, err := w.Drain(ctx, &anteroomv1.DrainRequest{Queue: q.name})
		missing = a.GetMissing()
		return err
	})
	return missing, err
}
