package overlay_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/overlay"
)

func TestEditsThatFitAreBehindASwitchAndOthersAreErrors(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("package a\n\nfunc f(a, b bool) bool { return a || b && !a }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, now, want, err string }{
		{"return a", "return ON || a // OPTIONS", `return mutant("x") || a // OPTIONS`, ""},
		{"return b", "ON", "", `"return b" stands 0 times in a.go`},
		{"bool", "ON", "", `"bool" stands 2 times in a.go`},
	} {
		got, err := overlay.Apply(root, []overlay.Change{{Name: "x", Edits: []overlay.Edit{{File: "a.go", Old: c.old, New: c.now}}}})
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: %v, want %s", c.old, err, c.err)
			}
			continue
		}
		if err != nil || !strings.Contains(got["a.go"], c.want) {
			t.Errorf("%q: %s, %v", c.old, got["a.go"], err)
		}
	}
	same := overlay.Change{Name: "x"}
	if _, err := overlay.Apply(root, []overlay.Change{same, same}); err == nil {
		t.Error("two changes of one name are taken")
	}
}
