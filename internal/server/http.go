package server

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/anteroom/anteroom/internal/config"
)

func (s *Server) httpServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		// Where TLS is on. A connection to which nothing can be written, or from
		// which not even the answer to a ping comes, is closed: the bounds of its
		// streams would leave it open.
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 100, WriteByteTimeout: time.Minute, SendPingTimeout: time.Minute, PingTimeout: 15 * time.Second,
		},
	}
}

// adminServer serves requests without bodies and answers of known size. A
// profile is given the time that it asks for on top.
func (s *Server) adminServer(h http.Handler) *http.Server {
	a := s.httpServer(h)
	a.ReadHeaderTimeout, a.ReadTimeout, a.WriteTimeout = 5*time.Second, 10*time.Second, time.Minute
	return a
}

// serveHTTP serves until h is shut down, by HTTPS where there is a certificate.
func serveHTTP(h *http.Server, l net.Listener, pair config.KeyPair) error {
	if pair.Cert == "" {
		return h.Serve(l)
	}
	h.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	return h.ServeTLS(l, string(pair.Cert), string(pair.Key))
}
