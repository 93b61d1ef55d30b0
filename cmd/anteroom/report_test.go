package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

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
		{"", "anteroom report: no log given; try: anteroom report node-*.jsonl", 2},
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
