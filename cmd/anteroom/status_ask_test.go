package main

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/seal"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// untouched is a queue that nobody is to come to.
type untouched struct{ t *testing.T }

func (q untouched) Do(_ context.Context, r ticket.Request) (ticket.Answer, error) {
	q.t.Errorf("status came to the queue: %v", r.Op)
	return ticket.Answer{}, ticket.ErrBusy
}

func (untouched) Room(name string) (gateway.RoomState, bool) {
	return gateway.RoomState{Room: eviction.Room{Name: name, Target: 1}}, true
}
func (untouched) Called(string, qpid.ItemID) (<-chan struct{}, func()) { return nil, func() {} }
func (untouched) Clock() int64                                         { return 1 }

// visitorsPort is a gateway with a room at every address.
func visitorsPort(t *testing.T) http.Handler {
	t.Helper()
	ring := seal.New(seal.Config{Now: untouched{}.Clock})
	if err := ring.Rotate(); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gateway.Config{Queue: untouched{t}, Sealer: ring, Rooms: []gateway.Room{{
		Name: "shop", Routes: []gateway.Route{{Host: "*", Path: "/"}}, Origin: &url.URL{Scheme: "http", Host: "127.0.0.1:9"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

func TestStatusAtAnotherPortSaysWhatItIs(t *testing.T) {
	says := func(status int, kind, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Location", "http://login.example.com/")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		})
	}
	web := func(h http.Handler) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL
	}
	secure := httptest.NewUnstartedServer(visitorsPort(t))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	peer, peerPort := grpc.NewServer(), listen()
	t.Cleanup(peer.Stop)
	go func() { _ = peer.Serve(peerPort) }()
	hangsUp := listen()
	go func() {
		for c, err := hangsUp.Accept(); err == nil; c, err = hangsUp.Accept() {
			_ = c.Close()
		}
	}()
	gone := listen()
	_ = gone.Close()
	good := adminPort(t, healthy(), "")
	const foreign, hint = " is not the admin port of a node: ", "give the address in node.admin of its file as --admin (by default http://127.0.0.1:9090 on the node's own machine)"
	for _, c := range []struct {
		what, at string
		want     []string
	}{
		{"the gateway", web(visitorsPort(t)), []string{" is the port for visitors (node.gateway); status and rooms ask the admin port of the same node: --admin http://127.0.0.1:9090, unless node.admin"}},
		{"the gateway with TLS", strings.Replace(secure.URL, "https", "http", 1), []string{" speaks https; if it is the admin port of a node with security.tls.admin, give --admin " + secure.URL + ", and --ca"}},
		{"the peer port", "http://" + peerPort.Addr().String(), []string{foreign, "node.peer, node.grpc and node.gossip", hint}},
		{"a port that hangs up", "http://" + hangsUp.Addr().String(), []string{foreign, "node.peer, node.grpc and node.gossip", hint}},
		{"nobody", "http://" + gone.Addr().String(), []string{"no node answers at http://" + gone.Addr().String(), "nothing listens there; is the node running", "By default that is http://127.0.0.1:9090"}},
		{"https", strings.Replace(good, "http", "https", 1), []string{"it speaks http, not https: a node.admin without security.tls.admin; try --admin " + good}},
		{"a web site", web(says(200, "text/html", "<html>")), []string{foreign + "its answer to /v1/cluster is not JSON of a node", hint}},
		{"another API", web(says(200, "application/json", `{"status":"success","node":""}`)), []string{foreign + "no node is named in the answer to /v1/cluster", hint}},
		{"a list", web(says(200, "application/json", `[]`)), []string{foreign + "its answer to /v1/cluster is not JSON of a node"}},
		{"a program that knows no such path", web(says(404, "text/plain", "404 page not found")), []string{foreign + "it answers /v1/cluster with 404 Not Found", hint}},
		{"another program's login", web(says(401, "text/html", "who are you?")), []string{foreign + "it answers /v1/cluster with 401 Unauthorized", hint}},
		{"a way to another program's login", web(says(302, "text/html", "")), []string{foreign + "it answers /v1/cluster with 302 Found", hint}},
		{"no URL", "http://", []string{"--admin http://: want a URL such as http://127.0.0.1:9090"}},
	} {
		stdout, stderr, code := execute(t, t.Context(), "status", "--admin", c.at)
		if code == 0 || stdout != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, output %q, errors %q; want one line of error", c.what, code, stdout, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("%s: %q does not say %q", c.what, stderr, want)
			}
		}
	}
}

// A node's admin port has a certificate that the machine does not know: --ca says
// who signed it.
func TestStatusGoesByTheAuthorityThatItIsGiven(t *testing.T) {
	port := httptest.NewTLSServer(admin.New(admin.Config{Source: healthy()}))
	t.Cleanup(port.Close)
	trusted, empty := filepath.Join(t.TempDir(), "ca.pem"), filepath.Join(t.TempDir(), "empty.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: port.Certificate().Raw})
	if err := errors.Join(os.WriteFile(trusted, certificate, 0o600), os.WriteFile(empty, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ca   []string
		code int
		want string
	}{
		{[]string{"--ca", trusted}, 0, "node-2"},
		{nil, 1, port.URL + ": x509: certificate signed by unknown authority; give --ca the authority that signed the node's security.tls.admin, and --admin a name that is in its certificate"},
		{[]string{"--ca", empty}, 1, "--ca: " + empty + " has no certificate in it; name a PEM file of the authority"},
		{[]string{"--ca", empty + "x"}, 1, "no such file or directory; name a PEM file of the authority"},
	} {
		stdout, stderr, code := execute(t, t.Context(), append([]string{"status", "--admin", port.URL}, c.ca...)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%q: exit code %d, output %q, errors %q; want %d and %q", c.ca, code, stdout, stderr, c.code, c.want)
		}
	}
}

func TestStatusSaysWhyNobodyIsHeard(t *testing.T) {
	a := &adminClient{url: "http://node-1:9090"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{&net.DNSError{Name: "node-1", Err: "no such host"}, "http://node-1:9090: no machine is found by the name node-1 (no such host); give --admin the node's address"},
		{context.DeadlineExceeded, "no node answers at http://node-1:9090 within 5s; is the machine up, is a firewall in between"},
		{syscall.ECONNRESET, "does not speak HTTP/1"},
		{syscall.EHOSTUNREACH, "no node answers at http://node-1:9090; is it running, and is that its node.admin? (Get \"http://node-1:9090\": no route to host)"},
	} {
		if got := a.unheard(&url.Error{Op: "Get", URL: a.url, Err: c.err}).Error(); !strings.Contains(got, c.want) {
			t.Errorf("%v: %q does not say %q", c.err, got, c.want)
		}
	}
}
