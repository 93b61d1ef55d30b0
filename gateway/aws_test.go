package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/ticket"
)

// forAWS lets the first room answer AWS' programs.
func forAWS(c *gateway.Config) { c.Rooms[0].AWS = true }

// awsClient is a program that was written for AWS' waiting room.
type awsClient struct {
	*world
	id string // api_request_id
}

func (w *world) awsClient() *awsClient {
	w.t.Helper()
	c := &awsClient{world: w}
	var a struct {
		ID string `json:"api_request_id"`
	}
	c.post("assign_queue_num", 200, &a)
	if c.id = a.ID; a.ID == "" {
		w.t.Fatal("no request id")
	}
	return c
}

// post and get ask, and decode the answer.
func (c *awsClient) post(path string, status int, v any) {
	c.t.Helper()
	body := `{"event_id":"shop"}`
	if c.id != "" {
		body = `{"event_id":"shop","request_id":"` + c.id + `"}`
	}
	c.want(c.send("POST", "/_anteroom/aws/"+path, body, "Content-Type: application/json"), path, status, v)
}

func (c *awsClient) get(path string, status int, v any) {
	c.t.Helper()
	c.want(c.send("GET", "/_anteroom/aws/"+path+"?event_id=shop&request_id="+c.id, ""), path, status, v)
}

func (c *awsClient) want(r reply, path string, status int, v any) {
	c.t.Helper()
	if r.StatusCode != status || r.Header.Get("Access-Control-Allow-Origin") != "*" || r.Header.Get("Cache-Control") != "no-store" ||
		!strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		c.t.Fatalf("%s: %d %v %s, want %d", path, r.StatusCode, r.Header, r.body, status)
	}
	r.json(c.t, v)
}

// number, serving and told are what their answers have in them.
func (c *awsClient) number() (n uint64) {
	c.t.Helper()
	var a struct {
		Number uint64 `json:"queue_number"`
		Entry  uint64 `json:"entry_time"`
		Event  string `json:"event_id"`
		Status int    `json:"status"`
	}
	c.get("queue_num", 200, &a)
	if a.Entry < uint64(morning.Unix()) || a.Number > 1 && a.Entry != a.Number/1e6 || a.Event != "shop" || a.Status != 1 {
		c.t.Errorf("%+v", a)
	}
	return a.Number
}

func (c *awsClient) serving() uint64 {
	c.t.Helper()
	var a struct {
		N uint64 `json:"serving_counter"`
	}
	c.get("serving_num", 200, &a)
	return a.N
}

func (c *awsClient) told(method, path string, status int) string {
	c.t.Helper()
	var a struct {
		Error string `json:"error"`
	}
	if method == "GET" {
		c.get(path, status, &a)
	} else {
		c.post(path, status, &a)
	}
	return a.Error
}

type awsTokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	ID      string `json:"id_token"`
	Type    string `json:"token_type"`
	Expires int    `json:"expires_in"`
}

// TestAProgramForAWSGoesThrough is their documented course: a number, the number
// being served, and when that has come up to the former, a token.
func TestAProgramForAWSGoesThrough(t *testing.T) {
	w := newWorld(t, forAWS, shop())
	first := w.awsClient()
	if first.number() > first.serving() {
		t.Error("the room is empty, and the first one waits")
	}
	var in awsTokens
	first.post("generate_token", 200, &in)
	var claims jwt.MapClaims
	if _, _, err := jwt.NewParser().ParseUnverified(in.Access, &claims); err != nil || claims["aud"] != "shop" || claims["iss"] != "https://shop.example.com" {
		t.Fatalf("%v: %v", claims, err)
	}
	if in.ID != in.Access || in.Type != "Bearer" || in.Expires != 60 {
		t.Errorf("%+v", in)
	}

	second, third := w.awsClient(), w.awsClient()
	n := second.number()
	if third.number() <= n {
		t.Error("who comes later has a smaller number")
	}
	w.pass(time.Second)
	if n <= second.serving() {
		t.Error("the second is served while the first is there")
	}
	if got := second.told("POST", "generate_token", 202); got != "Request ID not being served yet" {
		t.Error(got)
	}
	if got := second.told("GET", "queue_pos_expiry", 202); got != "Request ID not being served yet" {
		t.Error(got)
	}
	w.pass(time.Second)
	var waiting struct {
		N int `json:"waiting_num"`
	}
	if second.get("waiting_num", 200, &waiting); waiting.N != 2 {
		t.Errorf("%+v, want 2", waiting)
	}

	w.api("end", with("pass", in.Refresh)) // what they call the refresh token is our pass
	w.pass(time.Second)
	if n > second.serving() || third.number() <= third.serving() {
		t.Errorf("the first has gone: serving %d, the numbers are %d and %d", second.serving(), n, third.number())
	}
	var left struct {
		Expires int `json:"expires_in"`
	}
	if second.get("queue_pos_expiry", 200, &left); left.Expires != 60 { // three refresh intervals from this answer on, which tells of the call
		t.Errorf("%+v, want what is left of the call", left)
	}
	var again awsTokens
	second.post("generate_token", 200, &in)
	second.post("generate_token", 200, &again)
	if d := cmp.Diff(in, again); d != "" {
		t.Errorf("asked twice, there are two sessions:\n%s", d)
	}
	if second.number() != n {
		t.Error("the number has changed")
	}
}

// Such programs say nothing of their place while they wait.
func TestAProgramForAWSIsServedAfterALongSilence(t *testing.T) {
	room := shop()
	room.TicketTTL = time.Hour
	w := newWorld(t, forAWS, room)
	first := w.join()
	quiet := w.awsClient()
	n := quiet.number()
	for range 20 {
		w.pass(25 * time.Second)
		first = w.place(200, "refresh", with("pass", first.Pass))
	}
	w.api("end", with("pass", first.Pass))
	w.pass(time.Second)
	if got := quiet.serving(); n > got {
		t.Fatalf("serving %d, the number is %d", got, n)
	}
	var in awsTokens
	quiet.post("generate_token", 200, &in)
}

// They ask for the number being served alone, which is nobody's in particular. Who
// came later and checks in does not go by them, and who was told that their number
// is served has a token at once.
func TestProgramsForAWSKeepTheirTurns(t *testing.T) {
	room := shop()
	room.TicketTTL = time.Hour
	w := newWorld(t, forAWS, room)
	first := w.join()
	var line []*awsClient
	var numbers []uint64
	for range 3 {
		c := w.awsClient()
		line, numbers = append(line, c), append(numbers, c.number())
		w.pass(time.Second)
	}
	last := w.join()
	for i, c := range line {
		for range 20 {
			w.pass(25 * time.Second)
			if last = w.place(200, "checkin", with("ticket", last.Ticket)); last.State != "waiting" {
				t.Fatalf("who came last is %s while the program %d waits", last.State, i)
			}
			if got := c.serving(); numbers[i] <= got {
				t.Fatalf("serving %d, the number is %d, and nobody has gone", got, numbers[i])
			}
			first = w.place(200, "refresh", with("pass", first.Pass))
		}
		w.api("end", with("pass", first.Pass))
		w.pass(time.Second)
		for k, n := range numbers[i:] {
			if turn := n <= c.serving(); turn != (k == 0) {
				t.Fatalf("the turn of program %d: %v, when %d programs have gone in", i+k, turn, i)
			}
		}
		var in awsTokens
		c.post("generate_token", 200, &in)
		first.Pass = in.Refresh
	}
}

func TestAWSTokensEnd(t *testing.T) {
	w := newWorld(t, forAWS, shop())
	straight := w.awsClient() // went straight in
	late := w.awsClient()
	w.pass(65 * time.Second)
	if got := straight.told("POST", "generate_token", 410); got != "Token corresponding to request id has expired" {
		t.Error(got)
	}
	w.pass(time.Hour)
	if got := late.told("GET", "queue_num", 410); got != "Queue position has expired" {
		t.Error(got)
	}
	var in awsTokens
	used := w.awsClient()
	used.post("generate_token", 200, &in)
	w.api("end", with("pass", in.Refresh))
	if got := used.told("POST", "generate_token", 410); got != "Token corresponding to request id has expired" {
		t.Error(got)
	}
}

func TestAWSRequestsThatAreRefused(t *testing.T) {
	w := newWorld(t, forAWS, shop(), eviction.Room{Name: "closed", Target: 1})
	c := w.awsClient()
	const invalid = `{"error":"Invalid event or request ID"}`
	for _, q := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "assign_queue_num", `{"event_id":"museum"}`, 400},
		{"POST", "assign_queue_num", `{"event_id":"closed"}`, 400}, // it has no aws_api
		{"POST", "assign_queue_num", `event_id=shop`, 400},
		{"POST", "assign_queue_num", ``, 400},
		{"POST", "assign_queue_num", `{"event_id":"shop","x":"` + strings.Repeat("a", 5000) + `"}`, 400},
		{"POST", "generate_token", `{"event_id":"shop","request_id":"` + c.id[1:] + `"}`, 400},
		{"POST", "generate_token", `{"event_id":"shop"}`, 400},
		{"GET", "queue_num?event_id=shop&request_id=9a3c", "", 400},
		{"GET", "queue_pos_expiry?event_id=shop", "", 400},
		{"GET", "serving_num", "", 400},
		{"GET", "waiting_num?event_id=", "", 400},
		{"GET", "assign_queue_num?event_id=shop", "", 405},
		{"POST", "serving_num", `{"event_id":"shop"}`, 405},
		{"GET", "increment_serving_counter?event_id=shop", "", 404}, // theirs to operators
	} {
		r := w.send(q.method, "/_anteroom/aws/"+q.path, q.body)
		if r.StatusCode != q.status || q.status == 400 && strings.TrimSpace(r.body) != invalid {
			t.Errorf("%s %s %s: %d %s, want %d", q.method, q.path, q.body, r.StatusCode, r.body, q.status)
		}
	}
	w.breakWith(func(ticket.Request) error { return ticket.ErrBusy })
	if r := w.send("POST", "/_anteroom/aws/assign_queue_num", `{"event_id":"shop"}`); r.StatusCode != 429 || r.Header.Get("Retry-After") == "" {
		t.Errorf("busy: %d %v", r.StatusCode, r.Header)
	}
}

// Their pages are on other sites than their API.
func TestAWSAnswersScriptsOfOtherSites(t *testing.T) {
	w := newWorld(t, forAWS, shop())
	page := []string{"Origin: https://pages.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors"}
	r := w.send("OPTIONS", "/_anteroom/aws/assign_queue_num", "", append(page, "Access-Control-Request-Method: POST")...)
	if h := r.Header; r.StatusCode != 204 || h.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(h.Get("Access-Control-Allow-Methods"), "POST") ||
		h.Get("Access-Control-Allow-Headers") != "Content-Type" {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	r = w.send("POST", "/_anteroom/aws/assign_queue_num", `{"event_id":"shop"}`, page...)
	if r.StatusCode != 200 || len(r.Cookies()) != 0 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

func TestAWSPublicKeyChecksTokens(t *testing.T) {
	w := newWorld(t, forAWS, shop())
	if err := w.ring.Rotate(); err != nil { // not in use yet
		t.Fatal(err)
	}
	c := w.awsClient()
	var key map[string]string
	c.get("public_key", 200, &key)
	var in awsTokens
	c.post("generate_token", 200, &in)
	token, _, err := jwt.NewParser().ParseUnverified(in.Access, jwt.MapClaims{})
	if err != nil || key["kty"] != "EC" || key["alg"] != "ES256" || key["kid"] != token.Header["kid"] {
		t.Errorf("the key %v, the token's header %v: %v", key, token.Header, err)
	}
}

func TestAWSInARoomThatDrawsOnlyAskingTells(t *testing.T) {
	room := shop()
	room.Method = eviction.Random
	w := newWorld(t, forAWS, room)
	w.join()
	c := w.awsClient()
	w.pass(time.Second)
	if c.number() > c.serving() {
		t.Error("a room that draws serves nobody")
	}
	c.told("POST", "generate_token", 202)
}

func FuzzAWS(f *testing.F) {
	w := newWorld(f, forAWS, shop())
	for _, s := range []string{`{"event_id":"shop","request_id":"x"}`, `{"event_id":"shop"}`, `[]`, `{"event_id":1}`, `{"event_id":"shop"}{}`, ``} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range []*http.Request{
			httptest.NewRequest("POST", "/_anteroom/aws/generate_token", strings.NewReader(s)),
			httptest.NewRequest("GET", "/_anteroom/aws/queue_num?event_id=shop&request_id="+url.QueryEscape(s), nil),
		} {
			a := httptest.NewRecorder()
			w.ServeHTTP(a, r)
			if a.Code != 400 || strings.TrimSpace(a.Body.String()) != `{"error":"Invalid event or request ID"}` {
				t.Errorf("%s %q: %d %s", r.URL, s, a.Code, a.Body)
			}
		}
	})
}
