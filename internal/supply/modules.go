package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	ourModule = "github.com/anteroom/anteroom"
	program   = ourModule + "/cmd/anteroom"
)

// module is one that something of ours is built from.
type module struct {
	Path, Version string
	dirs          map[string]string // of its packages that are used; each one's root is that of the version it is of
	linked        bool              // into the program
	inside        bool              // not into the program, but into a Caddy with our module; else tests alone need it
}

// modules returns all but our own, by path. Which packages are linked depends on
// the system, so it asks for those that people run the program on.
func modules() ([]*module, error) {
	found := make(map[string]*module)
	top, err := root()
	if err != nil {
		return nil, err
	}
	caddy := filepath.Join(top, "caddy")
	systems := []string{"linux", "darwin", "windows"}
	for _, system := range systems {
		if err := gather(found, top, system, module{linked: true}, program); err != nil {
			return nil, err
		}
	}
	for _, system := range systems {
		if err := gather(found, caddy, system, module{inside: true}, "."); err != nil {
			return nil, err
		}
	}
	for _, dir := range []string{top, caddy} {
		if err := gather(found, dir, "linux", module{}, "-test", "./..."); err != nil {
			return nil, err
		}
	}
	var all []*module
	for _, m := range found {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *module) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// root is the directory of the repository.
func root() (string, error) {
	top, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", ourModule).Output()
	if err != nil {
		return "", fmt.Errorf("go list -m: %w", err)
	}
	return strings.TrimSpace(string(top)), nil
}

// gather adds to found what the packages of args need on a system, by the go.mod of dir. What
// was not there before is what kind says it is.
func gather(found map[string]*module, dir, system string, kind module, args ...string) error {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=Dir,Module"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list for %s: %w", system, err)
	}
	d := json.NewDecoder(bytes.NewReader(out))
	for {
		var p struct {
			Dir    string
			Module *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("go list: %w", err)
		}
		if p.Module == nil || p.Module.Main || p.Module.Path == ourModule {
			continue
		}
		m := found[p.Module.Path]
		if m == nil {
			m = &module{Path: p.Module.Path, Version: p.Module.Version, linked: kind.linked, inside: kind.inside, dirs: make(map[string]string)}
			found[m.Path] = m
		}
		m.dirs[p.Dir] = p.Module.Dir
	}
}

// licences returns the SPDX identifiers of what holds for a module's packages: of
// all licence files in their directories and in those above them. Caddy may have
// another version of one than the program: then of both.
func (m *module) licences() ([]string, error) {
	names := make(map[string]bool)
	for dir, root := range m.dirs {
		for ; strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
			if err := inDirectory(names, dir); err != nil {
				return nil, err
			}
		}
	}
	var all []string
	for n := range names {
		all = append(all, n)
	}
	slices.Sort(all)
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no licence file", m.Path)
	}
	return all, nil
}

func inDirectory(names map[string]bool, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || !isLicence(e.Name()) {
			continue
		}
		name := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		id := identify(string(text))
		if id == "" {
			return fmt.Errorf("%s is a licence that is not known here: read it, and add what is in it to known, in licences.go", name)
		}
		names[id] = true
	}
	return nil
}
