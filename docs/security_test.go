package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

var attack = regexp.MustCompile(`^[0-9]+$`)

// Every attack of SECURITY.md is shown by tests that there are.
func TestAttacksAreShownByTests(t *testing.T) {
	next := 1
	for _, r := range rows(t, filepath.Join("..", "SECURITY.md")) {
		if !attack.MatchString(r.cells[0]) {
			continue
		}
		if r.cells[0] != fmt.Sprint(next) {
			t.Errorf("SECURITY.md:%d: attack %s, want %d", r.line, r.cells[0], next)
		}
		next++
		shown := named.FindAllStringSubmatch(r.cells[len(r.cells)-1], -1)
		if len(shown) == 0 {
			t.Errorf("SECURITY.md:%d: no test", r.line)
		}
		for _, m := range shown {
			if all, err := testsOf(filepath.Join("..", filepath.FromSlash(m[1]))); err != nil || !slices.Contains(all, m[2]) {
				t.Errorf("SECURITY.md:%d: there is no %s in %s (%v)", r.line, m[2], m[1], err)
			}
		}
	}
	if next != 19 {
		t.Errorf("SECURITY.md has %d attacks, want 18", next-1)
	}
}

var runs = regexp.MustCompile(`-run '([^']+)'`)

// The command of SECURITY.md runs all its tests with real processes.
func TestTheCommandRunsTheAttacksOnProcesses(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	run := runs.FindSubmatch(text)
	if run == nil {
		t.Fatal("SECURITY.md has no command")
	}
	pattern, err := regexp.Compile(string(run[1]))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, m := range named.FindAllStringSubmatch(string(text), -1) {
		if m[1] != "internal/live" {
			continue
		}
		n++
		if !pattern.MatchString(m[2]) {
			t.Errorf("SECURITY.md: the command does not run %s", m[2])
		}
	}
	if n < 17 {
		t.Errorf("SECURITY.md names %d tests with real processes, want one for each attack", n)
	}
}
