package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// axe returns the source of axe-core.
func axe(t *testing.T) string {
	t.Helper()
	path := os.Getenv("ANTEROOM_AXE")
	if path == "" {
		path = filepath.Join("node_modules", "axe-core", "axe.min.js")
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v\nget axe-core with: npm ci --prefix internal/e2e", err)
	}
	return string(source)
}

// isAccessible has axe look at the page, by the rules of WCAG 2.2 at level AA
// and by what its authors call best practice.
func (p *person) isAccessible(name string) {
	p.t.Helper()
	p.until("all of the page", `document.readyState !== "loading"`)
	p.do("let axe run where scripts do not", scripts(true))
	p.do("load axe", chromedp.Evaluate[chromedp.Void](axe(p.t)+";0"))
	report, err := evalWithin[string](p, patience, `axe.run(document, {
		runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
		resultTypes: ["violations", "incomplete"],
	}).then(r => JSON.stringify({Violations: r.violations, Passes: r.passes.length}))`)
	if err != nil {
		p.t.Fatalf("%s: axe: %v", name, err)
	}
	var found struct {
		Passes     int
		Violations []struct {
			ID, Help string
			Nodes    []struct{ HTML, FailureSummary string }
		}
	}
	if err := json.Unmarshal([]byte(report), &found); err != nil {
		p.t.Fatalf("%s: axe: %v", name, err)
	}
	if found.Passes < 10 {
		p.t.Errorf("%s: axe passed only %d rules: did it see the page?", name, found.Passes)
	}
	for _, v := range found.Violations {
		var where strings.Builder
		for _, n := range v.Nodes {
			fmt.Fprintf(&where, "\n  %s\n  %s", n.HTML, n.FailureSummary)
		}
		p.t.Errorf("%s: axe: %s: %s%s", name, v.ID, v.Help, where.String())
	}
}
