package health

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Check is one way of looking at a room's origin. Its fields are the keys of
// health_checks in a configuration, with nothing left open.
type Check struct {
	Room, Name      string
	Type            string // HTTP, HTTPS or TCP
	Address         string // host or IP address that is dialled, whatever Host says
	Port            int
	Host            string // in requests, and in the certificate
	Path, Method    string
	Codes           []string // such as 200 and 2xx
	Body            string   // has to be in the answer; empty: any will do
	FollowRedirects bool     // to the same host and port
	AllowInsecure   bool     // whatever certificate
	Interval        time.Duration
	Timeout         time.Duration
	Retries         int // at once, where no answer came
	Up, Down        int // so many good, or bad, in a row until the status changes
}

// The types of a check.
const (
	HTTP  = "http"
	HTTPS = "https"
	TCP   = "tcp"
)

// ID names the check of a room, for programs.
func (c *Check) ID() string {
	sum := sha256.Sum256([]byte(c.Room + "/" + c.Name))
	return hex.EncodeToString(sum[:16])
}

// Sum is the same for equal checks. What a node says of a check that was changed
// meanwhile does not count.
func (c *Check) Sum() uint64 {
	text, _ := json.Marshal(c) // strings and numbers
	h := fnv.New64a()
	_, _ = h.Write(text)
	return h.Sum64()
}

// Result is what came of asking once.
type Result struct {
	OK     bool
	Reason string // why not
	Code   int    // of the answer; 0: none came
	Took   time.Duration
}

// Reasons for a failure. The words are Cloudflare's where it has some.
const (
	NoFailures     = "No failures"
	connectFailed  = "TCP connection failed"
	connectTimeout = "TCP connection timed out"
	tlsFailed      = "TLS handshake failed"
	untrusted      = "TLS untrusted certificate error"
	answerTimeout  = "HTTP timeout occurred"
	answerFailed   = "HTTP request failed"
	codeMismatch   = "Response code mismatch error"
	bodyMismatch   = "Response body mismatch error"
	redirected     = "HTTP redirect to another host or port"
)

const (
	bodyMax      = 64 << 10 // bytes of an answer that are looked at
	headerMax    = 64 << 10
	redirectsMax = 5
)

// errRedirect is about a redirect that is not followed.
var errRedirect = errors.New("health: redirect to another host or port")

// Probe asks once, and again where no answer came.
func Probe(ctx context.Context, c *Check) (r Result) {
	for try := 0; ; try++ {
		began := time.Now()
		r = c.probe(ctx)
		r.Took = time.Since(began)
		if r.OK || r.Code != 0 || try >= c.Retries || ctx.Err() != nil {
			return r
		}
	}
}

func (c *Check) probe(ctx context.Context) Result {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if c.Type != TCP {
		return c.ask(ctx)
	}
	conn, err := c.dial(ctx, c.Port)
	if err != nil {
		return Result{Reason: reasonOf(err)}
	}
	_ = conn.Close() // nothing was said
	return Result{OK: true}
}

func (c *Check) dial(ctx context.Context, port int) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(c.Address, strconv.Itoa(port)))
}

// ask sends a request on a connection of its own, so that it is known whether
// one can be made.
func (c *Check) ask(ctx context.Context) Result {
	t := &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx, c.Port) },
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.AllowInsecure}, // as the operator asks
		DisableKeepAlives: true, MaxResponseHeaderBytes: headerMax, ForceAttemptHTTP2: true,
	}
	defer t.CloseIdleConnections()
	client := http.Client{Transport: t, CheckRedirect: c.follows}
	q, err := http.NewRequestWithContext(ctx, c.Method, c.url(), nil)
	if err != nil {
		return Result{Reason: answerFailed}
	}
	q.Header.Set("User-Agent", "anteroom-health-check")
	a, err := client.Do(q)
	if err != nil {
		return Result{Reason: reasonOf(err)}
	}
	defer func() { _ = a.Body.Close() }() // it was only read
	switch body, err := io.ReadAll(io.LimitReader(a.Body, bodyMax)); {
	case !c.expects(a.StatusCode):
		return Result{Reason: codeMismatch, Code: a.StatusCode}
	case err != nil && c.Body != "":
		return Result{Reason: reasonOf(err)}
	case !bytes.Contains(bytes.ToLower(body), []byte(strings.ToLower(c.Body))):
		return Result{Reason: bodyMismatch, Code: a.StatusCode}
	}
	return Result{OK: true, Code: a.StatusCode}
}

func (c *Check) url() string {
	host := c.Host
	if usual := map[string]int{HTTP: 80, HTTPS: 443}; usual[c.Type] != c.Port {
		host = net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(c.Port))
	} else if strings.Contains(host, ":") {
		host = "[" + strings.Trim(host, "[]") + "]"
	}
	path, query, _ := strings.Cut(c.Path, "?")
	return (&url.URL{Scheme: c.Type, Host: host, Path: path, RawQuery: query}).String()
}

// follows says whether a redirect is followed. One that is not, because nobody
// asked for it, is the answer.
func (c *Check) follows(q *http.Request, via []*http.Request) error {
	switch {
	case !c.FollowRedirects:
		return http.ErrUseLastResponse
	case len(via) > redirectsMax:
		return fmt.Errorf("health: more than %d redirects", redirectsMax)
	case q.URL.Scheme != via[0].URL.Scheme || !strings.EqualFold(q.URL.Host, via[0].URL.Host):
		return errRedirect
	}
	return nil
}

func (c *Check) expects(code int) bool {
	text := strconv.Itoa(code)
	for _, e := range c.Codes {
		if e == text || len(e) == 3 && strings.EqualFold(e[1:], "xx") && e[0] == text[0] {
			return true
		}
	}
	return false
}

// reasonOf says in a few words why no answer came. The error itself may hold
// addresses, and goes nowhere.
func reasonOf(err error) string {
	var op *net.OpError
	var timeout net.Error
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	dialled := errors.As(err, &op) && op.Op == "dial"
	late := errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
	switch {
	case errors.Is(err, errRedirect):
		return redirected
	case dialled && late:
		return connectTimeout
	case dialled:
		return connectFailed
	case late:
		return answerTimeout
	case errors.As(err, &cert):
		return untrusted
	case errors.As(err, &record), errors.As(err, &alert), errors.Is(err, http.ErrSchemeMismatch):
		return tlsFailed
	}
	return answerFailed
}
