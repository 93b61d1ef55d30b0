// Supply says what the program is made of. It is a go tool:
//
//	go tool supply licences          # writes docs/licences.md; fails on a licence that is not allowed
//	go tool supply sbom FILE         # the CycloneDX document of a built program, to standard output
//	go tool supply same FILE FILE    # fails unless two programs are the same, byte for byte
//
// All of it comes from the go command, the program itself and the licence files in the
// module cache: nothing is asked of a network.
package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
)

//go:generate go run . licences

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "supply:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	switch {
	case len(args) == 1 && args[0] == "licences":
		return writeLicences(out)
	case len(args) == 2 && args[0] == "sbom":
		return writeBOM(out, args[1])
	case len(args) == 3 && args[0] == "same":
		return same(out, args[1], args[2])
	}
	return errors.New("give licences, sbom FILE or same FILE FILE")
}

func same(out io.Writer, a, b string) error {
	sumA, err := sumOf(a)
	if err != nil {
		return err
	}
	sumB, err := sumOf(b)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%x  %s\n%x  %s\n", sumA, a, sumB, b)
	if sumA != sumB {
		return fmt.Errorf("%s and %s differ: the build is not reproducible", a, b)
	}
	return err
}

func sumOf(name string) ([sha256.Size]byte, error) {
	b, err := os.ReadFile(name)
	return sha256.Sum256(b), err
}
