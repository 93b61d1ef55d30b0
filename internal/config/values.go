package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/peraddress"
)

// Path names a file or directory. One in the configuration file is relative to
// the directory of that file, one in a variable or flag to where the process
// runs.
type Path string

// Duration is a length of time that is written as people do: 5m, not 5m0s.
type Duration time.Duration

func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText makes d read the same in YAML and JSON.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText takes what time.ParseDuration does.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return errors.New("no time; give one with its unit, such as 500ms, 20s, 5m or 1h")
	}
	*d = Duration(v)
	return nil
}

// Patience is how long a side of a partition waits for a quorum: a Duration, 0
// for ever, or SurvivorAuto.
type Patience time.Duration

// SurvivorAuto is written auto.
const SurvivorAuto = Patience(eviction.SurvivorAuto)

func (p Patience) String() string {
	if p == SurvivorAuto {
		return "auto"
	}
	return Duration(p).String()
}

// MarshalText makes p read the same in YAML and JSON.
func (p Patience) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText takes auto and what Duration does.
func (p *Patience) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*p = SurvivorAuto
		return nil
	}
	var d Duration
	if err := d.UnmarshalText(text); err != nil {
		return errors.New("no time; give auto, 0 for never, or a time with its unit such as 10m")
	}
	if d < 0 {
		return errors.New("negative; give auto, 0 for never, or a time such as 10m")
	}
	*p = Patience(d)
	return nil
}

// Share is how many people one address may have on the site: a number, 0 for any,
// or ShareAuto.
type Share int

// ShareAuto is written auto.
const ShareAuto = Share(peraddress.Auto)

func (s Share) String() string {
	if s == ShareAuto {
		return "auto"
	}
	return strconv.Itoa(int(s))
}

// MarshalJSON and MarshalYAML write a number as one.
func (s Share) MarshalJSON() ([]byte, error) {
	if s == ShareAuto {
		return []byte(`"auto"`), nil
	}
	return []byte(s.String()), nil
}

// MarshalYAML does as MarshalJSON.
func (s Share) MarshalYAML() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Share) UnmarshalJSON(text []byte) error {
	return s.UnmarshalText(bytes.Trim(text, `"`))
}

// UnmarshalText takes auto and what is no negative number.
func (s *Share) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*s = ShareAuto
		return nil
	}
	n, err := strconv.Atoi(strings.ReplaceAll(string(text), "_", ""))
	if err != nil || n < 0 || n > countMax {
		return fmt.Errorf("%q; give auto, 0 for no bound, or a number up to %d", text, countMax)
	}
	*s = Share(n)
	return nil
}

// countMax keeps sums of counts from overflowing.
const countMax = 1_000_000_000

// Secret is text that nothing prints: not fmt, not slog, no encoder. The
// pointer keeps it from fmt even where it lies in an unexported field, of which
// fmt asks no methods.
type Secret struct{ text *string }

// NewSecret hides text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// Reveal returns the text, for those who use it. It must not reach a log.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Empty reports whether there is no secret.
func (s Secret) Empty() bool { return s.text == nil }

// Equal compares the texts.
func (s Secret) Equal(o Secret) bool { return s.Reveal() == o.Reveal() }

// hidden stands for a secret in all output.
const hidden = "(hidden)"

func (s Secret) String() string {
	if s.Empty() {
		return ""
	}
	return hidden
}

// Format answers every verb with String.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText hides the secret in YAML and JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue hides the secret in logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
