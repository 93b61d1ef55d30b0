package admin_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/gateway/admin"
)

// A page whose name was made to point here reads no more than it changes.
func TestTheAdminPortAnswersByItsOwnNamesOnly(t *testing.T) {
	const token = "Bearer opensesame"
	for _, x := range []struct {
		host, path string
		at         string // the address of the connection on this side
		token      string // in the request
		status     int
	}{
		{"127.0.0.1:9090", "/v1/cluster", "127.0.0.1", "", 200},
		{"[::1]:9090", "/metrics", "::1", "", 200},
		{"localhost:9090", "/", "127.0.0.1", "", 200},
		{"LOCALHOST", "/v1/rooms", "127.0.0.1", "", 200},
		{"node-1.internal.:9090", "/v1/cluster", "127.0.0.1", "", 200},
		{"", "/v1/cluster", "127.0.0.1", "", 200},
		{"10.0.0.5:9090", "/metrics", "10.0.0.5", "", 200},      // as Prometheus asks
		{"192.168.1.2:9090", "/metrics", "172.17.0.2", "", 200}, // the same, through a mapped port
		{"evil.example:9090", "/v1/cluster", "127.0.0.1", "", 403},
		{"evil.example", "/metrics", "10.0.0.5", "", 403},
		{"127.0.0.1.evil.example:9090", "/v1/rooms", "127.0.0.1", "", 403},
		{"localhost.evil.example", "/", "127.0.0.1", "", 403},
		{"198.51.100.7:9090", "/v1/cluster", "127.0.0.1", "", 403},
		{"evil.example", "/healthz", "127.0.0.1", "", 200}, // a balancer asks by the site's name
		{"evil.example", "/readyz", "127.0.0.1", "", 200},
		{"monitoring.example", "/metrics", "10.0.0.5", token, 200}, // nobody is led into showing a token
		{"monitoring.example", "/metrics", "10.0.0.5", token + "?", 403},
	} {
		c := admin.Config{Source: aNode(), Operator: aDesk(), Hosts: []string{"node-1.internal"}, Metrics: prometheus.NewRegistry(), Profiles: true}
		if x.token != "" {
			c.Token = "opensesame"
		}
		r := httptest.NewRequest("GET", x.path, nil)
		r.Host = x.host
		if x.token != "" {
			r.Header.Set("Authorization", x.token)
		}
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.ParseIP(x.at), Port: 9090}))
		w := httptest.NewRecorder()
		admin.New(c).ServeHTTP(w, r)
		if w.Code != x.status || (x.status == 403) != strings.Contains(w.Body.String(), "admin_hosts") {
			t.Errorf("%s of %q at %s with %q: %d %s, want %d", x.path, x.host, x.at, x.token, w.Code, w.Body, x.status)
		}
	}
}

func TestProfilesAreOffUntilTheNodeIsStartedWithThem(t *testing.T) {
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline", "/debug/pprof/profile?seconds=1"} {
		w := get(admin.Config{Source: aNode()}, "GET", path)
		if w.Code != 404 || !strings.Contains(w.Body.String(), "serve --pprof") {
			t.Errorf("%s: %d %s, want 404 and how to have them", path, w.Code, w.Body)
		}
	}
	if w := get(admin.Config{Source: aNode()}, "GET", "/"); strings.Contains(w.Body.String(), "pprof") {
		t.Error("the page leads to profiles that are off")
	}
}
