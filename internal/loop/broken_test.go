package loop_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// A room whose books are wrong stops at its node, which says so once, with the state;
// the process and its other rooms go on.
func TestARoomThatIsBrokenStopsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		w, l := start(t, 1, func(c *loop.Config) {
			c.Node.Rooms = append(c.Node.Rooms, eviction.Room{Name: "news", Target: 2, Session: time.Minute})
			c.Logger = slog.New(slog.NewTextHandler(&lines, nil))
		})
		time.Sleep(2 * time.Second)
		pass := join(t, l[0], 1).Pass
		if !l[0].Spoil("shop") {
			t.Fatal("nobody is on the site")
		}
		time.Sleep(time.Second) // a wave comes by
		ask := func(q ticket.Request) (ticket.Answer, error) { return l[0].Do(t.Context(), q) }
		for i := range 5 {
			if a, err := ask(ticket.Request{Op: ticket.Join, Room: "shop", ID: qpid.ItemID{2, byte(i)}}); !errors.Is(err, ticket.ErrUnavailable) {
				t.Errorf("a newcomer to the broken room: %v, %v; want %v", a.State, err, ticket.ErrUnavailable)
			}
			time.Sleep(5 * time.Second)
		}
		if a, err := ask(ticket.Request{Op: ticket.Refresh, Room: "shop", Pass: pass}); err != nil || a.Pass != pass {
			t.Errorf("the pass that is out: %+v, %v; want it as it was", a.Pass, err)
		}
		if a, err := ask(ticket.Request{Op: ticket.Join, Room: "news", ID: qpid.ItemID{3}}); err != nil || a.State != ticket.Admitted {
			t.Errorf("a newcomer to the other room: %v, %v; want to be let in", a.State, err)
		}
		for _, r := range l[0].Snapshot().Rooms {
			if broken := r.Broken != ""; broken != (r.Room.Name == "shop") || r.MayAdmit == broken {
				t.Errorf("room %s: broken %q, may admit %t", r.Room.Name, r.Broken, r.MayAdmit)
			}
		}
		w.stop()
		told := 0
		for line := range strings.Lines(lines.String()) {
			if strings.Contains(line, "level=ERROR") {
				told++
				if !strings.Contains(line, "room=shop") || !strings.Contains(line, "owned 2, used 0") || !strings.Contains(line, "1 on the site") {
					t.Errorf("the log does not name the room and its state: %s", line)
				}
			}
		}
		if told != 1 {
			t.Errorf("told %d times, want once", told)
		}
	})
}
