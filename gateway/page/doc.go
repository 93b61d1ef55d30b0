// Package page writes the pages that a browser sees while it waits, and when
// there is no place to wait in. It implements gateway.Pager.
//
// A page is one response: its style and its script are inside, under the nonce
// of the response's Content-Security-Policy, and it fetches no font and no picture
// but a room's own large one. It is at most 8 kB once compressed, beside the room's
// own text and pictures, so that it fits in the first round trip of a connection.
//
// # Without a script
//
// The server writes the whole page: position, people ahead, estimate, reasons.
// The Refresh header that the gateway sets loads it again; a meta element would
// say the same once more, and checkers of accessibility refuse it. A browser
// that fails to run the script is in the same case, which is why the script
// first sets everything up and only then cancels the pending Refresh.
//
// # With a script
//
// The script (live.js) keeps the page true and never loads it again before
// there is something else to show; a reload makes a screen reader start over.
// The tabs of one browser elect one (Web Locks) that listens to the node's
// event stream, or asks by POST where a stream does not hold, and tells the
// others (BroadcastChannel). If that tab closes another takes its place; if it
// falls asleep the others ask for themselves. What is asked beside the stream
// renews the cookie with the ticket, which a stream cannot do: a node that
// takes a place over from a dead one needs a recent ticket.
//
// When the visitor is called, the tab that heard it first gets the pass, and then
// every tab loads the address that it was opened for. The pass comes first
// because a page that cannot be loaded is lost: without a network the browser
// shows an error in its place, and nothing there tries again. The ticket itself
// is in a cookie that no script can read and is nowhere in the page.
//
// Whatever a reload, another tab or another node says, the position shown for a
// place never rises and the bar never goes back: the best is kept in the
// browser's local storage.
//
// # Without a cookie
//
// A place may be in the address of the page instead of a cookie, if the visitor
// asks for that. Such a page has no script: the next address has the next
// ticket in it, and the Refresh header leads there.
//
// # A room's own page
//
// Custom is a page that an operator wrote: a Mustache template which has the
// variables of Cloudflare's waiting room. docs/pages.md is for its authors.
//
// # Languages
//
// One file of lang is one language: its name is the language's tag, its words
// are those of en.json. The forms of a text that a number changes are named as
// in Unicode's plural rules (zero, one, two, few, many, other). The tests say
// what is missing. Times are shown in the visitor's own zone by the script, and
// in UTC without it.
package page
