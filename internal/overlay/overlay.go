// Package overlay compiles edited sources. Each edit is behind a switch, so that
// one binary holds all of them and wakes one at a time; the sources themselves
// hold no trace of it. Tests use it to show that other tests notice.
package overlay

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// Edit replaces the only place in File where Old stands. ON in New stands for
// the switch: an expression that is true while the change is awake.
type Edit struct{ File, Old, New string }

// Change is a set of edits that are awake together, under a name of its own.
type Change struct {
	Name  string
	Edits []Edit
}

// Variable is the environment variable that names the change that is awake.
const Variable = "ANTEROOM_MUTANT"

var on = regexp.MustCompile(`\bON\b`)

// Apply returns the edited text of each file below root that changes name. An
// edit whose text does not stand there exactly once is an error.
func Apply(root string, changes []Change) (map[string]string, error) {
	sources := map[string]string{}
	names := map[string]bool{}
	for _, c := range changes {
		if names[c.Name] {
			return nil, fmt.Errorf("two changes are called %q", c.Name)
		}
		names[c.Name] = true
		for _, e := range c.Edits {
			text, ok := sources[e.File]
			if !ok {
				b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.File)))
				if err != nil {
					return nil, fmt.Errorf("%q: %w", c.Name, err)
				}
				text = string(b)
			}
			if n := strings.Count(text, e.Old); n != 1 {
				return nil, fmt.Errorf("%q: %q stands %d times in %s, want once: the source has changed, and the edit with it", c.Name, e.Old, n, e.File)
			}
			now := on.ReplaceAllLiteralString(e.New, fmt.Sprintf("mutant(%q)", c.Name))
			sources[e.File] = strings.Replace(text, e.Old, now, 1)
		}
	}
	return sources, nil
}

// Write writes what Apply returns, and the switch for each package, into dir. It
// returns the file for the go command's -overlay.
func Write(root, dir string, changes []Change) (string, error) {
	sources, err := Apply(root, changes)
	if err != nil {
		return "", err
	}
	files := map[string]string{}
	for name, text := range sources {
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.PackageClauseOnly)
		if err != nil {
			return "", fmt.Errorf("parse: %w", err)
		}
		files[name] = text
		files[path.Join(path.Dir(name), "mutant_switch.go")] = "package " + f.Name.Name + `

import "os"

var awake = os.Getenv("` + Variable + `")

func mutant(name string) bool { return name == awake }
`
	}
	replace := map[string]string{}
	for name, text := range files {
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, filepath.FromSlash(name))] = file
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	config := filepath.Join(dir, "overlay.json")
	return config, os.WriteFile(config, b, 0o600)
}
