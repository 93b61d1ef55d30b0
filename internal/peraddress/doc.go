// Package peraddress bounds what one address may have of a room at one node, so
// that a few clients leave the others their share of it: joins, places in line,
// visits to the site and event streams.
//
// An IPv4 address is one party, and so are the addresses of an IPv6 /64, which one
// connection is given. Whoever is given a /48 has 65,536 of those: all of them
// together may have four times as much; of the visits, where the bound goes by the limit, half of it.
//
// A place is counted for the address that it was taken from, at the node that it
// was taken at, until it is known to be gone: given up, turned into a visit,
// refused, or not heard of for ticket_ttl. A visit is counted for the address
// that came in, until it ends or its pass runs out. What is done by way of other
// nodes is counted there.
//
// # When a bound is reached
//
// Nobody loses a place by it. A join is refused, and may be tried again. Somebody
// whose turn comes while their address has as many on the site as it may is not
// called: their place stays as it is, in front, and the slot goes on to the next.
// Called before, they are refused, keep the place and are called again. So an
// address that is full holds no slot beside those of its visits.
//
// Loopback is this machine, and private addresses are our own network, where many
// are behind one address at most by a proxy that nobody told us to trust: they
// are exempt.
package peraddress
