package server_test

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/server"
)

// A node inside another server opens no port for visitors: they come by Before, and the
// site is whatever stands behind.
func TestANodeInsideAnotherServer(t *testing.T) {
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("NOT RUN: a test with real sockets; set ANTEROOM_E2E=1")
	}
	const file = `
node: {id: node-1, gateway: "203.0.113.1:80", admin: "127.0.0.1:0", grpc: none}
rooms: [{name: shop, routes: [{host: "*", path: /shop}], total_active_users: 1}]
`
	f := config.Parse("test", []byte(file), config.Options{})
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	s := server.New(f.Config, server.Options{Inside: true})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-s.Ready():
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	if at := s.Addresses().Gateway; at != "" {
		t.Errorf("visitors at %s", at)
	}
	front := httptest.NewServer(s.Before(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "the site at "+r.URL.Path)
	})))
	defer front.Close()
	if got := s.RoomAt("anywhere", &url.URL{Path: "/shop"}); got != "shop" {
		t.Errorf("the room of /shop is %q", got)
	}
	first, second := &http.Client{Jar: newJar(t)}, &http.Client{Jar: newJar(t)}
	get := func(who *http.Client, path string) string {
		t.Helper()
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, front.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Accept", "text/html")
		q.Header.Set("Sec-Fetch-Mode", "navigate")
		a, err := who.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = a.Body.Close() }()
		b, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for end := time.Now().Add(20 * time.Second); get(first, "/shop") != "the site at /shop"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nobody gets in")
		}
	}
	if got := get(second, "/shop"); !strings.Contains(got, "<html") || strings.Contains(got, "the site at") {
		t.Errorf("the second got %s", got)
	}
	if got := get(second, "/free"); got != "the site at /free" {
		t.Errorf("outside of the room: %s", got)
	}
}

func newJar(t *testing.T) *cookiejar.Jar {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return jar
}
