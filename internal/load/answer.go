package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// answer is what a visitor reads of a JSON answer. The slices are parts of the
// text that was parsed, and good as long as it is; nil: not there, or null.
type answer struct {
	state, ticket, pass, code []byte
	joined, updated, expires  []byte // RFC 3339
	refresh                   int64  // µs
	wait                      quartiles
	wave                      uint64
	hasWave                   bool
}

var errAnswer = errors.New("the answer is not the JSON that a gateway sends")

// parse reads the fields of the object that text is, and skips what is none of
// them. It finds what encoding/json finds, without reflection; in return it takes
// some texts for JSON that are not, which does no harm here.
func (a *answer) parse(text []byte) error {
	*a = answer{}
	s := scanner{text: text}
	if !s.take('{') {
		return errAnswer
	}
	if s.take('}') {
		return s.end()
	}
	for {
		key, ok := s.quoted()
		if !ok || !s.take(':') {
			return errAnswer
		}
		value, ok := s.value()
		if !ok {
			return errAnswer
		}
		if err := a.set(key, value); err != nil {
			return err
		}
		if s.take(',') {
			continue
		}
		if !s.take('}') {
			return errAnswer
		}
		return s.end()
	}
}

// set keeps one field.
func (a *answer) set(key, value []byte) error {
	var to *[]byte
	switch string(key) {
	case "state":
		to = &a.state
	case "ticket":
		to = &a.ticket
	case "pass":
		to = &a.pass
	case "code":
		to = &a.code
	case "joined_at":
		to = &a.joined
	case "last_updated":
		to = &a.updated
	case "pass_expires_at":
		to = &a.expires
	case "refresh_interval_seconds":
		return a.setRefresh(value)
	case "estimated_wait_seconds":
		return a.wait.parse(value)
	case "called_in_wave":
		return a.setWave(value)
	default:
		return nil
	}
	if *to = nil; string(value) == "null" {
		return nil
	}
	s := scanner{text: value}
	text, ok := s.quoted()
	if !ok {
		return fmt.Errorf("%w: %s is not a string", errAnswer, key)
	}
	*to = text
	return nil
}

// refreshMax bounds what a gateway can ask for.
const refreshMax = 24 * time.Hour

func (a *answer) setRefresh(value []byte) error {
	if a.refresh = 0; string(value) == "null" {
		return nil
	}
	seconds, err := strconv.ParseFloat(string(value), 64)
	if err != nil || seconds < 0 {
		return fmt.Errorf("%w: refresh_interval_seconds is not a time", errAnswer)
	}
	a.refresh = int64(min(seconds, refreshMax.Seconds()) * 1e6)
	return nil
}

func (a *answer) setWave(value []byte) (err error) {
	if a.wave, a.hasWave = 0, false; string(value) == "null" {
		return nil
	}
	if a.wave, err = strconv.ParseUint(string(value), 10, 64); err != nil {
		return fmt.Errorf("%w: called_in_wave is not a number of a wave", errAnswer)
	}
	a.hasWave = true
	return nil
}

// micros is an RFC 3339 time as Unix microseconds; 0 if it is none.
func micros(text []byte) int64 {
	t, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return 0
	}
	return t.UnixMicro()
}

// sendable reports whether a ticket or pass can go into a body and a header as
// it is. A gateway that sent others could put words into our mouth.
func sendable(token []byte) bool {
	for _, c := range token {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '\\' || c == ';' || c == ',' {
			return false
		}
	}
	return len(token) > 0 && len(token) <= tokenMax
}

// tokenMax bounds a ticket or pass, in bytes: a gateway takes bodies of 4 KiB.
const tokenMax = 4000

// scanner goes through JSON text once, from the left.
type scanner struct {
	text []byte
	at   int
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// take skips c, if that is next.
func (s *scanner) take(c byte) bool {
	s.space()
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// end reports an error if there is more.
func (s *scanner) end() error {
	if s.space(); s.at < len(s.text) {
		return errAnswer
	}
	return nil
}

// quoted returns the string that is next.
func (s *scanner) quoted() ([]byte, bool) {
	s.space()
	start := s.at
	if !s.skipString() {
		return nil, false
	}
	text := s.text[start:s.at]
	if bytes.IndexByte(text, '\\') < 0 {
		return text[1 : len(text)-1], true
	}
	var plain string
	if json.Unmarshal(text, &plain) != nil {
		return nil, false
	}
	return []byte(plain), true
}

func (s *scanner) skipString() bool {
	if s.at == len(s.text) || s.text[s.at] != '"' {
		return false
	}
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '"':
			s.at++
			return true
		case '\\':
			s.at++
		}
	}
	return false
}

// value returns the text of the value that is next.
func (s *scanner) value() ([]byte, bool) {
	s.space()
	start, depth := s.at, 0
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '"':
			if !s.skipString() {
				return nil, false
			}
			if depth == 0 {
				return s.text[start:s.at], true
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth < 0 {
				return s.scalar(start)
			}
			if depth == 0 {
				s.at++
				return s.text[start:s.at], true
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return s.scalar(start)
			}
		}
		s.at++
	}
	return nil, false
}

// scalar returns a number, true, false or null, which ends here.
func (s *scanner) scalar(start int) ([]byte, bool) { return s.text[start:s.at], s.at > start }
