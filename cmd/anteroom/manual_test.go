package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestTheManualHasAPageOfEachCommand(t *testing.T) {
	pages := filepath.Join(t.TempDir(), "new", "man")
	if _, errors, code := execute(t, t.Context(), "manual", "--date", "2026-01-02", pages); code != 0 {
		t.Fatalf("exit code %d: %s", code, errors)
	}
	all := commands((&program{now: time.Now}).root())
	if len(all) < 40 {
		t.Errorf("%d commands: they are not found any more", len(all))
	}
	for _, c := range all {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		b, err := os.ReadFile(filepath.Join(pages, name))
		if err != nil {
			t.Error(err)
		}
		page := strings.ReplaceAll(string(b), `\-`, "-")
		if !strings.Contains(page, c.Short) || !strings.Contains(page, `"Jan 2026"`) {
			t.Errorf("%s does not say %q and its date: %.300s", name, c.Short, page)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(page, "--"+f.Name) {
				t.Errorf("%s does not name --%s", name, f.Name)
			}
		})
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

// commands are those that a user sees, cmd among them.
func commands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			all = append(all, commands(c)...)
		}
	}
	return all
}

func TestShellsCompleteCommandsAndFlags(t *testing.T) {
	for typed, want := range map[string]string{
		"rooms ap":           "apply\t",
		"serve --gossip-key": "--gossip-key-file\t",
		"":                   "healthcheck\t",
	} {
		args := append([]string{"__complete"}, strings.Split(typed, " ")...)
		if said, _, code := execute(t, t.Context(), args...); code != 0 || !strings.Contains(said, want) {
			t.Errorf("anteroom %s, and Tab: exit code %d, %q, want %q", typed, code, said, want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		said, _, code := execute(t, t.Context(), "completion", shell)
		if code != 0 || !strings.Contains(said, "__complete") {
			t.Errorf("completion %s: exit code %d, %.300s", shell, code, said)
		}
		program, err := exec.LookPath(shell)
		if err != nil || shell == "powershell" {
			continue
		}
		syntax := exec.Command(program, "-n", "/dev/stdin")
		syntax.Stdin = strings.NewReader(said)
		if out, err := syntax.CombinedOutput(); err != nil {
			t.Errorf("%s does not take its completions: %v: %s", shell, err, out)
		}
	}
}
