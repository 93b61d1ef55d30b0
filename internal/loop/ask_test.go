package loop_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// For the race detector, mostly: check-ins borrow the node while its own
// goroutine runs waves, and people come, go and are called.
func TestManyCheckInsAtOnceWhileTheNodeIsAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l := start(t, 2, func(c *loop.Config) {
			c.Node.Rooms = []eviction.Room{{Name: "shop", Target: 5, Session: 300 * time.Millisecond, QueueAll: true}}
		})
		time.Sleep(2 * time.Second)
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				a, err := l[i%2].Do(t.Context(), ticket.Request{Op: ticket.Join, Room: "shop", ID: qpid.ItemID{byte(i + 1)}})
				shown := a.Position
				for checks := 0; a.State == ticket.Waiting && err == nil; checks++ {
					at := l[i%2]
					if checks%5 == 4 {
						at = l[1-i%2] // which forwards
					}
					time.Sleep(time.Millisecond)
					if a, err = at.Do(t.Context(), ticket.Request{Op: ticket.CheckIn, Room: "shop", Ticket: a.Ticket}); err != nil {
						break
					}
					if shown > 0 && a.Position > shown {
						t.Errorf("%d: position %d after %d", i, a.Position, shown)
					}
					shown = a.Position
				}
				for a.State != ticket.Admitted && err == nil {
					time.Sleep(time.Millisecond)
					a, err = l[i%2].Do(t.Context(), ticket.Request{Op: ticket.Leave, Room: "shop", Ticket: a.Ticket})
				}
				if err != nil {
					t.Errorf("%d: %v", i, err)
				}
			})
		}
		all.Wait()
	})
}

// While the loop's goroutine does something else, a check-in is answered all the
// same; one that would change more than the visitor's own record is not.
func TestCheckInIsAnsweredWhileTheLoopIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		var once sync.Once
		_, l := start(t, 1, func(c *loop.Config) {
			c.Node.Rooms[0].QueueAll, c.Node.Rooms[0].NewPerMinute = true, 1
			c.Log = func(a node.Admission) {
				if a.Weight.ID == (qpid.ItemID{9}) {
					<-stuck
				}
			}
		})
		t.Cleanup(func() { once.Do(func() { close(stuck) }) })
		time.Sleep(2 * time.Second)
		var waiting ticket.Ticket
		for i := byte(1); i <= 3; i++ {
			waiting = join(t, l[0], i).Ticket
		}
		ninth := join(t, l[0], 9).Ticket
		go func() {
			_, _ = l[0].Do(t.Context(), ticket.Request{Op: ticket.Abandon, Room: "shop", Ticket: ninth})
		}()
		synctest.Wait() // the loop tells the log
		a, err := l[0].Do(t.Context(), ticket.Request{Op: ticket.CheckIn, Room: "shop", Ticket: waiting})
		if err != nil || a.State != ticket.Waiting || a.Ticket.ID != waiting.ID {
			t.Errorf("check-in: %+v, %v", a, err)
		}
		once.Do(func() { close(stuck) })
	})
}

func TestStoppedLoopAnswersNoCheckIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := start(t, 1, func(c *loop.Config) { c.Node.Rooms[0].QueueAll, c.Node.Rooms[0].Target = true, 1 })
		time.Sleep(2 * time.Second)
		join(t, l[0], 1)
		a := join(t, l[0], 2)
		w.stop()
		if _, err := l[0].Do(t.Context(), ticket.Request{Op: ticket.CheckIn, Room: "shop", Ticket: a.Ticket}); !errors.Is(err, ticket.ErrUnavailable) {
			t.Errorf("check-in: %v, want unavailable", err)
		}
	})
}
