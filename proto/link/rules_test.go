package link_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/link"
)

// raw opens a stream to e by hand, as a member.
func (w *wires) raw(t *testing.T, e *end) peerv1.PeerClient {
	t.Helper()
	return w.rawWith(t, e, gossipKey(t, 1).Client())
}

func (w *wires) rawWith(t *testing.T, e *end, c credentials.TransportCredentials) peerv1.PeerClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+e.address, grpc.WithContextDialer(w.dial), grpc.WithTransportCredentials(c))
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
