package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/admin"
)

// desk is an operator's, with one room that is what was put last.
type desk struct {
	keys  string
	mode  admin.Mode
	edits []admin.Edit
	out   admin.Outcome // what more to say of a change
	err   error         // instead of doing anything
	audit []admin.AuditEntry
}

func (d *desk) room() admin.Configured {
	return admin.Configured{Keys: []byte(d.keys), ETag: `"` + string(rune('a'+len(d.edits))) + `"`, Mode: d.mode}
}

func (d *desk) Configured(room string) (admin.Configured, bool) { return d.room(), room == "shop" }

func (d *desk) do(e admin.Edit, change func()) (admin.Outcome, error) {
	if d.err != nil {
		return admin.Outcome{}, d.err
	}
	if !e.Matches(d.room().ETag) {
		return admin.Outcome{}, &admin.Refusal{Status: 412, Code: "room_changed"}
	}
	change()
	d.edits = append(d.edits, e)
	d.out.Room = d.room()
	return d.out, nil
}

func (d *desk) Put(_ context.Context, e admin.Edit, body []byte) (admin.Outcome, error) {
	return d.do(e, func() { d.keys = string(body) })
}

func (d *desk) Delete(_ context.Context, e admin.Edit) (admin.Outcome, error) {
	return d.do(e, func() { d.keys = "" })
}

func (d *desk) SetMode(_ context.Context, e admin.Edit, m admin.Mode) (admin.Outcome, error) {
	return d.do(e, func() { d.mode = m })
}

func (d *desk) Reclaim(_ context.Context, _ admin.Edit, node string) (admin.Reclaimed, error) {
	return admin.Reclaimed{Node: node, Rooms: []string{"shop"}}, d.err
}

func (d *desk) History(room string) ([]admin.Sample, bool) {
	return []admin.Sample{{At: time.Unix(0, 0).UTC(), Queued: 7}}, room == "shop"
}

func (d *desk) Audit() []admin.AuditEntry {
	if d.audit != nil {
		return d.audit
	}
	return []admin.AuditEntry{{Who: "loopback", Action: "hold", Room: "shop", Changes: []admin.Change{}}}
}

func (d *desk) Receivers() []admin.Receiver {
	return []admin.Receiver{{Name: "pager", Kind: "webhook", Events: []string{}, Rooms: []string{"shop"}, LastErr: "no such host"}}
}

func (d *desk) TestReceiver(_ context.Context, name string) (admin.TestSent, bool) {
	return admin.TestSent{Receiver: name, ID: "msg_1", Error: "no such host", Seconds: 0.5}, name == "pager"
}

func (d *desk) Find(p gateway.Probe) gateway.Finding {
	f, err := gateway.Find(gateway.Config{Prefix: "/_anteroom", Rooms: []gateway.Room{{Name: "shop", Routes: []gateway.Route{{Host: "shop.example.com", Path: "/"}}}}}, p)
	if err != nil {
		panic(err)
	}
	return f
}

func aDesk() *desk {
	return &desk{keys: `{"name":"shop","total_active_users":200,"message":"hello","cookie_attributes":{"samesite":"auto","secure":"auto"}}`, mode: admin.Normal}
}

// ask is a request of an operator at the node's own machine.
func ask(c admin.Config, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:9090"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:5555"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	admin.New(c).ServeHTTP(w, r)
	return w
}

func TestWhatOperatorsCanChange(t *testing.T) {
	pending, created, refuses, breaks := aDesk(), aDesk(), aDesk(), aDesk()
	pending.out.Pending, created.out.Created = true, true
	refuses.err = &admin.Refusal{Status: 400, Code: "room_invalid", Detail: "No.", Errors: []admin.FieldError{{Key: "origin", Detail: "bad"}}}
	breaks.err = errors.New("secret")
	for _, x := range []struct {
		desk               *desk
		method, path, body string
		status             int
		has                string
	}{
		{aDesk(), "PUT", "/v1/rooms/shop", `{"total_active_users":9}`, 200, `"total_active_users":9`},
		{created, "PUT", "/v1/rooms/shop", `{}`, 201, `"mode":"normal"`},
		{pending, "PUT", "/v1/rooms/shop", `{}`, 202, `"pending":true`},
		{refuses, "PUT", "/v1/rooms/shop", `{}`, 400, `"code":"room_invalid","errors":[{"key":"origin","detail":"bad"}]`},
		{breaks, "PUT", "/v1/rooms/shop", `{}`, 500, `"code":"internal"`},
		{aDesk(), "PUT", "/v1/rooms/shop", "", 415, `"code":"media_type_unsupported"`},
		{aDesk(), "PUT", "/v1/rooms/shop", strings.Repeat(" ", 1<<20+1), 413, `"code":"body_too_large"`},
		{aDesk(), "PATCH", "/v1/rooms/shop", `{"message":"soon","cookie_attributes":{"secure":null}}`, 200, `"cookie_attributes":{"samesite":"auto"}`},
		{aDesk(), "PATCH", "/v1/rooms/nope", `{}`, 404, `"code":"room_unknown"`},
		{aDesk(), "PATCH", "/v1/rooms/shop", `[]`, 400, `"code":"room_invalid"`},
		{aDesk(), "DELETE", "/v1/rooms/shop", "", 204, ""},
		{pending, "DELETE", "/v1/rooms/shop", "", 202, `{"pending":true}`},
		{aDesk(), "POST", "/v1/rooms/shop/messages", `{"text":"Open.","at":"2026-11-27T18:00:00Z"}`, 200, `"messages":[{"at":"2026-11-27T18:00:00Z","text":"Open."}]`},
		{aDesk(), "POST", "/v1/rooms/shop/messages", `{"text":"Open.","from":"now"}`, 400, `"code":"request_invalid"`},
		{aDesk(), "POST", "/v1/rooms/nope/messages", `{"text":"Open."}`, 404, `"code":"room_unknown"`},
		{aDesk(), "POST", "/v1/rooms/shop/hold", "", 200, `"mode":"held"`},
		{aDesk(), "POST", "/v1/rooms/shop/drain", "", 200, `"mode":"draining"`},
		{aDesk(), "POST", "/v1/rooms/shop/release", "", 200, `"mode":"normal"`},
		{aDesk(), "POST", "/v1/nodes/node-3/reclaim", "", 200, `{"node":"node-3","rooms":["shop"]}`},
		{aDesk(), "GET", "/v1/rooms/shop", "", 200, `"message":"hello"`},
		{aDesk(), "GET", "/v1/rooms/shop", "", 200, `"slots_owned":100`},
		{aDesk(), "GET", "/v1/rooms/nope", "", 404, `"code":"room_unknown"`},
		{aDesk(), "GET", "/v1/rooms/shop/history", "", 200, `{"room":"shop","samples":[{"at":"1970-01-01T00:00:00Z","queued":7`},
		{aDesk(), "GET", "/v1/rooms/nope/history", "", 404, `"code":"room_unknown"`},
		{aDesk(), "POST", "/v1/check", `{"url":"https://shop.example.com/a","headers":["Cookie: a=b"],"ip":"192.0.2.7"}`, 200, `"method":"GET","url":"https://shop.example.com/a","path":"/a","fate":"queue","prefix":"/_anteroom","room":"shop","route":{"host":"shop.example.com","path":"/"},"bypass_rules":[]}`},
		{aDesk(), "POST", "/v1/check", `{"url":"https://b.example.com/_anteroom/v1"}`, 200, `"fate":"own"`},
		{aDesk(), "POST", "/v1/check", `{"url":"/a","ip":"me","headers":["x"]}`, 400, `"code":"request_invalid","errors":[{"key":"url","detail":"\"/a\": give the whole address`},
		{aDesk(), "POST", "/v1/check", `{"uri":"http://a/"}`, 400, `"code":"request_invalid"`},
		{aDesk(), "GET", "/v1/check", "", 405, "Use POST."},
		{aDesk(), "GET", "/v1/audit", "", 200, `{"entries":[{"at":"0001-01-01T00:00:00Z","who":"loopback"`},
		{aDesk(), "GET", "/v1/notifications", "", 200, `{"receivers":[{"name":"pager","kind":"webhook","events":[],"rooms":["shop"],"waiting":0,"last_error":"no such host"}]}`},
		{aDesk(), "POST", "/v1/notifications/pager/test", "", 200, `{"receiver":"pager","id":"msg_1","delivered":false,"error":"no such host","seconds":0.5}`},
		{aDesk(), "POST", "/v1/notifications/nobody/test", "", 404, `"code":"receiver_unknown"`},
		{aDesk(), "GET", "/v1/notifications/pager/test", "", 405, "Use POST."},
		{aDesk(), "GET", "/v1/openapi.yaml", "", 200, "openapi: 3.1"},
		{aDesk(), "GET", "/v1/rooms/shop/hold", "", 405, `"code":"method_not_allowed"`},
		{aDesk(), "POST", "/v1/rooms/shop", "", 405, "Use DELETE or GET or HEAD or PATCH or PUT."},
	} {
		w := ask(admin.Config{Source: aNode(), Operator: x.desk}, x.method, x.path, x.body)
		if w.Code != x.status || !strings.Contains(w.Body.String(), x.has) || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s %s %.40s: %d %.2000s, want %d and %s", x.method, x.path, x.body, w.Code, w.Body, x.status, x.has)
		}
		if w.Code < 300 && x.method != "GET" && x.method != "DELETE" && !strings.Contains(x.path, "reclaim") && !strings.Contains(x.path, "/test") && x.path != "/v1/check" && w.Header().Get("ETag") == "" {
			t.Errorf("%s %s: no ETag", x.method, x.path)
		}
	}
}

// What was read can be changed on the condition that nobody else has.
func TestAChangeCanHaveACondition(t *testing.T) {
	d := aDesk()
	c := admin.Config{Source: aNode(), Operator: d}
	etag := ask(c, "GET", "/v1/rooms/shop", "").Header().Get("ETag")
	for _, method := range []string{"PUT", "PATCH"} {
		if w := ask(c, method, "/v1/rooms/shop", `{"message":"a"}`, "If-Match: "+etag); w.Code != 200 {
			t.Fatalf("%s: %d %s", method, w.Code, w.Body)
		}
		for _, h := range []string{"If-Match: " + etag, `If-Match: "x", "y"`, "If-None-Match: *"} {
			if method == "PATCH" && strings.HasPrefix(h, "If-None") {
				continue // it is of a room that is there
			}
			w := ask(c, method, "/v1/rooms/shop", `{"message":"b"}`, h)
			if w.Code != 412 || !strings.Contains(w.Body.String(), `"code":"room_changed"`) || w.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s with %s: %d %s", method, h, w.Code, w.Body)
			}
		}
		etag = ask(c, "GET", "/v1/rooms/shop", "").Header().Get("ETag")
	}
	want := admin.Edit{Room: "shop", Who: "loopback", From: "127.0.0.1"}
	got := d.edits[0]
	got.IfMatch = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ask(admin.Config{Source: aNode(), Operator: d, Token: "opensesame"}, "POST", "/v1/rooms/shop/hold", "", "Authorization: Bearer opensesame")
	if got := d.edits[len(d.edits)-1].Who; got != "admin_token" {
		t.Errorf("who is %q", got)
	}
}

// The browser of an operator may reach the port; pages of other sites must not
// make it change anything.
func TestPagesOfOtherSitesChangeNothing(t *testing.T) {
	for _, x := range []struct {
		token, method string
		headers       []string
		status        int
	}{
		{"", "POST", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"", "POST", []string{"Sec-Fetch-Site: same-site"}, 403},
		{"", "POST", []string{"Origin: http://evil.example"}, 403},
		{"", "POST", []string{"Origin: http://evil.example:9090", "Host: evil.example:9090"}, 403}, // whose name was made to point here
		{"", "POST", []string{"Origin: http://127.0.0.1:9090"}, 200},
		{"", "POST", []string{"Sec-Fetch-Site: same-origin"}, 200},
		{"", "POST", []string{"Host: localhost:9090"}, 200},
		{"", "POST", []string{"Host: [::1]:9090"}, 200},
		{"", "POST", nil, 200},
		{"", "GET", []string{"Sec-Fetch-Site: cross-site"}, 405},
		{"opensesame", "POST", nil, 401},
		{"opensesame", "POST", []string{"Authorization: Bearer opensesame", "Host: node-1.example.com"}, 200},
		{"opensesame", "POST", []string{"Authorization: Bearer opensesame", "Sec-Fetch-Site: cross-site"}, 403},
	} {
		d := aDesk()
		w := ask(admin.Config{Source: aNode(), Operator: d, Token: x.token}, x.method, "/v1/rooms/shop/hold", "", x.headers...)
		if w.Code != x.status || (len(d.edits) > 0) != (x.status == 200) {
			t.Errorf("%s %q with token %q: %d %s, want %d", x.method, x.headers, x.token, w.Code, w.Body, x.status)
		}
	}
}

// The keys that are only read are those that no configuration has; all others of
// an answer may be sent back.
func TestReadOnlyKeysAreListed(t *testing.T) {
	n, d := aNode(), aDesk()
	now := time.Unix(1, 0)
	n.rooms[0].HeldUntil, n.rooms[0].WholeAt, n.rooms[0].CountedAt, n.rooms[0].Root = &now, &now, &now, "node-1"
	n.rooms[0].ModeBy, n.rooms[0].ModeSince, n.rooms[0].Event = "loopback", &now, &admin.Event{}
	n.rooms[0].Governed, n.rooms[0].OriginSince, n.rooms[0].OriginReason = &admin.Governed{}, &now, "front: no answer"
	d.out.Pending = true
	var all map[string]any
	if err := json.Unmarshal(ask(admin.Config{Source: n, Operator: d}, "PUT", "/v1/rooms/shop", d.keys).Body.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	for _, key := range admin.ReadOnly() {
		if _, ok := all[key]; !ok {
			t.Errorf("%s is listed and in no answer", key)
		}
		delete(all, key)
	}
	for _, key := range []string{
		"name", "total_active_users", "message", "cookie_attributes", "new_users_per_minute", "queueing_method", "algorithm", "queue_all", "suspended",
	} {
		delete(all, key)
	}
	if len(all) > 0 {
		t.Errorf("neither listed nor in a configuration: %v", all)
	}
}
