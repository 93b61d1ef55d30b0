package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// allowed returns the licences of what may be linked into the program, and
// what each asks for. All go with our own, Apache-2.0.
func allowed() map[string]string {
	return map[string]string{
		"Apache-2.0":   "the text, and what is in NOTICE files",
		"BSD-2-Clause": "the text",
		"BSD-3-Clause": "the text",
		"CC-BY-4.0":    "the authors' names, and the text",
		"CC0-1.0":      "nothing",
		"FTL":          "the authors' names in what goes with the program",
		"ISC":          "the text",
		"MIT":          "the text",
		"MPL-2.0":      "the text, and the source of the files under it, which we do not change",
		"OFL-1.1":      "the text; the fonts are not sold by themselves",
	}
}

// known are phrases by which a licence is told. The first line that has all of its
// phrases decides, so that what forbids more comes first.
func known() []struct {
	id      string
	phrases []string
} {
	const (
		redistribution = "redistribution and use in source and binary forms"
		asIs           = "this software is provided by the"
	)
	return []struct {
		id      string
		phrases []string
	}{
		{"AGPL-3.0", []string{"gnu affero general public license version 3 19 november 2007"}},
		{"LGPL-2.1", []string{"gnu lesser general public license version 2 1 february 1999"}},
		{"LGPL-3.0", []string{"gnu lesser general public license version 3 29 june 2007"}},
		{"GPL-2.0", []string{"gnu general public license version 2 june 1991"}},
		{"GPL-3.0", []string{"gnu general public license version 3 29 june 2007"}},
		{"SSPL-1.0", []string{"server side public license version 1"}},
		{"BUSL-1.1", []string{"business source license 1 1"}},
		{"FTL", []string{"subject to your choice of exactly one of the following two licenses the freetype license"}}, // we choose it
		{"CC-BY-4.0", []string{"creative commons attribution 4 0 international public license"}},
		{"CC-BY-4.0", []string{"creativecommons org licenses by 4 0"}},
		{"CC0-1.0", []string{"creative commons legal code cc0 1 0 universal"}},
		{"MPL-2.0", []string{"mozilla public license version 2 0"}},
		{"MPL-2.0", []string{"mozilla public license 2 0"}},
		{"Apache-2.0", []string{"apache license version 2 0 january 2004"}},
		{"Apache-2.0", []string{"licensed under the apache license version 2 0"}},
		{"OFL-1.1", []string{"sil open font license version 1 1"}},
		{"MIT", []string{"permission is hereby granted free of charge to any person obtaining a copy", "the above copyright notice and this permission notice"}},
		{"ISC", []string{"permission to use copy modify and or distribute this software for any purpose with or without fee"}},
		{"ISC", []string{"permission to use copy modify and distribute this software for any purpose with or without fee"}},
		{"BSD-3-Clause", []string{redistribution, "neither the name"}},
		{"BSD-3-Clause", []string{redistribution, "may not be used to endorse or promote products"}},
		{"BSD-3-Clause", []string{redistribution, "the names of the authors may not"}},
		{"BSD-2-Clause", []string{redistribution, asIs}},
	}
}

// identify returns the SPDX identifier of a text, "" if it is not known.
func identify(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), " ")
	for _, l := range known() {
		if !slices.ContainsFunc(l.phrases, func(p string) bool { return !strings.Contains(text, p) }) {
			return l.id
		}
	}
	return ""
}

// licenceName are the names under which licences lie. NOTICE and PATENTS grant or
// name something beside one.
var licenceName = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|ofl)([-._].*)?$`)

func isLicence(name string) bool { return licenceName.MatchString(name) && filepath.Ext(name) != ".go" }

const header = `# Licences

What anteroom is made of, and on whose terms. ` + "`go generate ./...`" + ` writes this page from the licence files of the modules, and fails on
one that is not in the list below; versions are in the [SBOM](supply-chain.md). The Go standard library is
BSD-3-Clause. axe-core (MPL-2.0), which checks pages in tests, is no part of the program.

| licence | asks for |
| --- | --- |
`

// writeLicences writes the page.
func writeLicences(out io.Writer) error {
	all, err := modules()
	if err != nil {
		return err
	}
	top, err := root()
	if err != nil {
		return err
	}
	page, err := licencesPage(all, top)
	if err != nil {
		return err
	}
	name := filepath.Join(top, "docs", "licences.md")
	if err := os.WriteFile(name, []byte(page), 0o644); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "the licences of %d modules are allowed; see docs/licences.md\n", len(all))
	return err
}

// vendored is what lies in this repository as its authors have published it, each
// in a directory of its own with its licence.
func vendored() map[string]string {
	return map[string]string{"gateway/admin/dashboard/assets/uplot": "uPlot 1.6.32, for the charts of the dashboard"}
}

// copied lists what is vendored in the repository at top.
func copied(b *strings.Builder, top string, may map[string]string) error {
	b.WriteString("\n## Copied into it\n\n| directory | what | licence |\n| --- | --- | --- |\n")
	all := vendored()
	for _, dir := range slices.Sorted(maps.Keys(all)) {
		text, err := os.ReadFile(filepath.Join(top, dir, "LICENSE"))
		if err != nil {
			return err
		}
		id := identify(string(text))
		if may[id] == "" {
			return fmt.Errorf("%s is under %q, which is not allowed", dir, id)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", dir, all[dir], id)
	}
	return nil
}

func licencesPage(all []*module, top string) (string, error) {
	var b strings.Builder
	b.WriteString(header)
	may := allowed()
	var ids []string
	for id := range may {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		fmt.Fprintf(&b, "| [%s](https://spdx.org/licenses/%[1]s.html) | %s |\n", id, may[id])
	}
	var wrong []error
	table := func(title string, kind module) {
		fmt.Fprintf(&b, "\n## %s\n\n| module | licence |\n| --- | --- |\n", title)
		for _, m := range all {
			if m.linked != kind.linked || m.inside != kind.inside {
				continue
			}
			has, err := m.licences()
			if err != nil {
				wrong = append(wrong, err)
				continue
			}
			for _, id := range has {
				if may[id] == "" {
					wrong = append(wrong, fmt.Errorf("%s is under %s, which is not allowed", m.Path, id))
				}
			}
			fmt.Fprintf(&b, "| `%s` | %s |\n", m.Path, strings.Join(has, ", "))
		}
	}
	table("In the program", module{linked: true})
	if err := copied(&b, top, may); err != nil {
		wrong = append(wrong, err)
	}
	table("Beside them, in a Caddy with our module", module{inside: true})
	table("In tests alone", module{})
	return b.String(), errors.Join(wrong...)
}
