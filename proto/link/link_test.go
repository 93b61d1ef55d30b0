package link_test

import (
	"context"
	"fmt"
	"net"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/proto/link"
	"github.com/anteroom/anteroom/qpid"
)

// bubble runs f where time is virtual.
func bubble(t *testing.T, f func(*testing.T, *wires)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newWires()) })
}

// pair runs f with two nodes that are linked.
func pair(t *testing.T, change func(*link.Config), f func(t *testing.T, w *wires, a, b *end)) {
	t.Helper()
	bubble(t, func(t *testing.T, w *wires) {
		a, b := w.start(t, member("a", 1), change), w.start(t, member("b", 2), change)
		meet(a, b)
		soon()
		if !a.about(t, b.self).Up || !a.about(t, b.self).Receiving {
			t.Fatalf("no link: %+v", a.Stats())
		}
		f(t, w, a, b)
	})
}

func TestMessagesArriveInOrder(t *testing.T) {
	pair(t, nil, func(t *testing.T, _ *wires, a, b *end) {
		var want []string
		for i := range 3000 {
			want = append(want, strconv.Itoa(i))
			a.urge(b, want[i])
			if i%500 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		soon()
		if diff := cmp.Diff(want, b.rooms()); diff != "" {
			t.Errorf("arrived otherwise (-sent +received):\n%s", diff)
		}
		if m := b.messages()[0]; m.From != a.self || m.To != b.self {
			t.Errorf("message from %v to %v, want from %v to %v", m.From, m.To, a.self, b.self)
		}
		sent, received := a.about(t, b.self).Sent, b.about(t, a.self).Received
		if sent.Messages != 3000 || received.Messages != 3000 || sent.Bytes == 0 || received.Bytes < sent.Bytes {
			t.Errorf("counted %+v sent, %+v received", sent, received)
		}
	})
}

func TestWhatWaitsGoesInOneFrame(t *testing.T) {
	bubble(t, func(t *testing.T, w *wires) {
		a, b := w.start(t, member("a", 1), nil), w.start(t, member("b", 2), nil)
		b.stuck = make(chan struct{})
		meet(a, b)
		soon()
		a.urge(b, "first") // b sticks to it, so that a stops in the middle of the large one
		a.Send(eviction.Message{From: a.self, To: b.self, Body: &eviction.Commit{RestMin: make([]qpid.Weight, 200_000)}})
		soon()
		for range 1000 {
			a.urge(b, "shop")
		}
		close(b.stuck)
		soon()
		if n := b.frames.Load(); n != 2 || len(b.messages()) != 1002 {
			t.Errorf("%d messages came, in %d frames beside the large one; want 1002, in 2: the first, and all that waited", len(b.messages()), n)
		}
	})
}

func TestLargeMessagesGoInPartsAndInOrder(t *testing.T) {
	pair(t, nil, func(t *testing.T, _ *wires, a, b *end) {
		large := &eviction.Commit{RestMin: make([]qpid.Weight, 50_000)}
		send := func(body eviction.Body) { a.Send(eviction.Message{From: a.self, To: b.self, Body: body}) }
		send(&eviction.Urgent{Room: "before"})
		send(large)
		send(&eviction.Urgent{Room: "after"})
		soon()
		var kinds []string
		for _, m := range b.messages() {
			kinds = append(kinds, m.Body.Kind())
		}
		if diff := cmp.Diff([]string{"urgent", "commit", "urgent"}, kinds); diff != "" {
			t.Fatalf("arrived otherwise (-want +got):\n%s", diff)
		}
		if !reflect.DeepEqual(b.messages()[1].Body, large) { // cmp takes half a minute
			t.Error("the large one was changed on the way")
		}
	})
}

func TestMessageBeyondTheBoundIsDropped(t *testing.T) {
	pair(t, func(c *link.Config) { c.MessageMax = 1000 }, func(t *testing.T, _ *wires, a, b *end) {
		a.Send(eviction.Message{From: a.self, To: b.self, Body: &eviction.Commit{RestMin: make([]qpid.Weight, 100)}})
		a.urge(b, "shop")
		soon()
		if diff := cmp.Diff([]string{"shop"}, b.rooms()); diff != "" || a.about(t, b.self).Dropped != 1 {
			t.Errorf("dropped %d (-want +got):\n%s", a.about(t, b.self).Dropped, diff)
		}
	})
}

func TestSlowReceiverBlocksNobodyAndItsQueueIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, w *wires) {
		few := func(c *link.Config) { c.QueueMax = 100 }
		a, b, c := w.start(t, member("a", 1), few), w.start(t, member("b", 1), few), w.start(t, member("c", 1), few)
		b.stuck = make(chan struct{})
		meet(a, b, c)
		soon()
		long := strings.Repeat("x", 500)
		for i := range 2000 {
			a.urge(b, long)
			if i%20 == 0 {
				a.urge(c, "shop")
				time.Sleep(time.Millisecond)
			}
		}
		if n := len(c.rooms()); n != 100 {
			t.Errorf("c got %d messages while b was stuck, want 100", n)
		}
		if s := a.about(t, b.self); s.Dropped == 0 || s.Queued > 100 {
			t.Errorf("dropped %d, %d wait; want some dropped and at most 100 waiting", s.Dropped, s.Queued)
		}
		time.Sleep(4 * time.Second)
		if a.about(t, b.self).Breaks == 0 {
			t.Error("the link to a node that takes nothing in was not given up")
		}
		close(b.stuck)
		time.Sleep(3 * time.Second)
		before := len(b.rooms())
		a.urge(b, "again")
		soon()
		if got := b.rooms(); len(got) != before+1 || got[before] != "again" {
			t.Errorf("after the receiver went on, %d new messages came, want 1", len(got)-before)
		}
	})
}

func TestMessagesForNobodyAreDropped(t *testing.T) {
	bubble(t, func(t *testing.T, w *wires) {
		a := w.start(t, member("a", 1), nil)
		b := &end{self: member("b", 1), address: "b"}
		a.urge(b, "not a member")
		a.SetMembers(map[eviction.Member]string{b.self: b.address, a.self: a.address})
		soon()
		a.urge(b, "nobody listens")
		if s := a.about(t, b.self); s.Dropped != 1 || s.Up || s.Breaks == 0 {
			t.Errorf("%+v, want one dropped and no link", s)
		}
	})
}

func TestLinkComesBackAndWhatWasLostStaysLost(t *testing.T) {
	pair(t, nil, func(t *testing.T, w *wires, a, b *end) {
		a.urge(b, "before")
		soon()
		b.stop()
		a.urge(b, "meanwhile")
		time.Sleep(10 * time.Second)
		again := w.start(t, b.self, nil) // the same life, as after a broken switch
		meet(a, again)
		time.Sleep(2 * time.Second)
		a.urge(again, "after")
		again.urge(a, "back")
		soon()
		if diff := cmp.Diff([]string{"after"}, again.rooms()); diff != "" {
			t.Errorf("b got (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"back"}, a.rooms()); diff != "" {
			t.Errorf("a got (-want +got):\n%s", diff)
		}
	})
}

func TestRestartUnderTheSameNameIsAnotherMember(t *testing.T) {
	pair(t, nil, func(t *testing.T, w *wires, a, b *end) {
		old := &end{self: b.self}
		b.stop()
		b = w.start(t, member("b", 3), nil)
		b.SetMembers(map[eviction.Member]string{a.self: a.address})
		time.Sleep(2 * time.Second)
		a.urge(old, "for the old life")
		if a.about(t, old.self).Up {
			t.Error("the new life took the old one's messages")
		}
		if !a.about(t, b.self).Receiving {
			t.Error("the new life is not heard before gossip tells of it")
		}
		meet(a, b)
		soon()
		a.urge(b, "for the new life")
		soon()
		if diff := cmp.Diff([]string{"for the new life"}, b.rooms()); diff != "" {
			t.Errorf("the new life got (-want +got):\n%s", diff)
		}
		if n := len(a.Stats()); n != 1 {
			t.Errorf("a remembers %d members, want the new life only: %+v", n, a.Stats())
		}
		a.stop()
		if log := a.log.String(); !strings.Contains(log, "this is b.3, not b.2") {
			t.Errorf("the log does not say why there was no link:\n%s", log)
		}
	})
}

func TestDeadPeerIsNoticedWithinSeconds(t *testing.T) {
	pair(t, nil, func(t *testing.T, w *wires, a, b *end) {
		time.Sleep(2 * time.Second)
		w.frozen.Store(true)
		time.Sleep(3500 * time.Millisecond)
		if a.about(t, b.self).Up {
			t.Error("after 3.5 s of silence the sender still believes in the link")
		}
		time.Sleep(2500 * time.Millisecond)
		if b.about(t, a.self).Receiving {
			t.Error("after 6 s of silence the receiver still believes in the stream")
		}
		w.frozen.Store(false)
		time.Sleep(5 * time.Second)
		a.urge(b, "shop")
		soon()
		if diff := cmp.Diff([]string{"shop"}, b.rooms()); diff != "" {
			t.Errorf("after the silence (-want +got):\n%s", diff)
		}
	})
}

func TestQuietLinkStaysUp(t *testing.T) {
	pair(t, nil, func(t *testing.T, _ *wires, a, b *end) {
		time.Sleep(time.Hour)
		if s := a.about(t, b.self); !s.Up || s.Breaks != 0 || s.RTT < 0 || s.Offset != 0 {
			t.Errorf("after an hour of nothing: %+v", s)
		}
	})
}

func TestMemberThatGoesIsLetGo(t *testing.T) {
	pair(t, nil, func(t *testing.T, _ *wires, a, b *end) {
		meet(a)
		meet(b)
		soon()
		if len(a.Stats()) != 0 || len(b.Stats()) != 0 {
			t.Errorf("links remain: %+v, %+v", a.Stats(), b.Stats())
		}
	})
}

func TestStatsAreSortedByName(t *testing.T) {
	bubble(t, func(t *testing.T, w *wires) {
		a := w.start(t, member("a", 1), nil)
		members := map[eviction.Member]string{}
		for i := range 9 {
			members[member(fmt.Sprintf("n%d", i), 1)] = "nowhere"
		}
		a.SetMembers(members)
		soon()
		for i, s := range a.Stats() {
			if want := fmt.Sprintf("n%d", i); string(s.Member.Name) != want {
				t.Errorf("Stats()[%d] is of %v, want %s", i, s.Member, want)
			}
		}
	})
}

// TestWhoOpensALinkIsReachedAtOnce: a try to reach a member that hangs since before
// its network came back does not keep the link down.
func TestWhoOpensALinkIsReachedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *wires) {
		var tries atomic.Int32
		a := w.start(t, member("a", 1), func(c *link.Config) {
			c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
				if tries.Add(1) == 1 {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return w.dial(ctx, address)
			}
		})
		b := w.start(t, member("b", 1), nil)
		a.SetMembers(map[eviction.Member]string{b.self: b.address})
		soon()
		if s := a.about(t, b.self); s.Up || tries.Load() != 1 {
			t.Fatalf("%d tries, %+v; want one that hangs", tries.Load(), s)
		}
		meet(a, b)
		soon()
		if s := a.about(t, b.self); !s.Up || !s.Receiving {
			t.Errorf("b has opened its link, and after 100 ms a's is not up: %+v", s)
		}
	})
}
