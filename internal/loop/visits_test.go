package loop_test

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// Who comes in, or has a pass renewed, waits until the disk has it; the loop does not, and a
// disk that takes nothing lets nobody in.
func TestWhoComesInWaitsForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sync = 20 * time.Millisecond
		var full, hangs atomic.Bool
		var bad, good, batches atomic.Int32
		_, l := start(t, 1, func(c *loop.Config) {
			c.Logger = slog.New(errorLines{slog.DiscardHandler, &bad, &good})
			c.Node.Visits = &eviction.VisitsKept{}
			c.Visits = func(*eviction.VisitsBatch) error {
				time.Sleep(sync)
				if hangs.Load() {
					time.Sleep(5 * time.Second)
				}
				if full.Load() {
					return errors.New("no space")
				}
				batches.Add(1)
				return nil
			}
		})
		time.Sleep(2 * time.Second)
		ask := func(q ticket.Request) (ticket.Answer, time.Duration) {
			began := time.Now()
			q.Room = "shop"
			a, err := l[0].Local(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			return a, time.Since(began)
		}
		a, took := ask(ticket.Request{Op: ticket.Join, ID: qpid.ItemID{1}})
		if a.State != ticket.Admitted || took < sync {
			t.Fatalf("join = %+v after %v, want a pass when the disk has it", a, took)
		}
		time.Sleep(5 * time.Second)
		before, pass := batches.Load(), a.Pass
		if a, took = ask(ticket.Request{Op: ticket.Refresh, Pass: pass}); a.Pass.Expires-pass.Expires < 5e6 || took > 0 || batches.Load() > before {
			t.Errorf("refresh = %+v after %v, want a longer pass at once: the disk has it for longer", a, took)
		}
		time.Sleep(50 * time.Second)
		pass = a.Pass
		if a, took = ask(ticket.Request{Op: ticket.Refresh, Pass: pass}); a.Pass.Expires-pass.Expires < 50e6 || took < sync {
			t.Errorf("refresh = %+v after %v, want a pass as long as the first when the disk has it", a, took)
		}
		full.Store(true)
		if a, _ = ask(ticket.Request{Op: ticket.Join, ID: qpid.ItemID{2}}); a.State == ticket.Admitted {
			t.Errorf("join = %+v, with a disk that takes nothing", a)
		}
		if bad.Load() != 1 || !l[0].Snapshot().Status.Unwritten {
			t.Errorf("%d errors logged, want 1; the state is %+v", bad.Load(), l[0].Snapshot().Status)
		}
		full.Store(false)
		time.Sleep(time.Second)
		if good.Load() != 1 || l[0].Snapshot().Status.Unwritten {
			t.Errorf("%d lines say that it is over, want 1; the state is %+v", good.Load(), l[0].Snapshot().Status)
		}
		if a, _ = ask(ticket.Request{Op: ticket.Leave, Ticket: a.Ticket}); a.State != ticket.Admitted {
			t.Errorf("leave = %+v, with a disk that is well again", a)
		}
		hangs.Store(true)
		_, _ = ask(ticket.Request{Op: ticket.End, Pass: pass})
		if time.Sleep(3 * time.Second); bad.Load() != 2 || !l[0].Snapshot().Status.Unwritten {
			t.Errorf("%d errors logged, want 2; the state is %+v", bad.Load(), l[0].Snapshot().Status)
		}
	})
}
