package auth_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/test/bufconn"

	"github.com/anteroom/anteroom/proto/auth"
)

// Without a key nobody is a peer, on this machine or elsewhere: to run here is
// no proof, for others may too.
func TestWithoutAKeyNobodyIsAPeer(t *testing.T) {
	for _, from := range []net.Addr{
		&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv6loopback}, &net.UnixAddr{Name: "/run/anteroom.sock", Net: "unix"},
		&net.TCPAddr{IP: net.IPv4(10, 0, 0, 2)}, &net.TCPAddr{},
	} {
		ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: from})
		if err := (auth.Policy{}).Check(ctx); !errors.Is(err, auth.ErrNotPeer) || !strings.Contains(err.Error(), "gossip_key") {
			t.Errorf("Check(%v) = %v", from, err)
		}
	}
	if err := (auth.Policy{}).Check(context.Background()); !errors.Is(err, auth.ErrNotPeer) {
		t.Errorf("Check of a caller from nowhere = %v", err)
	}
	if c, s := shake(t, auth.Policy{}.Client(), auth.Policy{}.Server()); !errors.Is(c, auth.ErrNotPeer) || !errors.Is(s, auth.ErrNotPeer) {
		t.Errorf("two of them: %v, %v", c, s)
	}
	if c, s := shake(t, insecure.NewCredentials(), auth.Policy{}.Server()); !errors.Is(s, auth.ErrNotPeer) {
		t.Errorf("a caller without: %v, %v", c, s)
	}
	if c, _ := shake(t, auth.Policy{}.Client(), insecure.NewCredentials()); !errors.Is(c, auth.ErrNotPeer) {
		t.Errorf("to a server without: %v", c)
	}
}

func TestShortGossipKeyIsRefused(t *testing.T) {
	if _, err := auth.GossipKey(); err == nil {
		t.Error("no keys at all were taken")
	}
	if _, err := auth.GossipKey(make([]byte, 8)); err == nil || !strings.Contains(err.Error(), "at least 16") {
		t.Errorf("GossipKey = %v", err)
	}
}

// pipe returns the two ends of a connection in memory, with buffers: over
// net.Pipe two ends that refuse each other at once would wait for ever.
func pipe(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l := bufconn.Listen(1 << 16)
	accepted := make(chan net.Conn)
	go func() {
		c, _ := l.Accept()
		accepted <- c
	}()
	a, err := l.DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return a, <-accepted
}

// shake joins a client and a server, and returns what either says.
func shake(t *testing.T, client, server credentials.TransportCredentials) (clientErr, serverErr error) {
	t.Helper()
	a, b := pipe(t)
	failed := make(chan error, 1)
	go func() {
		conn, _, err := server.ServerHandshake(b)
		if err == nil {
			_, err = conn.Read(make([]byte, 1)) // a client's certificate is judged after its handshake
		}
		_ = b.Close()
		failed <- err
	}()
	conn, _, clientErr := client.ClientHandshake(t.Context(), "node", a)
	if clientErr == nil {
		_, clientErr = conn.Write([]byte{0})
	}
	_ = a.Close()
	return clientErr, <-failed
}

func key(t *testing.T, b byte) auth.Policy {
	t.Helper()
	p, err := auth.GossipKey(bytes.Repeat([]byte{b}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestGossipKeyProvesItselfOnBothSides(t *testing.T) {
	if c, s := shake(t, key(t, 1).Client(), key(t, 1).Server()); c != nil || s != nil {
		t.Errorf("the same key: %v, %v", c, s)
	}
	c, s := shake(t, key(t, 1).Client(), key(t, 2).Server())
	if !errors.Is(c, auth.ErrNotPeer) || s == nil || !strings.Contains(c.Error(), "gossip_key") {
		t.Errorf("another key: %v, %v", c, s)
	}
	if c, s := shake(t, key(t, 1).Client().Clone(), key(t, 1).Server().Clone()); c != nil || s != nil {
		t.Errorf("clones: %v, %v", c, s)
	}
}

// keys is a policy of several keys.
func keys(t *testing.T, bs ...byte) auth.Policy {
	t.Helper()
	p, err := auth.GossipKey(repeat(bs...)...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func repeat(bs ...byte) (keys [][]byte) {
	for _, b := range bs {
		keys = append(keys, bytes.Repeat([]byte{b}, 32))
	}
	return keys
}

// While a key is exchanged, node by node, any two nodes know each other: first
// all get the new one, then it comes first, then the old one goes.
func TestGossipKeysAreExchangedNodeByNode(t *testing.T) {
	steps := [][]byte{{1}, {1, 2}, {2, 1}, {2}}
	for i := range steps {
		for _, two := range [][2]int{{i, i}, {i, min(i+1, 3)}, {min(i+1, 3), i}} {
			if c, s := shake(t, keys(t, steps[two[0]]...).Client(), keys(t, steps[two[1]]...).Server()); c != nil || s != nil {
				t.Errorf("%v calls %v: %v, %v", steps[two[0]], steps[two[1]], c, s)
			}
		}
	}
	if c, s := shake(t, keys(t, 1).Client(), keys(t, 2, 3).Server()); !errors.Is(c, auth.ErrNotPeer) || s == nil {
		t.Errorf("none in common: %v, %v", c, s)
	}
}

// pki is an authority that writes itself and a node's certificate to files.
type pki struct {
	ca, cert, key string
	authority     *x509.Certificate
	private       *ecdsa.PrivateKey
	written       time.Time // of the latest file
}

func newPKI(t *testing.T) *pki {
	t.Helper()
	dir := t.TempDir()
	p := &pki{ca: filepath.Join(dir, "ca.pem"), cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"), written: time.Now()}
	p.authority = &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	p.private = p.sign(t, p.authority, nil, p.ca)
	p.issue(t, 2)
	return p
}

// write makes each file an hour younger than the one before.
func (p *pki) write(t *testing.T, name, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	p.written = p.written.Add(time.Hour)
	if err := os.Chtimes(name, p.written, p.written); err != nil {
		t.Fatal(err)
	}
}

// sign writes c to a file, signed with by, or with its own key.
func (p *pki) sign(t *testing.T, c *x509.Certificate, by *ecdsa.PrivateKey, file string) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if by == nil {
		by = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, p.authority, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, file, "CERTIFICATE", der)
	return key
}

// issue makes a node's certificate of that serial number.
func (p *pki) issue(t *testing.T, serial int64) {
	t.Helper()
	c := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
	private, err := x509.MarshalPKCS8PrivateKey(p.sign(t, c, p.private, p.cert))
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, p.key, "PRIVATE KEY", private)
}

func TestFilesMakeMutualTLS(t *testing.T) {
	p := newPKI(t)
	policy, err := auth.Files(p.ca, p.cert, p.key)
	if err != nil {
		t.Fatal(err)
	}
	if c, s := shake(t, policy.Client(), policy.Server()); c != nil || s != nil {
		t.Errorf("the same authority: %v, %v", c, s)
	}
	other := newPKI(t)
	stranger, err := auth.Files(other.ca, other.cert, other.key)
	if err != nil {
		t.Fatal(err)
	}
	if c, s := shake(t, stranger.Client(), policy.Server()); !errors.Is(c, auth.ErrNotPeer) || s == nil {
		t.Errorf("another authority: %v, %v", c, s)
	}
	if c, _ := shake(t, key(t, 1).Client(), policy.Server()); !errors.Is(c, auth.ErrNotPeer) {
		t.Errorf("a gossip key: %v", c)
	}
}

func TestFilesThatDoNotFitAreRefused(t *testing.T) {
	p := newPKI(t)
	for name, files := range map[string][3]string{
		"no ca":       {p.ca + ".none", p.cert, p.key},
		"ca is a key": {p.key, p.cert, p.key},
		"no key":      {p.ca, p.cert, p.ca + ".none"},
		"cert as key": {p.ca, p.cert, p.cert},
	} {
		if _, err := auth.Files(files[0], files[1], files[2]); err == nil || !strings.Contains(err.Error(), "security.tls") {
			t.Errorf("%s: Files = %v", name, err)
		}
	}
}

func TestRenewedCertificateIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPKI(t)
		policy, err := auth.Files(p.ca, p.cert, p.key)
		if err != nil {
			t.Fatal(err)
		}
		serial := func() int64 {
			t.Helper()
			a, b := pipe(t)
			defer func() { _, _ = a.Close(), b.Close() }()
			go func() { _, _, _ = policy.Server().ServerHandshake(b) }()
			_, info, err := policy.Client().ClientHandshake(t.Context(), "node", a)
			if err != nil {
				t.Fatal(err)
			}
			return info.(credentials.TLSInfo).State.PeerCertificates[0].SerialNumber.Int64()
		}
		if got := serial(); got != 2 {
			t.Fatalf("serial %d, want 2", got)
		}
		p.write(t, p.key, "PRIVATE KEY", []byte("half of it"))
		time.Sleep(2 * time.Second)
		if got := serial(); got != 2 {
			t.Errorf("while the files do not fit, serial %d, want 2", got)
		}
		p.issue(t, 3)
		time.Sleep(2 * time.Second)
		if got := serial(); got != 3 {
			t.Errorf("after renewal, serial %d, want 3", got)
		}
	})
}
