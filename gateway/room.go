package gateway

import (
	"net/url"

	"github.com/anteroom/anteroom/internal/brand"
	"github.com/anteroom/anteroom/internal/rules"
)

// Room is what the gateway itself must know of a room.
type Room struct {
	Name         string
	Routes       []Route
	Origin       *url.URL       // nil: no reverse proxy; for the API and for other proxies
	StatusCode   int            // of the waiting page [200]
	CookieSuffix string         // of the cookie's name [the room's name]
	Language     string         // of the waiting page where the browser has no better wish
	Message      string         // for the people who wait
	Messages     []Message      // the same, each from a time on, the earliest first
	Brand        Brand          // how the built-in pages look
	Logo, Icon   *brand.Picture // on them; nil: none
	ConfirmEntry bool           // who is called and is not looking goes in by a button
	Push         bool           // who waits may be told of the call by the push service of their browser
	Bookmark     bool           // who waits may have a link that finds the place without a cookie
	Suspended    bool           // everybody goes straight to the origin
	Bypass       *rules.Set     // whose requests do; nil: nobody's
	Cookie       Cookie
	Page         Pager // the room's own page for those who wait, or cannot [Config.Pages]
	IgnoreOrigin bool  // the origin's commands mean nothing
	AWS          bool  // the requests of AWS' waiting room are answered too, see aws

	CORS              CORS     // what scripts of other sites may do
	PreflightToOrigin bool     // the origin answers preflights, without a pass
	Upgrades          []string // protocols that a connection may change to; nil: websocket, empty: none
	StrictPaths       bool     // what servers read in different ways is refused

	Watch *Watch // nil: nobody asks what the origin bears

	flow         *flow    // of Watch
	answers      *answers // of Origin
	cookieDomain string   // of newTable, see sharedDomain
}

// Brand is how the built-in pages of a room look. What cannot be read of it is as
// if it were not there.
type Brand struct {
	Title       string `json:"title,omitempty"`       // empty: the room's name
	Accent      string `json:"accent,omitempty"`      // #rrggbb
	Description string `json:"description,omitempty"` // see brand.ParseText
}

// Route is a part of a site: a host, or * for any, and all paths below one.
type Route struct{ Host, Path string }
