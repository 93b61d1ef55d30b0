package rpc

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/tokens"
)

// The table of methods in docs/operating.md is that of the code.
func TestTheGuideHasTheOperations(t *testing.T) {
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| methods | `may` has one of | and names |")
	table, _, _ = strings.Cut(table, "\n\n")
	word := regexp.MustCompile("`([A-Za-z]+)`")
	words := func(s string) (all []string) {
		for _, m := range word.FindAllStringSubmatch(s, -1) {
			all = append(all, m[1])
		}
		return all
	}
	told := map[string]operation{}
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		o := operation{open: strings.Contains(cells[2], "no token")}
		var needs []tokens.Right
		for _, name := range words(cells[2]) {
			r, ok := tokens.ParseRight(name)
			if !ok {
				t.Errorf("%s is no right", name)
			}
			needs = append(needs, r)
		}
		o.needs = tokens.RightsOf(needs...)
		o.about = map[string]scope{"the room": ofRoom, "the queue": ofQueue, "": ofNode}[strings.TrimSpace(cells[3])]
		for part := range strings.SplitSeq(cells[1], ";") {
			service, methods, _ := strings.Cut(part, ":")
			for _, m := range words(methods) {
				told[strings.TrimSpace(service)+"/"+m] = o
			}
		}
	}
	want := map[string]operation{}
	for method, o := range operations() {
		if o.about == ofRoute {
			o.about = ofRoom
		}
		want[method[strings.LastIndexByte(method[:strings.LastIndexByte(method, '/')], '.')+1:]] = o
	}
	if diff := cmp.Diff(want, told, cmp.AllowUnexported(operation{})); diff != "" {
		t.Errorf("operations of the code (-) and of docs/operating.md (+):\n%s", diff)
	}
}
