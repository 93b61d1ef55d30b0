package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/rules"
)

// Check asks what would become of a request. What is not given is not known.
type Check struct {
	URL     string   `json:"url"` // as the browser has it
	Method  string   `json:"method,omitempty"`
	IP      string   `json:"ip,omitempty"`      // the visitor's, as trusted_proxies tell it
	Headers []string `json:"headers,omitempty"` // such as "Cookie: staff=yes"
}

// Probe reads a Check. The errors are all that is wrong with it.
func (c Check) Probe() (gateway.Probe, []FieldError) {
	var wrong []FieldError
	q := gateway.Probe{Method: strings.ToUpper(c.Method), Header: http.Header{}}
	if q.Method == "" {
		q.Method = http.MethodGet
	}
	var err error
	if q.URL, err = url.Parse(c.URL); err != nil || q.URL.Host == "" || q.URL.Scheme != "http" && q.URL.Scheme != "https" {
		wrong = append(wrong, FieldError{"url", fmt.Sprintf("%q: give the whole address, such as https://shop.example.com/tickets", c.URL)})
	} else if q.URL.Path == "" {
		q.URL.Path = "/"
	}
	if c.IP != "" {
		a, err := netip.ParseAddr(c.IP)
		if err != nil {
			wrong = append(wrong, FieldError{"ip", fmt.Sprintf("%q: give an address such as 192.0.2.7", c.IP)})
		}
		q.From = a.Unmap()
	}
	for i, h := range c.Headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" {
			wrong = append(wrong, FieldError{"headers[" + strconv.Itoa(i) + "]", fmt.Sprintf("%q: give a name and a value, such as 'Cookie: staff=yes'", h)})
			continue
		}
		q.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return q, wrong
}

// Checked is what would become of a request.
type Checked struct {
	Method string       `json:"method"`
	URL    string       `json:"url"`
	Path   string       `json:"path"` // as rules see it; empty: ambiguous
	Fate   gateway.Fate `json:"fate"`
	Prefix string       `json:"prefix"`                // of our own pages
	Room   string       `json:"room,omitempty"`        // empty: none has it
	Origin string       `json:"origin,omitempty"`      // of the room; empty: the site is behind another proxy
	Route  *Route       `json:"route,omitempty"`       // by which it is the room's
	Others []string     `json:"other_rooms,omitempty"` // whose passes it needs too: servers read its path in different ways
	Rule   int          `json:"rule,omitempty"`        // that is met, from 1
	Rules  []Verdict    `json:"bypass_rules"`
}

// Route is where a room is.
type Route struct {
	Host string `json:"host"`
	Path string `json:"path"`
}

// Verdict is what a bypass rule says of a request.
type Verdict struct {
	Description string `json:"description"`
	Expression  string `json:"expression"`
	Enabled     bool   `json:"enabled"`
	Met         string `json:"met"` // yes, no or unknown
}

// CheckedOf tells what was found out.
func CheckedOf(q gateway.Probe, f gateway.Finding) Checked {
	out := Checked{Method: q.Method, URL: q.URL.String(), Path: f.Path, Fate: f.Fate, Prefix: f.Prefix, Rules: []Verdict{}}
	if f.Room != nil {
		out.Room, out.Route, out.Others = f.Room.Name, &Route{f.Route.Host, f.Route.Path}, f.Others
		if f.Room.Origin != nil {
			out.Origin = f.Room.Origin.Redacted()
		}
	}
	for i, v := range f.Rules {
		out.Rules = append(out.Rules, Verdict{v.Description, v.Expression, !v.Disabled, v.Truth.String()})
		if f.Fate == gateway.FateBypass && out.Rule == 0 && v.Truth == rules.True && !v.Disabled {
			out.Rule = i + 1
		}
	}
	return out
}

// check answers what would become of a request. Nothing is sent anywhere.
func (a *admin) check(w http.ResponseWriter, r *http.Request) {
	body, ok := a.body(w, r, "application/json")
	if !ok {
		return
	}
	var c Check
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		a.fail(w, r, http.StatusBadRequest, "request_invalid", "Send an object with url and, if they matter, method, ip and headers.")
		return
	}
	q, wrong := c.Probe()
	if len(wrong) > 0 {
		a.failWith(w, r, http.StatusBadRequest, "request_invalid", "This is no request.", wrong)
		return
	}
	a.json(w, r, CheckedOf(q, a.c.Operator.Find(q)))
}
