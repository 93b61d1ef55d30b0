// Package gateway is what visitors meet: the HTTP API, the waiting page's
// requests, the reverse proxy to the site and the answers that other proxies
// ask for. It knows a Queue, not the node behind it.
//
// # One request to the site
//
// Who comes with a good pass goes through to the origin. Who comes with a
// ticket checks in, and goes through in the same answer when called. Anyone
// else joins: while there is room they go through at once, otherwise they wait.
// Waiting is a page for a browser that navigates, and JSON with 429 and
// Retry-After for everything else. A body that somebody sent is never swallowed
// by a page: such a request is refused or sent back to the form.
//
// Ticket and pass are sealed strings in one cookie per room that no script can
// read. The origin never sees it, nor anything that looks like our headers, and
// cannot set it.
//
// # How long an ended pass works
//
// A pass is good until it expires, and it says so itself. That its session was
// ended before is known at its home, which is asked at most once in
// Bounds.Recheck for each pass, not on every request for a picture: so an ended
// pass is refused everywhere within that time, and at once where it was ended.
// A pass is renewed when less than two thirds of the session are left.
//
// A connection that was upgraded, to a WebSocket, counts with its visit. It is
// closed when that ends: at once where it was ended, elsewhere within that time,
// and at the latest when the pass expires. What the visitor sends on it renews the
// pass as a request would. One that needed no pass, by a bypass rule or in a
// suspended room, is closed when that is over.
//
// # What an address may be
//
// Servers read some paths in different ways. Such a request needs the pass of every
// room that any reading leads to, see meet. A preflight, for which nobody can have a
// pass, is answered here.
//
// # Too much at once
//
// Requests to the queue, streams, remembered sessions, bodies and joins per
// client address are bounded. What is too much is refused with 429 and
// Retry-After, at no cost to anybody's place; who has a pass goes on.
package gateway
