package gateway

import (
	"io"
	"time"

	"github.com/anteroom/anteroom/internal/ticket"
)

// Pager writes the pages that a browser sees in place of the site. It writes
// the body only: the gateway sets the status, Content-Type, Refresh, caching
// and a Content-Security-Policy that allows inline scripts and styles with
// View.Nonce, requests and forms to this host, and nothing else.
type Pager interface {
	Page(w io.Writer, v View) error
}

// PageKind is what a page is about.
type PageKind string

// A visitor in the queue sees PageWaiting; the others say why there is no
// queue to be in, or no site to go to.
const (
	PageWaiting     PageKind = "waiting"
	PageCalled      PageKind = "called"      // going in: the next request of the browser goes to the site
	PageFull        PageKind = "full"        // the queue itself is full
	PageClosed      PageKind = "closed"      // the room lets nobody in (queueing_method: reject)
	PageCookies     PageKind = "cookies"     // the browser keeps no cookies, so it cannot keep a place
	PageLinked      PageKind = "linked"      // the address has a place in it: does the visitor want that, or one of their own?
	PageBusy        PageKind = "busy"        // too many requests at once; nothing was lost
	PageNetwork     PageKind = "network"     // the visitor's address has as much as it may; nothing was lost
	PageUnavailable PageKind = "unavailable" // this node cannot answer just now; the place is kept
	PageOriginDown  PageKind = "origin_down" // the site behind does not answer; the pass is kept
	PageTransfer    PageKind = "transfer"    // a link by which another device takes the place over
	PageBookmark    PageKind = "bookmark"    // a link that finds the place again
	PageTake        PageKind = "take"        // where the former leads: does the visitor want the place here?
	PageLinkOver    PageKind = "link_over"   // it was used, or is too old
	PageMoved       PageKind = "moved"       // another device has the place now
	PageLeft        PageKind = "left"        // the visitor gave the place up on purpose
)

// View is all that a page may show. It never has a ticket or a pass in it, but for
// PageBookmark, which has no script: those stay in cookies that no script can read.
type View struct {
	Kind           PageKind
	Nonce          string // for <script nonce> and <style nonce>
	AcceptLanguage string // the browser's header as it came; may be empty or nonsense
	Language       string // the room's own default, BCP 47; empty: en
	Room           string
	Brand          Brand
	LogoURL        string    // of the room's own picture; empty: none. A path on this host, or a data URL for a small one
	IconURL        string    // for the tab; empty: none
	Message        string    // the operator's words for the people who wait, plain text; empty: none
	Messages       []Message // all of those words, as Place has them
	RefreshSeconds int       // the browser is sent to RefreshURL after this; 0: it is not
	LastUpdated    time.Time
	CountedAt      time.Time  // see Place; zero: at LastUpdated
	Cloudflare     Cloudflare // what templates that were written for Cloudflare's waiting room ask for; see Room.Page

	// What follows is for PageWaiting and PageCalled.

	Method      string // fifo, random, passthrough or reject
	Position    int    // from 1; 0: not known yet, or a draw decides
	PeopleAhead int    // Position-1, and 0 when Position is 0
	Queued      int    // people waiting in the whole room
	Wait        Estimate
	JoinedAt    time.Time
	Kept        time.Duration // a place is kept this long without a sign of life
	Rejoined    bool          // an older place was given up after too long a silence; this is a new one
	Missed      bool          // an older place let too many calls pass; this is a new one
	Why         string        // what limits the flow, such as WhyFull
	Paused      ticket.Pause  // why nobody is called just now; empty: they are called
	HeldUntil   time.Time     // nobody is called before; zero: not held. After a restart of everything
	Claim       time.Duration // a call stands at least this long from the moment in which the browser is told of it
	Confirm     bool          // who is not looking then goes in by a button
	Draw        *Draw         // of an event, in which the visitor takes part; nil: none
	StartsAt    time.Time     // the doors open then and people gather until; zero: they are open

	// Where the page's script, forms and links go: paths on this host.

	StreamURL  string // GET, server-sent events: each message has the JSON of a check-in; an event "problem" is the last one
	CheckInURL string // POST without a body, answers the same JSON
	LeaveURL   string // POST without a body: of somebody called, brings the pass
	AbandonURL string // POST from a form, answers 303 to PageLeft
	RefreshURL string // GET: finds out whether cookies come back, then 303 to HereURL; the Refresh header names it
	HereURL    string // where the visitor wanted to go: load it to go in, or to try again

	// POST from forms, for a new tab: PageTransfer, PageBookmark. Empty: there is none.
	TransferURL, BookmarkURL string

	PushURL string // GET: a script that has the call told while the page is closed; empty: none

	LinkURL   string    // of these two: the whole address
	LinkUntil time.Time // until when it works; zero: as long as the place is kept
	QR        string    // a picture of it, as a data URL; empty: none

	// For browsers that keep no cookies, and for links that carry a place.

	// POST from a form: makes the place in the address the browser's own. Of
	// PageLinked and PageTake; of PageCalled where the place is in the address; and of
	// PageWaiting where it is another one than the browser's own, which it keeps.
	TakeURL   string
	KeepURL   string // of PageCookies: keeps a place in the address of the page instead
	InAddress bool   // it is there. Stream, check-in and abandon are not for such a place, so their URLs are empty
}

// Cloudflare has the fields of Cloudflare's waiting room.
type Cloudflare = cloudflare

// Estimate is the wait until the call, in seconds; not to be shown unless Known.
type Estimate struct {
	Known         bool
	P25, P50, P75 int
}
