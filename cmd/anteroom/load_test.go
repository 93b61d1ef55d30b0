package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/internal/load"
)

// openDoor is a gateway that lets everybody in at once, but for the last of so
// many, whom it turns away.
func openDoor(t *testing.T, but int64) string {
	t.Helper()
	return doorThat(t, func(n int64) bool { return n == but })
}

// doorThat is one that asks whether to turn away who comes as the nth.
func doorThat(t *testing.T, turnsAway func(n int64) bool) string {
	t.Helper()
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch op := filepath.Base(q.URL.Path); {
		case op == "status":
			fmt.Fprint(w, `{"room":"shop"}`)
		case op == "join" && turnsAway(n.Add(1)):
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"code":"room_closed"}`)
		case op == "join":
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"state":"admitted","pass":"p","joined_at":"2026-11-21T12:19:15.1Z"}`)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestLoadPrintsOneObject(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	stdout, stderr, code := execute(t, t.Context(), "load", "--url", openDoor(t, 0), "--users", "20", "--json", "--out", out)
	if code != 0 || stderr != "" || strings.Count(stdout, "\n") != 1 {
		t.Fatalf("exit code %d, errors %q, output %q", code, stderr, stdout)
	}
	var got struct {
		VisitorsPerSecond float64 `json:"visitors_per_second"`
		Report            map[string]any
		Visitors          load.Visitors
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(fairness.Report{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got.Report))); diff != "" || got.VisitorsPerSecond <= 0 || got.Visitors.Done != 20 {
		t.Errorf("%v a second, %+v; keys of the report (-want +got):\n%s", got.VisitorsPerSecond, got.Visitors, diff)
	}
	written, err := os.ReadFile(filepath.Join(out, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, written); err != nil || compact.String() != strings.TrimSpace(stdout) {
		t.Errorf("%v; report.json differs from what was printed:\n%s", err, cmp.Diff(compact.String(), stdout))
	}
	if page, err := os.ReadFile(filepath.Join(out, "report.html")); err != nil || !bytes.Contains(page, []byte("</svg>")) {
		t.Errorf("report.html: %v, %d bytes", err, len(page))
	}
}

func TestLoadTellsWhoWasLost(t *testing.T) {
	stdout, stderr, code := execute(t, t.Context(), "load", "--url", openDoor(t, 7), "--users", "20")
	if code != 1 || stderr != "anteroom load: 1 of 20 visitors were lost: 1 join: 403 room_closed\n" || !strings.HasPrefix(stdout, "20 visitors to shop at http://127.0.0.1:") {
		t.Errorf("exit code %d, errors %q, output:\n%s", code, stderr, stdout)
	}
}

func TestInterruptedLoadPrintsWhatItHas(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	door := doorThat(t, func(n int64) bool {
		if n == 20 {
			cancel()
		}
		return false
	})
	stdout, stderr, code := execute(t, ctx, "load", "--url", door, "--rate", "100", "--users", "100000")
	if code != 1 || !strings.HasPrefix(stderr, "anteroom load: stopped after ") || !strings.Contains(stdout, "\nvisitors_per_second ") {
		t.Errorf("exit code %d, errors %q, output:\n%s", code, stderr, stdout)
	}
}

// Who counts on the exit code must not take a run without a visitor for a good one.
func TestLoadThatIsStoppedBeforeItBeginsFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	door := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	defer door.Close()
	stdout, stderr, code := execute(t, ctx, "load", "--url", door.URL)
	if code != 1 || stdout != "" || stderr != "anteroom load: stopped before it had reached the gateway: nobody came, and nothing was measured\n" {
		t.Errorf("exit code %d, errors %q, output:\n%s", code, stderr, stdout)
	}
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	inDir(t, map[string]string{"other.json": "{}"})
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"now", 2, []string{`unknown command "now"; anteroom load --help lists the commands`}},
		{"--users 0 --rate many --stay 2 --abandon 2", 2, []string{
			`--users "0": give a whole number from 1 to 100000000`,
			`--rate "many": give a number from 0.001 to 1e+06`,
			`--stay "2": give a time from 0s to 24h, such as 0s`,
			`--abandon "2": give a number from 0 to 1`,
		}},
		{"--rate 5 --concurrency 3 --url ftp://a --drain 1s", 2, []string{
			"--rate 5: for how long? give --duration or --users",
			"--concurrency 3: visitors who come at a --rate do not wait for each other; leave out one of the two",
			"--drain 1s: after what? give --duration too",
			`--url "ftp://a": want a gateway's URL such as http://127.0.0.1:8080, without a path`,
		}},
		{"--page shop", 2, []string{`"/_anteroom" and "shop": want a prefix and a page such as /_anteroom and /shop`}},
		{"--url " + gone.URL, 1, []string{gone.URL + ": connection refused; is a gateway running there?"}},
		{"--compare other.json", 2, []string{"--compare: give two reports, such as: anteroom load --compare before/report.json after/report.json"}},
		{"--compare other.json other.json", 1, []string{"other.json is no report of anteroom load: it has no model and no requests"}},
		{"--compare none.json other.json", 1, []string{"open none.json: no such file or directory"}},
	} {
		stdout, stderr, code := execute(t, t.Context(), strings.Fields("load "+c.args)...)
		want := "anteroom load: " + strings.Join(c.want, "\nanteroom load: ") + "\n"
		if code != c.code || stdout != "" || stderr != want {
			t.Errorf("load %s: exit code %d, want %d; output %q; errors (-want +got):\n%s", c.args, code, c.code, stdout, cmp.Diff(want, stderr))
		}
	}
}

// loadOf is a result as a run may have it, with everything that can be told.
func loadOf() *load.Result {
	q := func(p50 float64) load.Quantiles {
		return load.Quantiles{P50: p50, P90: 2 * p50, P99: 4 * p50, P999: 10 * p50, Max: 30 * p50}
	}
	return &load.Result{
		Room: "shop", URLs: []string{"http://a:8080", "http://b:8080"}, Began: time.Unix(0, 0).UTC(), Seconds: 12.5, Model: "closed", Users: 2000,
		Concurrency: 1000, Connections: 64, VisitorsPerSecond: 151.2,
		Visitors: load.Visitors{Came: 2000, Done: 1890, Abandoned: 100, Lost: 10, Returned: 12, Moved: 3},
		Requests: map[string]load.Kind{
			"join": {Count: 2000, PerSecond: 160, Latency: q(0.0012)}, "check_in": {Count: 30000, PerSecond: 2400, Latency: q(0.00031)},
			"leave": {Count: 1500, PerSecond: 120, Latency: q(0.04)}, "end": {Count: 1890, PerSecond: 151.2, Latency: q(0.0005)},
		},
		Late: q(0.00001), Retries: 21, Reconnects: 4, CPUSeconds: 0.9,
		Errors: map[string]int64{"503 unavailable": 18, "connection broken": 3, "410 ticket_expired": 10}, Lost: map[string]int64{"check_in: 410 ticket_expired": 10},
		HeldMost: 50, Unordered: 2, Course: []load.Second{},
		Report: load.Report{
			N: 1840, OpenAdmissions: 50, DiscordantPairs: new(int64(17)), KendallTau: new(1.005e-5), KendallTauThesis: new(0.0031),
			MaxOvertakenBy: new(6), MaxWait: 11.5, Wait: fairness.Percentiles{P50: 5, P90: 9.25, P99: 11}, OpenInversions: new(int64(0)), OverLimitMax: new(0),
		},
	}
}

func TestLoadAsPeopleReadIt(t *testing.T) {
	before, after := loadOf(), loadOf()
	after.VisitorsPerSecond, after.Visitors.Lost, after.Report.KendallTau, after.Report.OverLimitMax = 302.4, 0, nil, nil
	after.Requests = map[string]load.Kind{"join": after.Requests["join"]}
	after.Model, after.Rate, after.Lost, after.Errors, after.Unordered = "open", 300, nil, nil, 1840
	var b bytes.Buffer
	l := &loading{program: &program{stdout: &b}}
	dir := t.TempDir()
	for name, r := range map[string]*load.Result{"before.json": before, "after.json": after} {
		var text bytes.Buffer
		if err := r.WriteJSON(&text); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []*load.Result{before, after} {
		l.print(r, loadTables(r))
		fmt.Fprintln(&b)
	}
	for _, more := range [][]string{nil, {"--json"}} {
		stdout, stderr, code := execute(t, t.Context(), append([]string{"load", "--compare", filepath.Join(dir, "before.json"), filepath.Join(dir, "after.json")}, more...)...)
		if code != 0 || stderr != "" {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		fmt.Fprintln(&b, strings.ReplaceAll(stdout, dir+"/", ""))
	}
	golden(t, "load", b.String())
	help, _, _ := execute(t, t.Context(), "load", "--help")
	golden(t, "load-help", help)
}
