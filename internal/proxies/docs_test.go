package proxies

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/anteroom/anteroom/internal/config"
)

// What docs/proxies.md shows is in the files that the tests run.
func TestDocsShowLinesOfTheExamples(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "proxies.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)<!-- from examples/([^ ]+) -->\n```[a-z]+\n(.*?)```").FindAllStringSubmatch(string(b), -1)
	if n := strings.Count(string(b), "```") / 2; len(blocks) != n || n == 0 {
		t.Errorf("%d blocks say where they are from, of %d", len(blocks), n)
	}
	for _, block := range blocks {
		has := make(map[string]bool)
		for line := range strings.Lines(Example(t, block[1])) {
			has[line] = true
		}
		for line := range strings.Lines(block[2]) {
			if !has[line] {
				t.Errorf("%s has no line %q", block[1], line)
			}
		}
	}
}

// What is not run here can at least be read.
func TestExamplesAreYAML(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "*", "*.y*ml"))
	if err != nil || len(files) < 6 {
		t.Fatalf("%q %v", files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		d := yaml.NewDecoder(bytes.NewReader(b))
		for {
			var document map[string]any
			if err = d.Decode(&document); err != nil {
				break
			}
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The rooms of the examples are good, also where no program is run.
func TestRoomsOfTheExamplesAreGood(t *testing.T) {
	for _, name := range []string{"anteroom.yaml", "haproxy/anteroom.yaml"} {
		if err := config.Parse(name, []byte(Example(t, name)), config.Options{Host: "node-1"}).Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
