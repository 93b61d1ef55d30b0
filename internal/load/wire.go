package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// kind is what a visitor asks for.
type kind uint8

const (
	join kind = iota
	checkIn
	leave
	refresh
	end
	browse
	abandon
	kinds
)

func (k kind) String() string {
	return [...]string{"join", "check_in", "leave", "refresh", "end", "browse", "abandon"}[k]
}

// target is one gateway: where it is, and the requests to it up to what differs
// from visitor to visitor.
type target struct {
	url    string // as people write it
	tls    *tls.Config
	addr   string
	heads  [kinds]string
	cookie string // of the room
}

// newTarget prepares requests to the gateway at u.
func newTarget(c *Config, u *url.URL) *target {
	t := &target{url: u.String(), addr: u.Host, cookie: "anteroom_" + cookieToken(c.Room)}
	port := "80"
	if u.Scheme == "https" {
		t.tls = &tls.Config{ServerName: u.Hostname(), InsecureSkipVerify: c.Insecure, NextProtos: []string{"http/1.1"}}
		t.cookie, port = "__Host-"+t.cookie, "443"
	}
	if u.Port() == "" {
		t.addr = net.JoinHostPort(u.Hostname(), port)
	}
	host := "Host: " + u.Host + "\r\nUser-Agent: anteroom-load\r\n"
	api := roomPath(c)
	for k, op := range [kinds]string{"join", "checkin", "leave", "refresh", "end", "", "abandon"} {
		t.heads[k] = "POST " + api + op + " HTTP/1.1\r\n" + host + "Content-Type: application/json\r\nContent-Length: "
	}
	for k := range t.heads { // RFC 7240
		wants := ""
		if c.Manners.JoinAsync && kind(k) == join {
			wants = "Prefer: respond-async\r\n"
		}
		if c.Manners.NoJWT {
			wants += "Prefer: return=minimal\r\n"
		}
		t.heads[k] = strings.Replace(t.heads[k], host, host+wants, 1)
	}
	t.heads[browse] = "GET " + c.Page + " HTTP/1.1\r\n" + host + "Cookie: " + t.cookie + "="
	return t
}

// roomPath is what the paths of requests about the room begin with.
func roomPath(c *Config) string { return c.Prefix + "/v1/rooms/" + url.PathEscape(c.Room) + "/" }

// cookieToken spells a room's name as the gateway does in a cookie's name.
func cookieToken(room string) string {
	var b strings.Builder
	for i := range len(room) {
		switch c := room[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, ".%02x", c)
		}
	}
	return b.String()
}

// request appends a request with the ticket or pass held.
func (t *target) request(b []byte, k kind, held []byte) []byte {
	field := ""
	switch k {
	case browse:
		b = append(append(b, t.heads[k]...), held...)
		return append(b, "\r\n\r\n"...)
	case checkIn, leave, abandon:
		field = `{"ticket":"`
	case refresh, end:
		field = `{"pass":"`
	default: // a join has no body
		return append(append(b, t.heads[k]...), "0\r\n\r\n"...)
	}
	b = strconv.AppendInt(append(b, t.heads[k]...), int64(len(field)+len(held)+2), 10)
	b = append(append(append(b, "\r\n\r\n"...), field...), held...)
	return append(b, `"}`...)
}

// answerWithin bounds a request, connecting included.
const answerWithin = 10 * time.Second

// wire is a connection to a gateway that is made when it is first needed, and
// again when it is lost. It belongs to one goroutine.
type wire struct {
	ctx    context.Context // when it ends, so does the request under way
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	to     *target
	conn   net.Conn // nil: none
	unhook func() bool
	used   bool // an answer came over conn
	in     *bufio.Reader
	out    []byte
	body   []byte
	lost   int64 // connections that broke, or that the gateway closed
}

// ask sends a request and reads the answer. A connection that was used before,
// and that brings not a byte now, was idle too long for the gateway's liking:
// then there is one more try with a new one.
func (w *wire) ask(k kind, held []byte) (p response, err error) {
	for {
		if err = w.open(); err != nil {
			return p, err
		}
		again := w.used
		w.out = w.to.request(w.out[:0], k, held)
		if _, err = w.conn.Write(w.out); err == nil {
			_, err = w.in.Peek(1)
		}
		if err == nil {
			break
		}
		w.shut()
		if !again || w.ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
			return p, noEnd(err)
		}
		w.lost++
	}
	err = p.read(w.in, w.body, k == browse, w.to.cookie)
	if cap(p.body) > cap(w.body) {
		w.body = p.body
	}
	// What follows an answer that nobody asked for can only confuse.
	if w.used = true; err != nil || p.closes || w.in.Buffered() > 0 {
		w.lost++
		w.shut()
	}
	return p, err
}

// open connects unless there is a connection, and sets the deadline.
func (w *wire) open() error {
	deadline := time.Now().Add(answerWithin)
	if w.conn != nil && w.conn.SetDeadline(deadline) != nil {
		w.lost++
		w.shut()
	}
	if w.conn == nil {
		if err := w.connect(deadline); err != nil {
			return err
		}
	}
	return w.ctx.Err() // after the deadline, since what happens when it ends must have the last word on that
}

func (w *wire) connect(deadline time.Time) error {
	ctx, cancel := context.WithDeadline(w.ctx, deadline)
	defer cancel()
	conn, err := w.dial(ctx, "tcp", w.to.addr)
	if err != nil {
		return err
	}
	if w.to.tls != nil {
		secure := tls.Client(conn, w.to.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close() // the handshake says why
			return err
		}
		conn = secure
	}
	if err := conn.SetDeadline(deadline); err != nil {
		_ = conn.Close() // it is broken already
		return err
	}
	if w.in == nil {
		w.in = bufio.NewReaderSize(conn, lineMax)
	}
	w.in.Reset(conn)
	w.conn, w.used = conn, false
	w.unhook = context.AfterFunc(w.ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // it may be closed already
	return nil
}

func (w *wire) shut() {
	if w.conn != nil {
		w.unhook()
		_ = w.conn.Close() // nothing on it is wanted any more
		w.conn, w.used = nil, false
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// trouble is a short name for why there was no answer.
func trouble(err error) string {
	dialed := new(net.OpError)
	var dns *net.DNSError
	switch {
	case errors.Is(err, errHTTP), errors.Is(err, errAnswer):
		return err.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &dns):
		return "unknown host"
	case isTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return "no answer in " + answerWithin.String()
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return "connection broken"
	case errors.As(err, &dialed) && dialed.Op == "dial":
		return "cannot connect: " + dialed.Err.Error()
	}
	return err.Error()
}
