// Package node is the one composite that production and the simulator run: a
// node's part in the waves (package eviction), its queues (package qpid) and
// the visitors who wait in them.
//
// A Node is a pure state machine. Inputs are messages from other nodes (Step),
// the passing of time (Tick), what the failure detector believes (SetView) and
// what visitors do (Join, CheckIn, Leave, Refresh, End, Abandon). Every input
// carries a reading of the clocks; after every input, Ready drains what there
// is to do:
//
//	n.Step(now, message)
//	r := n.Ready(now)
//	save(r.Save)     // durable before anything is sent; then n.Saved(r.Save)
//	write(r.Visits)  // whenever that is done; then n.VisitsSaved(now)
//	send(r.Messages) // each at most once, in order
//	wakeAt(r.Deadline)
//
// There is no clock, randomness, goroutine, lock or I/O inside, so a run is
// decided by its inputs alone.
package node
