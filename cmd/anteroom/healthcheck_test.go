package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealthcheckSaysByItsExitCode(t *testing.T) {
	ready := false
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch {
		case q.URL.Path == "/healthz", q.URL.Path == "/readyz" && ready:
			_, _ = w.Write([]byte("ok\n"))
		case q.URL.Path == "/readyz":
			http.Error(w, "waiting for signing keys", http.StatusServiceUnavailable)
		default:
			http.NotFound(w, q)
		}
	}))
	defer node.Close()
	check := func(code int, want string, args ...string) {
		t.Helper()
		out, errors, got := execute(t, t.Context(), append([]string{"healthcheck", "--admin", node.URL}, args...)...)
		if got != code || !strings.Contains(out+errors, want) {
			t.Errorf("%q: exit code %d, output %q, errors %q; want %d and %q", args, got, out, errors, code, want)
		}
	}
	check(0, "ok\n")
	check(1, "anteroom healthcheck: /readyz says 503 Service Unavailable: waiting for signing keys", "--ready")
	ready = true
	check(0, "ok\n", "--ready")
	node.Close()
	check(1, "no node answers at "+node.URL)
}
