package client

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

// Listing is some items of a queue.
type Listing struct {
	Items   []Item   `json:"items"`
	Missing []string `json:"missing,omitempty"`
	More    bool     `json:"more,omitempty"` // there are more items than these
}

// pageMax is how many items one answer may have.
const pageMax = 1000

// paged puts a listing of n items together, from as many answers as it takes.
func paged(n int, page func(most uint32, token string) (items []*anteroomv1.Item, missing []string, next string, err error)) (Listing, error) {
	var l Listing
	for token := ""; ; {
		items, missing, next, err := page(uint32(min(n-len(l.Items), pageMax)), token)
		if err != nil {
			return Listing{}, err
		}
		l.Items = append(l.Items, itemsOf(items)...)
		for _, m := range missing {
			if !slices.Contains(l.Missing, m) {
				l.Missing = append(l.Missing, m)
			}
		}
		if l.More = next != ""; !l.More || len(l.Items) >= n || next == token {
			return l, nil
		}
		token = next
	}
}

// listed checks how many items are asked for.
func (q *Queue) listed(op string, n int) error {
	if n < 0 || n > math.MaxInt32 {
		return &Error{Op: op, Queue: q.name, Reason: ErrInvalid, Text: fmt.Sprintf("%d items; give 1 or more", n)}
	}
	return nil
}

// Peek shows the first n items that are ready, over all nodes, and changes
// nothing. 0 is one. Over 1,000 of them, or 3 MiB of payloads, come in several
// answers, between which items may come and go.
func (q *Queue) Peek(ctx context.Context, n int) (Listing, error) {
	if err := q.listed("peek", n); err != nil {
		return Listing{}, err
	}
	return paged(max(1, n), func(most uint32, token string) ([]*anteroomv1.Item, []string, string, error) {
		var a *anteroomv1.PeekResponse
		err := q.call(ctx, "peek", func(ctx context.Context, w wire) (err error) {
			a, err = w.Peek(ctx, &anteroomv1.PeekRequest{Queue: q.name, MaxItems: most, PageToken: token})
			return err
		})
		return a.GetItems(), a.GetMissing(), a.GetNextPageToken(), err
	})
}

// Counts is how many items a queue has, by state.
type Counts struct {
	Ready   uint64   `json:"ready"`
	Delayed uint64   `json:"delayed"`
	Leased  uint64   `json:"leased"`
	Dead    uint64   `json:"dead"`
	Missing []string `json:"missing,omitempty"`
}

// Len counts the items of the queue.
func (q *Queue) Len(ctx context.Context) (Counts, error) {
	var a *anteroomv1.LenResponse
	err := q.call(ctx, "len", func(ctx context.Context, w wire) (err error) {
		a, err = w.Len(ctx, &anteroomv1.LenRequest{Queue: q.name})
		return err
	})
	return Counts{a.GetReady(), a.GetDelayed(), a.GetLeased(), a.GetDead(), a.GetMissing()}, err
}

// Place is where an item stands.
type Place struct {
	Position uint64 `json:"position"` // of a ready item, from 1; 0 in any other state
	// Bound is by how much the true position may be higher, because of nodes that
	// did not answer. Nil: nobody knows.
	Bound   *uint64  `json:"bound"`
	State   State    `json:"state"`
	Missing []string `json:"missing,omitempty"`
}

// Position says how many ready items go before one, named by its id or handle.
func (q *Queue) Position(ctx context.Context, id string) (Place, error) {
	var a *anteroomv1.PositionResponse
	err := q.call(ctx, "position", func(ctx context.Context, w wire) (err error) {
		a, err = w.Position(ctx, &anteroomv1.PositionRequest{Queue: q.name, Id: id})
		return err
	})
	p := Place{Position: a.GetPosition(), State: stateOf(a.GetState()), Missing: a.GetMissing()}
	if a != nil {
		p.Bound = a.Bound
	}
	return p, err
}

// Stats is what a queue does and has done, over all nodes that answered.
type Stats struct {
	Queue    string    `json:"queue"`
	Mode     Mode      `json:"mode"`
	Kind     string    `json:"kind"` // memory, durable or replicated
	Ready    uint64    `json:"ready"`
	Delayed  uint64    `json:"delayed"`
	Leased   uint64    `json:"leased"`
	Dead     uint64    `json:"dead"`
	Blocked  uint64    `json:"blocked,omitempty"` // of the ready ones, that wait for another one of their key
	Bytes    uint64    `json:"bytes"`             // of all payloads
	Oldest   time.Time `json:"oldest,omitzero"`   // when the oldest ready item was put
	Counters Counters  `json:"counters"`
	Root     string    `json:"root"`    // node that is thought to have the first item; empty: it is just moving
	Waiters  uint64    `json:"waiters"` // calls of Take that wait
	Nodes    []Share   `json:"nodes"`
}

// Counters only grow: since the nodes started, or of durable and replicated
// queues since ever.
type Counters struct {
	Inserted  uint64 `json:"inserted"`
	Leased    uint64 `json:"leased"`
	Acked     uint64 `json:"acked"`
	Nacked    uint64 `json:"nacked"`
	Lapsed    uint64 `json:"lapsed"`
	Cancelled uint64 `json:"cancelled"`
	Expired   uint64 `json:"expired"`
	Died      uint64 `json:"died"`
	Repeated  uint64 `json:"repeated"`
}

// Share is what one node keeps of a queue.
type Share struct {
	Node   string `json:"node"`
	Ready  uint64 `json:"ready"`
	Leased uint64 `json:"leased"`
}

// Stats tells of the queue.
func (q *Queue) Stats(ctx context.Context) (s Stats, missing []string, err error) {
	all, missing, err := q.client.stats(ctx, q.name)
	if len(all) > 0 {
		s = all[0]
	}
	return s, missing, err
}

// Stats tells of all queues, by name.
func (c *Client) Stats(ctx context.Context) (all []Stats, missing []string, err error) {
	return c.stats(ctx, "")
}

func (c *Client) stats(ctx context.Context, queue string) (all []Stats, missing []string, err error) {
	var a *anteroomv1.StatsResponse
	err = c.call(ctx, &request{op: "stats", queue: queue}, func(ctx context.Context, w wire) (err error) {
		a, err = w.Stats(ctx, &anteroomv1.StatsRequest{Queue: queue})
		return err
	})
	for _, s := range a.GetQueues() {
		all = append(all, statsOf(s))
	}
	return all, a.GetMissing(), err
}

func statsOf(p *anteroomv1.QueueStats) Stats {
	n := p.GetCounters()
	s := Stats{
		Queue: p.GetQueue(), Mode: modeOf(p.GetMode()), Kind: p.GetKind(),
		Ready: p.GetReady(), Delayed: p.GetDelayed(), Leased: p.GetLeased(), Dead: p.GetDead(), Blocked: p.GetBlocked(),
		Bytes: p.GetBytes(), Oldest: timeOf(p.GetOldest()), Root: p.GetRoot(), Waiters: p.GetWaiters(),
		Counters: Counters{
			Inserted: n.GetInserted(), Leased: n.GetLeased(), Acked: n.GetAcked(), Nacked: n.GetNacked(), Lapsed: n.GetLapsed(),
			Cancelled: n.GetCancelled(), Expired: n.GetExpired(), Died: n.GetDied(), Repeated: n.GetRepeated(),
		},
	}
	for _, n := range p.GetNodes() {
		s.Nodes = append(s.Nodes, Share{n.GetNode(), n.GetReady(), n.GetLeased()})
	}
	return s
}

// DeadLetters lists n items that were leased as often as the queue allows and
// never acknowledged; of one node, those first whose last lease was first. 0 is
// 100 of them.
func (q *Queue) DeadLetters(ctx context.Context, n int) (Listing, error) {
	if err := q.listed("dead letters", n); err != nil {
		return Listing{}, err
	}
	return paged(cmp.Or(n, 100), func(most uint32, token string) ([]*anteroomv1.Item, []string, string, error) {
		var a *anteroomv1.DeadLettersResponse
		err := q.call(ctx, "dead letters", func(ctx context.Context, w wire) (err error) {
			a, err = w.DeadLetters(ctx, &anteroomv1.DeadLettersRequest{Queue: q.name, MaxItems: most, PageToken: token})
			return err
		})
		return a.GetItems(), a.GetMissing(), a.GetNextPageToken(), err
	})
}

// Requeue puts dead letters back in line, named by their ids or handles, with
// all attempts before them; without any, all of them. It says how many those
// were, of which a repeated try counts none twice.
func (q *Queue) Requeue(ctx context.Context, ids ...string) (n uint64, missing []string, err error) {
	err = q.call(ctx, "requeue", func(ctx context.Context, w wire) error {
		a, err := w.Requeue(ctx, &anteroomv1.RequeueRequest{Queue: q.name, Ids: ids})
		n, missing = a.GetRequeued(), a.GetMissing()
		return err
	})
	return n, missing, err
}

// DeleteDeadLetters drops dead letters, named by their ids or handles; without
// any, all of them.
func (q *Queue) DeleteDeadLetters(ctx context.Context, ids ...string) (n uint64, missing []string, err error) {
	err = q.call(ctx, "delete dead letters", func(ctx context.Context, w wire) error {
		a, err := w.DeleteDeadLetters(ctx, &anteroomv1.DeleteDeadLettersRequest{Queue: q.name, Ids: ids})
		n, missing = a.GetDeleted(), a.GetMissing()
		return err
	})
	return n, missing, err
}
