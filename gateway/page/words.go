package page

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/feature/plural"
	xlanguage "golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/ticket"
)

//go:embed lang/*.json
var files embed.FS

// English is the language of last resort.
const english = "en"

// language is one file of lang.
type language struct {
	Name      string           `json:"name"`      // in the language itself
	Direction string           `json:"direction"` // ltr or rtl
	Clock     string           `json:"clock"`     // a layout of package time, with seconds
	Words     map[string]words `json:"words"`

	tag     xlanguage.Tag
	printer *message.Printer // writes numbers
	live    [2][]byte        // the words that the script needs, as JSON: of a line, and of a draw
}

// words is one text, in as many forms as the language has for numbers. A text
// that no number changes has the form "other" alone.
type words map[string]string

func (w *words) UnmarshalJSON(b []byte) error {
	var plain string
	if json.Unmarshal(b, &plain) == nil {
		*w = words{"other": plain}
		return nil
	}
	return json.Unmarshal(b, (*map[string]string)(w))
}

func (w words) MarshalJSON() ([]byte, error) {
	if len(w) == 1 {
		return json.Marshal(w["other"])
	}
	return json.Marshal(map[string]string(w))
}

// reasons says which words explain what a node gives as the reason why it calls
// nobody: after those of "paused", unless they say it all. Of a reason that is not
// here, those of "paused" are all that is said.
func reasons() map[ticket.Pause]string {
	return map[ticket.Pause]string{
		ticket.PausedJoining:   "paused.start",
		ticket.PausedFounding:  "paused.start",
		ticket.PausedSplit:     "paused.split",
		ticket.PausedClock:     "paused.clock",
		ticket.PausedHeld:      "paused.held",
		ticket.PausedOverLimit: "paused.crowd",
		ticket.PausedUnreached: "lost",
	}
}

// lead is what the page says first: why somebody waits, where that is one of the
// things that there are words for, and what to do. Nobody reads that a site is full
// which is not.
func (l *language) lead(why, lead string) string {
	key := "why." + why
	if limit := l.say(key); limit != "" {
		return limit + " " + lead
	}
	return lead
}

// allSaid reports whether the words of key need none of "paused" before them.
func allSaid(key string) bool { return key == "paused" || key == "lost" }

// live lists what the script says of its own accord.
func live() []string {
	return []string{
		"wait.unknown", "wait.soon", "wait.about", "wait.draw", "minutes", "hours", "status", "tab",
		"paused", "paused.split", "paused.clock", "paused.start", "paused.crowd", "paused.held", "held", "starts", "starts.lead", "lost", "offline", "turn", "turn.lead", "turn.at",
		"leave.soon", "why.limit", "why.rate", "why.slots_missing",
	}
}

// languages reads every file of lang; English comes first.
func languages() ([]*language, error) {
	names, err := fs.Glob(files, "lang/*.json")
	if err != nil {
		return nil, err
	}
	var all []*language
	for _, name := range names {
		l, err := readLanguage(name)
		if err != nil {
			return nil, fmt.Errorf("page: %s: %w", name, err)
		}
		if l.tag.String() == english {
			all = append([]*language{l}, all...)
		} else {
			all = append(all, l)
		}
	}
	return all, nil
}

func readLanguage(name string) (*language, error) {
	text, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	l := &language{}
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(l); err != nil {
		return nil, err
	}
	if l.Direction != "ltr" && l.Direction != "rtl" {
		return nil, errors.New("direction is neither ltr nor rtl")
	}
	if l.tag, err = xlanguage.Parse(strings.TrimSuffix(path.Base(name), ".json")); err != nil {
		return nil, err
	}
	// The same digits as in the times; the script may know better.
	digits, err := l.tag.SetTypeForKey("nu", "latn")
	if err != nil {
		return nil, err
	}
	l.printer = message.NewPrinter(digits)
	for i, without := range [][]string{{"wait.draw"}, {"wait.soon", "wait.about", "status", "tab", "turn.at"}} {
		needed := make(map[string]words)
		for _, key := range live() {
			if !slices.Contains(without, key) {
				needed[key] = l.Words[key]
			}
		}
		if l.live[i], err = json.Marshal(needed); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// say returns the words of key, with each pair of more put in: a placeholder
// such as "{span}", then its text.
func (l *language) say(key string, more ...string) string {
	return strings.NewReplacer(more...).Replace(l.Words[key]["other"])
}

// count returns the words of key in the form that n asks for, with n in them.
func (l *language) count(key string, n int, more ...string) string {
	form := formName(plural.Cardinal.MatchPlural(l.tag, n, 0, 0, 0, 0))
	text, ok := l.Words[key][form]
	if !ok {
		text = l.Words[key]["other"]
	}
	return strings.NewReplacer(append(more, "{n}", l.number(n))...).Replace(text)
}

func (l *language) number(n int) string { return l.printer.Sprintf("%d", n) }

func formName(f plural.Form) string {
	switch f {
	case plural.Zero:
		return "zero"
	case plural.One:
		return "one"
	case plural.Two:
		return "two"
	case plural.Few:
		return "few"
	case plural.Many:
		return "many"
	default:
		return "other"
	}
}

// span says a length of time as exactly as an estimate deserves: whole minutes
// up to 20, then steps of 5, and of 10 above an hour. Always rounded up. The
// page's script has its twin.
func (l *language) span(seconds int) string {
	m := max(1, ceil(seconds, 60))
	if m > 20 {
		m = 5 * ceil(m, 5)
	}
	if m < 60 {
		return l.count("minutes", m)
	}
	m = 10 * ceil(m, 10)
	h := l.count("hours", m/60)
	if m%60 == 0 {
		return h
	}
	return h + " " + l.count("minutes", m%60)
}

// kept says how long a place is kept, rounded down: it is a promise.
func (l *language) kept(d time.Duration) string {
	m := int(d / time.Minute)
	switch {
	case m < 1:
		return ""
	case m < 60:
		return l.say("kept", "{span}", l.count("minutes", m))
	}
	return l.say("kept", "{span}", l.count("hours", m/60))
}

func ceil(a, b int) int { return (a + b - 1) / b }

// wait says how long it may take. In a draw no one number is true of anybody,
// so it says how many will have waited how long.
func (l *language) wait(e gateway.Estimate, method string) string {
	switch {
	case !e.Known:
		return l.say("wait.unknown")
	case method == random:
		return l.say("wait.draw", "{half}", l.span(e.P50), "{most}", l.span(e.P75))
	case e.P50 < 60:
		return l.say("wait.soon")
	default:
		return l.say("wait.about", "{span}", l.span(e.P50))
	}
}
