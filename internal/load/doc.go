// Package load sends many visitors to a waiting room over HTTP, cheaply enough
// that the room is what is measured and not the generator.
//
// # Model
//
// A visitor is a few words of memory and a time at which it wants to do
// something next: join, check in, leave the queue, look at a page, end the
// session. It is dealt one gateway and stays with it, as behind a load balancer
// with sticky sessions, unless that gateway cannot be reached.
//
// Each gateway has a lane: a heap of its visitors by the time at which they want
// something, and some connections. A connection takes the visitor who has been
// due longest, asks for it, and goes on with it as long as it has something to
// do at once. So a million people can wait while a few dozen connections carry
// what they say, and a visitor who waits costs some 130 bytes beside its ticket.
//
// # Arrivals
//
// In the closed model so many visitors are under way at a time, and the next one
// comes when one has gone. Latencies count from sending. In the open model
// visitors come at a rate, at exponentially distributed intervals, whatever the
// answers take. Latencies count from the time at which a request was meant to be
// sent: a gateway that stalls delays the requests behind it too, and leaving that
// out would flatter it ("coordinated omission"). How late the generator itself
// was is reported beside, as late_seconds: if that is not small, there were too
// few connections, or too little processor.
//
// # Fairness from outside
//
// The answers tell when a visitor joined (joined_at) and in which wave its turn
// came (called_in_wave). That is the order of entitlement of package fairness.
// What cannot be seen from outside is left out rather than made up: when exactly
// a turn came, and so the delay until the call.
//
// # Use
//
//	g, err := load.New(load.Config{URLs: urls, Room: "shop", Arrivals: load.Arrivals{Users: 5000}})
//	err = g.Reach(ctx)   // is everything there?
//	result := g.Run(ctx) // until all have gone, or ctx ends
package load
