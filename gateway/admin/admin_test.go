package admin_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/fairness"
)

type node struct {
	ready   string
	cluster admin.Cluster
	rooms   []admin.Room
}

func (n node) Cluster() admin.Cluster { return n.cluster }
func (n node) Rooms() []admin.Room    { return n.rooms }
func (n node) Ready() string          { return n.ready }

func (n node) Health() []admin.RoomHealth {
	return []admin.RoomHealth{{Room: "shop", Status: "unhealthy", Holds: true}}
}

func (n node) Fairness(room string) (fairness.Report, bool) {
	return fairness.Report{N: 12}, room == "shop"
}

func aNode() node {
	return node{
		cluster: admin.Cluster{
			Node: "node-1", Boot: "1795252800000000", Coordinator: "node-1", Grade: "primary", Epoch: 41, Lease: 9.5, Voters: []string{"node-1"},
			Members: []admin.Member{
				{Name: "node-1", InWave: true, Started: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)},
				{Name: "node-2<script>", Parent: "node-1"},
			},
		},
		rooms: []admin.Room{{Name: "shop", TotalActiveUsers: 200, Queued: 17, Active: 190, Open: false, Here: admin.RoomHere{SlotsOwned: 100}}},
	}
}

func get(c admin.Config, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host = "127.0.0.1:9090"
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	admin.New(c).ServeHTTP(w, r)
	return w
}

func TestWhatOperatorsCanAsk(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(admin.NewCollector(aNode()))
	c := admin.Config{Source: aNode(), Metrics: registry, Profiles: true}
	for _, x := range []struct {
		method, path string
		status       int
		has          string
	}{
		{"GET", "/healthz", 200, "ok\n"},
		{"GET", "/readyz", 200, "ok\n"},
		{"GET", "/v1/cluster", 200, `"grade":"primary"`},
		{"GET", "/v1/rooms", 200, `{"rooms":[{"name":"shop","total_active_users":200`},
		{"GET", "/v1/rooms/shop", 200, `"slots_owned":100`},
		{"GET", "/v1/rooms/shop/fairness", 200, `"n":12`},
		{"GET", "/v1/rooms/nope", 404, `"code":"room_unknown"`},
		{"GET", "/v1/rooms/nope/fairness", 404, `"code":"room_unknown"`},
		{"GET", "/metrics", 200, `anteroom_room_queued{room="shop"} 17`},
		{"GET", "/debug/pprof/goroutine?debug=1", 200, "goroutine profile"},
		{"GET", "/", 200, `<a href="/debug/pprof/">`},
		{"GET", "/", 200, `"queued":17`},
		{"GET", "/assets/main.js", 200, "import "},
		{"GET", "/assets/..%2fpage.html", 404, `"code":"not_found"`},
		{"GET", "/assets/nope.js", 404, `"code":"not_found"`},
		{"GET", "/v1/rooms/shop/why", 200, `"code":"calling"`},
		{"GET", "/v1/rooms/nope/why", 404, `"code":"room_unknown"`},
		{"HEAD", "/v1/stream", 200, ""},
		{"GET", "/nope", 404, `"code":"not_found"`},
		{"POST", "http://127.0.0.1:9090/v1/cluster", 405, `"code":"method_not_allowed"`},
		{"HEAD", "/v1/cluster", 200, ""},
	} {
		w := get(c, x.method, x.path)
		if w.Code != x.status || !strings.Contains(w.Body.String(), x.has) || x.method == "HEAD" && w.Body.Len() > 0 {
			t.Errorf("%s %s: %d %s, want %d and %s", x.method, x.path, w.Code, w.Body, x.status, x.has)
		}
	}
}

func TestStateIsDecodedAsItWasSent(t *testing.T) {
	n := aNode()
	var c admin.Cluster
	if err := json.Unmarshal(get(admin.Config{Source: n}, "GET", "/v1/cluster").Body.Bytes(), &c); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(n.cluster, c); d != "" {
		t.Errorf("(-sent +decoded):\n%s", d)
	}
	var l admin.RoomList
	if err := json.Unmarshal(get(admin.Config{Source: n}, "GET", "/v1/rooms").Body.Bytes(), &l); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(n.rooms, l.Rooms); d != "" {
		t.Errorf("(-sent +decoded):\n%s", d)
	}
	if got := get(admin.Config{Source: node{}}, "GET", "/v1/rooms").Body.String(); got != `{"rooms":[]}`+"\n" {
		t.Errorf("no rooms: %s", got)
	}
}

func TestTheTokenGuardsAllButHealth(t *testing.T) {
	n := aNode()
	n.ready = "waiting for a cluster to join"
	c := admin.Config{Source: n, Token: "opensesame"}
	for _, path := range []string{"/", "/v1/cluster", "/v1/rooms", "/metrics", "/debug/pprof/", "/nope"} {
		for _, header := range []string{"", "Authorization: Bearer", "Authorization: Bearer opensesam", "Authorization: Basic opensesame", "Authorization: Bearer opensesame2"} {
			w := get(c, "GET", path, header)
			if w.Code != 401 || w.Header().Get("WWW-Authenticate") != "Bearer" || strings.Contains(w.Body.String(), "opensesame") {
				t.Errorf("%s with %q: %d %s", path, header, w.Code, w.Body)
			}
		}
	}
	if w := get(c, "GET", "/v1/cluster", "Authorization: Bearer opensesame"); w.Code != 200 {
		t.Errorf("with the token: %d %s", w.Code, w.Body)
	}
	if w := get(c, "GET", "/healthz"); w.Code != 200 {
		t.Errorf("/healthz: %d", w.Code)
	}
	if w := get(c, "GET", "/readyz"); w.Code != 503 || w.Body.String() != "waiting for a cluster to join\n" {
		t.Errorf("/readyz: %d %s", w.Code, w.Body)
	}
}

// Where there is an admin_token, tokens count beside it, for what they may do.
func TestTokensLookOrOperate(t *testing.T) {
	d := aDesk()
	c := admin.Config{Source: aNode(), Operator: d, Profiles: true, Token: "opensesame", Bearer: func(token string) (string, bool, bool) {
		switch token {
		case "looks":
			return "lou", true, false
		case "operates":
			return "ophelia", true, true
		case "works":
			return "worker", false, false
		}
		return "", false, false
	}}
	for _, test := range []struct {
		method, path, token string
		want                int
	}{
		{"GET", "/v1/rooms", "looks", 200},
		{"GET", "/metrics", "looks", 404}, // there are none in this test
		{"GET", "/debug/pprof/cmdline", "looks", 403},
		{"POST", "/v1/rooms/shop/hold", "looks", 403},
		{"GET", "/v1/rooms", "operates", 200},
		{"GET", "/debug/pprof/cmdline", "operates", 200},
		{"POST", "/v1/rooms/shop/hold", "operates", 200},
		{"GET", "/v1/rooms", "works", 403},
		{"GET", "/v1/rooms", "nobody's", 401},
		{"GET", "/v1/rooms", "opensesame", 200},
	} {
		w := get(c, test.method, test.path, "Authorization: Bearer "+test.token)
		if w.Code != test.want || strings.Contains(w.Body.String(), test.token) {
			t.Errorf("%s %s with %s: %d %.200s, want %d", test.method, test.path, test.token, w.Code, w.Body, test.want)
		}
	}
	if got := d.edits[len(d.edits)-1].Who; got != "token ophelia" {
		t.Errorf("who is %q", got)
	}
	c.Token = ""
	if w := get(c, "GET", "/v1/rooms"); w.Code != 401 {
		t.Errorf("without admin_token, where other tokens count: %d", w.Code)
	}
	if w := get(c, "GET", "/v1/rooms", "Authorization: Bearer operates"); w.Code != 200 {
		t.Errorf("with one of those: %d", w.Code)
	}
	if w := get(c, "GET", "/v1/rooms", "Authorization: Bearer "); w.Code != 401 {
		t.Errorf("with an empty token, where there is no admin_token: %d", w.Code)
	}
	c.Bearer = nil
	if w := get(c, "GET", "/v1/rooms"); w.Code != 200 {
		t.Errorf("where no token is asked for: %d", w.Code)
	}
}

func TestThePageShowsNamesAsText(t *testing.T) {
	n := aNode()
	n.rooms[0].Name = "<script>alert(1)</script>"
	n.cluster.Waiting = "<b>"
	w := get(admin.Config{Source: n}, "GET", "/")
	if b := w.Body.String(); strings.Contains(b, "<script>") || strings.Contains(b, "<b>") || !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%s", b)
	}
}

func TestMetricNamesAreGood(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(admin.NewCollector(aNode()))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	page := get(admin.Config{Source: aNode(), Metrics: registry}, "GET", "/metrics").Body.String()
	for _, want := range []string{"anteroom_members_in_wave 1", `anteroom_room_slots_owned{room="shop"} 100`, "anteroom_coordinator 1", "anteroom_serving 1"} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
}
