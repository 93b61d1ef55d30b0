package puretest

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/anteroom/anteroom"

// layer is what one package may import beside the standard library: packages
// of this module, and other modules by path prefix. Packages are relative to
// the module; a name ending in "/..." stands for all below it as well.
type layer struct {
	pkg     string
	ours    []string
	foreign []string
}

// layers returns the import direction, from the bottom up. A package that is
// not in the table fails the test: decide where it belongs.
func layers() []layer {
	const whatever = "" // the prefix of every path
	return []layer{
		{pkg: "qpid", foreign: []string{"github.com/google/btree"}},
		{pkg: "eviction", ours: []string{"qpid"}},
		{pkg: "internal/ticket", ours: []string{"eviction", "qpid"}},
		{pkg: "internal/estimate"},
		{pkg: "internal/node", ours: []string{"eviction", "internal/estimate", "internal/ticket", "qpid"}},
		{pkg: "internal/pqueue", ours: []string{"qpid"}},
		{pkg: "internal/broker", ours: []string{"eviction", "internal/pqueue", "qpid"}},
		{pkg: "internal/queueloop", ours: []string{"eviction", "internal/broker", "internal/pqueue", "qpid"}},
		{pkg: "internal/fairness", ours: []string{"qpid"}},
		{pkg: "internal/plot", ours: []string{"internal/fairness"}, foreign: []string{"golang.org/x/image/font", "gonum.org/v1/plot"}},
		{pkg: "internal/term"},
		{pkg: "internal/supply"}, // a tool: no part of the program
		{pkg: "internal/thesis", ours: []string{"internal/fairness", "qpid"}},
		// The adapters do not know each other, nor the node behind them: cmd joins them.
		{pkg: "internal/seal", ours: []string{"eviction", "internal/ticket", "qpid"}, foreign: []string{whatever}},
		{pkg: "internal/loop", ours: []string{"eviction", "internal/fairness", "internal/node", "internal/ticket", "qpid"}, foreign: []string{"golang.org/x/sys/unix"}},
		{pkg: "internal/history", ours: []string{"internal/fairness", "internal/node", "qpid"}},
		{pkg: "internal/series"},
		{pkg: "internal/visitors"},
		{pkg: "internal/conns", foreign: []string{"github.com/prometheus/client_golang", "google.golang.org/grpc"}},
		{pkg: "internal/load", ours: []string{"internal/fairness", "internal/plot", "qpid"}, foreign: []string{"github.com/HdrHistogram/hdrhistogram-go"}},
		{pkg: "internal/store", ours: []string{"eviction"}},
		{pkg: "internal/rules", foreign: []string{"github.com/expr-lang/expr", "github.com/gaissmai/bart"}},
		{pkg: "internal/tokens"},
		{pkg: "internal/peraddress", ours: []string{"eviction", "internal/ticket", "qpid"}, foreign: []string{"github.com/prometheus/client_golang/prometheus"}},
		{pkg: "internal/challenge", ours: []string{"internal/peraddress", "internal/ticket"}, foreign: []string{"github.com/prometheus/client_golang/prometheus"}},
		{pkg: "internal/config", ours: []string{"eviction", "internal/brand", "internal/notify", "internal/peraddress", "internal/rules", "internal/tokens", "qpid"}, foreign: []string{whatever}},
		{pkg: "internal/brand"},
		{pkg: "internal/notify", foreign: []string{"github.com/prometheus/client_golang/prometheus", "github.com/wneessen/go-mail"}},
		{pkg: "internal/webpush", foreign: []string{"github.com/SherClockHolmes/webpush-go", "github.com/prometheus/client_golang/prometheus"}},
		{pkg: "internal/health", foreign: []string{"github.com/prometheus/client_golang/prometheus"}},
		{pkg: "internal/governor"},
		{pkg: "internal/traces", ours: []string{"internal/history"}, foreign: []string{"github.com/prometheus/client_golang/prometheus", "go.opentelemetry.io/otel"}},
		{pkg: "internal/shop"},
		{pkg: "gateway/...", ours: []string{"eviction", "gateway/...", "internal/brand", "internal/challenge", "internal/fairness", "internal/peraddress", "internal/rules", "internal/ticket", "internal/webpush", "qpid"}, foreign: []string{whatever}},
		{pkg: "membership", ours: []string{"eviction", "qpid"}, foreign: []string{whatever}},
		{pkg: "proto/...", ours: []string{"eviction", "internal/broker", "internal/challenge", "internal/peraddress", "internal/pqueue", "internal/ticket", "internal/tokens", "proto/...", "qpid"}, foreign: []string{whatever}},
		{pkg: "internal/replog", ours: []string{"eviction", "internal/store", "proto/...", "qpid"}, foreign: []string{whatever}},
		{pkg: "internal/server", ours: []string{"eviction", "gateway/...", "internal/...", "membership", "proto/...", "qpid"}, foreign: []string{whatever}},
		{pkg: "internal/proxies", ours: []string{"internal/config", "internal/server", "internal/shop"}}, // a harness for tests
		{pkg: "client", ours: []string{"proto/..."}, foreign: []string{whatever}},                        // what programs import to use the queues
		{pkg: "internal/e2e", foreign: []string{whatever}},
		{pkg: "internal/overlay"}, // compiles edited sources, for tests of tests
		{pkg: "internal/mends"},
		{pkg: "internal/growth"}, // its tests start everything
		{pkg: "tools/release", foreign: []string{"aead.dev/minisign", "github.com/google/go-containerregistry", "github.com/goreleaser/nfpm", "golang.org/x/crypto/x509roots", "helm.sh/helm", "sigs.k8s.io/yaml"}}, // of a module of its own
		{pkg: "tools/deploy", foreign: []string{"github.com/compose-spec/compose-go", "helm.sh/helm", "k8s.io/api", "sigs.k8s.io/yaml"}},                                                                            // the same
		{pkg: "tools/drawn", foreign: []string{"golang.org/x/sync"}},                                                            // the same
		{pkg: "caddy", ours: []string{"internal/config", "internal/server"}, foreign: []string{"github.com/caddyserver/caddy"}}, // the same
		{pkg: "examples/...", ours: []string{"gateway/origin"}},
		// The simulator stands in for the loop and the links, and for nothing else.
		{pkg: "simtest", ours: []string{"eviction", "internal/fairness", "internal/node", "internal/ticket", "proto/...", "qpid"}},
		{pkg: "simtest/queues", ours: []string{"eviction", "internal/broker", "internal/pqueue", "qpid"}},
		{pkg: "simtest/explore", ours: []string{"eviction", "internal/node", "qpid"}},
		{pkg: "simtest/mutants"},
		{pkg: "simtest/puretest"},
		{pkg: "internal/trials", ours: []string{"eviction", "internal/fairness", "internal/plot", "internal/thesis", "qpid", "simtest"}},
		{pkg: "cmd/...", ours: []string{"client", "eviction", "gateway/...", "internal/...", "membership", "proto/...", "qpid", "simtest"}, foreign: []string{whatever}},
	}
}

// gonum is kept out of everything but the plots: it brings fonts along.
const gonum = "gonum.org/"

// Imports reports the imports of the module in root that do not go the way of
// layers. It reads every file, whatever its build constraints; tests are free.
func Imports(root string) ([]Violation, error) {
	var found []Violation
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() && name != root && (base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ImportsOnly)
		if err != nil {
			return fmt.Errorf("parse: %w", err)
		}
		dir, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			to, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
			if why := wrongWay(layers(), filepath.ToSlash(dir), to); why != "" {
				found = append(found, Violation{fset.Position(spec.Pos()), RuleDirection, why})
			}
		}
		return nil
	})
	sortByPosition(found)
	return found, err
}

// wrongWay says why the package at dir must not import to, or "" if it may.
func wrongWay(table []layer, dir, to string) string {
	if isStd(to) {
		return ""
	}
	i := slices.IndexFunc(table, func(l layer) bool { return within(l.pkg, dir) })
	if i < 0 {
		return fmt.Sprintf("%s is not in the table of layers", dir)
	}
	from := table[i]
	if ours, ok := strings.CutPrefix(to, module+"/"); ok {
		if !slices.ContainsFunc(from.ours, func(pattern string) bool { return within(pattern, ours) }) {
			return fmt.Sprintf("%s must not import %s", dir, ours)
		}
		return ""
	}
	if strings.HasPrefix(to, gonum) && from.pkg != "internal/plot" {
		return fmt.Sprintf("%s must not import %s: only internal/plot does", dir, to)
	}
	if !slices.ContainsFunc(from.foreign, func(prefix string) bool { return strings.HasPrefix(to, prefix) }) {
		return fmt.Sprintf("%s must not import %s", dir, to)
	}
	return ""
}

// within reports whether pkg is what the pattern stands for.
func within(pattern, pkg string) bool {
	base, all := strings.CutSuffix(pattern, "/...")
	return pkg == base || all && strings.HasPrefix(pkg, base+"/")
}
