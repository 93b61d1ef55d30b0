package deploy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestPrometheusAnswersTheDashboard has Prometheus scrape a demo that people queue at,
// and asks it every query of the dashboard for Grafana: each brings figures.
func TestPrometheusAnswersTheDashboard(t *testing.T) {
	needPrometheus(t)
	admin := demo(t)
	prometheus := scrape(t, admin)
	queries := queriesOf(t, "grafana/anteroom.json")
	if len(queries) < 20 {
		t.Fatalf("%d queries, want those of all panels", len(queries))
	}
	for _, q := range queries {
		// A rate needs two scrapes, and a wait somebody who has waited.
		eventually(t, "an answer to "+q, func() error { return ask(prometheus, q) })
	}
	t.Logf("%d queries answered", len(queries))

	metrics, err := get(admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
	check.Stdin = bytes.NewReader(metrics)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// queriesOf returns the queries of a dashboard's panels for the room of the demo.
func queriesOf(t *testing.T, name string) (queries []string) {
	t.Helper()
	var d struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(read(t, name), &d); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$room", "shop", "$__rate_interval", "10s")
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			queries = append(queries, variables.Replace(target.Expr))
		}
	}
	return queries
}

// demo starts the program and returns where the first node's admin port is.
func demo(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "anteroom")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../cmd/anteroom").CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	port := 21_000 + 12*rand.IntN(500)
	said := start(t, program, "demo", "--visitors", "60", "--limit", "5", "--over", "2s", "--stay", "1s",
		"--port", strconv.Itoa(port), "--admin-port", strconv.Itoa(port+4), "--grpc-port", strconv.Itoa(port+8))
	address := regexp.MustCompile(`admin (http://[0-9.:]+)`)
	var at string
	eventually(t, "the demo's address", func() error {
		m := address.FindStringSubmatch(said.String())
		if m == nil {
			return fmt.Errorf("it said: %s", said)
		}
		at = m[1]
		return nil
	})
	return at
}

// scrape starts Prometheus for one node, and returns where it is.
func scrape(t *testing.T, admin string) string {
	t.Helper()
	dir := t.TempDir()
	target := strings.TrimPrefix(admin, "http://")
	config := "global: {scrape_interval: 1s}\nscrape_configs: [{job_name: anteroom, static_configs: [{targets: ['" + target + "']}]}]\n"
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	at := "127.0.0.1:" + strconv.Itoa(28_000+rand.IntN(4000))
	start(t, "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+at)
	eventually(t, "Prometheus", func() error {
		_, err := get("http://" + at + "/-/ready")
		return err
	})
	return "http://" + at
}

// start runs a program until the test ends, and returns what it says.
func start(t *testing.T, program string, args ...string) fmt.Stringer {
	t.Helper()
	said := new(spoken)
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // t.Context ends before
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(program), said)
		}
	})
	return said
}

// spoken is what a program has said so far.
type spoken struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (s *spoken) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Write(b)
}

func (s *spoken) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// ask fails unless Prometheus has figures for a query.
func ask(prometheus, query string) error {
	b, err := get(prometheus + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return err
	}
	var a struct {
		Data struct{ Result []json.RawMessage }
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return err
	}
	if len(a.Data.Result) == 0 {
		return fmt.Errorf("no figures: %s", b)
	}
	return nil
}

func get(url string) ([]byte, error) {
	resp, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, b)
	}
	return b, err
}

// eventually waits for something that takes others their time.
func eventually(t *testing.T, what string, done func() error) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := done()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come in a minute: %v", what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
