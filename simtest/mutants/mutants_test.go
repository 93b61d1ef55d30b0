package mutants_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/simtest/mutants"
)

// TestUnsafeConfigurationsAreCaught and TestPlantedBugsAreCaught run the
// simulated world with one mutant at a time.
func TestUnsafeConfigurationsAreCaught(t *testing.T) { hunt(t, mutants.Unsafe()) }

func TestPlantedBugsAreCaught(t *testing.T) { hunt(t, mutants.Bugs()) }

var broken = regexp.MustCompile(`\b([SL][0-9]+) broken at|panic: `)

func hunt(t *testing.T, list []mutants.Mutant) {
	if testing.Short() {
		t.Skip("compiles the simulator anew; left out of -short")
	}
	bin := compile(t, list)
	for _, m := range list {
		t.Run(strings.ReplaceAll(m.Name, " ", "_"), func(t *testing.T) {
			args := []string{"-test.run=^TestSwarm$", "-seeds=400", "-fails=1"}
			if m.Run != "" {
				args = []string{"-test.run=" + m.Run}
			}
			out, err := run(bin, m.Name, args...)
			if err == nil {
				t.Fatalf("nothing noticed it")
			}
			found := broken.FindStringSubmatch(out)
			if found == nil {
				t.Fatalf("it failed, but not by a broken promise:\n%s", tail(out))
			}
			if len(m.Oracles) > 0 && !slices.Contains(m.Oracles, found[1]) {
				t.Errorf("noticed by %q, want one of %v:\n%s", found[1], m.Oracles, tail(out))
			}
			t.Logf("noticed: %s", found[0])
		})
	}
}

// run runs the test binary with a mutant awake.
func run(bin, name string, args ...string) (string, error) {
	c := exec.Command(bin, args...)
	c.Dir = filepath.Dir(bin)
	c.Env = append(os.Environ(), "ANTEROOM_MUTANT="+name)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", fmt.Errorf("run %s: %w", bin, err)
	}
	return string(out), err
}

// compile builds the simulator's tests with all mutants of list in them.
func compile(t *testing.T, list []mutants.Mutant) (bin string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	sources := map[string]string{} // path → text
	for _, m := range list {
		on := fmt.Sprintf("mutant(%q)", m.Name)
		for _, e := range m.Edits {
			text, ok := sources[e.File]
			if !ok {
				b, err := os.ReadFile(filepath.Join(root, e.File))
				if err != nil {
					t.Fatal(err)
				}
				text = string(b)
			}
			if n := strings.Count(text, e.Old); n != 1 {
				t.Fatalf("mutant %q: %q stands %d times in %s, want once", m.Name, e.Old, n, e.File)
			}
			sources[e.File] = strings.Replace(text, e.Old, strings.ReplaceAll(e.New, "ON", on), 1)
		}
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	add := func(path, text string) {
		file := filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(root, path)] = file
	}
	for path, text := range sources {
		add(path, text)
		pkg := filepath.Base(filepath.Dir(path))
		add(filepath.Join(filepath.Dir(path), "mutant_switch.go"), "package "+pkg+`

import "os"

var awake = os.Getenv("ANTEROOM_MUTANT")

func mutant(name string) bool { return name == awake }
`)
	}
	b, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(config, b, 0o600); err != nil {
		t.Fatal(err)
	}
	bin = filepath.Join(dir, "simtest.test")
	c := exec.Command("go", "test", "-c", "-overlay", config, "-o", bin, "./simtest")
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	return bin
}

func tail(s string) string {
	if len(s) > 2000 {
		s = "…" + s[len(s)-2000:]
	}
	return s
}
