package link_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/auth"
	"github.com/anteroom/anteroom/proto/link"
)

func gossipKey(t testing.TB, b byte) auth.Policy {
	t.Helper()
	p, err := auth.GossipKey(bytes.Repeat([]byte{b}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestKeysAreExchangedWhenALinkComesUp(t *testing.T) {
	bubble(t, func(t *testing.T, w *wires) {
		a, b := w.start(t, member("a", 1), nil), w.start(t, member("b", 1), nil)
		a.ring, b.ring = []byte("x"), []byte("y")
		meet(a, b)
		soon()
		if a.keys() != "xy" || b.keys() != "xy" {
			t.Errorf("a has %q, b %q, want xy", a.keys(), b.keys())
		}
		a.mu.Lock()
		a.ring = []byte("xyz")
		a.mu.Unlock()
		a.OfferKeys()
		soon()
		if b.keys() != "xyz" {
			t.Errorf("b has %q after OfferKeys, want xyz", b.keys())
		}
	})
}

func TestKeysThatMakeNoSenseDoNotEndTheLink(t *testing.T) {
	for name, ring := range map[string][]byte{"bad": []byte("bad"), "too large": bytes.Repeat([]byte("x"), 65<<10)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *wires) {
				a, b := w.start(t, member("a", 1), nil), w.start(t, member("b", 1), nil)
				a.ring, b.ring = ring, []byte("y")
				a.SetMembers(map[eviction.Member]string{b.self: b.address})
				soon()
				a.urge(b, "shop")
				soon()
				if len(b.rooms()) != 1 || b.keys() != "y" {
					t.Errorf("b got %d messages and has keys %q; want one, and y", len(b.rooms()), b.keys())
				}
			})
		})
	}
}

func TestNodesWithTheSameGossipKeyAreLinked(t *testing.T) {
	with := func(c *link.Config) { c.Policy = gossipKey(t, 1) }
	pair(t, with, func(t *testing.T, _ *wires, a, b *end) {
		b.answers = func(context.Context, ticket.Request) (ticket.Answer, error) { return ticket.Answer{Position: 5}, nil }
		a.urge(b, "shop")
		got, err := a.Forward(t.Context(), b.self, ticket.Request{})
		soon()
		if len(b.rooms()) != 1 || got.Position != 5 || err != nil {
			t.Errorf("b got %d messages, Forward = %+v, %v", len(b.rooms()), got, err)
		}
	})
}

func TestNodesThatTrustOtherwiseExchangeNothing(t *testing.T) {
	for name, policies := range map[string][2]auth.Policy{
		"other keys":         {gossipKey(t, 1), gossipKey(t, 2)},
		"key and none":       {gossipKey(t, 1), {}},
		"none and key":       {{}, gossipKey(t, 1)},
		"key and mutual TLS": {gossipKey(t, 1), authority(t).policy(t)},
		"two authorities":    {authority(t).policy(t), authority(t).policy(t)},
		"none and none":      {},
		"none and TLS":       {{}, authority(t).policy(t)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *wires) {
				a := w.start(t, member("a", 1), func(c *link.Config) { c.Policy = policies[0] })
				b := w.start(t, member("b", 1), func(c *link.Config) { c.Policy = policies[1] })
				a.ring, b.ring = []byte("x"), []byte("y")
				meet(a, b)
				time.Sleep(5 * time.Second)
				a.urge(b, "shop")
				b.urge(a, "shop")
				soon()
				if a.asked+b.asked+len(a.rooms())+len(b.rooms()) > 0 || a.keys() != "x" || b.keys() != "y" {
					t.Errorf("a got %d messages and has keys %q, b %d and %q", len(a.rooms()), a.keys(), len(b.rooms()), b.keys())
				}
				if a.about(t, b.self).Up || b.about(t, a.self).Up {
					t.Error("a link is up")
				}
			})
		})
	}
}

func TestOneAuthorityMakesPeers(t *testing.T) {
	ca := authority(t)
	bubble(t, func(t *testing.T, w *wires) {
		with := func(c *link.Config) { c.Policy = ca.policy(t) }
		a, b := w.start(t, member("a", 1), with), w.start(t, member("b", 1), with)
		a.ring = []byte("x")
		meet(a, b)
		soon()
		a.urge(b, "shop")
		soon()
		if len(b.rooms()) != 1 || b.keys() != "x" {
			t.Errorf("b got %d messages and has keys %q", len(b.rooms()), b.keys())
		}
	})
}

// ownKey shows a certificate of its own, and takes any.
func ownKey(t *testing.T) credentials.TransportCredentials {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}})
}

// A caller who knows all that a member says, but does not prove to be one, gets no
// keys and brings none.
func TestKeysGoToMembersOnly(t *testing.T) {
	for what, with := range map[string]credentials.TransportCredentials{
		"nothing":                   insecure.NewCredentials(),
		"TLS without a certificate": credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}),
		"another key":               ownKey(t),
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *wires) {
				greet := func(c credentials.TransportCredentials, offer string) (got string) {
					b := w.start(t, member("b", 2), func(c *link.Config) { c.Policy = gossipKey(t, 1) })
					b.ring = []byte("y")
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					s, err := w.rawWith(t, b, c).Link(ctx)
					if err != nil {
						return b.keys()
					}
					h := hello(&peerv1.Member{Name: "a", Boot: 1}, &peerv1.Member{Name: "b", Boot: 2})
					h.GetHello().Keys = &peerv1.Keys{Ring: []byte(offer)}
					_ = s.Send(h) // Recv says why it fails
					r, err := s.Recv()
					if err == nil {
						return string(r.GetWelcome().GetRing()) + " and " + b.keys()
					}
					return b.keys()
				}
				if got := greet(gossipKey(t, 1).Client(), "z"); got != "yz and yz" {
					t.Errorf("a member gets and brings %q, want yz and yz", got)
				}
				if got := greet(with, "z"); got != "y" {
					t.Errorf("who proves itself by %s gets and brings %q, want nothing of y", what, got)
				}
			})
		})
	}
}

func TestCallerWhoProvesNothingIsNoPeer(t *testing.T) {
	bubble(t, func(t *testing.T, w *wires) {
		b := w.start(t, member("b", 2), func(c *link.Config) { c.Policy = gossipKey(t, 1) })
		c := w.rawWith(t, b, insecure.NewCredentials()) // no TLS, as programs come
		err := say(t, c, hello(&peerv1.Member{Name: "x"}, &peerv1.Member{Name: "b", Boot: 2}), frame(1, "p"))
		if status.Code(err) != codes.Unimplemented || len(b.rooms()) != 0 {
			t.Errorf("Link = %v and %d messages, want Unimplemented and none", err, len(b.rooms()))
		}
		q := &peerv1.ForwardRequest{To: &peerv1.Member{Name: "b", Boot: 2}, Request: &peerv1.Request{Op: peerv1.Op_OP_JOIN}}
		if _, err := c.Forward(t.Context(), q); status.Code(err) != codes.Unimplemented {
			t.Errorf("Forward = %v, want Unimplemented", err)
		}
	})
}
