package webpush

import (
	"context"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	vapid "github.com/SherClockHolmes/webpush-go"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	endpointMax = 1024 // bytes
	authLen     = 16   // bytes, RFC 8291 section 3.2
	atOnce      = 64   // messages on their way; others wait, within their time
	sendWithin  = 10 * time.Second
	triesMax    = 3
	retryAfter  = 2 * time.Second
	answerMax   = 16 << 10 // bytes of an answer that are read
)

// wellKnown are the push services of browsers: Chrome and those made of it, Edge,
// Firefox, Safari.
func wellKnown() []string {
	return []string{"fcm.googleapis.com", "*.notify.windows.com", "*.push.services.mozilla.com", "*.push.apple.com"}
}

// Config is what a Sender needs.
type Config struct {
	Contact string                                           // of the operator, for push services: mailto: or https:
	Hosts   []string                                         // of other services: push.example.com, *.example.com, either with a port
	Secrets func() [][]byte                                  // of the cluster, the one in use first; keys are derived from them
	Roots   *x509.CertPool                                   // who vouches for push services; nil: the system's
	Do      func(*http.Request) (*http.Response, error)      // nil: over the network
	Pause   func(ctx context.Context, d time.Duration) error // nil: by the clock
}

// Sender sends messages. It is safe for concurrent use.
type Sender struct {
	c       Config
	hosts   []string
	places  chan struct{} // of messages on their way
	results *prometheus.CounterVec
}

// New returns a sender.
func New(c Config) *Sender {
	if c.Do == nil {
		client := &http.Client{
			Transport:     &http.Transport{MaxResponseHeaderBytes: answerMax, TLSHandshakeTimeout: sendWithin, TLSClientConfig: &tls.Config{RootCAs: c.Roots}, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		c.Do = client.Do
	}
	if c.Pause == nil {
		c.Pause = pause
	}
	return &Sender{
		c: c, hosts: append(wellKnown(), c.Hosts...), places: make(chan struct{}, atOnce),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "anteroom_pushes_total", Help: "Calls that were to be told by web push, by what became of it: sent, gone (the browser wants no more), refused or failed.",
		}, []string{"result"}),
	}
}

// Metrics are what the sender counts.
func (s *Sender) Metrics() []prometheus.Collector { return []prometheus.Collector{s.results} }

// Subscription is what a browser says of where it can be told something.
type Subscription struct {
	Endpoint string `json:"endpoint"`
	Keys     Keys   `json:"keys"`
	Key      string `json:"key"` // the public key by which it knows this cluster, as of PublicKey
}

// Keys are the browser's, in base64.
type Keys struct {
	P256DH string `json:"p256dh"`
	Auth   string `json:"auth"`
}

// What is wrong with a subscription. The first is for programs, which go by it to
// subscribe again.
var (
	ErrKey      = errors.New("its key is none of this cluster, or none any more; ask for the key and subscribe again")
	ErrEndpoint = errors.New("its endpoint is no https address of a push service that is known here")
	ErrKeys     = errors.New("its keys are none of RFC 8291")
)

// PublicKey is by what a browser is to know this cluster; empty: there are no keys
// yet.
func (s *Sender) PublicKey() string {
	for _, secret := range s.c.Secrets() {
		return publicOf(derive(secret))
	}
	return ""
}

// Check reports what is wrong with a subscription.
func (s *Sender) Check(sub Subscription) error {
	_, err := s.check(sub)
	return err
}

func (s *Sender) check(sub Subscription) (*ecdsa.PrivateKey, error) {
	if !s.known(sub.Endpoint) {
		return nil, ErrEndpoint
	}
	point, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(sub.Keys.P256DH, "="))
	if err == nil {
		_, err = ecdh.P256().NewPublicKey(point)
	}
	auth, wrong := base64.RawURLEncoding.DecodeString(strings.TrimRight(sub.Keys.Auth, "="))
	if err != nil || wrong != nil || len(auth) != authLen {
		return nil, ErrKeys
	}
	for _, secret := range s.c.Secrets() {
		if k := derive(secret); publicOf(k) == sub.Key {
			return k, nil
		}
	}
	return nil, ErrKey
}

// known reports whether an endpoint is one of a push service.
func (s *Sender) known(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil || len(endpoint) > endpointMax || u.Scheme != "https" || u.User != nil || u.Fragment != "" {
		return false
	}
	host := strings.ToLower(u.Host)
	return slices.ContainsFunc(s.hosts, func(h string) bool {
		below, many := strings.CutPrefix(h, "*")
		return host == h || many && len(host) > len(below) && strings.HasSuffix(host, below)
	})
}

// Send tells a browser of message, unless that would be later than the context's
// deadline; the push service gives up then as well. It is tried again where the
// service has trouble.
func (s *Sender) Send(ctx context.Context, sub Subscription, message []byte) error {
	key, err := s.check(sub)
	if err != nil {
		s.results.WithLabelValues("refused").Inc()
		return fmt.Errorf("webpush: %w", err)
	}
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-ctx.Done():
		s.results.WithLabelValues("failed").Inc()
		return fmt.Errorf("webpush: too many messages at once: %w", ctx.Err())
	}
	for try := 1; ; try++ {
		result, err := s.send(ctx, sub, key, message)
		if result != "failed" || try == triesMax || s.c.Pause(ctx, retryAfter<<(try-1)) != nil {
			s.results.WithLabelValues(result).Inc()
			return err
		}
	}
}

// send tries it once.
func (s *Sender) send(ctx context.Context, sub Subscription, key *ecdsa.PrivateKey, message []byte) (result string, err error) {
	until, bounded := ctx.Deadline()
	ttl := int(time.Until(until) / time.Second)
	if bounded && ttl < 1 {
		return "failed", fmt.Errorf("webpush: %w", context.DeadlineExceeded)
	}
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	private, err := key.Bytes()
	if err != nil {
		return "refused", fmt.Errorf("webpush: %w", err)
	}
	r, err := vapid.SendNotificationWithContext(ctx, message, &vapid.Subscription{
		Endpoint: sub.Endpoint, Keys: vapid.Keys{P256dh: sub.Keys.P256DH, Auth: sub.Keys.Auth},
	}, &vapid.Options{
		HTTPClient: doer(s.c.Do), TTL: max(0, ttl), Urgency: vapid.UrgencyHigh, Subscriber: strings.TrimPrefix(s.c.Contact, "mailto:"),
		VAPIDPublicKey: sub.Key, VAPIDPrivateKey: base64.RawURLEncoding.EncodeToString(private),
	})
	if err != nil {
		return "failed", errors.New("webpush: the push service does not answer") // the error has the endpoint in it, by which anybody could reach the browser
	}
	defer func() { _ = r.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, answerMax)) // so that the connection can be used again
	switch {
	case r.StatusCode/100 == 2:
		return "sent", nil
	case r.StatusCode == http.StatusNotFound || r.StatusCode == http.StatusGone:
		return "gone", nil
	case r.StatusCode == http.StatusTooManyRequests || r.StatusCode >= 500:
		return "failed", fmt.Errorf("webpush: the push service answers %d", r.StatusCode)
	}
	return "refused", fmt.Errorf("webpush: the push service answers %d", r.StatusCode)
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// derive makes a key of a secret that all nodes of a cluster have. It is a key of
// its own, so that what it signs for a push service is worth nothing anywhere else.
func derive(secret []byte) *ecdsa.PrivateKey {
	for n := 0; ; n++ { // once, but for one secret in 2^32
		scalar, err := hkdf.Key(sha256.New, secret, nil, fmt.Sprintf("anteroom web push %d", n), 32)
		if err != nil {
			panic("webpush: " + err.Error()) // 32 bytes are not too many
		}
		if k, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar); err == nil {
			return k
		}
	}
}

func publicOf(k *ecdsa.PrivateKey) string {
	point, err := k.PublicKey.Bytes()
	if err != nil {
		panic("webpush: " + err.Error()) // it was made here
	}
	return base64.RawURLEncoding.EncodeToString(point)
}
