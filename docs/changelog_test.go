package docs_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A program that looks for what a release changed, and so a reader, finds it by the
// headings of Keep a Changelog.
func TestTheChangelogIsInItsForm(t *testing.T) {
	b, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	text := fence.ReplaceAllString(string(b), "")
	if !strings.HasPrefix(text, "# Changelog\n") {
		t.Errorf("it begins with %.40q", text)
	}
	release := regexp.MustCompile(`^## \[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d$`)
	kinds := []string{"### Added", "### Changed", "### Deprecated", "### Removed", "### Fixed", "### Security"}
	var releases, seen []string
	for line := range strings.Lines(text) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "## "):
			if first := len(releases) == 0; first != (line == "## [Unreleased]") || !first && !release.MatchString(line) {
				t.Errorf("%q: first comes [Unreleased], then releases as in ## [1.2.3] - 2026-01-31", line)
			}
			releases, seen = append(releases, line), nil
		case strings.HasPrefix(line, "### "):
			if !slices.Contains(kinds, line) || slices.Contains(seen, line) {
				t.Errorf("%q below %q: each of %q, once", line, releases[len(releases)-1], kinds)
			}
			seen = append(seen, line)
		case strings.HasPrefix(line, "#### "):
			t.Errorf("%q: there is no deeper heading", line)
		}
	}
	if len(releases) == 0 {
		t.Error("there is no [Unreleased]")
	}
}
