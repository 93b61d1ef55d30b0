package node_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// marks has TestACommitPermitsACall say on standard error where it begins and ends.
const marks = "ANTEROOM_WALK"

// Somebody waits, the commit of the wave that counts them comes, and they are called
// before anything else happens.
func TestACommitPermitsACall(t *testing.T) {
	c := founded(t, 3, eviction.Room{Name: "shop", Target: 12, Session: time.Minute, QueueAll: true})
	b := c.node[1]
	var commit *eviction.Message
	c.pass = func(m eviction.Message) []eviction.Message {
		if _, ok := m.Body.(*eviction.Commit); ok && m.To == b.cfg.Self.Member {
			commit = &m
			return nil
		}
		return []eviction.Message{m}
	}
	c.join(b, "shop")
	c.until("commit", time.Second, func() bool { return commit != nil })
	mark("begins")
	if err := b.Step(c.at(b), *commit); err != nil {
		t.Fatal(err)
	}
	r := b.Ready(c.at(b))
	mark("ends")
	if !slices.ContainsFunc(r.Log, func(a node.Admission) bool { return a.Event == node.CalledIn }) {
		t.Fatalf("the commit calls nobody: %+v", c.room(b, "shop"))
	}
}

func mark(what string) {
	if os.Getenv(marks) != "" {
		fmt.Fprintln(os.Stderr, "walk", what)
	}
}

// TestTheWayFromACommitToACall runs that with every function of the core saying that it
// is entered, and prints the way of a reader who follows it: each function once, in the
// order in which they run, from the receipt of the commit to the slot that is spent. How
// often that leads to another file, and how often to one that was left before, is what it
// costs to prove the way to oneself. The goals are 15 and 5, for the functions that call
// others. The longest struct is printed too, each field of it being a thing to keep in
// mind at every line. The bounds are what was measured last, not the goals: 32 and 10, and 40.
func TestTheWayFromACommitToACall(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the core anew; left out of -short")
	}
	const filesMax, returnsMax, fieldsMax = 32, 10, 40
	core := readCore(t)
	walk := core.walk(t)
	end := slices.Index(walk, "eviction/ledger.go Ledger.Spend")
	if end < 0 || !slices.Contains(walk[:end], "eviction/commit.go Node.onCommit") {
		t.Fatalf("the way does not lead from a commit to a slot that is spent:\n%s", strings.Join(walk, "\n"))
	}
	walk = walk[:end+1]
	files, returns := passes(walk)
	t.Logf("%d functions, %d times another file, %d of them one that was left before:\n%s", len(walk), files, returns, strings.Join(walk, "\n"))
	walk = slices.DeleteFunc(walk, func(f string) bool { return core.leaf(f) })
	files, returns = passes(walk)
	t.Logf("%d functions that call others, %d times another file, %d of them one that was left before; the goals are 15 and 5", len(walk), files, returns)
	if files > filesMax || returns > returnsMax {
		t.Errorf("%d times another file, %d of them one that was left before, want at most %d and %d", files, returns, filesMax, returnsMax)
	}
	t.Logf("%d files of %d lines, the longest %s of %d; the longest struct %s of %d fields; %d assertions",
		core.files, core.lines, core.longestFile, core.linesMax, core.longestStruct, core.fieldsMax, core.assertions)
	if core.fieldsMax > fieldsMax {
		t.Errorf("%s has %d fields, want at most %d", core.longestStruct, core.fieldsMax, fieldsMax)
	}
}

// passes counts the steps of a way into another file, and those of them into a file
// that was left before.
func passes(walk []string) (files, returns int) {
	var seen []string
	last := ""
	for _, step := range walk {
		file, _, _ := strings.Cut(step, " ")
		if file == last {
			continue
		}
		files++
		if slices.Contains(seen, file) {
			returns++
		}
		seen, last = append(seen, file), file
	}
	return files, returns
}

// core is the source of what a node is made of.
type core struct {
	root          string
	edited        map[string]string   // by path: the text in which every function says that it is entered
	calls         map[string][]string // by function: what it calls, .Name of a type we do not know
	files, lines  int
	linesMax      int
	longestFile   string
	fieldsMax     int
	longestStruct string
	assertions    int // panics, and the checks of what must be true of a room
}

func readCore(t *testing.T) *core {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	c := &core{root: root, edited: map[string]string{}, calls: map[string][]string{}}
	for _, dir := range []string{"eviction", "internal/node", "qpid"} {
		names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.go"))
		if err != nil || len(names) == 0 {
			t.Fatal(err, names)
		}
		for _, name := range names {
			if !strings.HasSuffix(name, "_test.go") {
				c.read(t, name, dir+"/"+filepath.Base(name))
			}
		}
	}
	return c
}

// read takes in one file.
func (c *core) read(t *testing.T, name, short string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string]string{} // by name: the directory, if it is of the core
	for _, i := range file.Imports {
		from := strings.Trim(i.Path.Value, `"`)
		imports[path.Base(from)] = ""
		if dir, ok := strings.CutPrefix(from, "github.com/anteroom/anteroom/"); ok {
			imports[path.Base(from)] = dir
		}
	}
	lines := bytes.Count(text, []byte("\n"))
	c.files, c.lines = c.files+1, c.lines+lines
	if lines > c.linesMax {
		c.linesMax, c.longestFile = lines, short
	}
	var edited strings.Builder
	at := 0
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			end := set.Position(f.Body.Lbrace).Offset + 1
			fmt.Fprintf(&edited, "%s println(%q);", text[at:end], "walk "+short+" "+nameOf(f))
			at = end
			c.calls[short+" "+nameOf(f)] = callsOf(f.Body, path.Dir(short), imports)
		}
	}
	edited.Write(text[at:])
	c.edited[name] = edited.String()
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			c.measure(n, short)
		case *ast.CallExpr:
			if name := called(n); name == "panic" || name == "wrong" {
				c.assertions++
			}
		}
		return true
	})
}

// leaf reports whether a function calls none of the core. Of methods the name alone is
// known.
func (c *core) leaf(f string) bool {
	return !slices.ContainsFunc(c.calls[f], func(call string) bool {
		dir, name, method := "", call, strings.HasPrefix(call, ".")
		if !method {
			dir, name, _ = strings.Cut(call, " ")
		}
		for other := range c.calls {
			if method && strings.HasSuffix(other, name) || !method && path.Dir(other) == dir && strings.HasSuffix(other, " "+name) {
				return true
			}
		}
		return false
	})
}

// measure takes in a type.
func (c *core) measure(s *ast.TypeSpec, short string) {
	st, ok := s.Type.(*ast.StructType)
	if !ok {
		return
	}
	if n := st.Fields.NumFields(); n > c.fieldsMax {
		c.fieldsMax, c.longestStruct = n, short+" "+s.Name.Name
	}
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
	if p, ok := of.(*ast.IndexExpr); ok {
		of = p.X
	}
	return fmt.Sprintf("%s.%s", of, f.Name.Name)
}

// callsOf says what a body in a directory calls: a function as its directory and name, a
// method as .Name.
func callsOf(body *ast.BlockStmt, dir string, imports map[string]string) (calls []string) {
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch f := call.Fun.(type) {
		case *ast.Ident:
			calls = append(calls, dir+" "+f.Name)
		case *ast.SelectorExpr:
			x, ok := f.X.(*ast.Ident)
			if !ok {
				calls = append(calls, "."+f.Sel.Name)
			} else if of, imported := imports[x.Name]; !imported {
				calls = append(calls, "."+f.Sel.Name)
			} else if of != "" {
				calls = append(calls, of+" "+f.Sel.Name)
			}
		}
		return true
	})
	return calls
}

func called(n *ast.CallExpr) string {
	switch f := n.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// walk runs TestACommitPermitsACall with the edited sources and returns the functions
// that it entered between its marks, each once.
func (c *core) walk(t *testing.T) (walk []string) {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for name, text := range c.edited {
		to := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[name] = to
	}
	config, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, config, 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.Command("go", "test", "-overlay", overlay, "-count=1", "-run=^TestACommitPermitsACall$", "-v", "./internal/node")
	run.Dir, run.Env = c.root, append(os.Environ(), marks+"=1")
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out[max(0, len(out)-2000):])
	}
	_, rest, _ := strings.Cut(string(out), "walk begins\n")
	rest, _, _ = strings.Cut(rest, "walk ends\n")
	for line := range strings.Lines(rest) {
		step, ok := strings.CutPrefix(strings.TrimSpace(line), "walk ")
		if ok && !slices.Contains(walk, step) {
			walk = append(walk, step)
		}
	}
	return walk
}
