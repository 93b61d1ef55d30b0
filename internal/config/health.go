package config

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"
)

// HealthCheck is one way of looking at a room's origin. Its keys are those of
// Cloudflare's health checks and monitors.
type HealthCheck struct {
	Name            string       `json:"name"`
	Type            string       `json:"type"`    // http, https or tcp; empty: as the origin
	Address         string       `json:"address"` // empty: the origin's
	Port            int          `json:"port"`    // 0: the origin's, or the type's
	Host            string       `json:"host"`    // in requests, and in the certificate; empty: the address
	Path            string       `json:"path"`
	Method          string       `json:"method"`
	ExpectedCodes   []StatusCode `json:"expected_codes"`
	ExpectedBody    string       `json:"expected_body"`
	FollowRedirects bool         `json:"follow_redirects"`
	AllowInsecure   bool         `json:"allow_insecure"`
	Interval        Duration     `json:"interval"`
	Timeout         Duration     `json:"timeout"`
	Retries         int          `json:"retries"`
	ConsecutiveUp   int          `json:"consecutive_up"`
	ConsecutiveDown int          `json:"consecutive_down"`
	Suspended       bool         `json:"suspended"` // as if it were not there
}

// DefaultHealthCheck returns a check of which the file says nothing. It is not
// complete: name has no default.
func DefaultHealthCheck() HealthCheck {
	return HealthCheck{
		Path: "/", Method: "GET", ExpectedCodes: []StatusCode{"200"}, Interval: Duration(time.Minute), Timeout: Duration(5 * time.Second),
		Retries: 2, ConsecutiveUp: 1, ConsecutiveDown: 1,
	}
}

// StatusCode is one of HTTP's, or all of a hundred: 200, 2xx.
type StatusCode string

// MarshalText makes s read the same in YAML and JSON.
func (s StatusCode) MarshalText() ([]byte, error) { return []byte(s), nil }

// UnmarshalText takes 200 and 2xx.
func (s *StatusCode) UnmarshalText(text []byte) error {
	if !matches(`^[1-5]([0-9][0-9]|xx|XX)$`, string(text)) {
		return errors.New("no status code; give one such as 200, or 2xx for all of them from 200 to 299")
	}
	*s = StatusCode(strings.ToLower(string(text)))
	return nil
}

// What a room does while its origin is unhealthy.
const (
	Continue = "continue" // nothing
	Hold     = "hold"     // it calls nobody
)

// Bounds of health checks.
const (
	healthChecksMax                      = 10
	healthIntervalMin, healthIntervalMax = Duration(time.Second), Duration(time.Hour)
	healthRetriesMax                     = 5
	consecutiveMax                       = 100
	codesMax                             = 20
	expectedBodyMax, pathLenMax          = 1000, 2000
)

// Target is where a check goes, with what it leaves to the origin filled in.
func (h HealthCheck) Target(origin string) (kind, address string, port int) {
	u, err := url.Parse(origin)
	if err != nil {
		u = &url.URL{}
	}
	kind, address, port = cmp.Or(strings.ToLower(h.Type), u.Scheme, "http"), cmp.Or(h.Address, u.Hostname()), h.Port
	if port == 0 && h.Address == "" && (kind == u.Scheme || kind == "tcp") {
		port = portOf(u)
	}
	if port == 0 {
		port = usualPort(kind)
	}
	return kind, address, port
}

func portOf(u *url.URL) int {
	n := 0
	for _, digit := range u.Port() {
		n = 10*n + int(digit-'0')
	}
	return cmp.Or(n, usualPort(u.Scheme))
}

// usualPort is 0 where there is none.
func usualPort(scheme string) int {
	switch scheme {
	case "http":
		return 80
	case "https":
		return 443
	}
	return 0
}

func (f *File) checkHealth(key string, r Room) {
	if r.OnUnhealthy != Continue && r.OnUnhealthy != Hold {
		f.fault(key+".on_unhealthy", "%q; give continue or hold", r.OnUnhealthy)
	}
	if r.OnUnhealthy == Hold && len(r.HealthChecks) == 0 {
		f.warn(key+".on_unhealthy", "hold, and there are no health_checks, so nobody ever knows; list some")
	}
	if n := len(r.HealthChecks); n > healthChecksMax {
		f.fault(key+".health_checks", "%d checks; give at most %d", n, healthChecksMax)
		return
	}
	for i, h := range r.HealthChecks {
		at := key + ".health_checks" + index(i)
		if f.unread[at] {
			continue
		}
		if !matches(roomPattern, h.Name) {
			f.fault(at+".name", "%q is no name; give up to 64 letters, digits, - and _", h.Name)
		}
		if j := slices.IndexFunc(r.HealthChecks[:i], func(o HealthCheck) bool { return o.Name == h.Name }); j >= 0 {
			f.fault(at+".name", "%q is the name of health_checks[%d] too; give each its own", h.Name, j)
		}
		f.checkHealthTarget(at, r, h)
		f.checkHealthAnswer(at, h)
		f.checkHealthTimes(at, h)
	}
}

func (f *File) checkHealthTarget(at string, r Room, h HealthCheck) {
	kind, address, port := h.Target(r.Origin)
	switch {
	case !slices.Contains([]string{"http", "https", "tcp"}, kind):
		f.fault(at+".type", "%q; give http, https or tcp", h.Type)
	case address == "":
		f.fault(at+".address", "missing, and the room has no origin; give a host or an IP address")
	case !validHost(address) || isWildcard(address):
		f.fault(at+".address", "%q is no host; give one such as shop.internal or 10.0.0.5, without scheme and port", h.Address)
	case h.Port < 0 || h.Port > 65535:
		f.fault(at+".port", "%d; give a port from 1 to 65535, or leave it out", h.Port)
	case port == 0:
		f.fault(at+".port", "missing: tcp has no usual one; give a port from 1 to 65535")
	}
	if h.Host != "" && (!validHost(h.Host) || isWildcard(h.Host)) {
		f.fault(at+".host", "%q is no host name; give one such as shop.example.com, without scheme and port", h.Host)
	}
}

func (f *File) checkHealthAnswer(at string, h HealthCheck) {
	if p := h.Path; !strings.HasPrefix(p, "/") || strings.ContainsAny(p, "# \\") || strings.ContainsFunc(p, func(r rune) bool { return r <= ' ' || r == 0x7f }) || len(p) > pathLenMax {
		f.fault(at+".path", "%q is no path; give one such as /healthz, without # and spaces", p)
	}
	switch {
	case h.Method != "GET" && h.Method != "HEAD":
		f.fault(at+".method", "%q; give GET or HEAD", h.Method)
	case h.Method == "HEAD" && h.ExpectedBody != "":
		f.fault(at+".expected_body", "the answer to HEAD has no body; give method: GET")
	case len(h.ExpectedBody) > expectedBodyMax:
		f.fault(at+".expected_body", "%d bytes; give at most %d", len(h.ExpectedBody), expectedBodyMax)
	}
	if n := len(h.ExpectedCodes); n == 0 || n > codesMax {
		f.fault(at+".expected_codes", "%d codes; give 1 to %d, such as [200] or [2xx, 301]", n, codesMax)
	}
}

func (f *File) checkHealthTimes(at string, h HealthCheck) {
	if h.Interval < healthIntervalMin || h.Interval > healthIntervalMax {
		f.fault(at+".interval", "%v; give a time from %v to %v", h.Interval, healthIntervalMin, healthIntervalMax)
	}
	if h.Timeout <= 0 || h.Timeout > h.Interval && !f.blamed(at+".interval") {
		f.fault(at+".timeout", "%v; give a time above 0 that is not longer than interval, %v", h.Timeout, h.Interval)
	}
	if h.Retries < 0 || h.Retries > healthRetriesMax {
		f.fault(at+".retries", "%d; give 0 to %d", h.Retries, healthRetriesMax)
	}
	for _, c := range []struct {
		name string
		n    int
	}{{"consecutive_up", h.ConsecutiveUp}, {"consecutive_down", h.ConsecutiveDown}} {
		if c.n < 1 || c.n > consecutiveMax {
			f.fault(at+"."+c.name, "%d; give how many results in a row it takes, 1 to %d", c.n, consecutiveMax)
		}
	}
}
