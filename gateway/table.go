package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/anteroom/anteroom/internal/rules"
)

// table finds a room by name and by address.
type table struct {
	byName map[string]*Room
	hosts  map[string][]route // those of one host, the longest path first; under * those of any
	lower  bool               // no route has a capital in it
}

type route struct {
	host, path string
	folded     string // the path, see rules.Fold
	room       *Room
}

func newTable(rooms []Room) (*table, error) {
	t := &table{byName: make(map[string]*Room, len(rooms)), hosts: make(map[string][]route), lower: true}
	var errs []error
	bad := func(room, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: room %q: "+format, append([]any{ErrConfig, room}, args...)...))
	}
	for _, r := range rooms {
		r.StatusCode = cmp.Or(r.StatusCode, 200)
		r.CookieSuffix = cmp.Or(r.CookieSuffix, r.Name)
		if r.Upgrades == nil {
			r.Upgrades = []string{"websocket"}
		}
		if t.byName[r.Name] != nil || r.Name == "" {
			bad(r.Name, "name: give each room a name of its own")
		}
		if r.StatusCode < 200 || r.StatusCode > 599 || r.StatusCode >= 300 && r.StatusCode < 400 || r.StatusCode == 204 || r.StatusCode == 205 {
			bad(r.Name, "queueing_status_code: %d; give one that a page can have, such as 200, 429 or 503", r.StatusCode)
		}
		if o := r.Origin; o != nil && (o.Scheme != "http" && o.Scheme != "https" || o.Host == "") {
			bad(r.Name, "origin: want a URL such as http://127.0.0.1:9000")
		}
		for _, a := range r.Routes {
			if !strings.HasPrefix(cmp.Or(a.Path, "/"), "/") {
				bad(r.Name, "routes: path %q: it must begin with a slash", a.Path)
			}
			to := route{host: hostName(a.Host), path: path.Clean("/" + a.Path), room: &r}
			to.folded = rules.Fold(to.path)
			t.lower = t.lower && to.folded == to.path
			t.hosts[to.host] = append(t.hosts[to.host], to)
		}
		r.cookieDomain = sharedDomain(r.Routes)
		t.byName[r.Name] = &r
	}
	for _, routes := range t.hosts {
		slices.SortStableFunc(routes, func(a, b route) int { return cmp.Compare(len(b.path), len(a.path)) })
	}
	return t, errors.Join(errs...)
}

// hostName is a host as requests are compared with it.
func hostName(host string) string { return strings.ToLower(strings.TrimSuffix(cmp.Or(host, "*"), ".")) }

// at returns the room at an address, nil if none.
func (t *table) at(host, name string) *Room {
	if r := t.find(host, name); r != nil {
		return r.room
	}
	return nil
}

// find returns the most specific route to an address: a host of its own before
// any host, then the longest path. It looks at the path as most origins will
// resolve it; meet looks at all that they may make of it.
func (t *table) find(host, name string) *route {
	return t.lookup(host, path.Clean("/"+name))
}

// lookup is find for a path that is looked at as it is.
func (t *table) lookup(host, name string) *route {
	for _, of := range [...]string{host, "*"} {
		routes := t.hosts[of]
		for i := range routes {
			if below(routes[i].path, name) {
				return &routes[i]
			}
		}
	}
	return nil
}

// alike is lookup at an origin that does not tell capitals from small letters. A
// route of the same length that is written as name is goes before others.
func (t *table) alike(host, name string) *route {
	exact, folded := t.lookup(host, name), rules.Fold(name)
	if t.lower && folded == name {
		return exact
	}
	for _, of := range [...]string{host, "*"} {
		routes := t.hosts[of]
		for i := range routes {
			r := &routes[i]
			switch {
			case exact != nil && exact.host == r.host && len(exact.path) == len(r.path):
				return exact
			case below(r.folded, folded):
				return r
			}
		}
	}
	return nil
}

func below(dir, name string) bool {
	rest, ok := strings.CutPrefix(name, dir)
	return ok && (rest == "" || rest[0] == '/' || dir == "/")
}

// sharedDomain is the domain whose cookie reaches all hosts of a room, so that
// who goes from one to the other keeps place and pass: the longest that all of
// them end with. It is empty where a cookie of one host is enough, where any
// host is in the room, and where there is no such domain that browsers take a
// cookie for: co.uk is none.
func sharedDomain(routes []Route) string {
	var common []string // labels, the last first
	first := ""
	several := false
	for i, r := range routes {
		host := hostName(r.Host)
		if _, err := netip.ParseAddr(host); err == nil || host == "*" {
			return ""
		}
		labels := strings.Split(host, ".")
		slices.Reverse(labels)
		if i == 0 {
			first, common = host, labels
			continue
		}
		several = several || host != first
		n := 0
		for n < len(common) && n < len(labels) && common[n] == labels[n] {
			n++
		}
		common = common[:n]
	}
	if !several || len(common) == 0 {
		return ""
	}
	slices.Reverse(common)
	domain := strings.Join(common, ".")
	if _, err := publicsuffix.EffectiveTLDPlusOne(domain); err != nil {
		return "" // it is one that anybody can register a name in
	}
	return domain
}
