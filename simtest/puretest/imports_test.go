package puretest

import "testing"

func TestImportsGoOneWay(t *testing.T) {
	found, err := Imports("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

func TestImportsReadsTheWholeTree(t *testing.T) {
	found, err := Imports("testdata/module")
	if err != nil {
		t.Fatal(err)
	}
	want := "testdata/module/qpid/qpid.go:4:8: direction: qpid must not import eviction"
	if len(found) != 1 || found[0].String() != want {
		t.Errorf("Imports(testdata/module) = %v, want [%s]", found, want)
	}
}

func TestImportDirection(t *testing.T) {
	const (
		right = true
		wrong = false
	)
	tests := []struct {
		from, to string
		want     bool
	}{
		{"qpid", "github.com/google/btree", right},
		{"qpid", "github.com/google/go-cmp/cmp", wrong},
		{"qpid", module + "/eviction", wrong},
		{"eviction", module + "/qpid", right},
		{"eviction", "github.com/google/btree", wrong},
		{"eviction", module + "/internal/node", wrong},
		{"internal/node", module + "/eviction", right},
		{"internal/node", module + "/proto", wrong},
		{"internal/node", "google.golang.org/grpc", wrong},
		{"internal/fairness", module + "/eviction", wrong},
		{"internal/plot", "gonum.org/v1/plot/vg", right},
		{"internal/unheardof", module + "/qpid", wrong},
		{"gateway", module + "/internal/fairness", right},
		{"gateway", module + "/internal/node", wrong},
		{"gateway", module + "/membership", wrong},
		{"gateway", module + "/proto/anteroom/v1", wrong},
		{"gateway", "gonum.org/v1/plot", wrong},
		{"membership", "github.com/hashicorp/memberlist", right},
		{"membership", module + "/proto", wrong},
		{"proto", module + "/proto/anteroom/v1", right},
		{"proto", module + "/gateway", wrong},
		{"proto", "google.golang.org/grpc", right},
		{"simtest", module + "/internal/node", right},
		{"simtest", module + "/gateway", wrong},
		{"simtest/puretest", module + "/qpid", wrong},
		{"cmd/anteroom", module + "/proto", right},
		{"cmd/anteroom", module + "/internal/plot", right},
		{"cmd/anteroom", module + "/cmd/other", wrong},
		{"cmd/anteroom", "gonum.org/v1/plot", wrong},
		{"cmd/anteroom", "github.com/spf13/cobra", right},
	}
	for _, tt := range tests {
		if why := wrongWay(layers(), tt.from, tt.to); (why == "") != tt.want {
			t.Errorf("wrongWay(%s, %s) = %q, want right way: %v", tt.from, tt.to, why, tt.want)
		}
	}
}
