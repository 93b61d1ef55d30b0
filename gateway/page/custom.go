package page

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/cbroglie/mustache"

	"github.com/anteroom/anteroom/gateway"
)

const (
	// CustomMax bounds the text of a custom page, in bytes. It is Cloudflare's bound.
	CustomMax = 1 << 20
	// outputMax bounds what comes of one: a message may stand in it often.
	outputMax = 2 << 20
	// depthMax bounds sections within sections.
	depthMax = 32
)

// Custom is a room's own page: a Mustache template with the variables of
// Cloudflare's waiting room and some more. It implements gateway.Pager and is
// safe for concurrent use.
type Custom struct {
	template  *mustache.Template
	variables []Variable
	pages     *Pages // for the words of the visitor's language
	warnings  []string
}

var _ gateway.Pager = (*Custom)(nil)

// Custom reads a template. Its error says on which line what is wrong, and what
// to do. It reads no file: a partial is empty.
func (p *Pages) Custom(text string) (*Custom, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return nil, errors.New("the page is empty; write some HTML, or leave it out to have the built-in page")
	case len(text) > CustomMax:
		return nil, fmt.Errorf("the page has %d bytes; give at most %d, and link to pictures instead of including them", len(text), CustomMax)
	case !utf8.ValidString(text):
		return nil, fmt.Errorf("line %d: not UTF-8; save the page in that encoding", badLine(text))
	}
	// Never without a provider of partials: the default one reads files.
	t, err := mustache.ParseStringPartials(text, &mustache.StaticProvider{})
	if err != nil {
		return nil, explain(err, text)
	}
	c := &Custom{template: t, variables: Variables(), pages: p}
	known := make(map[string]bool)
	for _, v := range c.variables {
		known[v.Name] = true
	}
	if err := c.look(t.Tags(), known, make(map[string]bool), 1); err != nil {
		return nil, err
	}
	for _, v := range samples() { // what it needs with real values is known only then
		if err := c.Page(io.Discard, v); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Warnings says what of the template will print nothing.
func (c *Custom) Warnings() []string { return c.warnings }

func badLine(text string) int {
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd") {
			return 1 + strings.Count(text[:i], "\n")
		}
	}
	return 1
}

// explain says what an error of the parser means for the author of a page.
func explain(err error, text string) error {
	e, ok := errors.AsType[mustache.ParseError](err)
	if !ok {
		return err
	}
	what := map[mustache.ErrorCode]string{
		mustache.ErrUnmatchedOpenTag:      "a tag is opened and not closed; end it with }} (or }}} if it begins with {{{)",
		mustache.ErrEmptyTag:              "a tag is empty; put a variable between {{ and }}, or remove it",
		mustache.ErrSectionNoClosingTag:   "the section {{#" + e.Reason + "}} has no end; add {{/" + e.Reason + "}} after it",
		mustache.ErrInterleavedClosingTag: "{{/" + e.Reason + "}} ends a section that is not the last one begun; end the sections in the reverse order",
		mustache.ErrUnmatchedCloseTag:     "an end of a section without its beginning; remove it, or add {{#…}} before it",
		mustache.ErrNestingTooDeep:        fmt.Sprintf("sections within sections, too deep; have at most %d", depthMax),
	}[e.Code]
	if what == "" {
		what = e.Error()
	}
	return fmt.Errorf("line %d: %s", lineOf(e, text), what)
}

// lineOf is the line of e. The parser has read the end of the line already where
// a tag stands alone on it, and then names the next one.
func lineOf(e mustache.ParseError, text string) int {
	var needle string
	switch e.Code {
	case mustache.ErrSectionNoClosingTag, mustache.ErrInterleavedClosingTag:
		needle = e.Reason
	case mustache.ErrUnmatchedCloseTag:
		needle = "/"
	default:
		return e.Line
	}
	lines := strings.Split(text, "\n")
	if e.Line > 1 && (e.Line > len(lines) || !strings.Contains(lines[e.Line-1], needle)) {
		return e.Line - 1
	}
	return e.Line
}

// look checks the tags of a template, and notes those that print nothing.
func (c *Custom) look(tags []mustache.Tag, known, told map[string]bool, depth int) error {
	if depth > depthMax {
		return fmt.Errorf("sections within sections, too deep; have at most %d", depthMax)
	}
	for _, t := range tags {
		name := t.Name()
		switch t.Type() {
		case mustache.Partial:
			c.warn(told, "{{> "+name+"}} prints nothing: a page is one file; put what it stands for in its place")
			continue
		case mustache.Section, mustache.InvertedSection:
			if err := c.look(t.Tags(), known, told, depth+1); err != nil {
				return err
			}
		default:
		}
		if !known[name] && name != "." {
			c.warn(told, "{{"+name+"}} is no variable, and prints nothing; docs/pages.md lists them")
		}
	}
	return nil
}

const warningsMax = 20

func (c *Custom) warn(told map[string]bool, text string) {
	if !told[text] && len(c.warnings) < warningsMax {
		told[text] = true
		c.warnings = append(c.warnings, text)
	}
}

// Page writes the page that v describes. Nothing is written if it fails.
func (c *Custom) Page(w io.Writer, v gateway.View) error {
	l := c.pages.language(v)
	values := make(map[string]any, len(c.variables))
	for _, x := range c.variables {
		values[x.Name] = x.of(c.pages, l, &v)
	}
	out := &bounded{left: outputMax}
	if err := c.template.FRender(out, values); err != nil && !errors.Is(err, errTooLarge) {
		return fmt.Errorf("page: %w", err)
	}
	if out.left < 0 { // the template drops some errors of its writer
		return errTooLarge
	}
	_, err := w.Write(out.Bytes())
	return err
}

var errTooLarge = fmt.Errorf("the page comes to more than %d bytes when it is filled in; use fewer variables", outputMax)

// bounded is a buffer that takes no more than some bytes.
type bounded struct {
	bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	b.left -= len(p)
	if b.left < 0 {
		b.left = -1
		return 0, errTooLarge
	}
	return b.Buffer.Write(p)
}
