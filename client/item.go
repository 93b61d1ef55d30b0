package client

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

// New is an item that is to be put into a queue.
type New struct {
	ID        string        // at most 256 bytes, not like a handle; a second item of that id is not put [random]
	Priority  uint32        // the lowest goes first; items of one priority go in the order they came
	Payload   []byte        // at most the queue's max_payload
	NotBefore time.Time     // not delivered earlier [now]
	TTL       time.Duration // dropped that long from now, unless leased then [never]
	Key       string        // at most 256 bytes: keys take turns, or of one key one item is leased at a time; the queue needs fair_keys or exclusive_keys [none]
}

// Placed is an item that is in a queue.
type Placed struct {
	ID      string `json:"id"`
	Handle  string `json:"handle"`  // names the item as its id does, and is quicker to find
	Existed bool   `json:"existed"` // an item of this id was put before; nothing was changed
	State   State  `json:"state"`
}

// State is where an item stands.
type State string

// States of an item.
const (
	Ready    State = "ready"
	Delayed  State = "delayed" // its NotBefore is to come, or the delay of a Nack
	Leased   State = "leased"
	Dead     State = "dead"     // was leased as often as its queue allows, and never acknowledged
	Finished State = "finished" // acknowledged, cancelled or expired
)

// Item is an item as its queue has it. Times are by the nodes' clocks.
type Item struct {
	ID         string    `json:"id"`
	Handle     string    `json:"handle,omitempty"`
	Priority   uint32    `json:"priority"`
	Payload    []byte    `json:"-"`
	State      State     `json:"state"`
	InsertedAt time.Time `json:"inserted_at,omitzero"`
	NotBefore  time.Time `json:"not_before,omitzero"`
	ExpiresAt  time.Time `json:"expires_at,omitzero"`
	Attempts   uint32    `json:"attempts"`             // how often it was leased
	LeaseUntil time.Time `json:"lease_until,omitzero"` // if it is leased
	Reason     string    `json:"reason,omitempty"`     // of the last Nack
	// OriginQueue is where it was put, under the same id, if it came from there as a
	// dead letter.
	OriginQueue string `json:"origin_queue,omitempty"`
	Key         string `json:"key,omitempty"`
}

// Mode is what a queue is allowed to do.
type Mode string

// Modes of a queue.
const (
	Running  Mode = "running"
	Paused   Mode = "paused"   // nothing goes out
	Draining Mode = "draining" // nothing comes in
)

func itemOf(p *anteroomv1.Item) Item {
	return Item{
		ID: p.GetId(), Handle: p.GetHandle(), Priority: p.GetPriority(), Payload: p.GetPayload(), State: stateOf(p.GetState()),
		InsertedAt: timeOf(p.GetInsertedAt()), NotBefore: timeOf(p.GetNotBefore()), ExpiresAt: timeOf(p.GetExpiresAt()),
		Attempts: p.GetAttempts(), LeaseUntil: timeOf(p.GetLeaseUntil()), Reason: p.GetReason(),
		OriginQueue: p.GetOriginQueue(), Key: p.GetKey(),
	}
}

func itemsOf(all []*anteroomv1.Item) []Item {
	items := make([]Item, len(all))
	for i, p := range all {
		items[i] = itemOf(p)
	}
	return items
}

// stateOf is the state in the words of this package, which are the service's.
func stateOf(s anteroomv1.ItemState) State {
	return State(word(s.String(), "ITEM_STATE_"))
}

func modeOf(m anteroomv1.QueueMode) Mode {
	return Mode(word(m.String(), "QUEUE_MODE_"))
}

// word is the name of a value of an enum, as people write it. Unspecified is
// nothing.
func word(name, prefix string) string {
	if w := strings.ToLower(strings.TrimPrefix(name, prefix)); w != "unspecified" {
		return w
	}
	return ""
}

// timeOf leaves a time that is not set zero.
func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func span(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}
