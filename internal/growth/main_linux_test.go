package growth

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var (
	plots  = flag.String("plots", "", "draw what Wave has measured, as growth.svg in `DIRECTORY`, relative to the module's root")
	binary = flag.String("anteroom", "", "measure this anteroom `BINARY` [built from the tree]")
)

const root = "../.." // of the module

func TestMain(m *testing.M) {
	if os.Getenv(listenersEnv) != "" { // a benchmark has started its client
		if err := listen(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(filepath.Dir(built))
	}
	if *plots != "" && code == 0 && len(measured) > 0 {
		if err := draw(filepath.Join(root, *plots)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// built is the binary that was built, if any.
var built string

// anteroom is the binary to measure.
func anteroom(b *testing.B) string {
	b.Helper()
	if *binary != "" {
		return *binary
	}
	if built == "" {
		dir, err := os.MkdirTemp("", "growth")
		if err != nil {
			b.Fatal(err)
		}
		name := filepath.Join(dir, "anteroom")
		if out, err := exec.Command("go", "build", "-o", name, root+"/cmd/anteroom").CombinedOutput(); err != nil {
			b.Fatalf("build: %v\n%s", err, out)
		}
		built = name
	}
	return built
}
