package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/seal"
)

// operated is a node alone, without sockets, and what it logs.
type operated struct {
	operator
	t    *testing.T
	log  *bytes.Buffer
	kept *eviction.Record // on its disk
	mu   sync.Mutex
	stop func()
}

// boot starts a node, or its next life, with a file. Call it in a bubble.
func (o *operated) boot(rooms ...config.Room) {
	o.t.Helper()
	if o.stop != nil {
		o.stop()
	}
	c := oneNode()
	c.Rooms = rooms
	o.log = &bytes.Buffer{}
	s := New(c, Options{Logger: slog.New(slog.NewTextHandler(o.log, nil))})
	s.pages, _ = newTestPages(o.t)
	s.keys = &keys{ring: seal.New(seal.Config{Now: s.passTime})}
	s.buildOrigins()
	s.buildOutflow()
	now := time.Now().UnixMicro()
	s.self = eviction.Peer{Member: eviction.Member{Name: "a", Boot: uint64(now)}, Start: now}
	began := time.Now()
	var carried []eviction.Room
	for _, r := range rooms {
		carried = append(carried, roomOf(r))
	}
	o.mu.Lock()
	record := o.kept
	o.mu.Unlock()
	var err error
	s.loop, err = loop.New(loop.Config{
		Node: node.Config{Self: s.self, Expect: 1, Rooms: carried, Disk: true, Persisted: record}, Logger: s.log,
		Save: func(r *eviction.Record) error {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.kept = r
			return nil
		},
		Clock: func() eviction.Time {
			return eviction.Time{Boot: time.Since(began).Microseconds() + 1e9, Wall: time.Now().UnixMicro()}
		},
	})
	if err != nil {
		o.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(o.t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = s.loop.Run(ctx) })
	o.stop = func() { cancel(); running.Wait() }
	o.operator = operator{s}
	time.Sleep(5 * time.Second) // a cluster of one
}

func alone(t *testing.T, test func(o *operated), rooms ...config.Room) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := &operated{t: t}
		o.boot(rooms...)
		defer func() { o.stop() }()
		test(o)
	})
}

func (o *operated) put(name, body string, e admin.Edit) (admin.Outcome, error) {
	e.Room, e.Who = name, "test"
	return o.Put(context.Background(), e, []byte(body))
}

// refusedWith fails the test unless err is a refusal with that code. It returns
// what is wrong with which key.
func refusedWith(t *testing.T, err error, code string) []admin.FieldError {
	t.Helper()
	var r *admin.Refusal
	if !errors.As(err, &r) || r.Code != code {
		t.Errorf("%v, want a refusal with code %s", err, code)
		return nil
	}
	return r.Errors
}

func (o *operated) key(room, name string) string {
	o.t.Helper()
	c, ok := o.Configured(room)
	var keys map[string]json.RawMessage
	if !ok || json.Unmarshal(c.Keys, &keys) != nil {
		o.t.Fatalf("no configuration of %s", room)
	}
	return string(keys[name])
}

func shopRoom() config.Room {
	r := config.DefaultRoom()
	r.Name, r.TotalActiveUsers, r.Origin = "shop", 5, "http://127.0.0.1:9000"
	r.Routes = []config.Route{{Host: "shop.example.com", Path: "/"}}
	return r
}

func TestARoomIsPutAndReadBack(t *testing.T) {
	alone(t, func(o *operated) {
		out, err := o.put("news", `{"total_active_users":7,"message":"back at \"10\" \ud83d\ude00 \/ \u0007","session_duration":"90s","session_max":"1h","joins_per_address":0,"active_per_address":7,"routes":[{"host":"news.example.com"}]}`, admin.Edit{})
		if err != nil || !out.Created || out.Pending {
			t.Fatalf("%+v, %v", out, err)
		}
		for key, want := range map[string]string{
			"name": `"news"`, "total_active_users": "7", "message": `"back at \"10\" 😀 / \u0007"`, "session_duration": `"1m30s"`,
			"routes": `[{"host":"news.example.com","path":"/"}]`, "queueing_method": `"fifo"`,
			"session_max": `"1h"`, "joins_per_address": "0", "active_per_address": "7", "places_per_address": "1000",
		} {
			if got := o.key("news", key); got != want {
				t.Errorf("%s is %s, want %s", key, got, want)
			}
		}
		// What was read can be sent back, and changes nothing.
		c, _ := o.Configured("news")
		if again, err := o.put("news", string(c.Keys), admin.Edit{IfMatch: c.ETag}); err != nil || again.Created || again.Room.ETag != c.ETag {
			t.Errorf("%+v, %v; want the same room", again, err)
		}
		if n := len(o.Audit()); n != 1 {
			t.Errorf("%d changes in the audit log, want 1", n)
		}
	}, shopRoom())
}

func TestAPutIsCheckedLikeAFile(t *testing.T) {
	alone(t, func(o *operated) {
		for body, want := range map[string][]string{
			`{"total_active_users":-1,"queueing_method":"lifo","totl":1}`:               {"totl", "queueing_method", "total_active_users"},
			`{"total_active_users":1,"routes":[{"host":"shop.example.com"}]}`:           {"routes[0]"},
			`{"total_active_users":1,"cookie_suffix":"shop"}`:                           {"cookie_suffix"},
			`{"total_active_users":1,"name":"other"}`:                                   {"name"},
			`{"total_active_users":1,"custom_page_html":"<p>"}`:                         {"custom_page_html"},
			`{"total_active_users":1,"logo":"data:image/gif;base64,R0lGODlh"}`:          {"logo"},
			`{"total_active_users":1,"bypass_rules":[{"expression":"http.hots eq 1"}]}`: {"bypass_rules[0].expression"},
			`{"total_active_users":1,"routes":[{"host":"x","path":"/_anteroom/x"}]}`:    {"routes[0].path"},
			`[1]`:                            {""},
			`{"a":`:                          {""},
			strings.Repeat(`{"a":`, 100_000): {""},
			`{"total_active_users":1} {}`:    {""},
		} {
			_, err := o.put("news", body, admin.Edit{})
			var keys []string
			for _, e := range refusedWith(t, err, "room_invalid") {
				keys = append(keys, e.Key)
			}
			slices.Sort(keys)
			slices.Sort(want)
			if d := cmp.Diff(want, keys); d != "" {
				t.Errorf("%.80s (-want +got):\n%s", body, d)
			}
		}
		if _, ok := o.Configured("news"); ok || len(o.Audit()) > 0 {
			t.Error("something was changed")
		}
	}, shopRoom())
}

func TestAConditionIsHeld(t *testing.T) {
	alone(t, func(o *operated) {
		first, _ := o.Configured("shop")
		if _, err := o.put("shop", `{"total_active_users":9}`, admin.Edit{IfMatch: first.ETag}); err != nil {
			t.Fatal(err)
		}
		for _, e := range []admin.Edit{{IfMatch: first.ETag}, {IfMatch: `"x", ` + first.ETag}, {IfNoneMatch: "*"}} {
			_, err := o.put("shop", `{"total_active_users":10}`, e)
			refusedWith(t, err, "room_changed")
			e.Room = "shop"
			_, err = o.Delete(o.t.Context(), e)
			refusedWith(t, err, "room_changed")
			_, err = o.SetMode(o.t.Context(), e, admin.Held)
			refusedWith(t, err, "room_changed")
		}
		_, err := o.put("none", `{"total_active_users":10}`, admin.Edit{IfMatch: "*"})
		refusedWith(t, err, "room_changed")
		if _, err := o.put("shop", `{"total_active_users":10}`, admin.Edit{IfMatch: "*"}); err != nil {
			t.Error(err)
		}
		if _, err := o.put("news", `{"total_active_users":10}`, admin.Edit{IfNoneMatch: "*"}); err != nil {
			t.Error(err)
		}
	}, shopRoom())
}

func TestANodeThatIsThereIsNotGivenUp(t *testing.T) {
	alone(t, func(o *operated) {
		_, err := o.Reclaim(o.t.Context(), admin.Edit{}, "a")
		refusedWith(t, err, "node_alive")
		_, err = o.Reclaim(o.t.Context(), admin.Edit{}, "b")
		refusedWith(t, err, "node_unknown")
	}, shopRoom())
}

// What was done by hand outlives changes of the configuration, and a hold that
// would hold nobody is refused.
func TestAModeStaysUntilItIsReleased(t *testing.T) {
	alone(t, func(o *operated) {
		e := admin.Edit{Room: "shop"}
		if out, err := o.SetMode(o.t.Context(), e, admin.Held); err != nil || out.Room.Mode != admin.Held {
			t.Fatalf("%+v, %v", out, err)
		}
		if out, err := o.put("shop", `{"total_active_users":9}`, admin.Edit{}); err != nil || out.Room.Mode != admin.Held {
			t.Errorf("after a PUT: %+v, %v", out, err)
		}
		if err := o.s.SetRooms([]config.Room{shopRoom()}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if c, _ := o.Configured("shop"); c.Mode != admin.Held || o.key("shop", "total_active_users") != "5" {
			t.Errorf("after SIGHUP: %+v", c)
		}
		if s, _ := o.s.queue().Room("shop"); s.Paused == "" || s.Wait.P50 != 0 {
			t.Error("people who wait are not told")
		}
		_, err := o.put("shop", `{"suspended":true}`, admin.Edit{})
		refusedWith(t, err, "room_open")
		open := shopRoom()
		open.Suspended = true
		if err := o.s.SetRooms([]config.Room{open}); err == nil {
			t.Error("SIGHUP opens a held room")
		}
		if out, err := o.SetMode(o.t.Context(), e, admin.Normal); err != nil || out.Room.Mode != admin.Normal {
			t.Errorf("%+v, %v", out, err)
		}
		if _, err := o.put("shop", `{"suspended":true,"queueing_method":"random"}`, admin.Edit{}); err != nil || o.key("shop", "queueing_method") != `"random"` {
			t.Errorf("%v, %s", err, o.key("shop", "queueing_method"))
		}
		_, err = o.SetMode(o.t.Context(), e, admin.Draining)
		refusedWith(t, err, "room_open")
		_, err = o.SetMode(o.t.Context(), admin.Edit{Room: "none"}, admin.Held)
		refusedWith(t, err, "room_unknown")
	}, shopRoom())
}

// A changed room, and a deleted one, are as they were after a restart with the
// file of before, and the log says so. SIGHUP brings the file's settings, not a
// deleted room.
func TestChangesOutliveARestart(t *testing.T) {
	news := shopRoom()
	news.Name, news.Routes[0].Host = "news", "news.example.com"
	alone(t, func(o *operated) {
		_, errPut := o.put("shop", `{"total_active_users":9}`, admin.Edit{})
		_, errNew := o.put("extra", `{"total_active_users":3}`, admin.Edit{})
		_, errHold := o.SetMode(o.t.Context(), admin.Edit{Room: "extra"}, admin.Held)
		_, errDelete := o.Delete(o.t.Context(), admin.Edit{Room: "news"})
		if err := errors.Join(errPut, errNew, errHold, errDelete); err != nil {
			t.Fatal(err)
		}
		o.boot(shopRoom(), news)
		if got := o.key("shop", "total_active_users"); got != "9" {
			t.Errorf("total_active_users is %s, want 9", got)
		}
		if c, ok := o.Configured("extra"); !ok || c.Mode != admin.Held {
			t.Errorf("the room that no file has: %+v, %t", c, ok)
		}
		gone := func() {
			t.Helper()
			if _, ok := o.Configured("news"); ok {
				t.Error("the deleted room is back")
			}
			for _, r := range (source{o.s}).Rooms() {
				if r.Name == "news" {
					t.Error("the deleted room is listed")
				}
			}
			if _, ok := o.s.queue().Room("news"); ok {
				t.Error("visitors see the deleted room")
			}
		}
		gone()
		o.s.compareRooms([]config.Room{shopRoom(), news})
		for _, want := range []string{"the cluster has this room otherwise", deleted} {
			if strings.Count(o.log.String(), want) != 1 {
				t.Errorf("the log does not say once: %s\n%s", want, o.log)
			}
		}
		if err := o.s.SetRooms([]config.Room{shopRoom(), news}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		gone()
		if got := o.key("shop", "total_active_users"); got != "5" {
			t.Errorf("after SIGHUP: total_active_users is %s, want 5", got)
		}
		_, err := o.Delete(o.t.Context(), admin.Edit{Room: "news"})
		refusedWith(t, err, "room_unknown")
		if out, err := o.put("news", `{"total_active_users":1}`, admin.Edit{IfNoneMatch: "*"}); err != nil || !out.Created || out.Room.Mode != admin.Normal {
			t.Errorf("a new room in its place: %+v, %v", out, err)
		}
	}, shopRoom(), news)
}

func TestTheAuditLogSaysWhoChangedWhat(t *testing.T) {
	alone(t, func(o *operated) {
		o.s.settle(o.s.loop.Snapshot())
		before := []eviction.Room{o.s.loop.Snapshot().Rooms[0].Room}
		other := before[0]
		other.Target, other.Version = 77, eviction.Version{Stamp: uint64(time.Now().UnixMicro()), By: "b"}
		o.s.heard(before, []eviction.Room{other}) // as if a wave had brought it
		if _, err := o.put("shop", `{"total_active_users":9}`, admin.Edit{From: "192.0.2.7"}); err != nil {
			t.Fatal(err)
		}
		if _, err := o.SetMode(o.t.Context(), admin.Edit{Room: "shop", Who: "admin_token"}, admin.Held); err != nil {
			t.Fatal(err)
		}
		if err := o.s.SetRooms([]config.Room{shopRoom()}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range slices.Backward(o.Audit()) {
			line := e.Who + " " + e.From + " " + e.Action
			for _, c := range e.Changes {
				line += " " + c.Key + ":" + c.From + ">" + c.To
			}
			got = append(got, line)
		}
		want := []string{
			"node b  update total_active_users:5>77",
			`test 192.0.2.7 update routes:[{"host":"shop.example.com","path":"/"}]>[] origin:"http://127.0.0.1:9000">"" total_active_users:5>9`,
			"admin_token  hold mode:normal>held",
			`sighup  update routes:[]>[{"host":"shop.example.com","path":"/"}] origin:"">"http://127.0.0.1:9000" total_active_users:9>5`,
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if n := strings.Count(o.log.String(), "msg=audit"); n != len(want) {
			t.Errorf("%d lines in the log:\n%s", n, o.log)
		}
		for range auditMax + 10 {
			o.s.audits.add(admin.AuditEntry{})
		}
		if n := len(o.Audit()); n != auditMax {
			t.Errorf("%d changes are remembered, want %d", n, auditMax)
		}
	}, shopRoom())
}
