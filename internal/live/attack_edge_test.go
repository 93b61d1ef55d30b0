package live

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"time"
)

// witness is an origin that remembers what it was asked for, and agrees to every
// upgrade.
type witness struct {
	mu   sync.Mutex
	seen []string // method, address, headers, body, trailers
}

func (o *witness) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	o.mu.Lock()
	o.seen = append(o.seen, fmt.Sprintf("%s %s %v %s %v", r.Method, r.RequestURI, r.Header, b, r.Trailer))
	o.mu.Unlock()
	if r.Header.Get("Upgrade") == "" {
		return
	}
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + r.Header.Get("Upgrade") + "\r\n\r\n")
	_ = rw.Flush()
	_, _ = io.Copy(c, rw)
}

func (o *witness) take() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	seen := o.seen
	o.seen = nil
	return seen
}

// watched is a cluster whose origin is a witness.
func watched(t *testing.T, limit int, rooms string) (*cluster, *witness) {
	t.Helper()
	c, o := newCluster(t, limit), &witness{}
	c.origin.Close()
	c.origin = httptest.NewServer(o)
	c.session, c.rooms = time.Minute, strings.ReplaceAll(rooms, "{origin}", c.origin.URL)
	return c, o
}

// wire sends a request as it is written here, which Go's client would not, and
// returns the connection, with what is left on it, beside the answer.
func wire(t *testing.T, address, request string) (*http.Response, net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(c, strings.ReplaceAll(request, "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	r, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatalf("%.60q: %v", request, err)
	}
	return r, c, in
}

// Attack 5: what looks like a preflight gets to the origin of a full room, with a
// body, with an upgrade, and as often as one likes.
func TestAttackPreflightsReachNobody(t *testing.T) {
	s := newStranger(t)
	c, o := watched(t, 1, `  - {name: api, routes: [{host: "*", path: /api}], origin: "{origin}", total_active_users: 1, preflight: origin}
`)
	c.room = "    cors: {origins: [\"https://app.example\"], credentials: true}\n"
	c.open(s)
	c.run(1)
	p := c.nodes[0]
	p.enter("")
	for what, request := range map[string]string{
		"with a body":  "OPTIONS /order HTTP/1.1\nHost: x\nOrigin: https://evil.example\nAccess-Control-Request-Method: PUT\nContent-Length: 5\n\nhello",
		"with upgrade": "OPTIONS /ws HTTP/1.1\nHost: x\nOrigin: https://evil.example\nAccess-Control-Request-Method: GET\nConnection: Upgrade\nUpgrade: websocket\n\n",
		"of an app":    "OPTIONS /order HTTP/1.1\nHost: x\nOrigin: https://app.example\nAccess-Control-Request-Method: GET\n\n",
	} {
		r, _, _ := wire(t, p.at(0), request)
		if allowed := r.Header.Get("Access-Control-Allow-Origin"); r.StatusCode != 204 || (allowed != "") != (what == "of an app") {
			t.Errorf("%s: %s %v", what, r.Status, r.Header)
		}
	}
	if seen := o.take(); len(seen) != 0 {
		t.Fatalf("the origin saw %q", seen)
	}
	if said := p.log.String(); strings.Count(said, "https://evil.example") != 1 {
		t.Errorf("the log does not name the origin refused once")
	}
	// The room that passes them on gives the origin no more than the question, and bounds each address.
	wire(t, p.at(0), "OPTIONS /api HTTP/1.1\nHost: x\nOrigin: https://app.example\nAccess-Control-Request-Method: PUT\nCookie: a=secret\nAuthorization: secret\n"+
		"Connection: Upgrade\nUpgrade: websocket\nContent-Length: 6\n\nsecret")
	if seen := o.take(); len(seen) != 1 || strings.Contains(seen[0], "secret") || strings.Contains(seen[0], "websocket") {
		t.Errorf("the origin saw %q", seen)
	}
	flood := s.client(s.addr(7))
	refused, began := 0, time.Now()
	for range 400 {
		q, _ := http.NewRequest(http.MethodOptions, p.gateway()+"/api", nil)
		q.Header.Set("Origin", "https://app.example")
		q.Header.Set("Access-Control-Request-Method", "PUT")
		r, err := flood.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if r.StatusCode == 429 {
			refused++
		}
	}
	most := 200 + int(10*time.Since(began).Seconds()) + 10
	if n := len(o.take()); n > most || n+refused != 400 {
		t.Errorf("the origin got %d of 400 from one address, want at most %d; %d were refused", n, most, refused)
	}
}

// Attack 9: a path that the origin reads as the checkout, and the gateway as
// another room's.
func TestAttackNoPathLeadsAroundARoom(t *testing.T) {
	c, o := watched(t, 1000, `  - {name: checkout, routes: [{host: "*", path: /checkout}], origin: "{origin}", total_active_users: 1}
  - {name: strict, routes: [{host: "*", path: /strict}], origin: "{origin}", total_active_users: 1000, strict_paths: true}
`)
	c.run(1)
	p := c.nodes[0]
	room := func(name string) *http.Response {
		r, err := http.Post(p.gateway()+"/_anteroom/v1/rooms/"+name+"/join", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		return r
	}
	c.until("the checkout is full", 20*time.Second, func() bool { return room("checkout").StatusCode == 201 })
	pass := p.enter("") // of the shop, which has room for all
	for _, raw := range []string{
		"/checkout;x", "/checkout;jsessionid=1/pay", "/x/..;/checkout", "/x/..%5ccheckout", `/x/..\checkout`, "/checkout%20", "/checkout.", "//checkout", "//x/checkout",
		"/x//..//checkout", "/x%2f..%2fcheckout", "/%2fcheckout", "/x/%2e%2e/checkout", "/x/%252e%252e/checkout", "/x%252f..%252fcheckout", "/checkout%00.png",
		"/checkout%3fx", "/check%256fut", "/%5ccheckout", "/x/..%c0%afcheckout", "/./checkout", "/x/../checkout", "/checkout/../x",
	} {
		r, _, _ := wire(t, p.at(0), "GET "+raw+" HTTP/1.1\nHost: x\nAccept: text/html\nCookie: anteroom_shop="+pass+"\n\n")
		if seen := o.take(); len(seen) != 0 {
			t.Errorf("%s: %s, and the origin saw %q", raw, r.Status, seen)
		}
		if r, _, _ = wire(t, p.at(0), "GET "+strings.ReplaceAll(raw, "checkout", "strict")+" HTTP/1.1\nHost: x\n\n"); path.Clean(raw) != raw && r.StatusCode != 400 {
			t.Errorf("%s to a strict room: %s", raw, r.Status)
		}
		o.take()
	}
	for _, raw := range []string{"/CHECKOUT", "/Checkout/pay", "/%43heckout", "/chec%e2%84%aaout"} { // Express and IIS serve the checkout
		r, _, _ := wire(t, p.at(0), "GET "+raw+" HTTP/1.1\nHost: x\nAccept: text/html\nCookie: anteroom_shop="+pass+"\n\n")
		if seen := o.take(); len(seen) != 0 {
			t.Errorf("%s: %s, and the origin saw %q", raw, r.Status, seen)
		}
	}
	for _, raw := range []string{"/", "/blog;jsessionid=1", "/a//b", "/Checkouts"} {
		r, _, _ := wire(t, p.at(0), "GET "+raw+" HTTP/1.1\nHost: x\nCookie: anteroom_shop="+pass+"\n\n")
		if seen := o.take(); r.StatusCode != 200 || len(seen) != 1 {
			t.Errorf("%s with the pass: %s, the origin saw %q", raw, r.Status, seen)
		}
	}
}

// Attack 10: a WebSocket goes on when the visit is over, and takes no slot.
func TestAttackTunnelsEndWithTheVisit(t *testing.T) {
	t.Parallel()
	c, _ := watched(t, 10, "")
	c.session = 6 * time.Second
	c.run(2)
	open := func(p *process, pass, protocol string) (int, net.Conn, *bufio.Reader) {
		r, conn, in := wire(t, p.at(0), "GET /ws HTTP/1.1\nHost: x\nConnection: Upgrade\nUpgrade: "+protocol+"\nCookie: anteroom_shop="+pass+"\n\n")
		return r.StatusCode, conn, in
	}
	closed := func(what string, in *bufio.Reader, since time.Time, within time.Duration) {
		t.Helper()
		_, err := in.ReadByte()
		if took := time.Since(since); err == nil || took > within {
			t.Errorf("%s: after %v: %v, want an end within %v", what, took, err, within)
		}
	}
	one, two := c.nodes[0], c.nodes[1]
	one.orders("hold") // else who comes without a pass may walk in, and have one
	c.until("nobody comes in", 10*time.Second, func() bool { return one.metric("anteroom_room_held") == 1 })
	if status, _, _ := open(one, "", "websocket"); status == 101 {
		t.Error("a tunnel without a pass")
	}
	one.orders("release")
	for at, p := range map[string]*process{"here": one, "elsewhere": two} {
		pass := one.enter("")
		status, conn, in := open(one, pass, "websocket")
		if status != 101 {
			t.Fatalf("%d", status)
		}
		_, _ = io.WriteString(conn, "x")
		if b, err := in.ReadByte(); b != 'x' {
			t.Fatal(err)
		}
		began := time.Now()
		if a := p.visit("end", map[string]string{"pass": pass}); a.Status != 204 {
			t.Fatalf("%+v", a)
		}
		closed("ended "+at, in, began, 5*time.Second)
	}
	silent, talks := one.enter(""), one.enter("")
	_, _, silence := open(one, silent, "websocket")
	_, conn, in := open(one, talks, "websocket")
	began := time.Now()
	for time.Since(began) < 14*time.Second { // more than two sessions
		_, _ = io.WriteString(conn, "x")
		if b, err := in.ReadByte(); b != 'x' {
			t.Fatalf("after %v of talking: %v", time.Since(began), err)
		}
		time.Sleep(500 * time.Millisecond)
	}
	closed("silent", silence, began, 15*time.Second)
	pass := one.enter("")
	if status, _, _ := open(one, pass, "h2c"); status == 101 {
		t.Error("a tunnel to HTTP/2 without TLS")
	}
}

// Attack 15: trailers and headers that the origin takes for ours, or for the
// address.
func TestAttackNothingOfOursIsSmuggled(t *testing.T) {
	c, o := watched(t, 10, "")
	c.run(1)
	p := c.nodes[0]
	pass := p.enter("")
	var request bytes.Buffer
	bad := []string{"X-Anteroom-Pass", "Anteroom-Command", "X-Forwarded-For", "Forwarded", "Cookie", "Authorization", "X-Original-URL", "X-Rewrite-URL", "Host"}
	fmt.Fprintf(&request, "POST /order HTTP/1.1\nHost: x\nCookie: anteroom_shop=%s\nTransfer-Encoding: chunked\nTE: trailers\nTrailer: X-Check, %s\n", pass, strings.Join(bad, ", "))
	request.WriteString("X-Anteroom-Pass: forged\nX_Anteroom_Pass: forged\nX-Original-URL: /forged\nX-Rewrite-URL: /forged\nX_Rewrite_URL: /forged\nX-Forwarded-For: forged\n" +
		"Connection: Upgrade, HTTP2-Settings, X-Hop\nUpgrade: h2c\nHTTP2-Settings: forged\nX-Hop: forged\nProxy-Authorization: forged\nKeep-Alive: forged\n\n4\ndata\n0\nX-Check: 7\n")
	for _, name := range bad {
		fmt.Fprintf(&request, "%s: forged\n", name)
	}
	request.WriteString("\n")
	r, _, _ := wire(t, p.at(0), request.String())
	seen := o.take()
	if r.StatusCode != 200 || len(seen) != 1 {
		t.Fatalf("%s, the origin saw %q", r.Status, seen)
	}
	if strings.Contains(seen[0], "forged") || !strings.Contains(seen[0], "Te:[trailers]") || !strings.HasSuffix(seen[0], "data map[X-Check:[7]]") {
		t.Errorf("the origin saw %s", seen[0])
	}
	// The preface of HTTP/2 to a port that does not speak it.
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.at(0))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	if b, _ := io.ReadAll(io.LimitReader(conn, 12)); bytes.HasPrefix(b, []byte("\x00")) || len(o.take()) != 0 {
		t.Errorf("it speaks HTTP/2 without TLS: %q", b)
	}
}
