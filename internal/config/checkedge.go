package config

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// CORS is what scripts of other sites may do with the room's part of a site. Its
// keys are the Fetch standard's words.
type CORS struct {
	Origins     []string `json:"origins"` // empty: nothing
	Methods     []string `json:"methods"`
	Headers     []string `json:"headers"`
	Credentials bool     `json:"credentials"`
	MaxAge      Duration `json:"max_age"` // 0: browsers do not keep the answer
}

// Who answers preflights.
const (
	byGateway = "gateway"
	byOrigin  = "origin"
)

// WebSocket is the protocol that connections are upgraded to, as a rule.
const WebSocket = "websocket"

const (
	corsItemsMax    = 100                      // of each list of a room's cors
	corsMaxAgeMax   = Duration(24 * time.Hour) // browsers keep an answer no longer
	tokenPattern    = "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$"
	protocolPattern = "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}(/[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64})?$"
)

// PreflightToOrigin reports whether preflights are passed on.
func (r Room) PreflightToOrigin() bool { return r.Preflight == byOrigin }

// checkChallenge checks where the tokens come from that a join takes.
func (f *File) checkChallenge(key, to string) {
	if to == "" {
		return
	}
	if u, err := url.Parse(to); err != nil || u.Scheme != "https" && u.Scheme != "http" || !validHost(u.Hostname()) || u.User != nil || u.Fragment != "" || len(to) > challengeMax {
		f.fault(key, "no address of a page; give one such as https://captcha.example.com/")
	}
}

// challengeMax is how long the address of a challenge may be.
const challengeMax = 1000

// checkEdge checks what strangers may bring to the origin, and read of answers.
func (f *File) checkEdge(key string, r Room) {
	if r.Preflight != byGateway && r.Preflight != byOrigin {
		f.fault(key+".preflight", "%q; give gateway, which answers from cors, or origin, which gets preflights of people who have not waited", r.Preflight)
	}
	f.checkChallenge(key+".challenge", r.Challenge)
	for i, p := range r.Upgrades {
		at := key + ".upgrades" + index(i)
		switch lower := strings.ToLower(p); {
		case !matches(protocolPattern, p):
			f.fault(at, "%q is no protocol; give one such as websocket", p)
		case lower == "h2c" || strings.HasPrefix(lower, "http/") || strings.HasPrefix(lower, "tls/"):
			f.fault(at, "%q: after it nobody looks at the requests; leave it out, visitors speak HTTP/2 over TLS", p)
		}
	}
	f.checkCORS(key+".cors", r.CORS)
}

func (f *File) checkCORS(key string, c CORS) {
	for _, l := range []struct {
		name  string
		items []string
	}{{"origins", c.Origins}, {"methods", c.Methods}, {"headers", c.Headers}} {
		if len(l.items) > corsItemsMax {
			f.fault(key+"."+l.name, "%d are more than %d; give fewer", len(l.items), corsItemsMax)
		}
	}
	for i, o := range c.Origins {
		if o != "*" && !validOrigin(o) {
			f.fault(key+".origins"+index(i), "%q is no origin; give one such as https://app.example.com, https://*.example.com for all below it, or \"*\" for any", o)
		}
	}
	for i, m := range c.Methods {
		if !matches(tokenPattern, m) || m != strings.ToUpper(m) {
			f.fault(key+".methods"+index(i), "%q is no method; give one such as PUT, in capitals", m)
		}
	}
	for i, h := range c.Headers {
		if !matches(tokenPattern, h) {
			f.fault(key+".headers"+index(i), "%q is no name of a header; give one such as Content-Type", h)
		}
	}
	if c.MaxAge < 0 || c.MaxAge > corsMaxAgeMax {
		f.fault(key+".max_age", "%v; give 0s for not at all, or a time up to 24h", c.MaxAge)
	}
	if c.Credentials && slices.Contains(c.Origins, "*") {
		f.fault(key+".credentials", "true for any origin would let every site act for its visitors; list the origins, or give false")
	}
	if len(c.Origins) == 0 && (len(c.Headers) > 0 || c.Credentials) {
		f.warn(key+".origins", "none, so the other keys of cors mean nothing; give an origin such as https://app.example.com")
	}
}

// validOrigin reports whether o is what a browser writes in Origin, or that with
// *. before its host.
func validOrigin(o string) bool {
	u, err := url.Parse(o)
	if err != nil || u.Scheme == "" || u.User != nil || u.Scheme+"://"+u.Host != o || o != strings.ToLower(o) {
		return false
	}
	return validHost(strings.TrimPrefix(u.Hostname(), "*."))
}
