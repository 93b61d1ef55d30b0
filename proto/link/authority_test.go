package link_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"testing"
	"time"

	"github.com/anteroom/anteroom/proto/auth"
)

// certifier signs certificates for a test's nodes.
type certifier struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// valid is a template that holds at any time, that of a synctest bubble included.
func valid() *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
		BasicConstraintsValid: true,
	}
}

func authority(t testing.TB) *certifier {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := valid()
	c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return &certifier{c, key}
}

// policy returns that of a node with a certificate of c.
func (c *certifier) policy(t testing.TB) auth.Policy {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, valid(), c.certificate, key.Public(), c.key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(c.certificate)
	own := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return auth.MutualTLS(pool, func() (*tls.Certificate, error) { return own, nil })
}
