package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

func TestLicencesAreToldByTheirText(t *testing.T) {
	const mit = "Permission is hereby granted, free of charge, to any person obtaining a copy of this software. The above copyright notice and this permission notice shall be"
	for text, want := range map[string]string{
		mit: "MIT",
		"// " + strings.ReplaceAll(mit, " ", "\n// "):  "MIT",
		"Apache License\n   Version 2.0, January 2004": "Apache-2.0",
		"Mozilla Public License, version 2.0 … \"Secondary License\" means the GNU Affero General Public License, Version 3.0": "MPL-2.0",
		"GNU AFFERO GENERAL PUBLIC LICENSE\nVersion 3, 19 November 2007":                                                       "AGPL-3.0",
		"GNU GENERAL PUBLIC LICENSE\n Version 3, 29 June 2007":                                                                 "GPL-3.0",
		"Redistribution and use in source and binary forms … Neither the name of Google":                                       "BSD-3-Clause",
		"Redistribution and use in source and binary forms … THIS SOFTWARE IS PROVIDED BY THE AUTHORS":                         "BSD-2-Clause",
		"Do with it what you like.": "",
	} {
		if got := identify(text); got != want {
			t.Errorf("%.40q is %q, want %q", text, got, want)
		}
	}
	for name, want := range map[string]bool{"LICENSE": true, "licence.md": true, "COPYING": true, "LICENSE-SIL": true, "NOTICE": false, "license.go": false, "licenses": false} {
		if isLicence(name) != want {
			t.Errorf("%s is a licence: %v", name, !want)
		}
	}
}

// cached is a module with a licence file and a package, as in the module cache.
func cached(t *testing.T, path, licence string) *module {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "sub")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "LICENSE"), []byte(licence), 0o644); err != nil {
		t.Fatal(err)
	}
	return &module{Path: path, Version: "v1.0.0", dirs: map[string]string{dir: root}, linked: true}
}

func TestLicenceThatIsNotAllowedFails(t *testing.T) {
	good := cached(t, "example.com/good", "Apache License Version 2.0, January 2004")
	if page, err := licencesPage([]*module{good}, filepath.Join("..", "..")); err != nil || !strings.Contains(page, "| `example.com/good` | Apache-2.0 |") {
		t.Errorf("%v\n%s", err, page)
	}
	for text, want := range map[string]string{
		"GNU General Public License version 2, June 1991": "example.com/bad is under GPL-2.0, which is not allowed",
		"All rights reserved.":                            "is a licence that is not known here",
	} {
		if _, err := licencesPage([]*module{good, cached(t, "example.com/bad", text)}, filepath.Join("..", "..")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	const ours = "Apache License Version 2.0, January 2004"
	inside, tests := cached(t, "example.com/caddys", ours), cached(t, "example.com/tests", ours)
	inside.linked, inside.inside, tests.linked = false, true, false
	page, err := licencesPage([]*module{good, inside, tests}, filepath.Join("..", ".."))
	if err != nil || strings.Count(page, "example.com/") != 3 {
		t.Fatalf("%v\n%s", err, page)
	}
	for i, order := range []string{"## In the program", "example.com/good", "## Beside them, in a Caddy", "example.com/caddys", "## In tests alone", "example.com/tests"} {
		_, after, there := strings.Cut(page, order)
		if !there {
			t.Fatalf("%d: %s does not follow in\n%s", i, order, page)
		}
		page = after
	}
	clear(inside.dirs)
	if _, err := licencesPage([]*module{inside}, filepath.Join("..", "..")); err == nil {
		t.Error("a module of Caddy's without a licence passes")
	}
	none := cached(t, "example.com/none", "x")
	for _, root := range none.dirs {
		if err := os.Remove(filepath.Join(root, "LICENSE")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := licencesPage([]*module{none}, filepath.Join("..", "..")); err == nil || !strings.Contains(err.Error(), "example.com/none has no licence file") {
		t.Errorf("without a licence file: %v", err)
	}
}

// Where Caddy has another version of a module than the program, the licences of both are read.
func TestEachVersionOfAModuleIsRead(t *testing.T) {
	found := make(map[string]*module)
	for licence, kind := range map[string]module{"Apache License Version 2.0, January 2004": {linked: true}, "GNU General Public License version 2, June 1991": {inside: true}} {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"go.mod":     "module example.com/x\n\ngo 1.26\n\nrequire example.com/dep v1.0.0\n\nreplace example.com/dep => ./dep\n",
			"x.go":       "package x\n\nimport _ \"example.com/dep\"\n",
			"dep/go.mod": "module example.com/dep\n",
			"dep/dep.go": "package dep\n", "dep/LICENSE": licence,
		} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := gather(found, dir, "linux", kind, "."); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := found["example.com/dep"].licences(); err != nil || !slices.Equal(got, []string{"Apache-2.0", "GPL-2.0"}) {
		t.Errorf("of two versions: %v, %v", got, err)
	}
}

// What is in the program is in its document, with the version, hash and licence,
// and with what needs it; and the document of one program is always the same.
func TestBOMHasWhatTheLinkerPutDown(t *testing.T) {
	a, b := cached(t, "example.com/a", "Apache License Version 2.0, January 2004"), cached(t, "example.com/b", "Apache License Version 2.0, January 2004")
	info := &buildinfo.BuildInfo{
		GoVersion: "go1.26.8", Main: debug.Module{Path: ourModule, Version: "v0.1.0"},
		Deps: []*debug.Module{{Path: a.Path, Version: a.Version, Sum: "h1:AAAA"}, {Path: b.Path, Version: b.Version}},
	}
	edges := ourModule + " example.com/a@v1.0.0\nexample.com/a@v1.0.0 example.com/b@v0.9.0\nexample.com/a@v0.1.0 example.com/never@v1.0.0\n"
	made, err := describe(info, [32]byte{1}, []*module{a, b}, edges)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := describe(info, [32]byte{1}, []*module{a, b}, edges)
	x, _ := json.Marshal(made)
	y, _ := json.Marshal(again)
	if !bytes.Equal(x, y) || made.Serial == "" {
		t.Errorf("two documents of one program:\n%s\n%s", x, y)
	}
	if len(made.Components) != 3 || made.Components[1].Purl != "pkg:golang/example.com/a@v1.0.0" || made.Components[1].Hashes[0].Content != "000000" || made.Components[1].Licences[0].License.ID != "Apache-2.0" {
		t.Errorf("%+v", made.Components)
	}
	needs := func(i int, want ...string) {
		t.Helper()
		if d := made.Dependencies[i]; !slices.Equal(d.DependsOn, want) {
			t.Errorf("%s depends on %v, want %v", d.Ref, d.DependsOn, want)
		}
	}
	needs(0, "pkg:golang/std@1.26.8", "pkg:golang/example.com/a@v1.0.0")
	needs(2, "pkg:golang/example.com/b@v1.0.0")
	info.Deps[0].Version = "v1.1.0"
	if _, err := describe(info, [32]byte{1}, []*module{a, b}, edges); err == nil || !strings.Contains(err.Error(), "build it anew") {
		t.Errorf("a program of another tree: %v", err)
	}
}

func TestProgramsThatDifferAreNotTheSame(t *testing.T) {
	dir := t.TempDir()
	name := func(s string) string { return filepath.Join(dir, s) }
	for n, text := range map[string]string{"a": "x", "b": "x", "c": "y"} {
		if err := os.WriteFile(name(n), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run([]string{"same", name("a"), name("b")}, io.Discard); err != nil {
		t.Error(err)
	}
	if err := run([]string{"same", name("a"), name("c")}, io.Discard); err == nil {
		t.Error("two that differ pass")
	}
	if err := run([]string{"bom"}, io.Discard); err == nil {
		t.Error("an unknown command passes")
	}
}
