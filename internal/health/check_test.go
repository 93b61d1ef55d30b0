package health_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/health"
)

// at is a check of a server, as the defaults have it.
func at(t *testing.T, server *httptest.Server, path string) health.Check {
	t.Helper()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, _ := strconv.Atoi(u.Port()) // of a URL that was parsed
	return health.Check{
		Room: "shop", Name: "front", Type: u.Scheme, Address: u.Hostname(), Port: port, Host: u.Hostname(), Path: path, Method: "GET",
		Codes: []string{"200"}, Interval: time.Minute, Timeout: 5 * time.Second, Up: 1, Down: 1,
	}
}

func anOrigin(asked *[]string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Method+" "+r.Host+r.URL.RequestURI())
		_, _ = io.WriteString(w, "All is Well.") // to a recorder of the test
	})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat(".", 64<<10)+"well")
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/here", http.StatusFound) })
	mux.HandleFunc("/around", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/around", http.StatusFound) })
	mux.HandleFunc("/elsewhere", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	})
	return mux
}

func TestWhatAnOriginMustAnswer(t *testing.T) {
	var asked []string
	s := httptest.NewServer(anOrigin(&asked))
	defer s.Close()
	for _, c := range []struct {
		name   string
		path   string
		change func(*health.Check)
		want   health.Result
	}{
		{"the code and the body", "/", func(c *health.Check) { c.Body = "all is well" }, health.Result{OK: true, Code: 200}},
		{"a code of another kind", "/broken", nil, health.Result{Reason: "Response code mismatch error", Code: 502}},
		{"a hundred of codes", "/broken", func(c *health.Check) { c.Codes = []string{"404", "5xx"} }, health.Result{OK: true, Code: 502}},
		{"a body without the words", "/", func(c *health.Check) { c.Body = "sold out" }, health.Result{Reason: "Response body mismatch error", Code: 200}},
		{"words beyond what is read", "/long", func(c *health.Check) { c.Body = "well" }, health.Result{Reason: "Response body mismatch error", Code: 200}},
		{"a redirect that nobody asked to follow", "/moved", nil, health.Result{Reason: "Response code mismatch error", Code: 302}},
		{"one that is expected", "/moved", func(c *health.Check) { c.Codes = []string{"302"} }, health.Result{OK: true, Code: 302}},
		{"one that is followed", "/moved", func(c *health.Check) { c.FollowRedirects = true }, health.Result{OK: true, Code: 200}},
		{"one that goes round", "/around", func(c *health.Check) { c.FollowRedirects = true }, health.Result{Reason: "HTTP request failed"}},
		{"a server without TLS", "/", func(c *health.Check) { c.Type = "https" }, health.Result{Reason: "TLS handshake failed"}},
		{"a connection", "", func(c *health.Check) { c.Type = "tcp" }, health.Result{OK: true}},
	} {
		check := at(t, s, c.path)
		if c.change != nil {
			c.change(&check)
		}
		got := health.Probe(t.Context(), &check)
		if got.Took = 0; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	asked = nil
	named := at(t, s, "/a?b=c")
	named.Host, named.Method = "shop.example.com", "HEAD"
	if got := health.Probe(t.Context(), &named); !got.OK {
		t.Errorf("by a name that nobody resolves: %+v", got)
	}
	if want := "HEAD shop.example.com:" + strconv.Itoa(named.Port) + "/a?b=c"; len(asked) != 1 || asked[0] != want {
		t.Errorf("asked for %q, want %s", asked, want)
	}
}

// TestARedirectLeadsNowhereElse: whoever writes the origin's answers does not
// choose whom the nodes ask.
func TestARedirectLeadsNowhereElse(t *testing.T) {
	var asked, secret []string
	s, other := httptest.NewServer(anOrigin(&asked)), httptest.NewServer(anOrigin(&secret))
	defer s.Close()
	defer other.Close()
	port := at(t, s, "/").Port
	for _, to := range []string{other.URL + "/", "https://127.0.0.1:" + strconv.Itoa(port) + "/", "http://localhost:" + strconv.Itoa(port) + "/", "file:///etc/passwd"} {
		check := at(t, s, "/elsewhere?to="+url.QueryEscape(to))
		check.FollowRedirects = true
		if got := health.Probe(t.Context(), &check); got.OK || got.Reason != "HTTP redirect to another host or port" {
			t.Errorf("to %s: %+v", to, got)
		}
	}
	if len(secret) > 0 {
		t.Errorf("another server was asked for %q", secret)
	}
}

func TestACertificateIsCheckedUnlessItNeedNotBe(t *testing.T) {
	var asked []string
	s := httptest.NewUnstartedServer(anOrigin(&asked))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	check := at(t, s, "/")
	if got := health.Probe(t.Context(), &check); got.OK || got.Reason != "TLS untrusted certificate error" {
		t.Errorf("a certificate that nobody vouches for: %+v", got)
	}
	if check.AllowInsecure = true; !health.Probe(t.Context(), &check).OK {
		t.Error("with allow_insecure it does not count, and the check failed")
	}
}

func TestWhereNoAnswerComesItIsAskedAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tries := make(chan net.Conn, 10)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				close(tries)
				return
			}
			tries <- conn // and says nothing
		}
	}()
	check := health.Check{
		Type: "http", Address: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, Host: "127.0.0.1", Path: "/", Method: "GET",
		Codes: []string{"200"}, Timeout: 300 * time.Millisecond, Retries: 2,
	}
	if got := health.Probe(context.Background(), &check); got.OK || got.Reason != "HTTP timeout occurred" {
		t.Errorf("%+v", got)
	}
	_ = l.Close()
	n := 0
	for conn := range tries {
		_ = conn.Close()
		n++
	}
	if n != 3 {
		t.Errorf("%d tries, want 3", n)
	}
	if got := health.Probe(context.Background(), &check); got.OK || got.Reason != "TCP connection failed" {
		t.Errorf("where nobody listens: %+v", got)
	}
}
