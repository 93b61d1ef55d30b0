package gateway

import (
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"sync"
)

// A preflight asks what a script of another site may do. Browsers send it without
// cookies, so that nobody could have a pass for it; but anybody can write one, with
// a body, and an origin that does not look at its method takes it for a request.
// So we answer it ourselves, unless the room says that the origin shall.

// preflight reports whether that is what r asks.
func preflight(method string, r *http.Request) bool {
	return method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// preflight answers one. It reports whether the origin shall instead.
func (c *call) preflight() bool {
	if !c.room.PreflightToOrigin {
		hurry(c.w, c.r)
		c.refusedOrigin()
		c.preflightAnswer(c.room.CORS.Methods, append(slices.Clone(c.room.CORS.Headers), ticketHeader))
		return false
	}
	after, ok := c.g.preflights.take(c.room.Name, c.client.addr, c.g.c.Queue.Clock())
	if !ok {
		hurry(c.w, c.r)
		c.g.metrics.shed.Inc()
		c.g.fail(c.w, c.r, tooMany(after))
	}
	return ok
}

// ownPreflight answers one that is about our API, if that is for scripts of other
// sites at all.
func (c *call) ownPreflight(method string) bool {
	if method == anyMethod || len(c.room.CORS.Origins) == 0 || !preflight(c.r.Method, c.r) {
		return false
	}
	hurry(c.w, c.r)
	c.refusedOrigin()
	headers := apiHeaders()
	if c.g.c.Challenges.URL(c.room.Name) != "" {
		headers = append(headers, challengeHeader)
	}
	c.preflightAnswer([]string{method}, headers)
	return true
}

// refusedOrigin says in the log, once for each room and origin, that scripts of an
// origin are not let in, and what can be done about it.
func (c *call) refusedOrigin() {
	origin := c.r.Header.Get("Origin")
	if c.room.CORS.allows(origin) != "" || !c.g.preflights.tell(c.room.Name, origin, c.g.c.Queue.Clock()) {
		return
	}
	c.g.c.Logger.LogAttrs(c.ctx(), slog.LevelWarn, "scripts of another origin are refused: list it in the room's cors.origins, "+
		"or have the site answer preflights itself with preflight: origin",
		slog.String("room", c.room.Name), slog.String("origin", origin[:min(len(origin), originMax)]))
}

// originMax is as much as the log is told of an origin, in bytes.
const originMax = 300

// Bounds of preflights that are passed on, and of what the log is told. The log's
// are for all rooms together: who makes up origins fills it no faster.
const (
	preflightsPerAddress = 10  // a second
	preflightsAtOnce     = 200 // of one address, after a pause
	preflightsPerRoom    = 100 // a second
	preflightsOfRoom     = 500 // at once
	originsTold          = 1024
	tellEvery            = 60e6 // µs
	tellAtOnce           = 20
)

// preflights bounds them. Rooms are few, and what is remembered of strangers is
// bounded.
type preflights struct {
	mu    sync.Mutex
	addrs *lru[netip.Prefix, int64] // µs, see paceAt
	rooms *lru[string, int64]
	told  *lru[[2]string, struct{}] // room and origin
	next  int64                     // µs, of the log
}

// addressesMax bounds how many addresses are remembered; who is forgotten
// starts afresh.
const addressesMax = 100_000

func newPreflights() *preflights {
	return &preflights{
		addrs: newLRU[netip.Prefix, int64](addressesMax), rooms: newLRU[string, int64](addressesMax), told: newLRU[[2]string, struct{}](originsTold),
	}
}

// paceAt is the generic cell rate algorithm: each request pushes a time on by one
// interval, and it may be ahead of the clock by so many of them.
func paceAt(at, now, interval int64, atOnce int) (next int64, retryAfter int, ok bool) {
	next = max(at, now) + interval
	if late := next - now - interval*int64(atOnce); late > 0 {
		return at, int((late + 999_999) / 1e6), false
	}
	return next, 0, true
}

// take counts one at time now, or says after how many seconds there may be
// another. Of this machine itself only the room's bound holds.
func (p *preflights) take(room string, a netip.Addr, now int64) (retryAfter int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := func(at *int64) int64 {
		if at == nil {
			return 0
		}
		return *at
	}
	bits := 32
	if a.Is6() {
		bits = 64 // what one household has
	}
	if from, err := a.WithZone("").Prefix(bits); err == nil && !a.IsLoopback() {
		next, after, ok := paceAt(of(p.addrs.at(from)), now, 1e6/preflightsPerAddress, preflightsAtOnce)
		if !ok {
			return after, false
		}
		p.addrs.put(from, next)
	}
	next, after, ok := paceAt(of(p.rooms.at(room)), now, 1e6/preflightsPerRoom, preflightsOfRoom)
	if ok {
		p.rooms.put(room, next)
	}
	return after, ok
}

// tell reports whether the log shall hear of an origin.
func (p *preflights) tell(room, origin string, now int64) bool {
	key := [2]string{room, origin[:min(len(origin), originMax)]}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told.at(key) != nil {
		return false
	}
	next, _, ok := paceAt(p.next, now, tellEvery, tellAtOnce)
	if ok {
		p.next = next
		p.told.put(key, struct{}{})
	}
	return ok
}

// asksOnly takes out of a preflight all but what a browser asks by it.
func asksOnly(h http.Header) {
	for name := range h {
		switch name {
		case "Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers", "Access-Control-Request-Private-Network",
			"Accept", "Accept-Language", "Accept-Encoding", "User-Agent", "Referer",
			"Sec-Fetch-Mode", "Sec-Fetch-Site", "Sec-Fetch-Dest":
		default:
			delete(h, name)
		}
	}
}
