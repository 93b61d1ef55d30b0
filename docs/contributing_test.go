package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	aTest = regexp.MustCompile("`(Test[A-Za-z]+)`")
	aFile = regexp.MustCompile("`([a-z_/]+\\.(?:go|proto|yaml|md))`")
)

// What CONTRIBUTING.md says to touch, and what is said to tell, is there.
func TestAChangeStepByStepNamesWhatThereIs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, steps, _ := strings.Cut(string(text), "## A change, step by step\n")
	steps, _, _ = strings.Cut(steps, "\n## ")
	tests, files := map[string]bool{}, map[string]bool{}
	err = filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			files[d.Name()] = true
			return nil
		case strings.HasPrefix(d.Name(), ".") && name != "..", d.Name() == "node_modules", d.Name() == "testdata":
			return filepath.SkipDir
		}
		of, err := testsOf(name)
		for _, test := range of {
			tests[test] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, m := range aTest.FindAllStringSubmatch(steps, -1) {
		if n++; !tests[m[1]] {
			t.Errorf("there is no test %s", m[1])
		}
	}
	for _, m := range aFile.FindAllStringSubmatch(steps, -1) {
		n++
		if strings.Contains(m[1], "/") {
			if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(m[1]))); err != nil {
				t.Error(err)
			}
		} else if !files[m[1]] {
			t.Errorf("there is no file %s", m[1])
		}
	}
	if n < 40 {
		t.Errorf("%d names, want the whole table", n)
	}
}
