package node_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// Two clusters go through the same, and only in one of them check-ins are
// glances where they can be. Nobody can tell which: not by an answer, not by the
// state of any node, not by what is sent. After a glance there is nothing to do.
func TestGlanceIsACheckInAfterWhichNothingIsToBeDone(t *testing.T) {
	glances, others := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		method := rapid.SampledFrom([]eviction.Method{eviction.FIFO, eviction.Random}).Draw(t, "method")
		algorithm := eviction.ByCut
		if method == eviction.FIFO && rapid.Bool().Draw(t, "qpid") {
			algorithm = eviction.ByQPID
		}
		room := eviction.Room{
			Name: "shop", Target: 2, Session: 5 * time.Second, Method: method, Algorithm: algorithm, QueueAll: true,
			Refresh: time.Second, TicketTTL: 20 * time.Second, ClaimWindow: 2 * time.Second,
		}
		twins := [2]*cluster{newTwin(t, room), newTwin(t, room)}
		var tickets []node.Ticket
		for range rapid.IntRange(10, 80).Draw(t, "steps") {
			at := rapid.IntRange(0, 2).Draw(t, "node")
			step := rapid.IntRange(0, 19).Draw(t, "step")
			length := time.Duration(rapid.Int64Range(1e6, 3e9).Draw(t, "for"))
			var who int
			if len(tickets) > 0 {
				who = rapid.IntRange(0, len(tickets)-1).Draw(t, "who")
			} else if step > 5 && step < 17 {
				step = 0
			}
			var answers [2]node.Answer
			var errs [2]error
			for i, c := range twins {
				m := c.node[at]
				now := c.at(m)
				switch {
				case step < 4:
					answers[i], errs[i] = m.Join(now, "shop", qpid.ItemID{byte(len(tickets)), 1}, false)
				case step < 6:
					c.run(length)
				case step < 14:
					ok := false
					if i == 1 {
						if answers[i], ok = m.Glance(now, tickets[who]); ok {
							glances++
							if r := m.Ready(now); r.Save != nil || len(r.Messages)+len(r.Log)+len(r.Taken) > 0 {
								t.Fatalf("left to do after a glance: %+v", r)
							}
						}
					}
					if !ok {
						others++
						answers[i], errs[i] = m.CheckIn(now, tickets[who])
					}
				case step < 16:
					answers[i], errs[i] = m.Leave(now, tickets[who])
				case step < 17:
					_, errs[i] = m.Abandon(now, tickets[who])
				case step < 18:
					c.split([]qpid.NodeID{"a0", "b0"}, []qpid.NodeID{"c0"})
				case step < 19:
					c.heal()
				default:
					m.wrong += length.Microseconds() / 4
				}
				c.deliver()
			}
			if answers[0] != answers[1] || fmt.Sprint(errs[0]) != fmt.Sprint(errs[1]) {
				t.Fatalf("step %d: check-in %+v, %v; glance %+v, %v", step, answers[0], errs[0], answers[1], errs[1])
			}
			if a := answers[0]; errs[0] == nil && a.Ticket != (node.Ticket{}) {
				tickets = append(tickets, a.Ticket)
			}
			same(t, twins)
		}
	})
	if glances == 0 || others == 0 {
		t.Errorf("%d glances and %d other check-ins: nothing was compared", glances, others)
	}
}

func newTwin(t *rapid.T, room eviction.Room) *cluster {
	c := &cluster{t: property{t: t}, step: 50_000, sent: map[string]int{}, lenient: true}
	for _, name := range []string{"a0", "b0", "c0"} {
		c.add(node.Config{Expect: 3, Joins: true, Rooms: []eviction.Room{room}}, name)
	}
	c.gossip()
	c.run(2 * time.Second)
	return c
}

// property is as much of a testing.TB as a cluster needs.
type property struct {
	testing.TB
	t *rapid.T
}

func (p property) Helper()                           {}
func (p property) Logf(format string, args ...any)   { p.t.Logf(format, args...) }
func (p property) Errorf(format string, args ...any) { p.t.Errorf(format, args...) }
func (p property) Fatalf(format string, args ...any) { p.t.Fatalf(format, args...) }
func (p property) Fatal(args ...any)                 { p.t.Fatal(args...) }

func same(t *rapid.T, twins [2]*cluster) {
	t.Helper()
	for i, m := range twins[0].node {
		o := twins[1].node[i]
		if d := cmp.Diff(m.Status(), o.Status()); d != "" {
			t.Fatalf("node %d differs:\n%s", i, d)
		}
		a, _ := m.Room("shop", twins[0].at(m))
		b, _ := o.Room("shop", twins[1].at(o))
		if d := cmp.Diff(a, b); d != "" {
			t.Fatalf("the room at node %d differs:\n%s", i, d)
		}
	}
	if d := cmp.Diff(twins[0].sent, twins[1].sent); d != "" {
		t.Fatalf("messages sent differ:\n%s", d)
	}
	if d := cmp.Diff(twins[0].log, twins[1].log); d != "" {
		t.Fatalf("what happened differs:\n%s", d)
	}
}
