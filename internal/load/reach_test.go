package load_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/load"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// closed is where a server was.
func closed() string {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	return s.URL
}

func TestReachSaysWhatIsWrong(t *testing.T) {
	serve := func(h http.HandlerFunc) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL
	}
	secure := httptest.NewUnstartedServer(newRoom(1))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	for want, url := range map[string]string{
		"": serve(newRoom(1).ServeHTTP),
		"U: unknown host; is a gateway running there?":                                                                                "http://anteroom.invalid",
		`U has no room "shop"; name one with --room`:                                                                                  serve(func(w http.ResponseWriter, _ *http.Request) { problem(w, 404, "room_unknown") }),
		"U does not serve yet: it waits for its cluster; try again when /readyz on its admin port says so":                            serve(func(w http.ResponseWriter, _ *http.Request) { problem(w, 503, "unavailable") }),
		"U does not answer as a gateway does (404 Not Found); give the URL of a node.gateway, by default port 8080, and its --prefix": serve(http.NotFound),
		"U does not answer as a gateway does (200 OK); give the URL of a node.gateway, by default port 8080, and its --prefix":        serve(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }),
		"U sends us on to https://b/; give the URL of a gateway itself":                                                               serve(func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, "https://b/", http.StatusFound) }),
		"U: x509: certificate signed by unknown authority; --insecure accepts it":                                                     secure.URL,
		"U: connection refused; is a gateway running there?":                                                                          closed(), // the last to have a port: nobody gets it again
	} {
		g, err := load.New(load.Config{URLs: []string{url}, Room: "shop", Arrivals: load.Arrivals{Users: 1}})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := g.Reach(t.Context()); err != nil {
			got = strings.ReplaceAll(err.Error(), url, "U")
		}
		if want == "U: unknown host; is a gateway running there?" && strings.Contains(got, "no answer in") {
			continue // a machine whose resolver does not answer
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", url, got, want)
		}
	}
}

func TestTLSIsSpokenOnTheSameWay(t *testing.T) {
	r := newRoom(3)
	cookies := map[string]bool{}
	r.answer = func(_ http.ResponseWriter, q *http.Request) bool {
		if c, err := q.Cookie("__Host-anteroom_shop"); err == nil { // our room looks for the other name
			r.mu.Lock()
			cookies[c.Value] = true
			r.mu.Unlock()
			q.AddCookie(&http.Cookie{Name: "anteroom_shop", Value: c.Value})
		}
		return false
	}
	s := httptest.NewTLSServer(r)
	defer s.Close()
	got := send(t, t.Context(), r, func(c *load.Config) {
		c.URLs, c.Insecure, c.Dial = []string{s.URL}, true, (&net.Dialer{}).DialContext
		c.Arrivals.Users, c.Manners.Browse = 3, 1
	})
	if got.Visitors.Done != 3 || len(cookies) != 3 {
		t.Errorf("visitors %+v, errors %v, %d cookies", got.Visitors, got.Errors, len(cookies))
	}
}

func TestAConfigThatMakesNoSenseIsRefused(t *testing.T) {
	for name, change := range map[string]func(*load.Config){
		"no URL":           func(c *load.Config) { c.URLs = nil },
		"scheme":           func(c *load.Config) { c.URLs = []string{"ftp://a"} },
		"path":             func(c *load.Config) { c.URLs = []string{"http://a/b"} },
		"no host":          func(c *load.Config) { c.URLs = []string{"http://"} },
		"room":             func(c *load.Config) { c.Room = "" },
		"header in a page": func(c *load.Config) { c.Page = "/ HTTP/1.1\r\nX: y" },
		"nobody":           func(c *load.Config) { c.Arrivals = load.Arrivals{} },
		"for ever":         func(c *load.Config) { c.Arrivals = load.Arrivals{Rate: 1} },
		"share":            func(c *load.Config) { c.Manners.Abandon = 1.5 },
		"below zero":       func(c *load.Config) { c.Manners.Stay = -1 },
	} {
		c := load.Config{URLs: []string{"a:8080"}, Room: "shop", Arrivals: load.Arrivals{Users: 1}}
		if _, err := load.New(c); err != nil {
			t.Fatal(err)
		}
		change(&c)
		if _, err := load.New(c); !errors.Is(err, load.ErrConfig) {
			t.Errorf("%s: %v, want ErrConfig", name, err)
		}
	}
}

// What a waiting visitor costs, ticket and all: a room lets nobody in, and
// everybody asks once an hour.
func TestWaitingVisitorsCostLittleMemory(t *testing.T) {
	const people, tokens = 20_000, 150
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := newRoom(0)
	var before, after runtime.MemStats
	asked := 0
	token := strings.Repeat("t", tokens)
	r.answer = func(w http.ResponseWriter, q *http.Request) bool {
		if !strings.HasSuffix(q.URL.Path, "/join") {
			return false
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		switch asked++; asked {
		case 1000:
			runtime.GC()
			runtime.ReadMemStats(&before)
		case people:
			runtime.GC()
			runtime.ReadMemStats(&after)
			cancel()
		}
		fmt.Fprintf(w, `{"state":"waiting","ticket":%q,"joined_at":"2026-11-21T12:19:15Z","refresh_interval_seconds":3600}`, token)
		return true
	}
	s := httptest.NewServer(r)
	defer s.Close()
	send(t, ctx, r, func(c *load.Config) {
		c.URLs, c.Dial = []string{s.URL}, (&net.Dialer{}).DialContext
		c.Arrivals = load.Arrivals{Rate: 1e6, Users: people}
	})
	each := float64(after.HeapAlloc-before.HeapAlloc) / (people - 1000)
	if asked != people || each > 300+tokens {
		t.Errorf("%d visitors take %.0f bytes each, a ticket of %d included", asked, each, tokens)
	}
	t.Logf("%.0f bytes each, a ticket of %d included", each, tokens)
}

func TestReportsCanBeReadAndCompared(t *testing.T) {
	var got *load.Result
	synctest.Test(t, func(t *testing.T) {
		got = send(t, t.Context(), newRoom(2), func(c *load.Config) {
			c.Arrivals.Users, c.Manners.Browse, c.Manners.Stay, c.Limit = 6, 1, time.Second, 2
		})
	})
	name := filepath.Join(t.TempDir(), "report.json")
	var text, page bytes.Buffer
	if err := got.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	back, err := load.ReadResult(name)
	if err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := back.WriteJSON(&again); err != nil || again.String() != text.String() {
		t.Errorf("%v; written and read (-), and written again (+):\n%s", err, cmp.Diff(text.String(), again.String()))
	}
	for _, ratio := range load.Compare(got, back) {
		if ratio.A == nil || ratio.B == nil || *ratio.A != *ratio.B || ratio.Ratio != nil && *ratio.Ratio != 1 {
			t.Errorf("%s of a report and itself: %+v", ratio.Name, ratio)
		}
	}
	if err := got.WriteHTML(&page, []load.Table{{Header: []string{"a", "b"}, Rows: [][]string{{"<script>", "1"}}}}); err != nil {
		t.Fatal(err)
	}
	html := page.String()
	if strings.Contains(html, "<script>") || strings.Count(html, "<svg") != 3 || strings.Contains(html, "no data") {
		t.Errorf("the page has %d pictures, or somebody else's words in it:\n%.3000s", strings.Count(html, "<svg"), html)
	}
	if m := regexp.MustCompile(`(?:src|href|url)\s*[=(]["']?(?:https?:)?//[^"')]*`).FindAllString(html, -1); m != nil {
		t.Errorf("the page needs %v", m)
	}
}

func TestOtherFilesAreNoReports(t *testing.T) {
	for _, text := range []string{"", "{}", `{"report":{}}`, "[]"} {
		name := filepath.Join(t.TempDir(), "x.json")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := load.ReadResult(name); err == nil || !strings.Contains(err.Error(), "no report of anteroom load") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The keys of the report are those of sim --json and report --json.
func TestTheReportHasTheKeysOfAllReports(t *testing.T) {
	b, err := json.Marshal(load.Report{})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"n":0,"open_admissions":0,"discordant_pairs":null,"kendall_tau":null,"kendall_tau_thesis":null,"max_overtaken_by":null,` +
		`"max_wait":0,"wait":{"p50":0,"p90":0,"p99":0},"call_delay":null,"open_inversions":null,"over_limit_max":null}`
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}
