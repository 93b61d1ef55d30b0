// Package shop is a small website to stand behind the waiting room in the demo
// and in tests: a list of teas, a page for each, a basket and a checkout.
//
// It is an origin like any other and knows the waiting room by two headers
// only. X-Anteroom-Pass, which the gateway adds to each request, tells it who
// is there; checkout answers with Anteroom-Command: revoke, which ends the
// visitor's session so that the next person can come in.
//
// It counts the people whose pass it has seen and who have neither checked out
// nor run out of time: GET /_shop/stats answers {"now", "peak", "seen"}. The
// count is the shop's own. So it shows from outside whether a limit held.
package shop
