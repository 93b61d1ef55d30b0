// Package deploy_test holds what is here for Prometheus and Grafana to what nodes
// say, and to what the documentation says of it.
package deploy_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestEachAlertHasARunbookAndATest: whoever is woken by an alert finds a heading of
// its name, and no heading is about an alert that is no more.
func TestEachAlertHasARunbookAndATest(t *testing.T) {
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(read(t, "prometheus/alerts.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	var headings []string
	for _, m := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllSubmatch(read(t, "../docs/alerts.md"), -1) {
		headings = append(headings, string(m[1]))
	}
	tests := string(read(t, "prometheus/alerts_test.yaml"))
	var alerts []string
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			alerts = append(alerts, r.Alert)
			if got, want := r.Annotations["runbook_url"], "docs/alerts.md#"+strings.ToLower(r.Alert); got != want {
				t.Errorf("%s: runbook_url is %q, want %q", r.Alert, got, want)
			}
			if s := r.Labels["severity"]; s != "warning" && s != "critical" {
				t.Errorf("%s: severity is %q, want warning or critical", r.Alert, s)
			}
			if n := strings.Count(tests, "alertname: "+r.Alert+"\n"); n != 1 {
				t.Errorf("%s: fires in %d tests of alerts_test.yaml, want 1", r.Alert, n)
			}
		}
	}
	slices.Sort(alerts)
	slices.Sort(headings)
	if !slices.Equal(alerts, headings) {
		t.Errorf("the alerts are %v,\nthe headings of docs/alerts.md %v", alerts, headings)
	}
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	needPrometheus(t)
	for _, args := range [][]string{
		{"check", "config", "prometheus.yml"}, // the rules with it
		{"test", "rules", "alerts_test.yaml"},
		{"check", "config", "--syntax-only", "../compose/prometheus.yml"}, // its token and its rules are in the container
	} {
		cmd := exec.CommandContext(t.Context(), "promtool", args...)
		cmd.Dir = "prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// needPrometheus skips a test where ANTEROOM_E2E is not set, and fails it where the
// programs are missing.
func needPrometheus(t *testing.T) {
	t.Helper()
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("NOT RUN: a test with Prometheus; set ANTEROOM_E2E=1 (needs apt-get install prometheus)")
	}
	for _, name := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%s is missing: apt-get install prometheus", name)
		}
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
