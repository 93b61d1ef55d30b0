package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/ticket"
)

// passed sends a request through to the origin and returns what it saw.
func passed(t *testing.T, trusted bool, headers ...string) http.Header {
	t.Helper()
	var got http.Header
	w := newWorld(t, withOrigin(t, func(_ http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		got.Set("Host", r.Host)
	}, func(c *gateway.Config) {
		if trusted {
			c.TrustedProxies = loopback
		}
	}), shop())
	if r := w.send("GET", "/", "", append(headers, "Accept-Encoding: br", "User-Agent: test")...); r.StatusCode != 200 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	got.Del("Accept-Encoding")
	got.Del("User-Agent")
	if jwt := got.Get("X-Anteroom-Pass"); strings.Count(jwt, ".") != 2 || len(got["X-Anteroom-Pass"]) != 1 {
		t.Errorf("the origin got as pass %q", got["X-Anteroom-Pass"])
	}
	got.Del("X-Anteroom-Pass")
	return got
}

func TestWhatTheOriginSees(t *testing.T) {
	base := func(more map[string][]string) http.Header {
		h := http.Header{
			"Host": {"shop.example.com:8080"}, "X-Forwarded-For": {"127.0.0.1"},
			"X-Forwarded-Host": {"shop.example.com:8080"}, "X-Forwarded-Proto": {"http"},
		}
		for k, v := range more {
			h[k] = v
		}
		return h
	}
	for _, c := range []struct {
		what    string
		trusted bool
		headers []string
		want    http.Header
	}{
		{"what a stranger says about forwarding is dropped", false, []string{
			"X-Forwarded-For: 1.2.3.4", "X-Forwarded-Host: evil.example", "X-Forwarded-Proto: https", "X-Forwarded-Port: 1",
			"Forwarded: for=1.2.3.4", "X-Real-Ip: 1.2.3.4", "x_forwarded_for: 1.2.3.4", "X_Real_Ip: 1.2.3.4",
		}, base(nil)},
		{"a trusted proxy is believed", true, []string{
			"X-Forwarded-For: 9.9.9.9, 1.2.3.4", "X-Forwarded-Host: shop.example.com", "X-Forwarded-Proto: https", "X-Forwarded-Port: 443", "X-Real-Ip: 1.2.3.4",
		}, base(map[string][]string{
			"X-Forwarded-For": {"9.9.9.9, 1.2.3.4, 127.0.0.1"}, "X-Forwarded-Host": {"shop.example.com"}, "X-Forwarded-Proto": {"https"},
			"X-Forwarded-Port": {"443"}, "X-Real-Ip": {"1.2.3.4"},
		})},
		{"nothing that looks like ours comes from outside", false, []string{
			"X-Anteroom-Pass: forged", "x_anteroom_pass: forged", "X-Anteroom_Pass: forged", "X-ANTEROOM-ROOM: x", "Anteroom-Command: revoke",
		}, base(nil)},
		{"headers of the connection stay with it", false, []string{
			"Connection: X-Secret, X-Anteroom-Pass, keep-alive", "X-Secret: 1", "Keep-Alive: 5", "Proxy-Authorization: Basic eDp5", "Te: gzip",
			"transfer_encoding: chunked", "Content_Length: 5",
		}, base(nil)},
		{"cookies but ours", false, []string{
			"Cookie: a=1; anteroom_shop=x; b=\"2;3\"; __Host-anteroom_other=y;c", "Cookie: anteroom_shop=z", "Cookie: d=4",
		}, base(map[string][]string{"Cookie": {"a=1; b=\"2; 3\"; c; d=4"}})},
		{"what is the application's", false, []string{
			"Authorization: Basic eDp5", "X-Custom: 1", "X-Custom: 2", "X_Custom: 3", "Accept: text/html", "If-None-Match: \"x\"",
		}, base(map[string][]string{
			"Authorization": {"Basic eDp5"}, "X-Custom": {"1", "2"}, "X_custom": {"3"}, "Accept": {"text/html"}, "If-None-Match": {"\"x\""},
		})},
	} {
		got := passed(t, c.trusted, append(c.headers, "Host: shop.example.com:8080")...)
		if ck := got["Cookie"]; len(ck) > 0 {
			got["Cookie"] = []string{strings.Join(ck, "; ")}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, d)
		}
	}
}

func TestTheAddressArrivesAsItWasWritten(t *testing.T) {
	var got string
	w := newWorld(t, withOrigin(t, func(_ http.ResponseWriter, r *http.Request) { got = r.RequestURI }), shop())
	b := w.browser()
	for _, path := range []string{"/a%2fb//c/../d?x=%zz;y&&=1", "/?", "/%e2%82%ac?q=a+b", "//double", "/a;b=1?c;d"} {
		b.open(path)
		if got != path && got != strings.TrimSuffix(path, "?") {
			t.Errorf("%s became %s", path, got)
		}
	}
}

func TestTheOriginCannotSpeakForUs(t *testing.T) {
	w := newWorld(t, withOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Add("Set-Cookie", "anteroom_shop=forged; Path=/")
		h.Add("Set-Cookie", "session=1; Path=/")
		h.Add("Set-Cookie", "__Host-anteroom_shop=forged; Path=/; Secure")
		h.Set("X-Anteroom-Pass", "x")
		h.Set("Cache-Control", "public, max-age=60, s-maxage=600")
		h.Set("CDN-Cache-Control", "max-age=600")
		h.Set("ETag", `"1"`)
	}), shop())
	b := w.browser()
	r := b.open("/")
	var names []string
	for _, k := range r.Cookies() {
		names = append(names, k.Name)
		if k.Name == "anteroom_shop" && k.Value == "forged" {
			t.Error("the origin set our cookie")
		}
	}
	if slices.Sort(names); !slices.Equal(names, []string{"anteroom_shop", "session"}) {
		t.Errorf("cookies %v", names)
	}
	if r.Header.Get("Cache-Control") != "private, max-age=60" || r.Header.Get("CDN-Cache-Control") != "" || r.Header.Get("X-Anteroom-Pass") != "" || r.Header.Get("ETag") == "" {
		t.Errorf("with a cookie of one visitor: %v", r.Header)
	}
	if r := b.open("/"); r.Header.Get("Cache-Control") != "public, max-age=60, s-maxage=600" {
		t.Errorf("without: %v", r.Header)
	}
}

func TestTheOriginEndsASession(t *testing.T) {
	w := newWorld(t, withOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/paid" {
			w.Header().Set("Anteroom-Command", "revoke")
		}
		_, _ = io.WriteString(w, "thanks")
	}), shop())
	b := w.browser()
	b.open("/")
	r := b.open("/paid")
	if r.body != "thanks" || r.Header.Get("Anteroom-Command") != "" || len(b.jar) != 0 || w.count(ticket.End) != 1 {
		t.Fatalf("%d %s %v, cookies %v", r.StatusCode, r.body, r.Header, b.jar)
	}
	if p := w.join(); p.State != "admitted" {
		t.Errorf("the slot is not free: %+v", p)
	}
}

func TestAnOriginThatIsDownCostsNobodyTheirPass(t *testing.T) {
	w := newWorld(t, func(c *gateway.Config) {
		c.Rooms[0].Origin = &url.URL{Scheme: "http", Host: closedAddress(t)}
		c.Rooms[0].Routes = []gateway.Route{{Path: "/"}}
	}, shop())
	b := w.browser()
	r := b.open("/x")
	var v gateway.View
	r.json(t, &v)
	if r.StatusCode != 502 || v.Kind != gateway.PageOriginDown || v.HereURL != "/x" || len(b.jar) != 1 {
		t.Fatalf("%d %+v, cookies %v", r.StatusCode, v, b.jar)
	}
	if r := b.send("GET", "/x", ""); r.StatusCode != 502 || r.code() != "origin_down" || w.count(ticket.Join) != 1 {
		t.Errorf("%d %s, %d joins", r.StatusCode, r.body, w.count(ticket.Join))
	}
}

// closedAddress is one where nobody listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func TestStreamsOfTheOriginAreNotHeldBack(t *testing.T) {
	more := make(chan struct{})
	w := newWorld(t, withOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "one\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-more:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, "two\n")
	}), shop())
	res, err := http.DefaultTransport.RoundTrip(w.request("GET", "/", "", navigation...))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	in := bufio.NewReader(res.Body)
	if line, err := in.ReadString('\n'); line != "one\n" {
		t.Fatalf("%q, %v", line, err)
	}
	close(more)
	if line, err := in.ReadString('\n'); line != "two\n" {
		t.Fatalf("%q, %v", line, err)
	}
}

func TestACancelledRequestIsCancelledAtTheOrigin(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	w := newWorld(t, withOrigin(t, func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		close(ended)
	}), shop())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := http.DefaultTransport.RoundTrip(w.request("GET", "/", "", navigation...).WithContext(ctx)) //nolint:bodyclose // there is none
		done <- err
	}()
	<-began
	cancel()
	<-ended
	if err := <-done; err == nil {
		t.Error("the request was answered")
	}
}

func TestTrailersGoBothWays(t *testing.T) {
	var body string
	var got http.Header
	w := newWorld(t, withOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		b, _ := io.ReadAll(r.Body)
		body, got = string(b), r.Trailer
		_, _ = io.WriteString(w, "ok")
		w.Header().Set("X-Sum", "42")
		w.Header().Set(http.TrailerPrefix+"X-Late", "43")
	}), shop())
	r := w.request("POST", "/", "")
	r.Body, r.ContentLength, r.Trailer = io.NopCloser(strings.NewReader("data")), -1, http.Header{"X-Check": {"7"}}
	res := w.do(http.DefaultTransport, r)
	if body != "data" || got.Get("X-Check") != "7" || res.Trailer.Get("X-Sum") != "42" || res.Trailer.Get("X-Late") != "43" {
		t.Errorf("the origin got %q and %v, the visitor %v", body, got, res.Trailer)
	}
}

func TestAWebSocketGoesThrough(t *testing.T) {
	w := newWorld(t, withOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("X-Anteroom-Pass") == "" {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAnteroom-Command: x\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		_, _ = rw.WriteString("echo " + line)
		_ = rw.Flush()
	}), shop())
	pass := w.join().Pass
	u, _ := url.Parse(w.url)
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintf(c, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-Fetch-Mode: websocket\r\nSec-Fetch-Dest: websocket\r\nCookie: anteroom_shop=%s\r\n\r\n", pass)
	in := bufio.NewReader(c)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != 101 || res.Header.Get("Upgrade") != "websocket" || res.Header.Get("Anteroom-Command") != "" {
		t.Fatalf("%+v, %v", res, err)
	}
	_, _ = io.WriteString(c, "hello\n")
	if line, err := in.ReadString('\n'); line != "echo hello\n" {
		t.Fatalf("%q, %v", line, err)
	}
}

// TestRequestsThatTwoServersReadDifferentlyAreRefused sends what smuggles a
// second request past a proxy that reads the first one otherwise than the origin.
func TestRequestsThatTwoServersReadDifferentlyAreRefused(t *testing.T) {
	var seen []string
	w := newWorld(t, withOrigin(t, func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		seen = append(seen, r.Method+" "+r.URL.Path+" "+string(b))
	}), shop())
	cookie := "Cookie: anteroom_shop=" + w.join().Pass + "\r\n"
	u, _ := url.Parse(w.url)
	for what, raw := range map[string]string{
		"two lengths":              "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 40\r\n" + cookie + "\r\nhello",
		"chunks and not chunks":    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n" + cookie + "\r\n0\r\n\r\n",
		"a strange coding":         "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n" + cookie + "\r\n0\r\n\r\n",
		"a space before the colon": "POST / HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n" + cookie + "\r\nhello",
		"a bad length":             "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n" + cookie + "\r\nhello",
		"two hosts":                "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n" + cookie + "\r\n",
		"a line folded":            "GET / HTTP/1.1\r\nHost: x\r\nX-A: 1\r\n X-Anteroom-Pass: forged\r\nCookie\x00: a\r\n" + cookie + "\r\n",
	} {
		seen = nil
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, raw+"GET /smuggled HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || res.StatusCode != 400 && res.StatusCode != 501 || len(seen) != 0 {
			t.Errorf("%s: %+v, %v; the origin saw %q", what, res, err, seen)
		}
		_ = c.Close()
	}
}
