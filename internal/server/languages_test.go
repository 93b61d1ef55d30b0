package server

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/gateway/page"
	"github.com/anteroom/anteroom/internal/config"
)

// The languages that a room may have are those that the page has words in.
func TestTheConfigurationKnowsThePagesLanguages(t *testing.T) {
	p, err := page.New()
	if err != nil {
		t.Fatal(err)
	}
	has, known := p.Languages(), config.Languages()
	if has[0] != known[0] {
		t.Errorf("who speaks none gets %s, not %s", has[0], known[0])
	}
	slices.Sort(has)
	slices.Sort(known)
	if diff := cmp.Diff(has, known); diff != "" {
		t.Errorf("the page's languages (-) are not those of the configuration (+):\n%s", diff)
	}
}
