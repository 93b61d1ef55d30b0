package conns

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestTheMemoryOfAGroupIsThatOfTheSmallestAroundIt(t *testing.T) {
	root := t.TempDir()
	for at, text := range map[string]string{"": "", "a": "3000000\n", "a/b": "max\n", "a/b/c": "4000000\n", "d": "max\n"} {
		if err := os.MkdirAll(filepath.Join(root, at), 0o700); err != nil {
			t.Fatal(err)
		}
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(root, at, "memory.max"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for own, want := range map[string]uint64{
		"0::/a/b/c\n":                    3_000_000,
		"12:cpu:/a\n1:name=x:/\n0::/a\n": 3_000_000,
		"0::/d\n":                        math.MaxUint64,
		"0::/\n":                         math.MaxUint64,
		"0::/../../a/b\n":                3_000_000, // seen from a namespace inside
		"4:memory:/a\n":                  math.MaxUint64,
		"":                               math.MaxUint64,
	} {
		if got := groupMax(root, own); got != want {
			t.Errorf("of %q: %d, want %d", own, got, want)
		}
	}
	if got := memoryMax(); got < 16<<20 || got > 1<<50 {
		t.Errorf("this process may have %d bytes", got)
	}
}
