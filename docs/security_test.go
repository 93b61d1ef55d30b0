package docs_test

import (
	"fmt"
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
	if next != 18 {
		t.Errorf("SECURITY.md has %d attacks, want 17", next-1)
	}
}
