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
	dirs          map[string]bool // of its packages that are used
	root          string
	linked        bool // into the program; else tests alone need it
}

// modules returns all but our own, by path. Which packages are linked depends on
// the system, so it asks for those that people run the program on.
func modules() ([]*module, error) {
	found := make(map[string]*module)
	for _, system := range []string{"linux", "darwin", "windows"} {
		if err := gather(found, system, true, program); err != nil {
			return nil, err
		}
	}
	if err := gather(found, "linux", false, "-test", ourModule+"/..."); err != nil {
		return nil, err
	}
	var all []*module
	for _, m := range found {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *module) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

func gather(found map[string]*module, system string, linked bool, args ...string) error {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=Dir,Module"}, args...)...)
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
		if p.Module == nil || p.Module.Main {
			continue
		}
		m := found[p.Module.Path]
		if m == nil {
			m = &module{Path: p.Module.Path, Version: p.Module.Version, root: p.Module.Dir, linked: linked, dirs: make(map[string]bool)}
			found[m.Path] = m
		}
		m.dirs[p.Dir] = true
	}
}

// licences returns the SPDX identifiers of what holds for a module's packages: of
// all licence files in their directories and in those above them.
func (m *module) licences() ([]string, error) {
	names := make(map[string]bool)
	for dir := range m.dirs {
		for ; strings.HasPrefix(dir, m.root); dir = filepath.Dir(dir) {
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
