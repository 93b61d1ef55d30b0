package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/history"
)

// admissionLines are the logs of two nodes: five people of the shop, of whom the
// third and the fourth were entitled in the wrong order and the last was not
// called, two who walked into the shop, and one of the news.
func admissionLines(t *testing.T) map[string]string {
	t.Helper()
	var logs [2]bytes.Buffer
	line := func(node int, e history.Entry) {
		if err := json.NewEncoder(&logs[node]).Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	id := func(n int) string { return fmt.Sprintf("%032x", n) }
	visit := func(node, n int, room string, joined, entitled, called int64, epoch uint64) {
		e := history.Entry{At: entitled, Room: room, Ticket: id(n), Joined: uint64(joined)}
		if e.Event = history.Open; entitled > 0 {
			e.Event, e.Line, e.Epoch, e.Stamp, e.ID = history.Entitled, 1, epoch, uint64(joined), id(n)
			line(node, e)
			e.Event, e.Line, e.Epoch, e.Stamp, e.ID = history.Called, 0, 0, 0, ""
		}
		if e.At = called; called > 0 {
			line(node, e)
		}
	}
	const s = 1_000_000
	visit(0, 1, "shop", 1*s, 0, 1*s, 0)
	visit(1, 2, "shop", 2*s, 0, 2*s, 0)
	visit(0, 3, "shop", 3*s, 10*s, 11*s, 5)
	visit(1, 4, "shop", 4*s, 14*s, 14*s+500_000, 7)
	visit(0, 5, "shop", 5*s, 12*s, 12*s, 6)
	visit(1, 6, "shop", 6*s, 16*s, 26*s, 8)
	visit(0, 7, "shop", 7*s, 17*s, 0, 9)
	visit(1, 8, "news", 7*s, 8*s, 8*s, 9)
	return map[string]string{"a.jsonl": logs[0].String(), "b.jsonl": logs[1].String() + `{"at":99,"ev`, "empty.jsonl": ""}
}

func TestReport(t *testing.T) {
	back := inDir(t, admissionLines(t))
	var b strings.Builder
	for _, args := range []string{"report a.jsonl", "report b.jsonl a.jsonl --over-limit 1", "report a.jsonl b.jsonl --json", "report empty.jsonl"} {
		stdout, stderr, code := execute(t, t.Context(), strings.Fields(args)...)
		if code != 0 || stderr != "" {
			t.Errorf("%s: exit code %d, errors %q", args, code, stderr)
		}
		b.WriteString("$ anteroom " + args + "\n" + stdout + "\n")
	}
	back()
	golden(t, "report", b.String())
}

func TestReportSaysWhatIsWrong(t *testing.T) {
	inDir(t, map[string]string{"shop.yaml": "node: {id: a}\n"})
	if err := os.Mkdir("logs", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"", "anteroom report: no room and no log given; try: anteroom report --room shop, or anteroom report node-*.jsonl", 2},
		{"--html a.jsonl", "--html, --logs-only, --from and --to are of one room; name it with --room", 2},
		{"--room shop --html --json", "--json and --html; give one of them", 2},
		{"--room shop --logs-only", "--logs-only, and no log given", 2},
		{"--room shop --logs-only --from yesterday none.jsonl", `--from: it is "yesterday"; want a time such as`, 2},
		{"none.jsonl", "none.jsonl: no such file or directory", 1},
		{"logs", "logs: ", 1},
		{"shop.yaml", "shop.yaml: line 1 is no line of an admission log", 1},
		{"shop.yaml --over-limit -1", "--over-limit -1; give the most people beyond the limit, or 0", 2},
	} {
		stdout, stderr, code := execute(t, t.Context(), strings.Fields("report "+c.args)...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("report %s: exit code %d, output %q, errors %q; want %d, %q", c.args, code, stdout, stderr, c.code, c.want)
		}
	}
}

// aReport is what a node tells of an event.
const aReport = `{"room":"shop","from":"2026-11-21T18:00:00Z","to":"2026-11-21T18:03:00Z","source":"history",
"people":{"came":1000,"got_in":900,"walked_in":50,"gave_up":80,"no_shows":5,"refused":3,"most_in_line":700},
"wait":{"count":850,"p50":61.5,"p75":90,"p95":120},"visit":{"count":800,"p50":30,"p75":45,"p95":60},
"limit":{"most_at_once":50,"total_active_users_min":20,"total_active_users_max":50,"over_limit_max":0},"order":null,
"estimates":{"checked":840,"under_p25":210,"under_p50":400,"under_p75":640},
"changes":[{"at":"2026-11-21T18:01:00Z","who":"token eve","action":"update","room":"shop","changes":[{"key":"total_active_users","from":"50","to":"20"}]}],
"nodes":[{"node":"a","spans":[[1795284000,1795284180]]},{"node":"b","spans":[[1795284000,1795284060]]}],
"missing":[{"node":"b","until":"2026-11-21T18:01:00Z"}],"advice":[{"key":"session_duration","text":"Half of the visits end in 30s."}],
"course":{"step":60,"time":[1795284000,1795284060,1795284120],"on_site_max":[50,50,20],"total_active_users":[50,20,20],"queued_max":[700,400,0]}}`

func TestReportOfAnEvent(t *testing.T) {
	asked := ""
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		_, _ = w.Write([]byte(aReport)) // the test sees what did not come
	}))
	defer node.Close()
	logs := admissionLines(t)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte(logs["a.jsonl"]))
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	logs["a.jsonl.gz"] = packed.String()
	back := inDir(t, logs)
	var b strings.Builder
	for _, args := range []string{
		"report --room shop --from 2026-11-21T18:00:00Z", "report --room shop --logs-only a.jsonl.gz b.jsonl",
		"report --room shop --logs-only --from 1970-01-01T00:00:11Z --to 1970-01-01T00:00:20Z a.jsonl b.jsonl",
	} {
		line := strings.Fields(args)
		if !strings.Contains(args, "--logs-only") {
			line = append(line, "--admin", node.URL)
		}
		stdout, stderr, code := execute(t, t.Context(), line...)
		if code != 0 || stderr != "" {
			t.Errorf("%s: exit code %d, errors %q", args, code, stderr)
		}
		b.WriteString("$ anteroom " + args + "\n" + stdout + "\n")
	}
	page, stderr, code := execute(t, t.Context(), "report", "--room", "shop", "--html", "--admin", node.URL)
	if code != 0 || !strings.Contains(page, "<h1>shop</h1>") || !strings.Contains(page, "http-equiv=\"Content-Security-Policy\"") || strings.Contains(page, "<script") {
		t.Errorf("exit code %d, errors %q, page %s", code, stderr, page)
	}
	if want := "/v1/rooms/shop/report?from=-1h&to="; asked != want {
		t.Errorf("asked for %s, want %s", asked, want)
	}
	back()
	golden(t, "report-event", b.String())
}

// A node that was lost has written no end of its visits: its log does not make the
// report say that the limit was broken. A peak that the waves have missed it tells.
func TestLogsWithoutEndsBreakNoLimit(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.Replace(aReport, `"most_at_once":50`, `"most_at_once":47`, 1))) // the test sees what did not come
	}))
	defer node.Close()
	at := time.Date(2026, 11, 21, 18, 1, 0, 0, time.UTC).UnixMicro()
	for people, want := range map[int]string{30: "at once  47\n", 49: "at once  49\n", 60: "at once  47\n"} {
		var log strings.Builder
		for i := range people {
			line, err := json.Marshal(history.Entry{At: at, Room: "shop", Event: history.Open, Ticket: fmt.Sprintf("%032x", i), Joined: uint64(at)})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&log, "%s\n", line)
		}
		back := inDir(t, map[string]string{"a.jsonl": log.String()})
		stdout, stderr, code := execute(t, t.Context(), "report", "--room", "shop", "--admin", node.URL, "a.jsonl")
		back()
		if code != 0 || !strings.Contains(stdout, want) || !strings.Contains(stdout, "beyond the limit          0\n") {
			t.Errorf("%d people without an end: exit code %d, errors %q, %s", people, code, stderr, stdout)
		}
	}
}
