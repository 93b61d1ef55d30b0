package auth

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// Files reads a MutualTLS policy from PEM files: the authority's certificate,
// and this node's certificate and key. The latter two are read again when they
// have changed, at most once a second; while they do not fit, the old stay.
func Files(ca, cert, key string) (Policy, error) {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return Policy{}, fmt.Errorf("security.tls.ca: %w", err)
	}
	authority := x509.NewCertPool()
	if !authority.AppendCertsFromPEM(pem) {
		return Policy{}, fmt.Errorf("security.tls.ca: %s holds no certificate in PEM", ca)
	}
	f := &files{cert: cert, key: key}
	if err := f.read(); err != nil {
		return Policy{}, fmt.Errorf("security.tls: %w", err)
	}
	return MutualTLS(authority, f.current), nil
}

// ServerTLS are the credentials of a server for programs, from PEM files that
// are read again as those of Files are. Who calls proves nothing by them.
func ServerTLS(cert, key string) (credentials.TransportCredentials, error) {
	f := &files{cert: cert, key: key}
	if err := f.read(); err != nil {
		return nil, fmt.Errorf("security.tls.grpc: %w", err)
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.current() },
	}), nil
}

// files is a certificate that may be renewed under our feet.
type files struct {
	cert, key string

	mu       sync.Mutex
	pair     *tls.Certificate
	modified time.Time
	looked   time.Time
}

func (f *files) current() (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.looked) >= time.Second {
		f.looked = now
		if at := f.changed(); !at.Equal(f.modified) {
			_ = f.read() // while key and certificate do not fit, the old ones are good
		}
	}
	return f.pair, nil
}

// changed returns when the later of the two files was written.
func (f *files) changed() (at time.Time) {
	for _, name := range []string{f.cert, f.key} {
		if s, err := os.Stat(name); err == nil && s.ModTime().After(at) {
			at = s.ModTime()
		}
	}
	return at
}

func (f *files) read() error {
	at := f.changed()
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return err
	}
	f.pair, f.modified = &pair, at
	return nil
}
