package gateway

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/anteroom/anteroom/internal/challenge"
)

// How a token comes along, beside a join's JSON.
const (
	challengeHeader = "Anteroom-Challenge"
	challengeParam  = "anteroom_challenge"
)

// without takes the token out of a query, and leaves the rest as it was written.
func without(query string) (rest, token string) {
	if !strings.Contains(query, challengeParam) {
		return query, ""
	}
	var kept []string
	for part := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(part, "=")
		if name != challengeParam {
			kept = append(kept, part)
		} else if s, err := url.QueryUnescape(value); err == nil {
			token = s
		}
	}
	return strings.Join(kept, "&"), token
}

// comeFor notes where the visitor wants to go. A token in that address is taken
// out of it: it is for us.
func (c *call) comeFor(here string) {
	c.here = here
	if c.g.c.Challenges.URL(c.room.Name) == "" {
		return
	}
	path, query, ok := strings.Cut(here, "?")
	if !ok {
		return
	}
	rest, token := without(query)
	if token == "" && rest == query {
		return
	}
	c.challenge = cmp.Or(token, c.challenge)
	if c.here = path; rest != "" {
		c.here += "?" + rest
	}
}

// withoutChallenge is r as the origin gets it.
func (g *Gateway) withoutChallenge(r *http.Request, room *Room) *http.Request {
	if r.URL.RawQuery == "" || g.c.Challenges.URL(room.Name) == "" {
		return r
	}
	rest, _ := without(r.URL.RawQuery)
	if rest == r.URL.RawQuery {
		return r
	}
	u, q := *r.URL, *r
	u.RawQuery, q.URL = rest, &u
	return &q
}

// tokenOn hands the token on to another of our own paths that has a query.
func (c *call) tokenOn() string {
	if c.challenge == "" {
		return ""
	}
	return "&" + challengeParam + "=" + url.QueryEscape(c.challenge)
}

// spend takes the visitor's token, if the room asks for one.
func (c *call) spend() (settle func(error), err error) {
	token := c.challenge
	if token == "" {
		token = c.r.Header.Get(challengeHeader)
	}
	return c.g.c.Challenges.Spend(c.room.Name, token)
}

// challenged sends a browser to where tokens come from.
func (c *call) challenged(to string) {
	back := c.here
	switch {
	case c.retake != "":
		back = c.retake
	case c.method != http.MethodGet && c.method != http.MethodHead:
		back = c.back() // the body of a form cannot be kept
	}
	if u, err := url.Parse(to); err == nil {
		q := u.Query()
		q.Set("room", c.room.Name)
		q.Set("return", back)
		u.RawQuery = q.Encode()
		to = u.String()
	}
	_ = c.redirect(to)
}

// needsChallenge finds out where a browser gets the token that it came without.
func needsChallenge(err error) (to string, ok bool) {
	var e *challenge.Error
	ok = errors.As(err, &e) && !e.Full()
	if ok {
		to = e.URL
	}
	return to, ok
}
