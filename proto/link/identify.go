package link

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/anteroom/anteroom/eviction"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/wire"
)

// Identify asks who has the peers' service at address: which life of which node,
// and whether it has its name to itself. Both ends prove themselves, on a
// connection of its own, so the answer can be neither made up nor repeated.
// The other hears who asks: this life of this node, which gossips at an address.
func (l *Links) Identify(ctx context.Context, address string, self eviction.Peer, gossip string) (who eviction.Peer, settled bool, err error) {
	conn, err := l.dial(address, func() {})
	if err != nil {
		return eviction.Peer{}, false, err
	}
	defer conn.Close() //nolint:errcheck // only ever says that it is closed
	r, err := peerv1.NewPeerClient(conn).Identify(ctx, &peerv1.IdentifyRequest{From: wire.FromPeer(self), Gossip: gossip})
	if err != nil {
		return eviction.Peer{}, false, plain(err)
	}
	if who, err = wire.ToPeer(r.GetPeer()); err != nil {
		return eviction.Peer{}, false, fmt.Errorf("who is at %s: %w", address, err)
	}
	return who, r.GetSettled(), nil
}

// Identify says who this node is.
func (s service) Identify(ctx context.Context, r *peerv1.IdentifyRequest) (*peerv1.IdentifyResponse, error) {
	if err := s.links.check(ctx); err != nil {
		return nil, err
	}
	from, err := wire.ToPeer(r.GetFrom())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	self, settled := s.links.c.Peer.Identify(from, r.GetGossip())
	return &peerv1.IdentifyResponse{Peer: wire.FromPeer(self), Settled: settled}, nil
}
