package live

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway/admin"
)

// raw is what a script has counted in the requests and answers of a crowd.
type raw struct {
	Came   int     `json:"came"`
	GotIn  int     `json:"got_in"`
	Walked int     `json:"walked_in"`
	Left   int     `json:"left"`
	Most   int     `json:"most_at_once"`
	Waited int     `json:"waited"`
	P50    float64 `json:"p50"`
	P95    float64 `json:"p95"`
}

// What history and report tell of a crowd is what two scripts that know HTTP and
// nothing of ours have seen: one is the crowd, the other counts its log.
func TestHistoryAndReportAgreeWithRawLogs(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("NOT RUN: there is no python3")
	}
	const people, limit = 2000, 300
	c := newCluster(t, limit)
	c.session = time.Minute // nobody's visit runs out while the site fills
	c.run(3)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	script := func(args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(ctx, python, args...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, stderrOf(err))
		}
		return out
	}
	log := c.file("raw.log")
	script("testdata/crowd.py", log, strconv.Itoa(people), "4", "3", strconv.Itoa(limit), c.nodes[0].gateway(), c.nodes[1].gateway(), c.nodes[2].gateway())
	var counted raw
	if err := json.Unmarshal(script("testdata/count.py", log), &counted); err != nil {
		t.Fatal(err)
	}
	c.phase("the scripts have counted %+v", counted)
	if counted.Came != people || counted.GotIn != people || counted.Left != people || counted.Most != limit || counted.P50 < 2 {
		t.Errorf("the crowd was none: %+v", counted)
	}
	var f admin.Figures
	c.until("the history has everybody", 10*time.Second, func() bool {
		askRoom(t, c.nodes[0], "history?from=-10m&step=1m", &f)
		return f.Total.EndsLeft == people
	})
	agrees(t, "history", &counted, int(f.Total.Joins), int(f.Total.Admissions), int(f.Total.WalkedIn), int(f.Total.OnSiteMax), f.Total.Wait)
	var r admin.Report
	askRoom(t, c.nodes[2], "report?from=-10m", &r)
	agrees(t, "report", &counted, r.People.Came, r.People.GotIn, r.People.WalkedIn, r.Limit.MostAtOnce, r.Wait)
	if r.Limit.Over == nil || *r.Limit.Over != 0 {
		t.Errorf("the report says over the limit: %v", r.Limit)
	}
	logs, _ := filepath.Glob(c.file("*.jsonl"))
	out, err := exec.CommandContext(ctx, c.binary, append([]string{"report", "--room", "shop", "--logs-only", "--json"}, logs...)...).Output()
	if err == nil {
		r = admin.Report{}
		err = json.Unmarshal(out, &r)
	}
	if err != nil || r.Order == nil {
		t.Fatalf("report of the logs: %v: %s%s", err, out, stderrOf(err))
	}
	agrees(t, "report of the logs alone", &counted, r.People.Came, r.People.GotIn, r.People.WalkedIn, r.Limit.MostAtOnce, r.Wait)
	if r.Order.KendallTau != 0 {
		t.Errorf("Kendall tau is %v", r.Order.KendallTau)
	}
}

func stderrOf(err error) []byte {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.Stderr
	}
	return nil
}

// askRoom gets something about the shop's room from a node.
func askRoom(t *testing.T, p *process, what string, into any) {
	t.Helper()
	a, err := http.Get("http://" + p.at(1) + "/v1/rooms/shop/" + what)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	if err := json.NewDecoder(a.Body).Decode(into); err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", what, a.Status, err)
	}
}

// agrees holds figures against the count: people and the most at once exactly, waits
// to one percent.
func agrees(t *testing.T, what string, c *raw, came, in, walked, most int, wait admin.Shares) {
	t.Helper()
	if wait.P50 == nil || wait.P95 == nil {
		t.Fatalf("%s: nobody has waited", what)
	}
	t.Logf("%s: %d came, %d got in, %d of them walked in, %d waited p50 %.3f s p95 %.3f s, at most %d at once; counted %+v", what, came, in, walked, wait.Count, *wait.P50, *wait.P95, most, *c)
	if came != c.Came || in != c.GotIn || walked != c.Walked || int(wait.Count) != c.Waited || most != c.Most {
		t.Errorf("%s: people or the most at once differ from the count", what)
	}
	for _, x := range [][2]float64{{*wait.P50, c.P50}, {*wait.P95, c.P95}} {
		if math.Abs(x[0]-x[1]) > 0.01*x[1] {
			t.Errorf("%s: a wait of %.3f s, counted %.3f s", what, x[0], x[1])
		}
	}
}
