package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/page"
	"github.com/anteroom/anteroom/internal/config"
)

// previewFlags are those of config preview.
type previewFlags struct{ room, state, language, out string }

func (p *program) configPreviewCommand() *cobra.Command {
	var o previewFlags
	cmd := &cobra.Command{
		Use:   "preview FILE",
		Short: "Print the waiting page of a room as a visitor would see it",
		Long: `Print the waiting page of a room as a visitor would see it, with made-up numbers.
FILE is a configuration; or, if its name ends in .html or .mustache, a page of
your own that no room has yet. docs/pages.md says how to write one.

States: ` + strings.Join(page.States(), ", ") + `.`,
		Example: `  anteroom config preview --room shop anteroom.yaml --out page.html
  anteroom config preview --state paused --language de page.html`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := page.Sample(o.state)
			if err != nil {
				return wrongUsage(fmt.Errorf("--state: %w", err))
			}
			pager, err := p.previewOf(cmd, args[0], o.room, &v)
			if err != nil {
				return err
			}
			v.AcceptLanguage = o.language
			return p.writePreview(pager, v, o.out)
		},
	}
	cmd.Flags().StringVar(&o.room, "room", "", "the `NAME` of the room; not needed if there is but one")
	cmd.Flags().StringVar(&o.state, "state", "waiting", "what the visitor finds: `STATE`")
	cmd.Flags().StringVar(&o.language, "language", "", "what the visitor's browser asks for, such as `de`")
	cmd.Flags().StringVar(&o.out, "out", "", "write the page to `FILE` instead")
	return cmd
}

// previewOf returns what writes the page of a room in the file of that name,
// and puts what the room says into v.
func (p *program) previewOf(cmd *cobra.Command, name, room string, v *gateway.View) (gateway.Pager, error) {
	pages, err := page.New()
	if err != nil {
		return nil, err
	}
	var html string
	if kind := filepath.Ext(name); kind == ".html" || kind == ".htm" || kind == ".mustache" {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("%w; give an HTML file, or a configuration", err)
		}
		html = strings.TrimPrefix(string(text), "\ufeff")
	} else {
		files, err := p.loadAll([]string{name})
		if err != nil {
			return nil, err
		}
		if err := files[0].Err(); err != nil {
			return nil, err
		}
		r, err := roomNamed(files[0].Config.Rooms, room)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		html, v.Room, v.Message, v.Language = r.CustomPageHTML, r.Name, r.Message, r.Language
		if v.Message != "" {
			v.Messages = []gateway.Message{{Text: v.Message}}
		}
		v.Brand = gateway.Brand{Title: r.Title, Accent: r.Accent, Description: r.Description}
		v.LogoURL, v.IconURL = string(r.Logo), string(cmp.Or(r.Favicon, r.Logo))
		if html == "" {
			return pages, nil
		}
	}
	own, err := pages.Custom(html)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, w := range own.Warnings() {
		fmt.Fprintf(p.stderr, "%s: warning: %s: %s\n", cmd.CommandPath(), name, w)
	}
	if !gateway.HasOwnPage(v.Kind) {
		fmt.Fprintf(p.stderr, "%s: in this state visitors see the built-in page\n", cmd.CommandPath())
		return pages, nil
	}
	return own, nil
}

func roomNamed(rooms []config.Room, name string) (config.Room, error) {
	i := slices.IndexFunc(rooms, func(r config.Room) bool { return r.Name == name || name == "" && len(rooms) == 1 })
	if i >= 0 {
		return rooms[i], nil
	}
	var names []string
	for _, r := range rooms {
		names = append(names, r.Name)
	}
	switch {
	case len(rooms) == 0:
		return config.Room{}, errors.New("has no rooms")
	case name == "":
		return config.Room{}, wrongUsage(fmt.Errorf("several rooms; give --room and one of %s", strings.Join(names, ", ")))
	default:
		return config.Room{}, fmt.Errorf("no room %q; there is %s", name, strings.Join(names, ", "))
	}
}

func (p *program) writePreview(pager gateway.Pager, v gateway.View, out string) error {
	var w io.Writer = p.stdout
	if out != "" {
		file, err := os.Create(out)
		if err != nil {
			return fmt.Errorf("%w; give --out a file that can be written", err)
		}
		defer file.Close() //nolint:errcheck // closed below where it matters
		w = file
	}
	if err := pager.Page(w, v); err != nil {
		return err
	}
	if file, ok := w.(*os.File); ok && out != "" {
		return file.Close()
	}
	return nil
}
