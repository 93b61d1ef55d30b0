package gateway

import (
	"crypto/tls"
	"crypto/x509"
)

// TrustOrigins makes the certificates of origins in a test good.
func (g *Gateway) TrustOrigins(roots *x509.CertPool) {
	g.transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}
