package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/gateway"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files of testdata anew")

func mustCustom(t testing.TB, text string) *Custom {
	t.Helper()
	c, err := newPages(t).Custom(text)
	if err != nil {
		t.Fatalf("Custom(%.60q): %v", text, err)
	}
	return c
}

func mustSample(t testing.TB, state string) gateway.View {
	t.Helper()
	v, err := Sample(state)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func renderCustom(t testing.TB, c *Custom, v gateway.View) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Page(&b, v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A page that was written for Cloudflare's waiting room works unchanged.
func TestCloudflarePagesRender(t *testing.T) {
	names, err := filepath.Glob("testdata/cloudflare/*.html")
	if err != nil || len(names) != 6 {
		t.Fatalf("pages %v, %v; want six", names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		c := mustCustom(t, string(text))
		if w := c.Warnings(); len(w) > 0 {
			t.Errorf("%s: %v", name, w)
		}
		var got strings.Builder
		for _, state := range []string{"waiting", "called", "paused", "queue_all", "event", "random", "full", "closed"} {
			got.WriteString("== " + state + "\n" + renderCustom(t, c, mustSample(t, state)))
		}
		golden := strings.TrimSuffix(name, ".html") + ".golden"
		if *rewrite {
			if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Every field of Cloudflare's JSON is one of ours, of the same kind, and a page
// can name it.
func TestCloudflareSamplesAreOurFields(t *testing.T) {
	names, err := filepath.Glob("testdata/cloudflare/*.json")
	if err != nil || len(names) != 3 {
		t.Fatalf("samples %v, %v; want three", names, err)
	}
	type answer struct {
		Cloudflare map[string]any `json:"cfWaitingRoom"`
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var typed struct {
			Cloudflare gateway.Cloudflare `json:"cfWaitingRoom"`
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&typed); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again, err := json.Marshal(typed)
		if err != nil {
			t.Fatal(err)
		}
		var want, got answer
		for b, to := range map[string]*answer{string(text): &want, string(again): &got} {
			if err := json.Unmarshal([]byte(b), to); err != nil {
				t.Fatal(err)
			}
		}
		var page strings.Builder
		for field, value := range want.Cloudflare {
			if got.Cloudflare[field] != value {
				t.Errorf("%s: %s = %v, want %v", name, field, got.Cloudflare[field], value)
			}
			page.WriteString(field + "={{" + field + "}}\n")
		}
		v := mustSample(t, "waiting")
		v.Cloudflare = typed.Cloudflare
		html := renderCustom(t, mustCustom(t, page.String()), v)
		for field, value := range want.Cloudflare {
			text, ok := value.(string)
			if !ok {
				b, _ := json.Marshal(value) // a number, or true or false
				text = string(b)
			}
			if !strings.Contains(html, field+"="+text+"\n") {
				t.Errorf("%s: the page has not %s=%s:\n%s", name, field, text, html)
			}
		}
	}
}

func TestCustomPageHasOurVariables(t *testing.T) {
	tests := []struct {
		state, template, want string
	}{
		{"waiting", "{{#positionKnown}}{{position}} after {{peopleAhead}} of {{queued}}{{/positionKnown}}", "1042 after 1041 of 2000"},
		{"waiting", "{{positionText}}, {{waitText}}", "1,042, About 1 hour 20 minutes"},
		{"waiting", "{{state}} {{room}} {{language}} {{direction}}", "waiting shop en ltr"},
		{"waiting", "{{title}}. {{lead}}", "You are in line. The site is full just now. Keep this page open: it takes you in when it is your turn."},
		{"waiting", "{{joinedAt}}|{{heldUntil}}|{{startsAt}}|{{paused}}|{{message}}|{{nope}}", "2026-11-21T14:02:22Z|||||"},
		{"waiting", "{{checkInURL}} {{streamURL}} {{abandonURL}}", "/_anteroom/v1/rooms/shop/checkin /_anteroom/v1/rooms/shop/stream /_anteroom/v1/rooms/shop/abandon?to=%2F"},
		{"random", "{{#positionKnown}}no{{/positionKnown}}{{^positionKnown}}a draw{{/positionKnown}}", "a draw"},
		{"paused", "{{paused}} {{waitText}}", "Nobody is being let in just now. Your place is kept. Whoever runs this site has stopped the line for now. Not known just now"},
		{"event", "{{startsAt}} {{lead}}", "2026-11-21T14:17:22Z The doors are not open yet. Keep this page open: it takes you in when it is your turn."},
		{"called", "{{#called}}{{title}}{{/called}}", "It is your turn"},
		{"full", "{{#full}}{{title}}{{/full}}", "The line is full"},
		{"closed", "{{#closed}}{{title}}{{/closed}}", "The site is closed just now"},
	}
	for _, tt := range tests {
		if got := renderCustom(t, mustCustom(t, tt.template), mustSample(t, tt.state)); got != tt.want {
			t.Errorf("%s: %q = %q, want %q", tt.state, tt.template, got, tt.want)
		}
	}
}

func TestCustomPageSpeaksTheVisitorsLanguage(t *testing.T) {
	v := mustSample(t, "waiting")
	v.AcceptLanguage = "ar"
	got := renderCustom(t, mustCustom(t, `<html lang="{{language}}" dir="{{direction}}">{{title}}`), v)
	if want := `<html lang="ar" dir="rtl">أنت في الطابور`; got != want {
		t.Errorf("page = %q, want %q", got, want)
	}
}

// What a template can name is in the docs, and the other way round.
func TestTheDocsHaveEveryVariable(t *testing.T) {
	text, err := os.ReadFile("../../docs/pages.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(text), "### Variables of Cloudflare")
	tables, _, _ = strings.Cut(tables, "## Languages")
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+`) \\|").FindAllStringSubmatch(tables, -1) {
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[1], -1) {
			documented[name[1]] = true
		}
	}
	for _, v := range Variables() {
		if !documented[v.Name] {
			t.Errorf("docs/pages.md has no row for `%s`", v.Name)
		}
		delete(documented, v.Name)
	}
	for name := range documented {
		t.Errorf("docs/pages.md has `%s`, which is no variable", name)
	}
}

// Cloudflare's template for downloading counts down to an event in hours and minutes.
func TestCustomPageCountsDownInHoursAndMinutes(t *testing.T) {
	c := mustCustom(t, "{{timeUntilEventStartHours}} h {{timeUntilEventStartHourMinutes}} min, {{timeUntilEventEndHours}} h {{timeUntilEventEndHourMinutes}} min")
	v := mustSample(t, "waiting")
	v.Cloudflare.TimeUntilEventStart, v.Cloudflare.TimeUntilEventEnd = 95, 240
	if got := renderCustom(t, c, v); got != "1 h 35 min, 4 h 0 min" || len(c.Warnings()) > 0 {
		t.Errorf("%q, warnings %q", got, c.Warnings())
	}
}

func TestCustomPageReadsNoFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "secret.mustache")
	if err := os.WriteFile(name, []byte("SECRET"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, partial := range []string{"/etc/hostname", name, strings.TrimSuffix(name, ".mustache"), "custom_test.go", "../../go.mod"} {
		c := mustCustom(t, "a{{> "+partial+"}}b{{#room}}{{>"+partial+"}}{{/room}}")
		if got := renderCustom(t, c, mustSample(t, "waiting")); got != "ab" {
			t.Errorf("a partial of %s gave %q", partial, got)
		}
		if w := strings.Join(c.Warnings(), "\n"); !strings.Contains(w, "prints nothing") {
			t.Errorf("a partial of %s: warnings %q", partial, w)
		}
	}
}

func TestCustomPageErrorsSayWhereAndWhatToDo(t *testing.T) {
	deep := strings.Repeat("{{#room}}", depthMax+1) + strings.Repeat("{{/room}}", depthMax+1)
	tests := []struct {
		name, template, want string
	}{
		{"no end", "<p>\n{{#queueAll}}\nx", "line 2: the section {{#queueAll}} has no end; add {{/queueAll}} after it"},
		{"crossed", "\n{{#queueAll}}{{#called}}{{/queueAll}}{{/called}}", "line 2: {{/queueAll}} ends a section that is not the last one begun"},
		{"no beginning", "\n\n{{/queueAll}}", "line 3: an end of a section without its beginning"},
		{"no beginning, more follows", "\n\n{{/queueAll}}\nx", "line 3: an end of a section without its beginning"},
		{"crossed lines", "{{#queueAll}}\n{{#called}}\n{{/queueAll}}\n{{/called}}", "line 3: {{/queueAll}}"},
		{"open", "a\n{{waitTime", "line 2: a tag is opened and not closed"},
		{"empty tag", "a\n{{ }}", "line 2: a tag is empty"},
		{"nothing", " \n", "the page is empty"},
		{"too long", strings.Repeat("x", CustomMax+1), "give at most 1048576"},
		{"not UTF-8", "a\nb\xff", "line 2: not UTF-8"},
		{"too deep", deep, "too deep; have at most 32"},
		{"much too deep", strings.Repeat("{{#a}}", 20_000), "too deep"},
		{"too much", strings.Repeat("{{message}}", 1000), "more than 2097152 bytes"},
	}
	p := newPages(t)
	for _, tt := range tests {
		if _, err := p.Custom(tt.template); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	if _, err := p.Custom(strings.Repeat("x", CustomMax)); err != nil {
		t.Errorf("a page of the largest size: %v", err)
	}
	if _, err := p.Custom("{{=<% %>=}}<%#room%><%position%><%/room%>"); err != nil {
		t.Errorf("other delimiters: %v", err)
	}
}

func TestCustomPageWarnsOfWhatPrintsNothing(t *testing.T) {
	c := mustCustom(t, "{{waitime}}{{waitime}}{{#room}}{{.}}{{/room}}{{position}}")
	want := []string{"{{waitime}} is no variable, and prints nothing; docs/pages.md lists them"}
	if diff := cmp.Diff(want, c.Warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// A visitor writes the address, and it may stand anywhere in a page.
func TestCustomPageTamesTheAddress(t *testing.T) {
	v := mustSample(t, "waiting")
	v.HereURL = "/?a='\"><script>alert(1)</script>`{{room}}"
	v.RefreshURL = v.HereURL
	got := renderCustom(t, mustCustom(t, "{{{hereURL}}} {{{refreshURL}}} {{&hereURL}}"), v)
	if strings.ContainsAny(got, "<>'\"`{}") {
		t.Errorf("page = %s", got)
	}
	v.Message = "<b>"
	if got := renderCustom(t, mustCustom(t, "{{message}}"), v); got != "&lt;b&gt;" {
		t.Errorf("message = %s", got)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestCustomPageTellsOfAWriterThatFails(t *testing.T) {
	if err := mustCustom(t, "x").Page(broken{}, mustSample(t, "waiting")); err == nil {
		t.Error("no error")
	}
}

func TestSampleKnowsItsStates(t *testing.T) {
	if _, err := Sample("party"); err == nil || !strings.Contains(err.Error(), "waiting, called, paused") {
		t.Errorf("Sample(party): %v", err)
	}
	p := newPages(t)
	for _, state := range States() {
		if html := render(t, p, mustSample(t, state)); !strings.Contains(html, "<h1") {
			t.Errorf("%s: no page", state)
		}
	}
}

func TestCustomPageIsWrittenAtOnce(t *testing.T) {
	c, v := mustCustom(t, "{{position}} {{title}} {{waitText}}"), mustSample(t, "waiting")
	want := renderCustom(t, c, v)
	var g sync.WaitGroup
	for range 8 {
		g.Go(func() {
			for range 50 {
				var b bytes.Buffer
				if err := c.Page(&b, v); err != nil || b.String() != want {
					t.Errorf("Page from several goroutines: %v, %q", err, b.String())
				}
			}
		})
	}
	g.Wait()
}

func FuzzCustom(f *testing.F) {
	p := newPages(f)
	v := mustSample(f, "waiting")
	v.HereURL = "/?<'\">"
	for _, s := range []string{"{{#waitTimeKnown}}{{waitTime}}{{/waitTimeKnown}}", "{{=<% %>=}}<%a.b%>", "{{> /etc/hostname}}", "{{.}}{{{.}}}", "{{#room.x}}{{..}}{{/room.x}}", "{{! }}{{&room}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := p.Custom(text)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := c.Page(&b, v); err != nil || b.Len() > outputMax {
			t.Fatalf("%d bytes, %v", b.Len(), err)
		}
	})
}

func BenchmarkCustomPage(b *testing.B) {
	text, err := os.ReadFile("testdata/cloudflare/event.html")
	if err != nil {
		b.Fatal(err)
	}
	c, v := mustCustom(b, string(text)), mustSample(b, "waiting")
	b.ReportAllocs()
	for b.Loop() {
		var out bytes.Buffer
		if err := c.Page(&out, v); err != nil {
			b.Fatal(err)
		}
	}
}
