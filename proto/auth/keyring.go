package auth

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"google.golang.org/grpc/credentials"
)

// keyMin is the length of the shortest gossip key, in bytes.
const keyMin = 16

// keyring is what is derived of a node's gossip keys.
type keyring struct {
	certificate *tls.Certificate // of the first: this node shows it
	public      []ed25519.PublicKey
}

// GossipKey takes for a peer whoever has one of the keys. The first is the one
// by which this node proves itself.
func GossipKey(keys ...[]byte) (Policy, error) {
	k, err := newKeyring(keys)
	if err != nil {
		return Policy{}, err
	}
	client, server := configs(func() (*tls.Certificate, error) { return k.certificate, nil }, k.verify)
	return Policy{name: "gossip key", client: credentials.NewTLS(client), server: sniffer{credentials.NewTLS(server)}}, nil
}

func newKeyring(keys [][]byte) (*keyring, error) {
	if len(keys) == 0 {
		return nil, errors.New("gossip_key: none")
	}
	k := &keyring{}
	for i, key := range keys {
		if len(key) < keyMin {
			return nil, fmt.Errorf("gossip_key: %d bytes; give at least %d random ones", len(key), keyMin)
		}
		seed, err := hkdf.Key(sha256.New, key, nil, "anteroom peer certificate 1", ed25519.SeedSize)
		if err != nil {
			return nil, fmt.Errorf("gossip_key: %w", err)
		}
		private := ed25519.NewKeyFromSeed(seed)
		public, _ := private.Public().(ed25519.PublicKey)
		k.public = append(k.public, public)
		if i > 0 {
			continue
		}
		if k.certificate, err = selfSigned(private, public); err != nil {
			return nil, fmt.Errorf("gossip_key: %w", err)
		}
	}
	return k, nil
}

// verify refuses who has shown the certificate of none of the keys.
func (k *keyring) verify(s tls.ConnectionState) error {
	shown, _ := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey) // of another kind: it equals none
	if !slices.ContainsFunc(k.public, func(p ed25519.PublicKey) bool { return p.Equal(shown) }) {
		return fmt.Errorf("%w: it has another gossip_key; give all nodes the same", ErrNotPeer)
	}
	return nil
}

// selfSigned wraps a key into a certificate of no meaning of its own.
func selfSigned(private ed25519.PrivateKey, public ed25519.PublicKey) (*tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Unix(0, 0),
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // RFC 5280: it has no end
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, nil
}
