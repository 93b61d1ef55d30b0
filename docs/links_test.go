package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	notSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the headings of a document, as GitHub makes anchors of them.
func anchors(text string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

func TestLinksLeadSomewhere(t *testing.T) {
	var names []string
	for _, pattern := range []string{"*.md", "../*.md", "../examples/*.md", "../examples/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	text := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		return fence.ReplaceAllString(string(b), "")
	}
	links := 0
	for _, name := range names {
		for _, m := range link.FindAllStringSubmatch(text(name), -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, ":") {
				continue // elsewhere
			}
			links++
			target := name
			if to != "" {
				target = filepath.Join(filepath.Dir(name), filepath.FromSlash(to))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s leads nowhere", name, m[1])
			} else if anchor != "" && strings.HasSuffix(target, ".md") && !slices.Contains(anchors(text(target)), anchor) {
				t.Errorf("%s: %s has no heading #%s", name, target, anchor)
			}
		}
	}
	if links < 50 {
		t.Errorf("%d links in %d documents: they are not found any more", links, len(names))
	}
}
