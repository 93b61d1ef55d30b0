package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/anteroom/anteroom/simtest"
)

// flagSet defines flags whose values are checked together, so that everything
// that is wrong with them is told at once.
type flagSet struct {
	*pflag.FlagSet
	problems []error
}

// err is everything wrong with the values that were given.
func (f *flagSet) err() error {
	if len(f.problems) == 0 {
		return nil
	}
	return wrongUsage(errors.Join(f.problems...))
}

// wrong notes that a combination of flags makes no sense.
func (f *flagSet) wrong(format string, args ...any) {
	f.problems = append(f.problems, fmt.Errorf(format, args...))
}

// checked is a flag whose text parse turns into a value, or says what would be
// right. A wrong value is noted, and the flag keeps its default.
type checked struct {
	flags *flagSet
	name  string
	kind  string // what help shows for the value
	text  string
	parse func(string) error
}

func (c *checked) String() string { return c.text }
func (c *checked) Type() string   { return c.kind }

func (c *checked) Set(text string) error {
	if err := c.parse(text); err != nil {
		c.flags.wrong("--%s %q: %w", c.name, text, err)
	}
	c.text = text
	return nil
}

// add defines a flag. fallback is its default as people write it.
func (f *flagSet) add(name, kind, fallback, usage string, parse func(string) error) {
	f.Var(&checked{flags: f, name: name, kind: kind, text: fallback, parse: parse}, name, usage)
}

// whole defines a flag of a whole number within bounds.
func (f *flagSet) whole(to *int, name string, low, high int, usage string) {
	f.add(name, "n", strconv.Itoa(*to), usage, func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < low || n > high {
			return fmt.Errorf("give a whole number from %d to %d", low, high)
		}
		*to = n
		return nil
	})
}

func (f *flagSet) seed(to *uint64, usage string) {
	f.add("seed", "n", strconv.FormatUint(*to, 10), usage, func(text string) error {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return errors.New("give a whole number of at least 0")
		}
		*to = n
		return nil
	})
}

// duration defines a flag of a time within bounds.
func (f *flagSet) duration(to *time.Duration, name string, low, high time.Duration, usage string) {
	f.add(name, "time", short(*to), usage, func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d < low || d > high {
			return fmt.Errorf("give a time from %s to %s, such as %s", short(low), short(high), short(*to))
		}
		*to = d
		return nil
	})
}

// span defines a flag of two times, or of one that stands for both.
func (f *flagSet) span(to *simtest.Range, name string, high time.Duration, usage string) {
	f.add(name, "time", shortRange(*to), usage, func(text string) error {
		from, till, two := strings.Cut(text, "-")
		a, err := time.ParseDuration(from)
		b := a
		if err == nil && two {
			b, err = time.ParseDuration(till)
		}
		if err != nil || a <= 0 || b < a || b > high {
			return fmt.Errorf("give a time above 0 such as %s, or two such as %s, up to %s", short(to.Min), shortRange(*to), short(high))
		}
		*to = simtest.Range{Min: a, Max: b}
		return nil
	})
}

// choice defines a flag that is one of a few words.
func choice[T any](f *flagSet, to *T, name, fallback, usage string, words []string, values []T) {
	f.add(name, strings.Join(words, "|"), fallback, usage, func(text string) error {
		i := slices.Index(words, text)
		if i < 0 {
			return fmt.Errorf("give %s", either(words))
		}
		*to = values[i]
		return nil
	})
}

// list defines a flag of one or more words with commas between them, each once.
func list[T comparable](f *flagSet, to *[]T, name, fallback, usage string, parse func(word string) (T, error)) {
	f.add(name, "list", fallback, usage, func(text string) error {
		var values []T
		for word := range strings.SplitSeq(text, ",") {
			v, err := parse(strings.TrimSpace(word))
			if err != nil {
				return err
			}
			if !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
		*to = values
		return nil
	})
}

// either lists words as a sentence does.
func either(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// short is d without the zero units that Duration.String ends with.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func shortRange(r simtest.Range) string {
	if r.Min == r.Max {
		return short(r.Min)
	}
	return short(r.Min) + "-" + short(r.Max)
}

// given is the flags that were set, as they would be typed, without some.
func given(flags *pflag.FlagSet, but ...string) string {
	var b strings.Builder
	flags.Visit(func(f *pflag.Flag) {
		switch {
		case slices.Contains(but, f.Name):
		case f.Value.Type() == "bool":
			fmt.Fprintf(&b, " --%s=%s", f.Name, f.Value)
		default:
			fmt.Fprintf(&b, " --%s %s", f.Name, f.Value)
		}
	})
	return b.String()
}
