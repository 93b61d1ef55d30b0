package server

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"os"
	"time"

	"github.com/anteroom/anteroom/internal/config"
)

// certificatesEvery is how often the files of certificates are read.
const certificatesEvery = time.Minute

// certificates are those of the configuration, as far as they can be read: what is
// wrong with them whoever uses them says.
type certificates struct {
	files []certificateFile
	all   []expiring
	at    time.Time
}

type certificateFile struct{ key, path string }

// expiring is a certificate, and until when it is good.
type expiring struct {
	id    string // the same at all nodes that have it
	key   string // of the configuration
	until time.Time
}

func certificatesOf(s *config.Security) certificates {
	var c certificates
	for _, f := range []certificateFile{
		{"security.tls.gateway", string(s.TLS.Gateway.Cert)},
		{"security.tls.admin", string(s.TLS.Admin.Cert)},
		{"security.tls.grpc", string(s.TLS.GRPC.Cert)},
		{"security.tls.peer", string(s.TLS.Peer.Cert)},
		{"security.tls.peer.ca", string(s.TLS.Peer.CA)},
	} {
		if f.path != "" {
			c.files = append(c.files, f)
		}
	}
	return c
}

// expiring returns those that are good for less than within.
func (c *certificates) expiring(now time.Time, within time.Duration) (soon []expiring) {
	if now.Sub(c.at) >= certificatesEvery {
		c.at, c.all = now, nil
		for _, f := range c.files {
			c.all = append(c.all, f.read()...)
		}
	}
	for _, e := range c.all {
		if e.until.Sub(now) < within {
			soon = append(soon, e)
		}
	}
	return soon
}

// read returns the first certificate of a file to run out, of all that are in it.
func (f certificateFile) read() []expiring {
	text, err := os.ReadFile(f.path)
	if err != nil {
		return nil
	}
	var first *x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err == nil && (first == nil || c.NotAfter.Before(first.NotAfter)) {
			first = c
		}
	}
	if first == nil {
		return nil
	}
	sum := sha256.Sum256(first.Raw)
	return []expiring{{hex.EncodeToString(sum[:8]), f.key, first.NotAfter.UTC()}}
}
