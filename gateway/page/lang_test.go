package page

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/feature/plural"
	xlanguage "golang.org/x/text/language"

	"github.com/anteroom/anteroom/gateway"
)

func mustLanguages(t testing.TB) []*language {
	t.Helper()
	all, err := languages()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryLanguageSaysEverything(t *testing.T) {
	all := mustLanguages(t)
	if all[0].tag.String() != english || len(all) < 2 {
		t.Fatalf("languages = %v, want English first and others", all)
	}
	for _, l := range all[1:] {
		for key, want := range all[0].Words {
			got, ok := l.Words[key]
			if !ok {
				t.Errorf("%v has no words for %q", l.tag, key)
				continue
			}
			for form, text := range got {
				if a, b := placeholders(text), placeholders(want["other"]); form == "other" && !slices.Equal(a, b) {
					t.Errorf("%v, %s (%s): has the placeholders %v, want %v", l.tag, key, form, a, b)
				}
			}
		}
		for key := range l.Words {
			if _, ok := all[0].Words[key]; !ok {
				t.Errorf("%v has words for %q, which English has not", l.tag, key)
			}
		}
	}
}

func placeholders(text string) []string {
	found := regexp.MustCompile(`\{\w+\}`).FindAllString(text, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

// A text that counts something has every form that some number asks for.
func TestEveryLanguageHasItsPluralForms(t *testing.T) {
	for _, l := range mustLanguages(t) {
		needed := make(map[string]bool)
		for n := range 1000 {
			needed[formName(plural.Cardinal.MatchPlural(l.tag, n, 0, 0, 0, 0))] = true
		}
		for key, w := range l.Words {
			if _, ok := w["other"]; !ok {
				t.Errorf("%v, %s: has no form %q", l.tag, key, "other")
			}
			if len(w) == 1 {
				continue
			}
			for form := range needed {
				if w[form] == "" {
					t.Errorf("%v, %s: has no form %q", l.tag, key, form)
				}
			}
		}
	}
}

// What the code says exists, and what exists is said.
func TestWordsAreThoseThatAreUsed(t *testing.T) {
	used := make(map[string]bool)
	for _, kind := range otherKinds() {
		used[string(kind)+".title"], used[string(kind)+".text"] = true, true
	}
	for _, key := range reasons() {
		used[key] = true
	}
	for _, code := range []string{gateway.WhyFull, gateway.WhyRate, gateway.WhyMissing} { // of the others there is more to say, or nothing
		used["why."+code] = true
	}
	for _, name := range []string{"title", "lead", "how"} {
		used["fifo."+name], used["random."+name] = true, true
	}
	say := regexp.MustCompile(`(?i)\b(?:say|count)[( ]"([\w.]+)"|\bwords(?:\.(\w+)\b|\["([\w.]+)"\])`)
	for _, file := range []string{"page.html", "live.js", "sheet.go", "words.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range say.FindAllStringSubmatch(string(source), -1) {
			key := m[1] + m[2] + m[3]
			used[key] = true
			if file == "live.js" && !slices.Contains(live(), key) {
				t.Errorf("live.js says %q, which it is not given", key)
			}
		}
	}
	words := mustLanguages(t)[0].Words
	for _, key := range slices.Sorted(maps.Keys(used)) {
		if words[key]["other"] == "" {
			t.Errorf("%q is said, and has no words", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(words)) {
		if !used[key] {
			t.Errorf("%q has words, and is never said", key)
		}
	}
}

// Times and prose that differ by language must not carry markup.
func TestWordsArePlainText(t *testing.T) {
	for _, l := range mustLanguages(t) {
		for key, w := range l.Words {
			for _, text := range w {
				if strings.ContainsAny(text, "<>&\n") || strings.TrimSpace(text) != text || text == "" {
					t.Errorf("%v, %s: %q is not plain text", l.tag, key, text)
				}
			}
		}
	}
}

func TestLanguageIsTheOneThatTheBrowserLikesBest(t *testing.T) {
	p, err := New()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		accept, room, want string
	}{
		{"", "", "en"},
		{"nl", "", "nl"},
		{"nl-BE,nl;q=0.9,en;q=0.8", "", "nl"},
		{"en-GB,en;q=0.9,nl;q=0.8", "", "en"},
		{"en;q=0.3,nl;q=0.7", "", "nl"},
		{"mn", "", "en"},
		{"mn", "nl", "nl"},
		{"mn,en;q=0.1", "nl", "en"},
		{"de-AT", "", "de"},
		{"fr-CA,en;q=0.2", "", "fr"},
		{"pt-PT", "", "pt-BR"},
		{"no", "", "nb"},
		{"zh", "", "zh-CN"},
		{"zh-HK", "", "zh-TW"},
		{"zh-Hant", "", "zh-TW"},
		{"iw", "", "he"},
		{"ar-EG", "", "ar"},
		{"", "pt-BR", "pt-BR"},
		{"", "nl-NL", "nl"},
		{"*", "nl", "nl"},
		{"nl;q=0", "", "en"},
		{"\x00;;q=,,=nonsense", "nl", "nl"},
		{"", "nonsense-that-is-far-too-long-for-a-tag", "en"},
		{strings.Repeat("x-y,", 1000) + "nl", "", "en"},
		{strings.Repeat("nl-", 1000), "", "en"},
		{"nl," + strings.Repeat("de-DE;q=0.1,", 1000), "", "nl"},
	}
	for _, tt := range tests {
		got := p.language(gateway.View{AcceptLanguage: tt.accept, Language: tt.room}).tag.String()
		if got != tt.want {
			t.Errorf("language(%.40q, room %q) = %s, want %s", tt.accept, tt.room, got, tt.want)
		}
	}
}

func TestSpanIsAsExactAsAnEstimate(t *testing.T) {
	tests := []struct {
		seconds int
		en, nl  string
	}{
		{0, "1 minute", "1 minuut"},
		{60, "1 minute", "1 minuut"},
		{61, "2 minutes", "2 minuten"},
		{20 * 60, "20 minutes", "20 minuten"},
		{21 * 60, "25 minutes", "25 minuten"},
		{55*60 + 1, "1 hour", "1 uur"},
		{60 * 60, "1 hour", "1 uur"},
		{61 * 60, "1 hour 10 minutes", "1 uur 10 minuten"},
		{119 * 60, "2 hours", "2 uur"},
		{1500 * 3600, "1,500 hours", "1.500 uur"},
	}
	all := mustLanguages(t)
	nl := all[slices.IndexFunc(all, func(l *language) bool { return l.tag == xlanguage.Dutch })]
	for _, tt := range tests {
		if got := all[0].span(tt.seconds); got != tt.en {
			t.Errorf("en: span(%d) = %q, want %q", tt.seconds, got, tt.en)
		}
		if got := nl.span(tt.seconds); got != tt.nl {
			t.Errorf("nl: span(%d) = %q, want %q", tt.seconds, got, tt.nl)
		}
	}
}

func FuzzLanguage(f *testing.F) {
	p, err := New()
	if err != nil {
		f.Fatal(err)
	}
	f.Add("nl-BE,nl;q=0.9,en;q=0.8", "en")
	f.Add("*;q=0.1,x-klingon", "zh-Hant")
	f.Fuzz(func(t *testing.T, accept, room string) {
		if p.language(gateway.View{AcceptLanguage: accept, Language: room}) == nil {
			t.Fatalf("no language for %q, %q", accept, room)
		}
	})
}
