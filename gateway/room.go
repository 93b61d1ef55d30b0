package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Room is what the gateway itself must know of a room.
type Room struct {
	Name         string
	Routes       []Route
	Origin       *url.URL // nil: no reverse proxy; for the API and for other proxies
	StatusCode   int      // of the waiting page [200]
	CookieSuffix string   // of the cookie's name [the room's name]
	Language     string   // of the waiting page where the browser has no better wish
	Message      string   // for the people who wait
	Suspended    bool     // everybody goes straight to the origin
}

// Route is a part of a site: a host, or * for any, and all paths below one.
type Route struct{ Host, Path string }

// table finds a room by name and by address.
type table struct {
	byName map[string]*Room
	routes []route // the most specific first
}

type route struct {
	host, path string
	room       *Room
}

func newTable(rooms []Room) (*table, error) {
	t := &table{byName: make(map[string]*Room, len(rooms))}
	var errs []error
	bad := func(room, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: room %q: "+format, append([]any{ErrConfig, room}, args...)...))
	}
	for _, r := range rooms {
		r.StatusCode = cmp.Or(r.StatusCode, 200)
		r.CookieSuffix = cmp.Or(r.CookieSuffix, r.Name)
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
			t.routes = append(t.routes, route{
				host: strings.ToLower(cmp.Or(a.Host, "*")), path: path.Clean("/" + a.Path), room: &r,
			})
		}
		t.byName[r.Name] = &r
	}
	slices.SortStableFunc(t.routes, func(a, b route) int { // a host before *, then the longer path
		return cmp.Or(cmp.Compare(star(a.host), star(b.host)), cmp.Compare(len(b.path), len(a.path)))
	})
	return t, errors.Join(errs...)
}

func star(host string) int {
	if host == "*" {
		return 1
	}
	return 0
}

// at returns the room at an address, nil if none. It looks at the path as an
// origin will resolve it: dots and double slashes do not lead around a room.
func (t *table) at(host, name string) *Room {
	name = path.Clean("/" + name)
	for _, r := range t.routes {
		if (r.host == "*" || r.host == host) && below(r.path, name) {
			return r.room
		}
	}
	return nil
}

func below(dir, name string) bool {
	rest, ok := strings.CutPrefix(name, dir)
	return ok && (rest == "" || rest[0] == '/' || dir == "/")
}
