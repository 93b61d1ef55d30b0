package rules

import (
	"errors"
	"fmt"
)

// Bypass is the one thing that a rule can do, in Cloudflare's word.
const Bypass = "bypass_waiting_room"

// Rule is one rule as it is written, in Cloudflare's keys.
type Rule struct {
	Description string `json:"description,omitempty"`
	Expression  string `json:"expression"`
	Disabled    bool   `json:"disabled,omitempty"`
}

// Set is the rules of a room. Nil is a set without any. It may be used from many
// goroutines at once.
type Set struct{ rules []ready }

type ready struct {
	Rule
	met *Expression
}

// NewSet makes rules ready. The error lists those that are wrong; the set has
// the others.
func NewSet(rules []Rule, lists Lists) (*Set, error) {
	if len(rules) > RulesMax+1 { // and that of Crawlers
		return nil, fmt.Errorf("%d rules; a room has at most %d", len(rules), RulesMax)
	}
	s := &Set{rules: make([]ready, 0, len(rules))}
	var errs []error
	for i, r := range rules {
		met, err := Parse(r.Expression, lists)
		if err != nil {
			errs = append(errs, fmt.Errorf("rule %d: %w", i+1, err))
			continue
		}
		s.rules = append(s.rules, ready{r, met})
	}
	return s, errors.Join(errs...)
}

// Match returns the first rule that the request meets, nil if there is none, and
// how many rules broke. One that breaks is not met.
func (s *Set) Match(r *Request) (met *Rule, broken int) {
	if s == nil {
		return nil, 0
	}
	for i := range s.rules {
		if s.rules[i].Disabled {
			continue
		}
		t, err := s.rules[i].met.Eval(r)
		switch {
		case err != nil:
			broken++
		case t == True:
			return &s.rules[i].Rule, broken
		}
	}
	return nil, broken
}

// Verdict is what one rule says of a request.
type Verdict struct {
	Rule
	Truth Truth
}

// Explain asks every rule, those that are switched off as well.
func (s *Set) Explain(r *Request) []Verdict {
	if s == nil {
		return nil
	}
	all := make([]Verdict, len(s.rules))
	for i := range s.rules {
		t, err := s.rules[i].met.Eval(r)
		if err != nil {
			t = Unknown
		}
		all[i] = Verdict{s.rules[i].Rule, t}
	}
	return all
}

// SearchEngines is the list that Crawlers asks for.
const SearchEngines = "search_engines"

// Crawlers is the rule behind search_engine_crawler_bypass: who says to be a
// search engine and comes from one of its addresses. The latter change; the
// engines publish them.
func Crawlers() Rule {
	return Rule{
		Description: "search_engine_crawler_bypass",
		Expression: `ip.src in $` + SearchEngines + ` and http.user_agent matches ` +
			`"(?i)googlebot|google-inspectiontool|bingbot|applebot|duckduckbot|yandex(bot|images)|baiduspider|slurp|seznambot|qwantbot|petalbot"`,
	}
}
