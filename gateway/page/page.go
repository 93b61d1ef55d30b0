package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/tdewolff/minify/v2"
	"github.com/tdewolff/minify/v2/css"
	"github.com/tdewolff/minify/v2/js"
	xlanguage "golang.org/x/text/language"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/ticket"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed live.js
	liveJS string
)

// acceptMax is how much of an Accept-Language header is read. Browsers send a
// tenth of it.
const acceptMax = 256

// Pages writes the pages in every language that has a file. It is safe for
// concurrent use.
type Pages struct {
	template  *template.Template
	languages []*language
	matcher   xlanguage.Matcher
	css       template.CSS
	js        template.JS
	reasons   map[ticket.Pause]string
}

var _ gateway.Pager = (*Pages)(nil)

// New reads what is built into the program; an error is a programmer's.
func New() (*Pages, error) {
	t, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return nil, err
	}
	all, err := languages()
	if err != nil {
		return nil, err
	}
	tags := make([]xlanguage.Tag, len(all))
	for i, l := range all {
		tags[i] = l.tag
	}
	style, script, err := smaller()
	if err != nil {
		return nil, err
	}
	return &Pages{
		template:  t,
		languages: all,
		matcher:   xlanguage.NewMatcher(tags),
		css:       style,
		js:        script,
		reasons:   reasons(),
	}, nil
}

// Languages returns the tags of the languages, English first.
func (p *Pages) Languages() []string {
	var tags []string
	for _, l := range p.languages {
		tags = append(tags, l.tag.String())
	}
	return tags
}

// Page writes the page that v describes, in the language that the browser likes
// best, else in the room's.
func (p *Pages) Page(w io.Writer, v gateway.View) error {
	s, err := newSheet(p, p.language(v), v)
	if err != nil {
		return err
	}
	if err := p.template.Execute(w, s); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}

// language picks the best language for a visitor.
func (p *Pages) language(v gateway.View) *language {
	accept := v.AcceptLanguage
	if len(accept) > acceptMax {
		accept = accept[:acceptMax]
		accept = accept[:max(0, strings.LastIndexByte(accept, ','))]
	}
	wanted, _, _ := xlanguage.ParseAcceptLanguage(accept) // what it could not read, it leaves out
	if room, err := xlanguage.Parse(v.Language); err == nil {
		wanted = append(wanted, room)
	}
	_, i, sure := p.matcher.Match(wanted...)
	if sure == xlanguage.No {
		i = 0
	}
	return p.languages[i]
}

// smaller returns the style and the script without what is only for whoever reads
// the source: comments, spaces and long names.
func smaller() (style template.CSS, script template.JS, err error) {
	m := minify.New()
	m.AddFunc("css", css.Minify)
	m.AddFunc("js", js.Minify)
	c, err := m.String("css", pageCSS)
	if err != nil {
		return "", "", fmt.Errorf("page: page.css: %w", err)
	}
	j, err := m.String("js", liveJS)
	if err != nil {
		return "", "", fmt.Errorf("page: live.js: %w", err)
	}
	return template.CSS(c), template.JS(j), nil
}

// utc writes a time for those whose browser does not write it in their own zone.
func utc(t time.Time, layout string) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(layout) + " UTC"
}
