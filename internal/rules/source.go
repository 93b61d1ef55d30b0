package rules

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is what is wrong with an expression, and where.
type Error struct {
	Line, Column int    // from 1; columns count characters
	Text         string // what is wrong; what would be right
	lines        int    // of the expression
}

func (e *Error) Error() string {
	if e.lines > 1 {
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Text)
	}
	return fmt.Sprintf("column %d: %s", e.Column, e.Text)
}

// source is an expression on its way to the parser, which knows the spelling of
// another language: {a b} is [a, b] there, eq is ==, and addresses need quotes.
// It remembers where each character came from.
type source struct {
	text []rune
	at   int
	out  []rune
	from []int // by place in out, the place in text
	set  bool  // between { and }
	item bool  // and after an item
}

// fail is an error about the character at a place in the text.
func (s *source) fail(at int, format string, args ...any) *Error {
	e := &Error{Line: 1, Column: 1, Text: fmt.Sprintf(format, args...), lines: 1}
	for i, c := range s.text {
		if c == '\n' {
			e.lines++
		}
		switch {
		case i >= at:
		case c == '\n':
			e.Line, e.Column = e.Line+1, 1
		default:
			e.Column++
		}
	}
	return e
}

// origin is the place in the text of a place in out.
func (s *source) origin(at int) int {
	if at < 0 || at >= len(s.from) {
		return len(s.text)
	}
	return s.from[at]
}

func (s *source) emit(text string, from int) {
	for _, c := range text {
		s.out = append(s.out, c)
		s.from = append(s.from, from)
	}
}

// translate spells text as the parser wants it.
func translate(text string) (*source, *Error) {
	s := &source{}
	if !utf8.ValidString(text) {
		return s, &Error{Line: 1, Column: 1, Text: "not UTF-8; write it in plain characters", lines: 1}
	}
	s.text = []rune(text)
	for s.at < len(s.text) {
		if err := s.token(); err != nil {
			return s, err
		}
	}
	if s.set {
		return s, s.fail(len(s.text), "a { is not closed; end the set with }")
	}
	return s, nil
}

// comma goes between the items of a set.
func (s *source) comma() {
	if s.set && s.item {
		s.emit(", ", s.at)
	}
	s.item = s.set
}

func (s *source) token() *Error {
	at, c := s.at, s.text[s.at]
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		s.at++
		s.emit(" ", at)
	case c == '"' || c == '`':
		s.comma()
		return s.quoted(at)
	case c == 'r' && s.rawAhead():
		s.comma()
		return s.raw(at)
	case wordly(c):
		return s.word(at)
	case c == '{' && s.set, c == '}' && !s.set:
		return s.fail(at, "this %c has no partner; a set is written {\"a\" \"b\"}", c)
	case c == '{':
		s.at++
		s.set, s.item = true, false
		s.emit("[", at)
	case c == '}':
		s.at++
		s.set = false
		s.emit("]", at)
	case c == ',' && s.set: // not needed there, and no harm
		s.at++
	case s.set:
		return s.fail(at, "%q in a set; give texts in quotes or addresses, with spaces between them", c)
	case c == '~':
		s.at++
		s.emit(" matches ", at)
	case strings.ContainsRune("()[],!=<>&|", c):
		s.at++
		s.emit(string(c), at)
	case c == '\'':
		return s.fail(at, "a single quote; put texts in double quotes")
	case c == '#':
		return s.fail(at, "a comment; write it in description, or after a # outside the expression")
	case c == '^':
		return s.fail(at, "%q is not known here; there are and, or, not and brackets", c)
	default:
		return s.fail(at, "%q is not known here; texts are put in double quotes", c)
	}
	return nil
}

func wordly(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("_$.:/-*", c)
}

// word passes on a name, a number or an address.
func (s *source) word(at int) *Error {
	for s.at < len(s.text) && wordly(s.text[s.at]) {
		s.at++
	}
	text := string(s.text[at:s.at])
	other := map[string]string{"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[text]
	s.comma()
	switch {
	case isAddress(text):
		s.emit(strconv.Quote(text), at)
	case text == "*":
		return s.fail(at, "* for all values is not known here; write [0] for the first")
	case s.set || strings.ContainsAny(text, ":/-*"):
		return s.fail(at, "%q is neither a name nor an address; put texts in double quotes", text)
	case text == "xor" || text == "wildcard" || text == "strict":
		return s.fail(at, "%s is not known here; there are and, or, not, and matches for patterns", text)
	case other != "":
		s.emit(other, at)
	default:
		for i, c := range []rune(text) { // each character from its own place
			s.emit(string(c), at+i)
		}
	}
	return nil
}

func isAddress(text string) bool {
	if _, err := netip.ParseAddr(text); err == nil {
		return true
	}
	_, err := netip.ParsePrefix(text)
	return err == nil
}

// quoted passes on a text between quotes. In a pattern a backslash that begins
// no escape of ours is the pattern's: "\.css$" and "\\.css$" are the same.
func (s *source) quoted(at int) *Error {
	end, pattern := s.text[at], s.patternNext()
	var b strings.Builder
	for s.at++; s.at < len(s.text); s.at++ {
		c := s.text[s.at]
		switch {
		case c == end:
			s.at++
			s.emit(strconv.Quote(b.String()), at)
			return nil
		case c < ' ' || c == 0x7f:
			return s.fail(s.at, "a line break or control character in a text; end it with a quote before")
		case c != '\\' || end == '`' || s.at+1 == len(s.text):
			b.WriteRune(c)
		default:
			s.at++
			next := s.text[s.at]
			switch {
			case next == '"' || next == '\\':
			case pattern && next >= ' ':
				b.WriteByte('\\')
			default:
				return s.fail(s.at-1, `\%c is no escape; there are \" and \\`, next)
			}
			b.WriteRune(next)
		}
	}
	return s.fail(at, "this text has no end; close it with %c", end)
}

// patternNext reports whether what comes next is a pattern.
func (s *source) patternNext() bool {
	return strings.HasSuffix(strings.TrimRight(string(s.out[max(0, len(s.out)-40):]), " "), "matches")
}

// rawAhead reports whether a raw text begins here: r"…" or r#"…"#.
func (s *source) rawAhead() bool {
	i := s.at + 1
	for i < len(s.text) && s.text[i] == '#' {
		i++
	}
	return i < len(s.text) && s.text[i] == '"'
}

func (s *source) raw(at int) *Error {
	hashes := 0
	for s.at++; s.text[s.at] == '#'; s.at++ {
		hashes++
	}
	s.at++
	rest, end := string(s.text[s.at:]), `"`+strings.Repeat("#", hashes)
	body, _, ok := strings.Cut(rest, end)
	if !ok {
		return s.fail(at, "this text has no end; close it with %s", end)
	}
	if strings.ContainsFunc(body, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return s.fail(at, "a line break or control character in a text; end it with a quote before")
	}
	s.at += utf8.RuneCountInString(body) + len(end)
	s.emit(strconv.Quote(body), at)
	return nil
}
