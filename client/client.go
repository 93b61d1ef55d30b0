package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

const (
	patienceDefault = 30 * time.Second
	tryDefault      = 5 * time.Second
	pauseMin        = 50 * time.Millisecond // after the first round over all nodes
	pauseMax        = 2 * time.Second
	answerMax       = 256 << 20 // bytes: 1,000 items of the largest payload that a queue can allow
)

// Client is a connection to a cluster. Any number of goroutines may use it.
type Client struct {
	nodes    []node
	at       atomic.Uint32 // the node that answers, modulo their number
	patience time.Duration
	try      time.Duration
}

// node is one address that was given to Dial.
type node struct {
	conn  *grpc.ClientConn
	queue anteroomv1.PriorityQueueClient
}

// settings are what options set.
type settings struct {
	credentials   credentials.TransportCredentials
	private       bool // they are TLS
	token         string
	patience, try time.Duration
	alone         bool // calls are of their own
	grpc          []grpc.DialOption
	err           error
}

// Option changes how a client behaves.
type Option func(*settings)

// WithCA speaks TLS to nodes whose certificate (security.tls.grpc) an authority
// in pem has signed, for the name or address that was given to Dial.
func WithCA(pem []byte) Option {
	return func(s *settings) {
		authority := x509.NewCertPool()
		if !authority.AppendCertsFromPEM(pem) {
			s.err = errors.New("client: WithCA: there is no certificate in PEM; give that of the authority which signed the nodes' security.tls.grpc")
			return
		}
		s.tls(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authority})
	}
}

// WithTLS speaks TLS as c says. A new(tls.Config) trusts the authorities that this
// machine does.
func WithTLS(c *tls.Config) Option {
	return func(s *settings) { s.tls(c) }
}

func (s *settings) tls(c *tls.Config) { s.credentials, s.private = credentials.NewTLS(c), true }

// WithToken shows the nodes a token, which anteroom keys token has made. Without
// TLS it goes to this machine only: Dial refuses other addresses.
func WithToken(token string) Option {
	return func(s *settings) {
		if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			s.err = errors.New("client: WithToken: empty, or with a space or a character outside ASCII; give what anteroom keys token printed")
			return
		}
		s.token = token
	}
}

// bearer puts a token into every call. Dial has seen to it that it goes by TLS, or
// stays on this machine.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return false }

// String keeps the token out of what is printed of a client.
func (bearer) String() string { return "(hidden)" }

// onThisMachine reports whether what is said to a target reaches nobody else.
func onThisMachine(target string) bool {
	if strings.HasPrefix(target, "unix:") || strings.HasPrefix(target, "unix-abstract:") {
		return true
	}
	if i := strings.LastIndexByte(target, '/'); i >= 0 {
		target = target[i+1:]
	}
	host, _, err := net.SplitHostPort(target)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// WithPatience sets how long a call is tried for, if its context does not end
// earlier [30s]. A Take that waits has that time on top.
func WithPatience(d time.Duration) Option {
	return func(s *settings) { s.patience = d }
}

// WithTry sets after how long a node that does not answer is given up for the
// next one [5s].
func WithTry(d time.Duration) Option {
	return func(s *settings) { s.try = d }
}

// WithoutSession has each call of Put, Take, Ack, Nack and Extend be one of gRPC's,
// which costs several times as much, and which interceptors see. Otherwise they share
// a stream, if the node knows it.
func WithoutSession() Option {
	return func(s *settings) { s.alone = true }
}

// WithGRPC passes options on to gRPC: interceptors for traces (see
// WithoutSession), or another dialer.
func WithGRPC(o ...grpc.DialOption) Option {
	return func(s *settings) { s.grpc = append(s.grpc, o...) }
}

// Dial returns a client of the cluster that the nodes at addresses belong to,
// each the host:port in node.grpc or a gRPC target such as unix:///run/x. It
// connects with the first call, so that a program starts while its queue is away.
func Dial(addresses []string, options ...Option) (*Client, error) {
	s := settings{credentials: insecure.NewCredentials(), patience: patienceDefault, try: tryDefault}
	for _, o := range options {
		o(&s)
	}
	if s.err == nil && len(addresses) == 0 {
		s.err = errors.New("client: no address; give those of some nodes, as in 10.0.0.1:7002")
	}
	if s.err == nil && (s.patience <= 0 || s.try <= 0) {
		s.err = fmt.Errorf("client: a patience of %v and tries of %v; give times above 0", s.patience, s.try)
	}
	if s.err != nil {
		return nil, s.err
	}
	c := &Client{patience: s.patience, try: s.try}
	for _, a := range addresses {
		conn, err := s.dial(a)
		if err != nil {
			_ = c.Close() // nothing was sent
			return nil, err
		}
		n := node{conn, anteroomv1.NewPriorityQueueClient(conn)}
		if !s.alone {
			n.queue = &session{wire: n.queue}
		}
		c.nodes = append(c.nodes, n)
	}
	c.at.Store(rand.Uint32N(uint32(len(addresses)))) // many clients, not all at one node
	return c, nil
}

func (s *settings) dial(address string) (*grpc.ClientConn, error) {
	target := address
	if !strings.Contains(address, "://") && !strings.HasPrefix(address, "unix:") {
		if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
			return nil, fmt.Errorf("client: address %q: give host:port of a node's port for programs (node.grpc), as in 10.0.0.1:7002", address)
		}
		target = "dns:///" + address
	}
	o := s.grpc
	if s.token != "" {
		if !s.private && !onThisMachine(target) {
			return nil, fmt.Errorf("client: address %q: a token is not sent there without TLS, in which others could read it; give WithCA or WithTLS", address)
		}
		o = append([]grpc.DialOption{grpc.WithPerRPCCredentials(bearer(s.token))}, o...)
	}
	o = append([]grpc.DialOption{
		grpc.WithTransportCredentials(s.credentials),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(answerMax)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: pauseMax},
			MinConnectTimeout: s.try,
		}),
		// A machine that vanished says nothing; 10 s is the least that gRPC allows.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithDisableServiceConfig(),
	}, o...)
	conn, err := grpc.NewClient(target, o...)
	if err != nil {
		return nil, fmt.Errorf("client: address %q: %w", address, err)
	}
	return conn, nil
}

// Close breaks all connections. Calls under way fail, and so do later ones.
func (c *Client) Close() error {
	var errs []error
	for _, n := range c.nodes {
		errs = append(errs, n.conn.Close())
	}
	return errors.Join(errs...)
}

// Queue returns a queue by its name, "name" or "namespace/name". It asks nobody.
func (c *Client) Queue(name string) *Queue { return &Queue{client: c, name: name} }

// request is one call, however often it is tried.
type request struct {
	op, queue string
	wait      time.Duration // the node may take so much longer than usual
	repeated  bool          // set before the second try: the first may have been carried out
}

// call has f ask one node after the other until one answers, or gives a reason
// that another try does not mend.
func (c *Client) call(ctx context.Context, r *request, f func(context.Context, anteroomv1.PriorityQueueClient) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.patience+r.wait)
	defer cancel()
	pause := pauseMin
	var last *Error // says more than that the time is over
	for tried := 1; ; tried++ {
		at := c.at.Load()
		err := c.once(ctx, c.nodes[int(at)%len(c.nodes)], r, f)
		if err == nil {
			return nil
		}
		e := errorOf(r, err)
		if ctx.Err() != nil && last != nil {
			e = last
		}
		if ctx.Err() != nil || !e.passes {
			return e.within(ctx)
		}
		last = e
		wait := e.RetryAfter
		if e.Reason == ErrUnavailable {
			c.at.CompareAndSwap(at, at+1) // unless another call has gone on already
		}
		if wait == 0 && (e.Reason != ErrUnavailable || tried >= len(c.nodes)) {
			wait = pause/2 + rand.N(pause/2)
			pause = min(2*pause, pauseMax)
		}
		r.repeated = true
		if !sleep(ctx, wait) {
			return e.within(ctx)
		}
	}
}

// once asks one node, which has as long as a try may take.
func (c *Client) once(ctx context.Context, n node, r *request, f func(context.Context, anteroomv1.PriorityQueueClient) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.try+r.wait)
	defer cancel()
	return f(ctx, n.queue)
}

// sleep reports whether all of d has passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
