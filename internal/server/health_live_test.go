package server_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
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

// slots is what m hears from all nodes of the shop's slots: how many they own, and how
// many of those are in use; false: not all of so many nodes have said it.
func (m *member) slots(nodes int) (owned, used int, all bool) {
	m.r.t.Helper()
	a, err := http.Get("http://" + m.Addresses().Admin + "/v1/slots?room=shop")
	if err != nil {
		m.r.t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	var list admin.SlotsList
	if err := json.NewDecoder(a.Body).Decode(&list); err != nil {
		m.r.t.Fatalf("%s: %v", m.id, err)
	}
	all = len(list.Nodes) == nodes
	for _, n := range list.Nodes {
		owned, used, all = owned+n.SlotsOwned, used+n.SlotsUsed, all && n.Answers
	}
	return owned, used, all
}

// TestAnIllOriginIsKnownAtAllNodes: none of four lets anybody in, although three
// look; and the loss of one that looks changes nothing.
func TestAnIllOriginIsKnownAtAllNodes(t *testing.T) {
	var traces atomic.Int64 // requests that tell some
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		if body, _ := io.ReadAll(q.Body); q.URL.Path == "/v1/traces" && strings.Contains(string(body), "anteroom.outcome") {
			traces.Add(1)
		}
	}))
	t.Cleanup(collector.Close)
	r := newRig(t, 5)
	url, ill := patient(t)
	for range 4 {
		r.startWith(fmt.Sprintf(illFile, url)+fmt.Sprintf("tracing: {endpoint: %q}\n", collector.URL), 4, 0)
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
	s := r.nodes[3].visit("join", "", "")
	if s.State != "admitted" {
		t.Errorf("a newcomer: %+v", s)
	}
	for range 4 {
		r.nodes[3].browse(http.MethodGet, "/", s.Pass)
	}
	r.until("all slots to be somewhere", 10*time.Second, func() bool {
		owned, used, all := r.nodes[1].slots(4)
		return all && owned == 50 && used == 1
	})

	ill.Store(true)
	r.nodes[3].browse(http.MethodGet, "/", s.Pass)
	if a := r.nodes[3].origin().Answers; a == nil || a.Count != 5 || a.Failed != 1 || a.NoAnswer != 0 || a.FailedPercent != 20 || a.P50 <= 0 || a.P50 > a.P95 || a.P95 > a.P99 || a.P99 > 10 {
		t.Errorf("what a visitor got from the origin: %+v", a)
	}
	if a := r.nodes[0].origin().Answers; a != nil {
		t.Errorf("at a node that nobody went through: %+v", a)
	}
	r.until("an unhealthy origin everywhere", 10*time.Second, everywhere("unhealthy", true))
	r.until("the trace of who came", 15*time.Second, func() bool { return traces.Load() > 0 })
	for _, m := range r.nodes {
		if s := m.visit("join", "", ""); s.State != "waiting" || s.Paused == "" {
			t.Errorf("%s: a newcomer: %+v", m.id, s)
		}
	}
	var why admin.Reason
	if a, err := http.Get("http://" + r.nodes[2].Addresses().Admin + "/v1/rooms/shop/why"); err != nil {
		t.Error(err)
	} else {
		if err := json.NewDecoder(a.Body).Decode(&why); err != nil || why.Code != admin.Unhealthy || why.Since == nil || why.Detail != "front: Response code mismatch error, 503" {
			t.Errorf("why: %+v, %v", why, err)
		}
		_ = a.Body.Close()
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

// pager is a webhook that checks what it gets, and can be down.
type pager struct {
	down atomic.Bool

	mu    sync.Mutex
	tries int
	got   []notified
	wrong []string
}

type notified struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Data struct {
		Status string `json:"status"`
		Reason string `json:"reason"`
		Name   string `json:"name"`
		Code   int    `json:"actual_code"`
	} `json:"data"`
}

func (p *pager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m := hmac.New(sha256.New, []byte(strings.Repeat("k", 32)))
	_, _ = io.WriteString(m, r.Header.Get("webhook-id")+"."+r.Header.Get("webhook-timestamp")+"."+string(body)) // a hash
	var n notified
	err := json.Unmarshal(body, &n)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries++
	if sig := "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil)); err != nil || r.Header.Get("webhook-signature") != sig || r.Header.Get("webhook-id") != n.ID {
		p.wrong = append(p.wrong, string(body))
	}
	if p.down.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	p.got = append(p.got, n)
}

func (p *pager) notifications() (got []notified, tries int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got), p.tries
}

// TestANotificationComesWhicheverNodeGoes: the origin falls ill while the webhook is
// down, and the node that was to call it goes. When it is up again it hears once of
// each, or twice under one ID.
func TestANotificationComesWhicheverNodeGoes(t *testing.T) {
	r := newRig(t, 5)
	url, ill := patient(t)
	p := &pager{}
	hook := httptest.NewServer(p)
	t.Cleanup(hook.Close)
	file := fmt.Sprintf(illFile, url) + fmt.Sprintf("notifications: [{name: pager, url: %q, secret: whsec_%s, events: [origin.unhealthy, origin.healthy]}]\n",
		hook.URL, base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))))
	for range 3 {
		r.startWith(file, 3, 0)
	}
	r.serving()
	r.until("a healthy origin", 15*time.Second, func() bool { return r.nodes[0].origin().Status == "healthy" })

	began := time.Now()
	ill.Store(true)
	r.until("the state", 10*time.Second, func() bool { return r.nodes[0].origin().Status == "unhealthy" })
	r.until("the word to who waits", 10*time.Second, func() bool { return r.nodes[0].visit("join", "", "").Paused != "" })
	r.until("the notification", 10*time.Second, func() bool { got, _ := p.notifications(); return len(got) == 1 })
	t.Logf("%v after the origin fell ill", time.Since(began))
	if got, _ := p.notifications(); got[0].Type != "origin.unhealthy" || got[0].Data.Status != "Unhealthy" || got[0].Data.Code != 503 || got[0].Data.Name != "front" {
		t.Errorf("%+v", got)
	}

	p.down.Store(true)
	ill.Store(false)
	r.until("a try while the webhook is down", 20*time.Second, func() bool { _, tries := p.notifications(); return tries > 1 })
	at := -1
	r.until("the node that tried", 5*time.Second, func() bool {
		at = slices.IndexFunc(r.nodes, func(m *member) bool { return strings.Contains(m.log.String(), "a notification was not delivered") })
		return at >= 0
	})
	r.nodes[at].end()
	r.nodes = slices.Delete(slices.Clone(r.nodes), at, at+1)
	p.down.Store(false)
	r.until("the notification by another", 60*time.Second, func() bool { got, _ := p.notifications(); return len(got) >= 2 })
	ids := map[string]bool{}
	got, _ := p.notifications()
	for _, n := range got {
		ids[n.ID+" "+n.Type] = true
	}
	if len(ids) != 2 {
		t.Errorf("%+v", got)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.wrong) > 0 {
		t.Errorf("not signed as they should be: %q", p.wrong)
	}
	for _, m := range r.nodes {
		if strings.Contains(m.log.String(), hook.URL) || strings.Contains(m.log.String(), "whsec_") {
			t.Errorf("%s has told the log a secret", m.id)
		}
	}
}
