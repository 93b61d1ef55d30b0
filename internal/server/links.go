package server

import (
	"context"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/proto/auth"
	"github.com/anteroom/anteroom/proto/link"
	"github.com/anteroom/anteroom/qpid"
)

// links reaches the other nodes for the loop, which is made before them.
type links struct{ s *Server }

func (l links) Send(m eviction.Message) { l.s.links.Send(m) }

func (l links) Forward(ctx context.Context, to eviction.Member, q ticket.Request) (ticket.Answer, error) {
	return l.s.links.Forward(ctx, to, q)
}

func (l links) Hint(to eviction.Member, room string, id qpid.ItemID) {
	l.s.links.Hint(to, room, id)
}

// peer is this node as the others reach it.
type peer struct{ s *Server }

var _ link.Peer = peer{}

func (p peer) Deliver(m eviction.Message) { p.s.loop.Deliver(m) }

func (p peer) Local(ctx context.Context, q ticket.Request) (ticket.Answer, error) {
	return p.s.loop.Local(ctx, q)
}

func (p peer) Relay(ctx context.Context, q ticket.Request) (ticket.Answer, error) {
	return p.s.loop.Relay(ctx, q)
}

func (p peer) Hint(room string, id qpid.ItemID) { p.s.loop.Hint(room, id) }

func (p peer) Keys(offered []byte) ([]byte, error) { return p.s.keys.exchange(offered) }

func (p peer) Settings() []byte { return p.s.settings.Settings() }

func (p peer) Agree(from eviction.Member, settings []byte) error {
	return p.s.settings.Agree(from, settings)
}

func (p peer) Identify(from eviction.Peer, gossip string) (eviction.Peer, bool) {
	p.s.members.Asked(from, gossip)
	return p.s.self, p.s.members.Settled()
}

// ask finds out who is at the address of a peer port.
func (s *Server) ask(ctx context.Context, address, gossip string) (eviction.Peer, bool, error) {
	return s.links.Identify(ctx, address, s.self, gossip)
}

// alone reports whether the node is a cluster of one: without a gossip key it
// could not tell its peers from anybody else, so it has none.
func (s *Server) alone() bool { return len(s.c.Security.GossipKey) == 0 }

// policy is how nodes of the cluster know each other.
func (s *Server) policy() (auth.Policy, error) {
	sec := &s.c.Security
	switch {
	case s.alone():
		return auth.Policy{}, nil
	case sec.TLS.Peer.CA != "":
		return auth.Files(string(sec.TLS.Peer.CA), string(sec.TLS.Peer.Cert), string(sec.TLS.Peer.Key))
	}
	return auth.GossipKey(sec.GossipKeys()...)
}
