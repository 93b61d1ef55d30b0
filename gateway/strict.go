package gateway

import (
	"cmp"
	"net/url"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/rules"
)

// strictness orders rooms by what they ask of a newcomer. Of a path that servers
// read in different ways, as /checkout;x, the room with the most of it is asked
// first:
//
//	3  nobody gets in (reject)
//	2  people wait, or it is not known whether they do
//	1  everybody gets a pass at once (passthrough)
//	0  nobody needs one (suspended)
//
// Of two alike the more specific route counts: a host of its own before any, then
// the longest path.
func strictness(r *Room, st RoomState, known bool) int {
	switch {
	case r.Suspended:
		return 0
	case known && st.Room.Method == eviction.Passthrough:
		return 1
	case known && st.Room.Method == eviction.Reject:
		return 3
	default:
		return 2
	}
}

// strictness is r's now.
func (g *Gateway) strictness(r *Room) int {
	st, known := g.c.Queue.Room(r.Name)
	return strictness(r, st, known)
}

// unasked is the same where no node can be asked.
func unasked(r *Room) int { return strictness(r, RoomState{}, false) }

// address is what an address has to do with rooms.
type address struct {
	*route          // nil: no room
	others []*route // of other rooms that it may be in, by another reading; less strict ones last
	plain  bool     // all servers read it in one way, but for capitals
}

// meet finds the rooms of an address. One that servers read in different ways is
// in all that any reading leads to, and the strictest of them comes first. A
// request for it needs the pass of each: whatever the origin makes of it, nobody
// gets to a room's part of the site without that room's pass. /Checkout is
// /checkout to some, too.
func (t *table) meet(host string, u *url.URL, strictness func(*Room) int) address {
	if rules.Plain(u) {
		r, alike := t.lookup(host, u.Path), t.alike(host, u.Path)
		if r == alike {
			return address{route: r, plain: true}
		}
		a := strictest([]*route{r, alike}, strictness)
		a.plain = true
		return a
	}
	var met []*route
	readings, all := rules.Readings(u)
	if !all { // it may be read as any
		for i := range t.hosts[host] {
			met = append(met, &t.hosts[host][i])
		}
		for i := range t.hosts["*"] {
			met = append(met, &t.hosts["*"][i])
		}
	}
	for _, p := range readings {
		met = append(met, t.lookup(host, p), t.alike(host, p))
	}
	return strictest(met, strictness)
}

// strictest is an address that met all these routes; nil is none.
func strictest(met []*route, strictness func(*Room) int) address {
	met = slices.DeleteFunc(met, func(r *route) bool { return r == nil })
	slices.SortStableFunc(met, func(a, b *route) int {
		return cmp.Or(
			cmp.Compare(strictness(b.room), strictness(a.room)),
			cmp.Compare(wild(a), wild(b)),
			cmp.Compare(len(b.path), len(a.path)),
			cmp.Compare(a.room.Name, b.room.Name),
		)
	})
	seen := map[*Room]bool{}
	met = slices.DeleteFunc(met, func(r *route) bool { again := seen[r.room]; seen[r.room] = true; return again })
	if len(met) == 0 {
		return address{}
	}
	return address{route: met[0], others: met[1:]}
}

// noSite reports whether some reading leads to where no site of ours is.
func (a *address) noSite() bool {
	if a.route == nil || a.room.Origin == nil {
		return true
	}
	return slices.ContainsFunc(a.others, func(r *route) bool { return r.room.Origin == nil })
}

// refused reports whether a room of an address does not take it for what servers
// read in different ways.
func (a *address) refused() bool {
	if a.plain || a.route == nil {
		return false
	}
	return a.room.StrictPaths || slices.ContainsFunc(a.others, func(r *route) bool { return r.room.StrictPaths })
}

func wild(r *route) int {
	if r.host == "*" {
		return 1
	}
	return 0
}

func ambiguousPath(status int) *HTTPError {
	return &HTTPError{
		Status: status, Code: "path_ambiguous", Title: "Servers read this path in different ways",
		Detail: "Write it without \\, ;, double slashes, dots, encoded slashes or what is encoded twice.",
	}
}

// elsewhere asks for the passes of the other rooms that a request may be for. It
// reports whether there are all; if not, the visitor has been answered.
func (c *call) elsewhere(others []*route, st *standing) bool {
	for _, r := range others {
		d := *c
		d.room, d.from = r.room, fromNowhere
		more, ok := d.enters()
		if !ok {
			return false
		}
		if more.cookie != nil {
			st.cookies = append(st.cookies, more.cookie)
		}
		if d.from == fromBearer {
			c.from = fromBearer
		}
		st.several, st.preflight = true, st.preflight || more.preflight
	}
	return true
}
