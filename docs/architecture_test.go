package docs_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"html"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "draw architecture.svg anew")

// station is a function on the way of a request, as architecture.md has it.
type station struct{ file, function string }

func (s station) String() string { return s.file + " " + s.function }

var (
	wayHeading  = regexp.MustCompile(`^### (.+)$`)
	wayStation  = regexp.MustCompile("^[0-9]+\\. \\[`([A-Za-z.]+)`\\]\\(\\.\\./([a-z/_]+\\.go)\\)")
	stationsMax = 10
)

// ways are the stations of each way in architecture.md, by its heading.
func ways(t *testing.T) map[string][]station {
	t.Helper()
	text, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	all, of := map[string][]station{}, ""
	for line := range strings.Lines(string(text)) {
		if m := wayHeading.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			of = m[1]
		} else if m := wayStation.FindStringSubmatch(line); m != nil {
			all[of] = append(all[of], station{m[2], m[1]})
		}
	}
	return all
}

// The stations of the five ways are functions that there are, at most ten of each way and
// none twice.
func TestWaysHaveStations(t *testing.T) {
	all := ways(t)
	if len(all) != 5 {
		t.Errorf("%d ways, want five: %v", len(all), slices.Sorted(maps.Keys(all)))
	}
	for of, way := range all {
		if len(way) < 5 || len(way) > stationsMax {
			t.Errorf("%s: %d stations", of, len(way))
		}
		for i, s := range way {
			if slices.Contains(way[:i], s) {
				t.Errorf("%s: %s is visited twice", of, s)
			}
			if _, err := bodyOf(s); err != nil {
				t.Errorf("%s: %v", of, err)
			}
		}
	}
}

// bodyOf returns where in its file the body of a station begins, in bytes.
func bodyOf(s station) (int, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, filepath.Join("..", filepath.FromSlash(s.file)), nil, 0)
	if err != nil {
		return 0, err
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && nameOf(fn) == s.function {
			return set.Position(fn.Body.Lbrace).Offset + 1, nil
		}
	}
	return 0, fmt.Errorf("there is no %s", s)
}

// nameOf is a function's name, with its receiver's type.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if p, ok := of.(*ast.StarExpr); ok {
		of = p.X
	}
	if id, ok := of.(*ast.Ident); ok {
		return id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// The drawing is of the imports as they are: what a node is made of, each package above
// all that it imports.
func TestTheDrawingIsOfTheCode(t *testing.T) {
	const name = "architecture.svg"
	h := readHouse(t)
	got := h.draw()
	if *rewrite {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if was, err := os.ReadFile(name); err != nil || string(was) != got {
		t.Errorf("%s is of other imports (%v): draw it anew with go test ./docs -run Drawing -rewrite", name, err)
	}
}

// house is the packages that make a node, with what they import of each other.
type house struct {
	imports map[string][]string
	about   map[string]string
	floor   map[string]int
	pure    map[string]bool // the simulators run it
}

const (
	module = "github.com/anteroom/anteroom/"
	roof   = "internal/server" // puts a node together
)

func readHouse(t *testing.T) *house {
	t.Helper()
	h := &house{imports: map[string][]string{}, about: map[string]string{}, floor: map[string]int{}, pure: map[string]bool{}}
	h.read(t, roof)
	for pkg := range h.imports {
		h.rise(pkg)
	}
	for _, simulator := range []string{"simtest", "simtest/queues"} {
		imports, _ := inspect(t, simulator)
		for _, pkg := range imports {
			h.simulated(pkg)
		}
	}
	return h
}

// read takes in a package and what it imports.
func (h *house) read(t *testing.T, pkg string) {
	t.Helper()
	if _, ok := h.imports[pkg]; ok {
		return
	}
	h.imports[pkg], h.about[pkg] = inspect(t, pkg)
	for _, to := range h.imports[pkg] {
		h.read(t, to)
	}
}

// inspect returns the packages of this module that a package imports, and what it says of
// itself.
func inspect(t *testing.T, pkg string) (imports []string, about string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(pkg), "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v, %d files", pkg, err, len(names))
	}
	set := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if f.Doc != nil && f.Name.Name != "main" {
			about = new(doc.Package).Synopsis(f.Doc.Text())
		}
		for _, spec := range f.Imports {
			if to, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module); ok && !generated(to) && !slices.Contains(imports, to) {
				imports = append(imports, to)
			}
		}
	}
	slices.Sort(imports)
	return imports, about
}

// generated reports whether a package is made by a program, or only holds files.
func generated(pkg string) bool {
	return strings.HasPrefix(pkg, "proto/anteroom/") || strings.HasPrefix(pkg, "proto/envoy/service/") || pkg == "gateway/admin/dashboard"
}

// rise returns on which floor a package is: above all that it imports.
func (h *house) rise(pkg string) int {
	if _, ok := h.floor[pkg]; !ok {
		h.floor[pkg] = 0
		for _, to := range h.imports[pkg] {
			h.floor[pkg] = max(h.floor[pkg], h.rise(to)+1)
		}
	}
	return h.floor[pkg]
}

func (h *house) simulated(pkg string) {
	if _, ok := h.imports[pkg]; ok && !h.pure[pkg] && !strings.HasPrefix(pkg, "proto/") {
		h.pure[pkg] = true
		for _, to := range h.imports[pkg] {
			h.simulated(to)
		}
	}
}

// needs are the imports of a package that none of its other imports brings along.
func (h *house) needs(pkg string) []string {
	return slices.DeleteFunc(slices.Clone(h.imports[pkg]), func(to string) bool {
		return slices.ContainsFunc(h.imports[pkg], func(other string) bool { return other != to && h.reaches(other, to) })
	})
}

func (h *house) reaches(from, to string) bool {
	return from == to || slices.ContainsFunc(h.imports[from], func(next string) bool { return h.reaches(next, to) })
}

// The drawing, in its own units.
const (
	bricks  = 4 // side by side
	brickW  = 244
	brickH  = 88
	gap     = 8
	columns = 40 // letters of a line in a brick
)

func (h *house) draw() string {
	var b strings.Builder
	y := gap
	for floor := h.floor[roof]; floor >= 0; floor-- {
		var on []string
		for _, simulated := range []bool{false, true} {
			for _, pkg := range slices.Sorted(maps.Keys(h.floor)) {
				if h.floor[pkg] == floor && h.pure[pkg] == simulated {
					on = append(on, pkg)
				}
			}
		}
		for i, pkg := range on {
			h.brick(&b, pkg, gap+i%bricks*(brickW+gap), y+i/bricks*(brickH+gap))
		}
		y += (len(on)+bricks-1)/bricks*(brickH+gap) + gap
	}
	w := gap + bricks*(brickW+gap)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-labelledby="t d" font-family="system-ui, sans-serif" font-size="11">
<title id="t">What a node is made of</title>
<desc id="d">Every package stands above all that it imports, from internal/server at the top down to qpid. What the simulators run is drawn with a thicker edge.</desc>
<style>
.ink { fill: #1f2a37 } .soft { fill: #54606e } .brick { fill: none; stroke: #9aa4ae } .pure { fill: none; stroke: #0b6b66; stroke-width: 2.5 }
@media (prefers-color-scheme: dark) { .ink { fill: #e8edf2 } .soft { fill: #a9b4bf } .brick { stroke: #5d6974 } .pure { stroke: #6fd0c5 } }
</style>
%s</svg>
`, w, y, b.String())
}

func (h *house) brick(b *strings.Builder, pkg string, x, y int) {
	class := "brick"
	if h.pure[pkg] {
		class = "pure"
	}
	fmt.Fprintf(b, "<g transform=\"translate(%d %d)\"><rect class=%q width=\"%d\" height=\"%d\" rx=\"4\"/>", x, y, class, brickW, brickH)
	fmt.Fprintf(b, `<text class="ink" font-weight="600" font-size="13" x="8" y="18">%s</text>`, html.EscapeString(pkg))
	_, about, _ := strings.Cut(strings.TrimPrefix(h.about[pkg], "Package "), " ")
	lines := wrap(about, 3)
	for i, line := range lines {
		fmt.Fprintf(b, `<text class="ink" x="8" y="%d">%s</text>`, 34+14*i, html.EscapeString(line))
	}
	var needs []string
	for _, to := range h.needs(pkg) {
		needs = append(needs, path.Base(to))
	}
	if len(needs) > 0 {
		fmt.Fprintf(b, `<text class="soft" x="8" y="%d">%s</text>`, brickH-8, html.EscapeString(wrap("on "+strings.Join(needs, ", "), 1)[0]))
	}
	b.WriteString("</g>\n")
}

// wrap breaks text into so many lines at most; what is left is an ellipsis.
func wrap(text string, most int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(strings.TrimSuffix(text, ".")) {
		room := columns
		if len(lines) == most-1 {
			room -= 3
		}
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) <= room:
			line += " " + word
		case len(lines) == most-1:
			return append(lines, strings.TrimRight(line, ",.:;")+" …")
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}
