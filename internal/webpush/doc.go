// Package webpush tells browsers something whose page is closed, by the push
// service of their maker (RFC 8030). It is what a visitor asks for by a click, and
// an operator by the configuration, since it leaves the site.
//
// The service learns that this cluster had something to say, when, and who its
// operator is (VAPID, RFC 8292); what is said it cannot read (RFC 8291).
//
// # Addresses
//
// Where a message goes to is what a stranger said. So it goes by https to services
// that are known, or that the operator names, and to no other host; nothing is
// asked of where they send on to.
package webpush
