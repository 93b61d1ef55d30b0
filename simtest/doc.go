// Package simtest runs the production state machine, internal/node.Node, in a
// simulated world: its network, clocks, gossip, disks, faults and visitors all
// come from one seed, so that a seed replays a run to the last message.
//
// # Model
//
// The World owns the nodes and calls Step, Tick and Ready itself. It replaces
// the loop, the links, gossip and HTTP around a node, and nothing else. Time is
// an integer of microseconds that jumps from event to event; events at the same
// instant happen in the order in which they were scheduled.
//
//   - A link is directed and delivers in order, unless a run says otherwise. It
//     may lose, repeat, delay and hold messages, and break with all in flight.
//   - Gossip reports each change to each node on its own, some time later, and
//     reports only what a path of links could carry: a node whose link to one
//     other is dead stays in everybody's view.
//   - A machine has a boot clock that drifts, and a wall clock that also steps.
//   - A visitor is a browser: it keeps the ticket or pass of the last answer it
//     got, fails over when a node refuses, and gives up on an answer after a
//     while. Some cheat.
//
// # Use
//
//	r, err := simtest.Run(simtest.Options{Seed: 1, Nodes: 5, Users: 10_000})
//
// An error is a *Violation: the oracle (S1 to S28 for safety, L1 to L7 for
// liveness), the simulated time and the state that broke it.
//
// # Phases
//
// Until Options.Span faults fly. Safety is demanded, and of liveness what cannot wait for
// the end of faults: where a quorum of nodes is well and together for long enough, waves
// commit, and people are called if they wait there (oracle_storm.go). Then the world
// heals: nodes restart, links mend, clocks agree. From there on liveness has
// deadlines everywhere: waves commit, slots are whole again, the queue drains.
//
// What each oracle means exactly is said where it is checked, oracle_*.go.
package simtest
