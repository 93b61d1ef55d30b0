package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway/admin"
)

const illFile = `
node: {gateway: "127.0.0.1:0", admin: "127.0.0.1:0", peer: "127.0.0.1:0", grpc: "127.0.0.1:0", gossip: "127.0.0.1:0"}
cluster: {lease: 4s}
rooms:
  - name: shop
    routes: [{host: "*", path: /}]
    origin: %s
    total_active_users: 50
    refresh_interval: 3s
    ticket_ttl: 1m
    health_checks: [{name: front, path: /healthz, interval: 1s, timeout: 500ms, consecutive_up: 2}]
    on_unhealthy: hold
`

// patient is an origin that can be ill.
func patient(t *testing.T) (url string, ill *atomic.Bool) {
	t.Helper()
	ill = &atomic.Bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if ill.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, ill
}

// origin is what m knows of the shop's origin.
func (m *member) origin() admin.RoomHealth {
	m.r.t.Helper()
	a, err := http.Get("http://" + m.Addresses().Admin + "/v1/health")
	if err != nil {
		m.r.t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	var list admin.HealthList
	if err := json.NewDecoder(a.Body).Decode(&list); err != nil || len(list.Rooms) != 1 {
		m.r.t.Fatalf("%s: %v: %+v", m.id, err, list)
	}
	return list.Rooms[0]
}

// TestAnIllOriginIsKnownAtAllNodes: none of four lets anybody in, although three
// look; and the loss of one that looks changes nothing.
func TestAnIllOriginIsKnownAtAllNodes(t *testing.T) {
	r := newRig(t, 5)
	url, ill := patient(t)
	for range 4 {
		r.startWith(fmt.Sprintf(illFile, url), 4, 0)
	}
	r.serving()
	everywhere := func(status string, holds bool) func() bool {
		return func() bool {
			for _, m := range r.nodes {
				if h := m.origin(); h.Status != status || h.Holds != holds {
					return false
				}
			}
			return true
		}
	}
	r.until("a healthy origin everywhere", 15*time.Second, everywhere("healthy", false))
	if n := len(r.nodes[0].origin().Checks[0].Seen); n != 3 {
		t.Errorf("%d nodes look, want 3", n)
	}
	if s := r.nodes[3].visit("join", "", ""); s.State != "admitted" {
		t.Errorf("a newcomer: %+v", s)
	}

	ill.Store(true)
	r.until("an unhealthy origin everywhere", 10*time.Second, everywhere("unhealthy", true))
	for _, m := range r.nodes {
		if s := m.visit("join", "", ""); s.State != "waiting" || s.Paused == "" {
			t.Errorf("%s: a newcomer: %+v", m.id, s)
		}
	}
	c := r.nodes[1].origin().Checks[0]
	if c.Reason != "Response code mismatch error" || c.ActualCode != http.StatusServiceUnavailable || c.Since == nil {
		t.Errorf("%+v", c)
	}
	looks := c.Seen[0].Node
	for i, m := range r.nodes {
		if m.id == looks {
			m.end()
			r.nodes = append(r.nodes[:i:i], r.nodes[i+1:]...)
			r.phase("%s, which looked, has left", m.id)
			break
		}
	}
	r.stays("unhealthy everywhere", 3*time.Second, everywhere("unhealthy", true))
	ill.Store(false)
	r.until("a healthy origin everywhere", 10*time.Second, everywhere("healthy", false))
	r.nodes[0].enter("")
}
