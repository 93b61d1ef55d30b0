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

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/conns"
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

// pipes is a listener in memory.
type pipes struct{ in chan net.Conn }

func (p *pipes) Accept() (net.Conn, error) {
	if c, ok := <-p.in; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p *pipes) Close() error   { close(p.in); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

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
		p := &pipes{in: make(chan net.Conn)}
		limiter := conns.New(conns.Config{Name: "gateway", Max: 2, Logger: s.log})
		l := limiter.HTTP(h, p)
		metrics := prometheus.NewRegistry()
		metrics.MustRegister(limiter.Metrics()...)
		open := func() float64 {
			families, _ := metrics.Gather() // in the order of their names
			return families[0].GetMetric()[0].GetGauge().GetValue()
		}
		done := make(chan struct{})
		go func() { _ = serveHTTP(h, l, c.Security.TLS.Gateway); close(done) }()
		var clients []*deaf
		tr := &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				p.in <- theirs
				d := &deaf{Conn: ours, closed: make(chan struct{})}
				clients = append(clients, d)
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
		if n := open(); n != 1 {
			t.Errorf("%v connections, want one", n)
		}
		began := time.Now()
		get("/film")
		if err := <-wrote; err == nil || time.Since(began) > time.Minute+6*time.Second { // TLS tries to say goodbye
			t.Errorf("%v after %v", err, time.Since(began))
		}
		synctest.Wait()
		if n := open(); n != 0 {
			t.Errorf("%v connections are still open", n)
		}
		tr.CloseIdleConnections()
		for _, c := range clients {
			_ = c.Close()
		}
		_ = h.Close()
		<-done
	})
}
