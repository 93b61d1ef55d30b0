package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/config"
)

// certificate writes a key pair that nobody trusts.
func certificate(t *testing.T) config.KeyPair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"x"}, NotAfter: time.Now().AddDate(50, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name, kind string, b []byte) config.Path {
		at := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(at, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return config.Path(at)
	}
	return config.KeyPair{Cert: file("cert.pem", "CERTIFICATE", der), Key: file("key.pem", "PRIVATE KEY", secret)}
}

// deaf is a connection whose owner reads no more after the first 100 kB.
type deaf struct {
	net.Conn
	heard  int
	closed chan struct{}
	once   sync.Once
}

func (d *deaf) Read(b []byte) (int, error) {
	if d.heard > 100_000 {
		<-d.closed
		return 0, net.ErrClosed
	}
	n, err := d.Conn.Read(b)
	d.heard += n
	return n, err
}

func (d *deaf) Close() error {
	d.once.Do(func() { close(d.closed) })
	return d.Conn.Close()
}

// Below the streams of HTTP/2 there is a connection, with a bound of its own,
// and it has a place like any other.
func TestAConnectionOverTLSThatTakesNothingInIsClosed(t *testing.T) {
	pair := certificate(t)
	synctest.Test(t, func(t *testing.T) {
		c := oneNode()
		c.Security.TLS.Gateway = pair
		s := New(c, Options{})
		wrote := make(chan error, 1)
		h := s.httpServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/film" {
				var err error
				for err == nil {
					_, err = w.Write(make([]byte, 10_000))
				}
				wrote <- err
				return
			}
			_, _ = fmt.Fprint(w, r.Proto)
		}))
		p := &porch{t: t, in: make(chan net.Conn)}
		p.door = newDoor("gateway", 2, s.log)
		l := p.keep(h, p)
		done := make(chan struct{})
		go func() { _ = s.serveGateway(h, l); close(done) }()
		var conns []*deaf
		tr := &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				p.in <- theirs
				d := &deaf{Conn: ours, closed: make(chan struct{})}
				conns = append(conns, d)
				return d, nil
			},
		}
		get := func(path string) *http.Response {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://x"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			a, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		if b, err := io.ReadAll(get("/").Body); string(b) != "HTTP/2.0" {
			t.Fatalf("%q, %v", b, err)
		}
		synctest.Wait()
		if open, quiet, _ := p.count(); open != 1 || quiet != 1 {
			t.Errorf("%d connections, %d quiet; want one, and quiet after its request", open, quiet)
		}
		began := time.Now()
		get("/film")
		synctest.Wait()
		if _, quiet, _ := p.count(); quiet != 0 {
			t.Error("a connection with a request is quiet")
		}
		if err := <-wrote; err == nil || time.Since(began) > time.Minute+6*time.Second { // TLS tries to say goodbye
			t.Errorf("%v after %v", err, time.Since(began))
		}
		synctest.Wait()
		if open, _, _ := p.count(); open != 0 {
			t.Errorf("%d connections are still open", open)
		}
		tr.CloseIdleConnections()
		for _, c := range conns {
			_ = c.Close()
		}
		_ = h.Close()
		<-done
	})
}
