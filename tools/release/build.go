package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// release is one release while it is made.
type release struct {
	root    string // of the repository
	out     string // where the files go
	work    string // for what stands between, removed at the end
	targets []target
	commit  string
	date    time.Time // of the commit: what every file says of its age
	version string    // without the v, as 1.2.3
}

// newRelease looks at the commit in root. Nothing that is not in it may be built.
func newRelease(ctx context.Context, root, out string, targets []target) (*release, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	r := &release{root: root, out: out, targets: targets}
	changed, err := r.say(ctx, nil, "git", "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if changed != "" {
		first, _, _ := strings.Cut(changed, "\n")
		return nil, fmt.Errorf("there are changes that no commit has, such as %q: commit them, or build from a clone", strings.TrimSpace(first))
	}
	if r.commit, err = r.say(ctx, nil, "git", "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	seconds, err := r.say(ctx, nil, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return nil, err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, err
	}
	r.date = time.Unix(unix, 0).UTC()
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	left, err := os.ReadDir(out)
	if err != nil {
		return nil, err
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("%s is not empty, and its files would be among the sums: give a new --out, or empty it", out)
	}
	r.work, err = os.MkdirTemp("", "anteroom-release-")
	return r, err
}

// say runs a command in the repository and returns what it prints.
func (r *release) say(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(stdout)), nil
}

// here is this machine, whose program writes the manual and says its version.
func here() target { return target{os: runtime.GOOS, arch: runtime.GOARCH} }

// built is the directory with the program of t.
func (r *release) built(t target) string { return filepath.Join(r.work, t.os+"_"+t.arch) }

func (r *release) build(ctx context.Context) error {
	for _, t := range append([]target{here()}, r.targets...) {
		program := filepath.Join(r.built(t), t.program())
		if _, err := os.Stat(program); err == nil {
			continue
		}
		// Without symbols it is a third smaller; panics and profiles name functions still.
		env := []string{"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS=" + t.os, "GOARCH=" + t.arch}
		if _, err := r.say(ctx, env, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", program, "./cmd/anteroom"); err != nil {
			return err
		}
	}
	return r.askVersion(ctx)
}

func (r *release) askVersion(ctx context.Context) error {
	said, err := r.say(ctx, nil, filepath.Join(r.built(here()), here().program()), "version", "--json")
	if err != nil {
		return err
	}
	var is struct {
		Version string
		Commit  string
	}
	if err := json.Unmarshal([]byte(said), &is); err != nil {
		return err
	}
	if is.Commit != r.commit || !strings.HasPrefix(is.Version, "v") {
		return fmt.Errorf("the program says that it is version %q of commit %q, and the checkout is at %s", is.Version, is.Commit, r.commit)
	}
	r.version = strings.TrimPrefix(is.Version, "v")
	return nil
}

// manual is the directory with pages and completions.
func (r *release) manual() string { return filepath.Join(r.work, "manual") }

// writeManual has the program describe itself.
func (r *release) writeManual(ctx context.Context) error {
	program := filepath.Join(r.built(here()), here().program())
	if _, err := r.say(ctx, nil, program, "manual", "--date", r.date.Format(time.DateOnly), filepath.Join(r.manual(), "man")); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(r.manual(), "completions"), 0o755); err != nil {
		return err
	}
	for shell, extension := range map[string]string{"bash": "bash", "zsh": "zsh", "fish": "fish", "powershell": "ps1"} {
		script, err := r.say(ctx, nil, program, "completion", shell)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.manual(), "completions", "anteroom."+extension), []byte(script+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeBOM writes what the program is made of. It is the same for every target.
func (r *release) writeBOM(ctx context.Context) error {
	t := r.targets[0]
	bom, err := r.say(ctx, nil, "go", "tool", "supply", "sbom", filepath.Join(r.built(t), t.program()))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "anteroom_"+r.version+".cdx.json"), []byte(bom+"\n"), 0o644)
}
