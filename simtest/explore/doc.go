// Package explore visits every state that a few production nodes
// (internal/node.Node) can reach in a small world, and holds each of them to
// the promises of the protocol. Where simtest draws one long run from a seed,
// this takes all short ones. It has tests only:
//
//	go test ./simtest/explore -v                       # seconds; -v prints counts
//	go test ./simtest/explore -explore -v -parallel 1 -timeout 2h
//
// # What is explored
//
// A model names what is in the world (two or three nodes, one room of one or
// two slots, up to four visitors with scripts), what may go wrong and how often
// (messages lost or late; nodes that crash, come back with or without their
// disk, are paused; partitions; members taken for dead), and a schedule of
// times. Whatever may happen happens in every order:
//
//	founding               three nodes, two waves, people who come meanwhile
//	founding_reaches_few   its commits are lost, a partition follows
//	site                   two nodes and one slot that moves; one message lost
//	transfer               two nodes, a slot under way; crash, disk, partition, void
//	take-over, comeback    two nodes; b is lost: its tickets and passes go to a; it returns
//	void_reaches_one_node  three nodes; one does not learn that another is void
//	two_coordinators       three nodes with three views
//	coordinator_dies       at any point of a wave, and comes back as another
//	partition, share       side waves, old leases, D; each policy
//	amnesia                a node forgets, and meets one that was cut off
//	two_levels             a tree of depth two, and replies that lack a child
//	qpid_root              three nodes, joins across the freeze of a wave
//	qpid_deleteMin         the same with deleteMins, and one message lost
//
// These rules bound it:
//
//   - A link delivers in order. Time passes when every running node has had its
//     tick and nothing is under way, but for what the model lets be late.
//   - All clocks show the same. Nodes tick at the times of the schedule; between
//     them, in a quiet stretch, the world runs by itself, in one way only.
//   - Messages of the kinds in sideshow arrive at once.
//   - Faults begin up to the moment that the model names.
//
// # How it is done
//
// Nodes are pure, so what an input does to a node in some state is worked out
// once and looked up from then on: a world is a few small numbers, and a
// million of them stand on some ten thousand node states. A node state is told
// from others by a digest of all its fields, read by reflection. Nodes are not
// copied: an instance in a given state is had by repeating the inputs that led
// there, and has to end up with the same digest. Worlds are visited breadth
// first, so the path to a broken promise is as short as any.
//
// # When it fails
//
// It prints the promise, by its name in the protocol, then the path, one event
// per line, then the state.
//
//	S1   people called and on the site, and slots that could be used now, are within the limit
//	S2   each ledger: owned = minted + received - sent, used within owned
//	S3   slots of accounts that are not void, and those between them, are within the limit: each slot has one account
//	S4   one QPID root in an epoch
//	S6   epochs never fall, an epoch has one commit, nobody installs what it did not reply to, one founding gets through
//	S7   the cut never falls and is certified; entitlement follows the order while the view stands
//	S8   nothing is stamped at or below a T that was replied to
//	S9   nothing is minted while a lost account may act, or before all listed hold it for void; leases count from the reply; knowledge is earned
//	S10  a ticket is called once, and once more at most for each thing that happened to a node
//	S12  a void account gets no lease, and nobody acts without one
//	L3   once all is mended there is one wave again, and as many slots as the limit (a sample of the ends)
//	L4   a deleteMin is answered or its slot is back
//
// A model also names what has to happen in it at least once. TestLiesAreFound
// shows that the promises bite, TestStatesDecideTheFuture that equal digests
// mean equal futures.
//
// # What it does not see
//
// Clocks that differ, several rooms, random rooms and events, pacing, open
// admissions, survivors' lines, limits that change, nodes that take leave,
// parked people, repeated messages, more than one partition at a time, what
// other orders within a quiet stretch would do, and whatever takes more nodes,
// waves or people than a model has. Simtest draws those.
package explore
