package link_test

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/anteroom/anteroom/eviction"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
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
			if a.urge(b, want[i]); i%500 == 0 {
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
	pair(t, nil, func(t *testing.T, _ *wires, a, b *end) {
		for range 1000 {
			a.urge(b, "shop")
		}
		soon()
		if n := b.frames.Load(); n > 3 || len(b.rooms()) != 1000 {
			t.Errorf("%d messages came in %d frames; want 1000 in 3 at most: the first, what queued meanwhile, the rest", len(b.rooms()), n)
		}
	})
}

func TestLargeMessagesGoInPartsAndInOrder(t *testing.T) {
	pair(t, nil, func(t *testing.T, _ *wires, a, b *end) {
		large := &eviction.Reply{Rooms: []eviction.RoomReply{{Nodes: []eviction.RoomNode{{Digest: make([]qpid.Weight, 50_000)}}}}}
		send := func(body eviction.Body) { a.Send(eviction.Message{From: a.self, To: b.self, Body: body}) }
		send(&eviction.Urgent{Room: "before"})
		send(large)
		send(&eviction.Urgent{Room: "after"})
		soon()
		var kinds []string
		for _, m := range b.messages() {
			kinds = append(kinds, m.Body.Kind())
		}
		if diff := cmp.Diff([]string{"urgent", "reply", "urgent"}, kinds); diff != "" {
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

// raw opens a stream to e by hand.
func (w *wires) raw(t *testing.T, e *end) peerv1.PeerClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+e.address, grpc.WithContextDialer(w.dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return peerv1.NewPeerClient(conn)
}

// say sends all of them and returns how the stream ended.
func say(t *testing.T, c peerv1.PeerClient, all ...*peerv1.LinkRequest) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	s, err := c.Link(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		_ = s.Send(r) // Recv says why it fails
	}
	for {
		if _, err := s.Recv(); err != nil {
			return err
		}
	}
}

func hello(from, to *peerv1.Member) *peerv1.LinkRequest {
	return &peerv1.LinkRequest{Kind: &peerv1.LinkRequest_Hello{Hello: &peerv1.Hello{From: from, To: to}}}
}

func frame(seq uint64, rooms ...string) *peerv1.LinkRequest {
	f := &peerv1.Frame{Seq: seq}
	for _, r := range rooms {
		f.Bodies = append(f.Bodies, &peerv1.Body{Kind: &peerv1.Body_Urgent{Urgent: &peerv1.Urgent{Room: r}}})
	}
	return &peerv1.LinkRequest{Kind: &peerv1.LinkRequest_Frame{Frame: f}}
}

func part(seq uint64, data string) *peerv1.LinkRequest {
	return &peerv1.LinkRequest{Kind: &peerv1.LinkRequest_Part{Part: &peerv1.Part{Seq: seq, Data: []byte(data)}}}
}

func TestStreamThatBreaksTheRulesIsEnded(t *testing.T) {
	x, b := &peerv1.Member{Name: "x", Boot: 9}, &peerv1.Member{Name: "b", Boot: 2}
	for name, test := range map[string]struct {
		say  []*peerv1.LinkRequest
		want codes.Code
		got  []string
	}{
		"gap":             {[]*peerv1.LinkRequest{hello(x, b), frame(1, "p", "q"), frame(4, "r")}, codes.DataLoss, []string{"p", "q"}},
		"repetition":      {[]*peerv1.LinkRequest{hello(x, b), frame(1, "p", "q"), frame(2, "q")}, codes.DataLoss, []string{"p", "q"}},
		"not from 1":      {[]*peerv1.LinkRequest{hello(x, b), frame(0, "p")}, codes.DataLoss, nil},
		"part, then none": {[]*peerv1.LinkRequest{hello(x, b), part(1, "half"), frame(1, "p")}, codes.DataLoss, nil},
		"part of another": {[]*peerv1.LinkRequest{hello(x, b), part(1, "half"), part(2, "half")}, codes.DataLoss, nil},
		"endless parts":   {[]*peerv1.LinkRequest{hello(x, b), part(1, strings.Repeat("x", 2000))}, codes.ResourceExhausted, nil},
		"no hello":        {[]*peerv1.LinkRequest{frame(1, "p")}, codes.InvalidArgument, nil},
		"from nobody":     {[]*peerv1.LinkRequest{hello(nil, b)}, codes.InvalidArgument, nil},
		"from itself":     {[]*peerv1.LinkRequest{hello(b, b)}, codes.InvalidArgument, nil},
		"to another":      {[]*peerv1.LinkRequest{hello(x, x), frame(1, "p")}, codes.FailedPrecondition, nil},
		"to another life": {[]*peerv1.LinkRequest{hello(x, &peerv1.Member{Name: "b", Boot: 1}), frame(1, "p")}, codes.FailedPrecondition, nil},
		"hello twice":     {[]*peerv1.LinkRequest{hello(x, b), hello(x, b)}, codes.Unimplemented, nil},
		"good, then none": {[]*peerv1.LinkRequest{hello(x, b), frame(1, "p")}, codes.DeadlineExceeded, []string{"p"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *wires) {
				e := w.start(t, member("b", 2), func(c *link.Config) { c.MessageMax = 1000 })
				if err := say(t, w.raw(t, e), test.say...); status.Code(err) != test.want {
					t.Errorf("the stream ended with %v, want %v", err, test.want)
				}
				if diff := cmp.Diff(test.got, e.rooms()); diff != "" {
					t.Errorf("delivered (-want +got):\n%s", diff)
				}
				synctest.Wait()
				if len(e.Stats()) != 0 {
					t.Errorf("it is still remembered: %+v", e.Stats())
				}
			})
		})
	}
}

func TestMessageWithoutSenseIsLeftOut(t *testing.T) {
	bubble(t, func(t *testing.T, w *wires) {
		e := w.start(t, member("b", 2), nil)
		bad := frame(1, "before", strings.Repeat("x", 5000), "after")
		bad.GetFrame().Bodies = append(bad.GetFrame().Bodies, &peerv1.Body{}) // of a kind of the future
		c := w.raw(t, e)
		s, err := c.Link(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*peerv1.LinkRequest{hello(&peerv1.Member{Name: "x"}, &peerv1.Member{Name: "b", Boot: 2}), bad, frame(5, "next")} {
			if err := s.Send(r); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"before", "after", "next"}, e.rooms()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		if n := e.about(t, member("x", 0)).Malformed; n != 2 {
			t.Errorf("%d were counted as malformed, want 2", n)
		}
	})
}

func TestLaterStreamOfAMemberReplacesTheEarlier(t *testing.T) {
	bubble(t, func(t *testing.T, w *wires) {
		e := w.start(t, member("b", 2), func(c *link.Config) { c.StreamsMax = 1 })
		c := w.raw(t, e)
		open := func(name string) peerv1.Peer_LinkClient {
			s, err := c.Link(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Send(hello(&peerv1.Member{Name: name, Boot: 1}, &peerv1.Member{Name: "b", Boot: 2})); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return s
		}
		first, second, third := open("x"), open("x"), open("x")
		for i, s := range []peerv1.Peer_LinkClient{first, second} {
			_, _ = s.Recv() // the welcome
			if _, err := s.Recv(); status.Code(err) != codes.Aborted {
				t.Errorf("stream %d ended with %v, want Aborted", i, err)
			}
		}
		if err := third.Send(frame(1, "third")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"third"}, e.rooms()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		if _, err := open("y").Recv(); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("one stream too many ended with %v, want ResourceExhausted", err)
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
