// Package auth says who counts as a peer. A cluster uses one of two ways, and a
// node that has neither has no peers:
//
//   - MutualTLS: whoever has a certificate of the cluster's own authority.
//   - GossipKey: whoever has a key that gossip is encrypted with. Each end
//     derives a certificate from the first of its keys, knows those of all of
//     them, and speaks TLS 1.3; the handshake proves on each side that the other
//     has the key. It is fresh for each connection, so nothing can be replayed,
//     and what follows is encrypted and cannot be changed on the way.
//
// Whoever speaks TLS and does not prove to be a peer does not get through the
// handshake. A program that calls without TLS gets as far as one short answer,
// that this is not the port for programs: a server admits it, bounded in bytes
// and seconds, and a Policy's Check, which every call goes through, refuses it.
package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// ErrNotPeer is a caller, or a node that was called, who is none of us.
var ErrNotPeer = errors.New("not a peer")

// errAlone is what a node without a key says to all.
var errAlone = fmt.Errorf("%w: this node has no security.gossip_key, so it has no peers", ErrNotPeer)

// Policy is one way to tell a peer. To the zero Policy nobody is one: not even
// who is on this machine, where others may run programs too.
type Policy struct {
	name           string
	client, server credentials.TransportCredentials // nil: of nobody
}

func (p Policy) String() string {
	if p.name == "" {
		return "nothing"
	}
	return p.name
}

// MutualTLS takes for a peer whoever has a certificate that authority signed,
// for whatever name: sign none for anybody else. Certificate is asked for this
// node's own at each handshake, so it may be renewed.
func MutualTLS(authority *x509.CertPool, certificate func() (*tls.Certificate, error)) Policy {
	verify := func(s tls.ConnectionState) error {
		roots := x509.VerifyOptions{
			Roots: authority, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		}
		for _, c := range s.PeerCertificates[1:] {
			roots.Intermediates.AddCert(c)
		}
		if _, err := s.PeerCertificates[0].Verify(roots); err != nil {
			return fmt.Errorf("%w: its certificate: %w", ErrNotPeer, err)
		}
		return nil
	}
	client, server := configs(certificate, verify)
	return Policy{name: "mutual TLS", client: credentials.NewTLS(client), server: sniffer{credentials.NewTLS(server)}}
}

// configs returns what the two ends of a connection need. The name that was
// dialed is an address of gossip's and proves nothing, so certificates are
// judged by verify alone.
func configs(certificate func() (*tls.Certificate, error), verify func(tls.ConnectionState) error) (client, server *tls.Config) {
	client = &tls.Config{
		MinVersion:             tls.VersionTLS13,
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate() },
		GetClientCertificate:   func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate() },
		ClientAuth:             tls.RequestClientCert,
		InsecureSkipVerify:     true, // VerifyConnection does it
		VerifyConnection:       verify,
		SessionTicketsDisabled: true,
	}
	server = client.Clone()
	server.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return fmt.Errorf("%w: it shows no certificate; programs call node.grpc", ErrNotPeer)
		}
		return verify(s)
	}
	return client, server
}

// Server returns the credentials of a server that peers call.
func (p Policy) Server() credentials.TransportCredentials {
	if p.server == nil {
		return nobody{}
	}
	return p.server
}

// Client returns the credentials to call a peer with.
func (p Policy) Client() credentials.TransportCredentials {
	if p.client == nil {
		return nobody{}
	}
	return p.client
}

// Check reports whether the caller of a method is a peer. The error is
// ErrNotPeer and says what to do.
func (p Policy) Check(ctx context.Context) error {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return ErrNotPeer
	}
	if p.server == nil {
		return errAlone
	}
	info, ok := from.AuthInfo.(credentials.TLSInfo)
	if ok && len(info.State.PeerCertificates) > 0 { // the handshake has judged it
		return nil
	}
	return fmt.Errorf("%w: this node knows its peers by %v, and the caller at %v showed nothing; give it the same security.tls or security.gossip_key",
		ErrNotPeer, p, from.Addr)
}
