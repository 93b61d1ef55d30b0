// Drawn plants bugs that nobody chose: it has gremlins list what it would change in the
// packages of the core, draws some of that by a seed, and says which layer of tests notices each.
//
//	go -C tools run ./drawn -n 200 -seed 1 -out drawn.tsv
//
// Without -out it shows what it would change. A layer is a set of tests that CI runs, from the cheap
// to the dear; a change that one of them notices is not shown to the next. What none notices is for a person to judge.
// A run that is broken off goes on where it was:
// what stands in the file is not tried again.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// lister is the tool that lists what can be changed: https://gremlins.dev.
const lister = "github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0"

// packages returns what the limit and the order rest on.
func packages() []string {
	return []string{"eviction", "qpid", "internal/node", "internal/seal", "internal/store"}
}

type layer struct {
	name string
	args []string
}

// layers returns the tests for a change of pkg, from the cheap to the dear.
func layers(pkg string) []layer {
	return []layer{
		{"own", []string{"-short", "-timeout=2m", pkg}},
		{"scenarios", []string{"-short", "-failfast", "-skip=^TestSwarm$", "-timeout=14m", "./simtest"}},
		{"swarm", []string{"-run=^TestSwarm$", "-timeout=14m", "./simtest", "-seeds=400", "-fails=1"}},
		{"rest", []string{
			"-short", "-failfast", "-timeout=14m",
			"./qpid", "./simtest/explore", "./internal/node", "./internal/server", "./gateway/...", "./cmd/anteroom",
		}},
	}
}

// swaps returns what gremlins puts in the place of a token, by its name for that.
func swaps(kind string) map[token.Token]token.Token {
	switch kind {
	case "ARITHMETIC_BASE":
		return map[token.Token]token.Token{
			token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL,
		}
	case "CONDITIONALS_BOUNDARY":
		return map[token.Token]token.Token{token.GTR: token.GEQ, token.LSS: token.LEQ, token.GEQ: token.GTR, token.LEQ: token.LSS}
	case "CONDITIONALS_NEGATION":
		return map[token.Token]token.Token{
			token.EQL: token.NEQ, token.NEQ: token.EQL,
			token.LEQ: token.GTR, token.GTR: token.LEQ, token.LSS: token.GEQ, token.GEQ: token.LSS,
		}
	case "INCREMENT_DECREMENT":
		return map[token.Token]token.Token{token.INC: token.DEC, token.DEC: token.INC}
	case "INVERT_ASSIGNMENTS":
		return map[token.Token]token.Token{
			token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN,
			token.MUL_ASSIGN: token.QUO_ASSIGN, token.QUO_ASSIGN: token.MUL_ASSIGN, token.REM_ASSIGN: token.MUL_ASSIGN,
		}
	case "INVERT_LOGICAL":
		return map[token.Token]token.Token{token.LAND: token.LOR, token.LOR: token.LAND}
	case "INVERT_LOOPCTRL":
		return map[token.Token]token.Token{token.BREAK: token.CONTINUE, token.CONTINUE: token.BREAK}
	case "INVERT_NEGATIVES":
		return map[token.Token]token.Token{token.SUB: token.ADD}
	}
	return nil
}

// mutation is one change: the token at a place becomes another.
type mutation struct {
	file         string // from the root of the module
	line, column int    // from 1; the column counts bytes
	kind         string
}

func (m mutation) String() string {
	return fmt.Sprintf("%s:%d:%d\t%s", m.file, m.line, m.column, m.kind)
}

func main() {
	n := flag.Int("n", 200, "how many changes to draw")
	seed := flag.Uint64("seed", 1, "what the draw goes by")
	out := flag.String("out", "", "file for what was noticed, a line for each change; goes on where it ends; none: show the changes")
	atOnce := flag.Int("j", 1, "how many changes to try at once")
	flag.Parse()
	log.SetFlags(0)
	if err := run(*n, *seed, *out, max(1, *atOnce)); err != nil {
		log.Fatal(err)
	}
}

func run(n int, seed uint64, out string, atOnce int) error {
	out, err := absolute(out)
	if err != nil {
		return err
	}
	if err := os.Chdir(".."); err != nil {
		return err
	}
	all, err := list()
	if err != nil {
		return err
	}
	drawn := draw(all, n, seed)
	log.Printf("%d of %d changes, seed %d", len(drawn), len(all), seed)
	if out == "" {
		return show(drawn)
	}
	done, err := read(out)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	each, ctx := errgroup.WithContext(context.Background())
	each.SetLimit(atOnce)
	var one sync.Mutex // for f
	for i, m := range drawn {
		if done[m.String()] {
			continue
		}
		each.Go(func() error {
			if ctx.Err() != nil {
				return nil // another one has failed
			}
			by, err := hunt(m)
			if err != nil {
				return fmt.Errorf("%s: %w", m, err)
			}
			one.Lock()
			defer one.Unlock()
			log.Printf("%d\t%s\t%s", i+1, m, by)
			_, err = fmt.Fprintf(f, "%s\t%s\n", m, by)
			return err
		})
	}
	if err := each.Wait(); err != nil {
		return err
	}
	return f.Close()
}

func absolute(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	return filepath.Abs(name)
}

// show prints each of drawn with the line that it changes.
func show(drawn []mutation) error {
	for _, m := range drawn {
		text, err := os.ReadFile(m.file)
		if err != nil {
			return err
		}
		changed, err := m.apply(text)
		if err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
		fmt.Printf("%s\n\t- %s\n\t+ %s\n", m, m.lineOf(text), m.lineOf(changed))
	}
	return nil
}

// lineOf returns the line of text that m changes.
func (m mutation) lineOf(text []byte) string {
	lines := strings.Split(string(text), "\n")
	return strings.TrimSpace(lines[m.line-1])
}

// list asks gremlins what it could change, whether a test of the package covers it or not.
func list() ([]mutation, error) {
	var all []mutation
	for _, pkg := range packages() {
		f, err := os.CreateTemp("", "changes-*.json")
		if err != nil {
			return nil, err
		}
		defer func() { _, _ = f.Close(), os.Remove(f.Name()) }()
		c := exec.Command("go", "run", lister, "unleash", "--dry-run", "--silent",
			"--invert-assignments", "--invert-logical", "--invert-loopctrl", "--output", f.Name(), "./"+pkg)
		if said, err := c.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("list changes of %s: %w\n%s", pkg, err, said)
		}
		var listed struct {
			Files []struct {
				Name      string `json:"file_name"`
				Mutations []struct {
					Type         string
					Line, Column int
				}
			}
		}
		if err := json.NewDecoder(f).Decode(&listed); err != nil {
			return nil, fmt.Errorf("list changes of %s: %w", pkg, err)
		}
		for _, file := range listed.Files {
			for _, m := range file.Mutations {
				all = append(all, mutation{pkg + "/" + filepath.Base(file.Name), m.Line, m.Column, m.Type})
			}
		}
	}
	slices.SortFunc(all, func(a, b mutation) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column), cmp.Compare(a.kind, b.kind))
	})
	return all, nil
}

// draw takes n of all, each as likely as any other, by seed.
func draw(all []mutation, n int, seed uint64) []mutation {
	r := rand.New(rand.NewPCG(seed, 0))
	drawn := slices.Clone(all)
	r.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	return drawn[:min(n, len(drawn))]
}

// read returns what stands in a file of before.
func read(name string) (map[string]bool, error) {
	done := map[string]bool{}
	b, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return done, nil
	}
	s := bufio.NewScanner(bytes.NewReader(b))
	for s.Scan() {
		if at := strings.LastIndexByte(s.Text(), '\t'); at > 0 {
			done[s.Text()[:at]] = true
		}
	}
	return done, err
}

// hunt returns the name of the layer that notices m, with what it says: "none" if no
// layer does, "compiler" if m is no program.
func hunt(m mutation) (string, error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if text, err = m.apply(text); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "drawn-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	changed := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(changed, text, 0o600); err != nil {
		return "", err
	}
	file, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	config, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, config, 0o600); err != nil {
		return "", err
	}
	pkg := "./" + filepath.ToSlash(filepath.Dir(m.file))
	if said, err := goes("build", "-overlay="+overlay, pkg); err != nil {
		return "compiler: " + first(said), nil
	}
	defer forget()
	for _, l := range layers(pkg) {
		if said, err := goes(append([]string{"test", "-overlay=" + overlay}, l.args...)...); err != nil {
			return l.name + ": " + first(said), nil
		}
	}
	return "none", nil
}

// forget drops what rapid has noted of a test that failed: it would try the next change on that,
// and a package that reads its testdata would take it for a dialogue.
func forget() {
	for _, at := range []string{"*", "*/*"} {
		noted, _ := filepath.Glob(filepath.Join(at, "testdata", "rapid"))
		for _, dir := range noted {
			_ = os.RemoveAll(dir)
		}
	}
}

// apply returns text with the token of m swapped.
func (m mutation) apply(text []byte) ([]byte, error) {
	files := token.NewFileSet()
	file := files.AddFile(m.file, -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	for {
		pos, tok, _ := s.Scan()
		if tok == token.EOF {
			return nil, errors.New("nothing stands there")
		}
		at := files.Position(pos)
		if at.Line != m.line || at.Column != m.column {
			continue
		}
		to, ok := swaps(m.kind)[tok]
		if !ok {
			return nil, fmt.Errorf("%s is not what %s changes", tok, m.kind)
		}
		return slices.Concat(text[:at.Offset], []byte(to.String()), text[at.Offset+len(tok.String()):]), nil
	}
}

// goes runs the go command, for as long as a layer may take at all.
func goes(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	said, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	return string(said), err
}

// first is the line that says what failed.
func first(said string) string {
	for _, mark := range []string{" broken", "panic: ", "--- FAIL"} {
		for line := range strings.Lines(said) {
			if strings.Contains(line, mark) {
				return strings.ReplaceAll(strings.TrimSpace(line), "\t", " ")
			}
		}
	}
	line, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	return strings.ReplaceAll(line, "\t", " ")
}
