// Package growth measures how what a cluster costs grows with nodes, rooms,
// people who wait and people who are called. It has benchmarks and nothing else.
//
//	go test ./internal/growth -run '^$' -bench . -benchtime=1x -timeout 30m -plots docs
//
// Most of them start real nodes, `anteroom serve` processes that are built for
// the purpose, and look at them from outside, as an operator would: processor time and
// memory in /proc, the admin port, the admission logs. So they need Linux.
// What has no place outside, a wave and its messages, is measured on the nodes'
// state machines in one process, with the encoding of the links in between
// (Wave), and over the links themselves (Links).
//
//	Idle        processor time of nodes with nothing to do
//	Streams     memory of open event streams, and how soon all hear of a call
//	CallAll     100,000 people called at once at 16 nodes
//	ViewChange  time without waves, and processor time, when a node comes or goes
//	Wave        processor time, messages and bytes of a wave
//	Links       messages, writes and bytes on the links of real gRPC, for a wave
//
// With -plots what Wave has measured is drawn, as growth.svg. -anteroom measures
// a binary that is there already, so that two can be compared. Times swing with
// whatever else the machine does: compare within one run, or medians of several.
// Messages do not, and bytes hardly.
package growth
