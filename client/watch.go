package client

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"google.golang.org/grpc"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

// Event is something that happened to an item, or to the queue.
type Event struct {
	// Kind is inserted, leased, acked, nacked, lapsed, cancelled, updated, expired,
	// died, requeued or extended, or mode, of the queue.
	Kind   string    `json:"kind"`
	Item   *Item     `json:"item,omitempty"` // without its payload
	Mode   Mode      `json:"mode,omitempty"`
	At     time.Time `json:"at"`
	Node   string    `json:"node"`
	Missed uint64    `json:"missed,omitempty"` // events before this one, for which the reader was too slow
	// Broken says that the connection broke and another was made: what happened in
	// between was not seen.
	Broken bool `json:"broken,omitempty"`
}

// Watch tells what happens to the queue on all nodes, from now on, until the
// loop or ctx ends. A node that is lost is replaced by another; when none
// answers for as long as the client has patience, an error comes, and is the last.
func (q *Queue) Watch(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		w := watching{queue: q, yield: yield, pause: pauseMin, since: time.Now()}
		for w.one(ctx) {
		}
	}
}

// watching is a watch, over however many streams.
type watching struct {
	queue  *Queue
	yield  func(Event, error) bool
	pause  time.Duration
	since  time.Time // when nodes stopped to answer
	tried  int       // streams since then
	broken bool
}

// one reads a stream to its end, and reports whether there should be another.
func (w *watching) one(ctx context.Context) bool {
	c, r := w.queue.client, &request{op: "watch", queue: w.queue.name}
	at := c.at.Load()
	stream, err := c.nodes[int(at)%len(c.nodes)].queue.Watch(ctx, &anteroomv1.WatchRequest{Queue: r.queue})
	if err == nil {
		var going bool
		if going, err = w.read(stream); !going {
			return false
		}
	}
	e := errorOf(r, err)
	if ctx.Err() != nil || !e.passes && !errors.Is(err, io.EOF) || time.Since(w.since) > c.patience {
		w.yield(Event{}, e.within(ctx))
		return false
	}
	c.at.CompareAndSwap(at, at+1)
	wait := e.RetryAfter
	w.tried++
	if wait == 0 && w.tried >= len(c.nodes) {
		wait = w.pause
		w.pause = min(2*w.pause, pauseMax)
	}
	if !sleep(ctx, wait) {
		w.yield(Event{}, e.within(ctx))
		return false
	}
	return true
}

// read hands on what a stream brings, until it breaks with err, or the loop
// that listens is left: then it is not going on.
func (w *watching) read(stream grpc.ServerStreamingClient[anteroomv1.WatchResponse]) (going bool, err error) {
	for {
		p, err := stream.Recv()
		if md, _ := stream.Header(); md != nil { // somebody was there
			w.since, w.tried, w.pause = time.Now(), 0, pauseMin
		}
		if err != nil {
			w.broken = true
			return true, err
		}
		e := eventOf(p)
		e.Broken, w.broken = w.broken, false
		if !w.yield(e, nil) {
			return false, nil
		}
	}
}

func eventOf(p *anteroomv1.WatchResponse) Event {
	e := Event{Kind: word(p.GetKind().String(), "KIND_"), Mode: modeOf(p.GetMode()), At: timeOf(p.GetAt()), Node: p.GetNode(), Missed: p.GetMissed()}
	if p.GetItem() != nil {
		i := itemOf(p.GetItem())
		e.Item = &i
	}
	return e
}
