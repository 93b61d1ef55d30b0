package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheManualHasAPageOfEachCommand(t *testing.T) {
	pages := filepath.Join(t.TempDir(), "new", "man")
	if _, errors, code := execute(t, t.Context(), "manual", "--date", "2026-01-02", pages); code != 0 {
		t.Fatalf("exit code %d: %s", code, errors)
	}
	for name, want := range map[string]string{
		"anteroom.1":             "A waiting room for websites",
		"anteroom-rooms-apply.1": `"Jan 2026"`,
	} {
		b, err := os.ReadFile(filepath.Join(pages, name))
		if err != nil {
			t.Error(err)
		}
		if !strings.Contains(string(b), want) {
			t.Errorf("%s does not say %q: %.300s", name, want, b)
		}
	}
	if _, err := os.Stat(filepath.Join(pages, "anteroom-manual.1")); err == nil {
		t.Error("there is a page of what is hidden")
	}
	for want, args := range map[string][]string{
		"0 directories given; give one": {"manual"},
		"2026-13-01":                    {"manual", "--date", "2026-13-01", pages},
	} {
		if _, errors, code := execute(t, t.Context(), args...); code != 2 || !strings.Contains(errors, want) {
			t.Errorf("%q: exit code %d, %q, want 2 and %q", args, code, errors, want)
		}
	}
}
