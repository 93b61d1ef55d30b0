package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// operate asks m's admin port for something, and returns the status and what it
// says of the room.
func (m *member) operate(method, path, body string, headers ...string) (status int, room map[string]any) {
	m.r.t.Helper()
	q, err := http.NewRequest(method, "http://"+m.Addresses().Admin+"/v1/rooms/"+path, strings.NewReader(body))
	if err != nil {
		m.r.t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		q.Header.Set(name, value)
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		m.r.t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	b, err := io.ReadAll(a.Body)
	if err == nil && len(bytes.TrimSpace(b)) > 0 {
		err = json.Unmarshal(b, &room)
	}
	if err != nil {
		m.r.t.Fatalf("%s %s: %v: %s", method, path, err, b)
	}
	return a.StatusCode, room
}

// A room is changed, held, drained and deleted at one node or another: all nodes
// follow, visitors and all. Of two changes at a time the same one counts
// everywhere.
func TestOperatorsChangeRoomsOfAWholeCluster(t *testing.T) {
	r := newRig(t, 5)
	a, b, c := r.three()
	everywhere := func(what, key string, want any) {
		t.Helper()
		r.until(what+" everywhere", 3*time.Second, func() bool {
			for _, m := range r.nodes {
				if _, room := m.operate("GET", "shop", ""); fmt.Sprint(room[key]) != fmt.Sprint(want) {
					return false
				}
			}
			return true
		})
	}
	if status, room := a.operate("PATCH", "shop", `{"message":"Back at ten.","total_active_users":2}`); status != 200 || room["message"] != "Back at ten." {
		t.Fatalf("%d %v", status, room)
	}
	everywhere("the message", "message", "Back at ten.")
	everywhere("the limit", "total_active_users", 2)
	first := b.enter("")

	if status, room := b.operate("POST", "shop/hold", ""); status != 200 || room["mode"] != "held" {
		t.Fatalf("%d %v", status, room)
	}
	everywhere("the hold", "mode", "held")
	waits := c.visit("join", "", "")
	if waits.State != "waiting" || waits.Paused == "" {
		t.Errorf("a newcomer to a held room: %+v", waits)
	}
	r.stays("one slot is free, and nobody is let in", 1500*time.Millisecond, func() bool {
		s := a.visit("checkin", "ticket", waits.Ticket)
		return s.State == "waiting" && s.Paused != ""
	})
	if s := a.visit("refresh", "pass", first); s.Status != 200 {
		t.Errorf("who is on the site: %+v", s)
	}

	if status, _ := c.operate("POST", "shop/drain", ""); status != 200 {
		t.Errorf("drain: %d", status)
	}
	everywhere("the drain", "mode", "draining")
	if s := a.visit("join", "", ""); s.Code != "room_closed" {
		t.Errorf("a newcomer to a drained room: %+v", s)
	}
	b.enter(waits.Ticket)
	if status, _ := a.operate("POST", "shop/release", ""); status != 200 {
		t.Errorf("release: %d", status)
	}
	everywhere("the release", "mode", "normal")

	_, now := a.operate("GET", "shop", "")
	var all sync.WaitGroup
	statuses := make([]int, len(r.nodes))
	for i, m := range r.nodes {
		all.Go(func() {
			statuses[i], _ = m.operate("PATCH", "shop", fmt.Sprintf(`{"total_active_users":%d}`, 10+i), "If-Match: "+now["etag"].(string))
		})
	}
	all.Wait()
	for i, status := range statuses {
		if status != 200 && status != 412 {
			t.Errorf("%s: %d", r.nodes[i].id, status)
		}
	}
	r.until("one of the changes everywhere", 3*time.Second, func() bool {
		limits := map[string]int{}
		for _, m := range r.nodes {
			_, room := m.operate("GET", "shop", "")
			limits[fmt.Sprint(room["total_active_users"], room["etag"])]++
		}
		return len(limits) == 1
	})

	if status, _ := b.operate("DELETE", "shop", ""); status != 204 {
		t.Errorf("delete: %d", status)
	}
	r.until("the room gone everywhere", 3*time.Second, func() bool {
		for _, m := range r.nodes {
			if s := m.visit("join", "", ""); s.Code != "room_unknown" || s.Status != 404 {
				return false
			}
		}
		return true
	})
	if status, room := c.operate("PUT", "shop", `{"total_active_users":1,"routes":[{"host":"*"}],"origin":"`+r.origin.URL+`"}`, "If-None-Match: *"); status != 201 {
		t.Errorf("a new one: %d %v", status, room)
	}
	everywhere("a new room", "total_active_users", 1)
	r.until("the new room takes people", 3*time.Second, func() bool { // gateways hear of it a moment after the operators' port
		s := a.visit("join", "", "")
		if s.Code != "room_unknown" && s.Status != 201 {
			t.Fatalf("join: %+v", s)
		}
		return s.Status == 201
	})
}
