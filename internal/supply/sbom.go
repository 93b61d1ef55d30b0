package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
)

// bom is a CycloneDX document: https://cyclonedx.org/docs/1.6/json. It says nothing
// of when it was made: the same program has the same.
type bom struct {
	Schema       string       `json:"$schema"`
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Serial       string       `json:"serialNumber,omitempty"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component  component  `json:"component"`
	Properties []property `json:"properties"`
}

type component struct {
	Type     string    `json:"type"`
	Ref      string    `json:"bom-ref"`
	Name     string    `json:"name"`
	Version  string    `json:"version"`
	Hashes   []hash    `json:"hashes,omitempty"`
	Licences []licence `json:"licenses,omitempty"`
	Purl     string    `json:"purl"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type licence struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// writeBOM describes a program by what the linker put down in it.
func writeBOM(out io.Writer, name string) error {
	info, err := buildinfo.ReadFile(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	sum, err := sumOf(name)
	if err != nil {
		return err
	}
	all, err := modules()
	if err != nil {
		return err
	}
	edges, err := exec.Command("go", "mod", "graph").Output()
	if err != nil {
		return fmt.Errorf("go mod graph: %w", err)
	}
	b, err := describe(info, sum, all, string(edges))
	if err != nil {
		return err
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(b)
}

func describe(info *buildinfo.BuildInfo, sum [sha256.Size]byte, all []*module, edges string) (*bom, error) {
	b := &bom{Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", Spec: "1.6", Version: 1}
	main := component{Type: "application", Name: info.Main.Path, Version: info.Main.Version, Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}}
	main.identify("Apache-2.0")
	b.Metadata.Component = main
	b.Metadata.Properties = append(b.Metadata.Properties, property{"anteroom:go", info.GoVersion})
	for _, s := range info.Settings {
		b.Metadata.Properties = append(b.Metadata.Properties, property{"anteroom:build:" + s.Key, s.Value})
	}
	standard := component{Type: "library", Name: "std", Version: info.GoVersion}
	standard.identify("BSD-3-Clause")
	standard.Purl = "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")
	standard.Ref = standard.Purl
	b.Components = []component{standard}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c, err := componentOf(m, all)
		if err != nil {
			return nil, err
		}
		b.Components = append(b.Components, c)
	}
	b.link(main, edges)
	// As random as what it is made from, and no more: see RFC 9562, version 8.
	id := sha256.Sum256([]byte(main.Purl + main.Hashes[0].Content))
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	b.Serial = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
	return b, nil
}

func componentOf(m *debug.Module, all []*module) (component, error) {
	c := component{Type: "library", Name: m.Path, Version: m.Version}
	i := slices.IndexFunc(all, func(a *module) bool { return a.Path == m.Path && a.Version == m.Version })
	if i < 0 {
		return c, fmt.Errorf("%s %s is in the program, and not in this tree: build it anew", m.Path, m.Version)
	}
	ids, err := all[i].licences()
	if err != nil {
		return c, err
	}
	c.identify(ids...)
	if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok { // of the module's files and their names, as in go.sum
		raw, err := base64.StdEncoding.DecodeString(sum)
		if err != nil {
			return c, fmt.Errorf("%s: %w", m.Path, err)
		}
		c.Hashes = []hash{{"SHA-256", hex.EncodeToString(raw)}}
	}
	return c, nil
}

// identify gives a component its address and its licences.
func (c *component) identify(ids ...string) {
	c.Purl = "pkg:golang/" + strings.ReplaceAll(c.Name, "~", "%7E") + "@" + strings.ReplaceAll(c.Version, "+", "%2B")
	c.Ref = c.Purl
	for _, id := range ids {
		var l licence
		l.License.ID = id
		c.Licences = append(c.Licences, l)
	}
}

// link says which component needs which, by what go mod graph says: a line for
// each requirement of a version.
func (b *bom) link(main component, edges string) {
	refs := map[string]string{main.Name: main.Ref}    // by path
	chosen := map[string]string{main.Name: main.Name} // the name of the version that is in use, by path
	needs := map[string][]string{main.Ref: {"pkg:golang/std@" + strings.TrimPrefix(b.Components[0].Version, "go")}}
	for _, c := range b.Components[1:] {
		refs[c.Name], chosen[c.Name] = c.Ref, c.Name+"@"+c.Version
	}
	for line := range strings.Lines(edges) {
		from, to, _ := strings.Cut(strings.TrimSpace(line), " ")
		path, _, _ := strings.Cut(from, "@")
		needed, _, _ := strings.Cut(to, "@")
		if ref := refs[needed]; chosen[path] == from && ref != "" && !slices.Contains(needs[refs[path]], ref) {
			needs[refs[path]] = append(needs[refs[path]], ref)
		}
	}
	b.Dependencies = []dependency{{main.Ref, needs[main.Ref]}}
	for _, c := range b.Components {
		b.Dependencies = append(b.Dependencies, dependency{c.Ref, needs[c.Ref]})
	}
}
