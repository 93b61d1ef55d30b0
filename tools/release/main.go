// Release builds what people install, from the commit that is checked out:
//
//	go -C tools run ./release --out ../dist [--key minisign.key] [--targets linux/amd64,linux/arm64]
//
// For each target an archive with the program, its manual and its licences; for
// Linux a deb, an rpm and one image for all architectures; the chart; the documentation
// as a site; the bill of materials; the sums of all that, and with --key their signature.
// The version is what the go command stamps: that of the commit's tag, or a pseudo-version.
// The same commit and Go give the same bytes, wherever it is built. Nothing is asked of a
// network but what makes the site, once, of PyPI.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	root := flags.String("root", "..", "`directory` of the repository")
	out := flags.String("out", "../dist", "`directory` for the files")
	key := flags.String("key", "", "minisign's secret key, a `file`; its password is in MINISIGN_PASSWORD [not signed]")
	targets := flags.String("targets", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64", "systems and architectures")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is too much; --help says what there is", flags.Arg(0))
	}
	parsed, err := parseTargets(*targets)
	if err != nil {
		return err
	}
	r, err := newRelease(ctx, *root, *out, parsed)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(r.work) }() // of the system's temporary files
	if err := r.make(ctx); err != nil {
		return err
	}
	if err := r.sum(*key); err != nil {
		return err
	}
	return r.list(stdout)
}

// make makes all files but the sums.
func (r *release) make(ctx context.Context) error {
	if err := r.build(ctx); err != nil {
		return err
	}
	if err := r.writeManual(ctx); err != nil {
		return err
	}
	for _, t := range r.targets {
		if err := r.archive(t); err != nil {
			return fmt.Errorf("archive of %s: %w", t, err)
		}
		if t.os != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm"} {
			if err := r.pack(format, t); err != nil {
				return fmt.Errorf("%s of %s: %w", format, t, err)
			}
		}
	}
	if err := r.writeImage(); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	if err := r.writeChart(); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	if err := r.writeSite(ctx); err != nil {
		return fmt.Errorf("documentation: %w", err)
	}
	return r.writeBOM(ctx)
}

// list says what there is now.
func (r *release) list(w io.Writer) error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%10d  %s\n", info.Size(), filepath.Join(r.out, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// target is a system that the program runs on.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// program is the name of the program's file.
func (t target) program() string {
	if t.os == "windows" {
		return "anteroom.exe"
	}
	return "anteroom"
}

func parseTargets(list string) ([]target, error) {
	var all []target
	for word := range strings.SplitSeq(list, ",") {
		system, arch, ok := strings.Cut(strings.TrimSpace(word), "/")
		if !ok || system == "" || arch == "" {
			return nil, fmt.Errorf("--targets: %q is not SYSTEM/ARCHITECTURE, as in linux/arm64", word)
		}
		all = append(all, target{os: system, arch: arch})
	}
	if len(all) == 0 {
		return nil, errors.New("--targets: name one")
	}
	return all, nil
}
