package link_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/anteroom/anteroom/eviction"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/link"
)

// A node learns who is at an address, and the other who asks. Nobody who has not
// proved to be a member answers, or is answered.
func TestIdentifyTellsWhoIsThere(t *testing.T) {
	life := func(name string, boot uint64) eviction.Peer {
		return eviction.Peer{Member: member(name, boot), Start: int64(boot)}
	}
	bubble(t, func(t *testing.T, w *wires) {
		a, b := w.start(t, member("a", 1), nil), w.start(t, member("b", 2), nil)
		other := w.start(t, member("c", 3), func(c *link.Config) { c.Policy = gossipKey(t, 2) })
		b.peer, b.settled, other.peer = life("b", 2), true, life("c", 3)
		who, settled, err := a.Links.Identify(t.Context(), "b", life("a", 1), "10.0.0.1:7946")
		if who != b.peer || !settled || err != nil || b.from != life("a", 1) || b.gossip != "10.0.0.1:7946" {
			t.Errorf("Identify = %v, %v, %v; b was asked by %v at %q", who, settled, err, b.from, b.gossip)
		}
		for _, address := range []string{"c", "nowhere"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if who, _, err := a.Links.Identify(ctx, address, life("a", 1), ""); err == nil || who != (eviction.Peer{}) || other.from != (eviction.Peer{}) {
				t.Errorf("%s: Identify = %v, %v", address, who, err)
			}
			cancel()
		}
		b.peer = eviction.Peer{}
		if _, _, err := a.Links.Identify(t.Context(), "b", life("a", 1), ""); err == nil {
			t.Error("nobody is a node")
		}
		c := w.rawWith(t, b, insecure.NewCredentials())
		b.from = eviction.Peer{}
		if r, err := c.Identify(t.Context(), &peerv1.IdentifyRequest{}); err == nil || b.from != (eviction.Peer{}) {
			t.Errorf("a stranger was answered %v", r)
		}
		if _, err := w.raw(t, b).Identify(t.Context(), &peerv1.IdentifyRequest{}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("a member that does not say who it is: %v", err)
		}
	})
}
