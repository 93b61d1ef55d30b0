package loop_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// lossy loses all slots that are sent from some time on, and counts them.
type lossy struct {
	loop.Links
	loses atomic.Bool
	slots atomic.Int32
}

func (w *lossy) Send(m eviction.Message) {
	if _, ok := m.Body.(*eviction.Slots); ok && w.loses.Load() {
		w.slots.Add(1)
		return
	}
	w.Links.Send(m)
}

// Slots that were lost on the way are sent again with the node's next Tick. It
// is due a while after now, whenever now is: inputs that come more often than
// that must not put it off for ever.
func TestInputsDoNotPutOffTheTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w lossy
		_, l := start(t, 2, func(c *loop.Config) { // the first call is before any loop runs
			if w.Links == nil {
				w.Links = c.Links
			}
			c.Links = &w
		})
		time.Sleep(3 * time.Second)
		follows := l[1] // of two that begin at once either may lead
		if follows.Snapshot().Status.Leading {
			follows = l[0]
		}
		if s := follows.Snapshot(); s.Status.Leading || s.Rooms[0].Free == 0 {
			t.Fatalf("leading %v with %d free slots; the test needs slots at a node that follows", s.Status.Leading, s.Rooms[0].Free)
		}
		w.loses.Store(true)
		if err := follows.Goodbye(); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			follows.Deliver(eviction.Message{}) // refused, but an input
			time.Sleep(20 * time.Millisecond)
		}
		if n := w.slots.Load(); n < 5 {
			t.Errorf("slots were sent %d times in 2 s, want every 200 ms until they arrive", n)
		}
	})
}

// errorLines counts lines at level error and, of the others, those that say
// that it is over.
type errorLines struct {
	slog.Handler
	bad, good *atomic.Int32
}

func (h errorLines) Enabled(context.Context, slog.Level) bool { return true }

func (h errorLines) Handle(_ context.Context, r slog.Record) error {
	switch {
	case r.Level >= slog.LevelError:
		h.bad.Add(1)
	case strings.Contains(r.Message, "again"):
		h.good.Add(1)
	}
	return nil
}

// A full disk is neither written to nor complained of at every input.
func TestFullDiskIsTriedAndToldOfSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var saves, bad, good atomic.Int32
		var full atomic.Bool
		full.Store(true)
		_, l := start(t, 1, func(c *loop.Config) {
			c.Node.Disk = true
			c.Save = func(*eviction.Record) error {
				saves.Add(1)
				if full.Load() {
					return errors.New("disk full")
				}
				return nil
			}
			c.Logger = slog.New(errorLines{slog.DiscardHandler, &bad, &good})
		})
		for range 1000 {
			l[0].Deliver(eviction.Message{})
			time.Sleep(time.Millisecond)
		}
		if saves.Load() < 2 || saves.Load() > 15 || bad.Load() != 1 {
			t.Errorf("%d tries and %d errors logged in a second, want about 10 and 1", saves.Load(), bad.Load())
		}
		full.Store(false)
		time.Sleep(time.Second)
		if good.Load() != 1 {
			t.Errorf("told %d times that the disk is good again, want once", good.Load())
		}
	})
}

// A stall must not end in places, and slots, that nobody knows of.
func TestJoinThatNobodyWaitsForTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stalled atomic.Bool
		disk := make(chan struct{})
		_, l := start(t, 1, func(c *loop.Config) {
			c.Requests = 2
			c.Log = func(node.Admission) {
				if stalled.CompareAndSwap(true, false) {
					<-disk
				}
			}
		})
		time.Sleep(2 * time.Second)
		stalled.Store(true)
		pass := join(t, l[0], 1).Pass // its log line stalls the loop
		synctest.Wait()
		for range 2 { // as many as may be answered ahead of a stalled loop
			if _, err := l[0].Do(t.Context(), ticket.Request{Op: ticket.Visit, Room: "shop", Pass: pass}); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l[0].Do(ctx, ticket.Request{Op: ticket.Join, Room: "shop", ID: qpid.ItemID{2}}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("join at a stalled node: %v", err)
		}
		if _, err := l[0].Do(ctx, ticket.Request{Op: ticket.End, Room: "shop", Pass: pass}); err == nil {
			t.Fatal("a stalled node answered")
		}
		close(disk)
		time.Sleep(time.Second)
		if r := l[0].Snapshot().Rooms[0]; r.OnSite != 0 || r.Queued != 0 {
			t.Errorf("%d on the site and %d in line, want nobody: one has ended the visit, the other has gone", r.OnSite, r.Queued)
		}
	})
}
