package loop_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/internal/ticket"
)

// A slot that is free may lie at another node, or be on its way there. Whoever comes waits
// for it with the join: they are in, however the waves fall, and see no page that says
// that they are the first of one.
func TestWhoComesWhileThereIsRoomIsIn(t *testing.T) {
	for order := range 27 {
		for apart := time.Duration(0); apart < 250*time.Millisecond; apart += 13 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				_, l := start(t, 3, func(c *loop.Config) { c.Node.Rooms[0].Target = 3 })
				for !mayAdmit(l[0]) || !mayAdmit(l[1]) || !mayAdmit(l[2]) {
					time.Sleep(50 * time.Millisecond)
				}
				for i, at := range []int{order / 9, order / 3 % 3, order % 3} {
					began := time.Now()
					if a := join(t, l[at], byte(i+1)); a.State != ticket.Admitted {
						t.Errorf("number %d of three, %v apart, at node %d: %v as number %d, after %v, in a room for three", i+1, apart, at, a.State, a.Position, time.Since(began))
					}
					time.Sleep(apart)
				}
			})
		}
	}
}
