// Package pqueue is a shard: a number of named priority queues that live and are
// kept in one place, in the memory of a node or behind a log.
//
// A [Shard] is a state machine. [Shard.Apply] carries out a [Command] and says
// how it went; the same commands in the same order make the same shard on every
// machine. Time comes with the commands, in Unix microseconds, and never goes
// back: a command that says otherwise happens at the latest time that was heard
// of. What time brings about (a lease that lapses, an item that becomes ready or
// expires) waits for a Tick, a command too, which does a bounded amount of it.
//
//	ready ⇄ leased → finished
//	  ⇅       ↓
//	delayed  dead → ready, finished
//
// A shard does not choose which item is next; package broker does, over all
// shards of a queue. It is told which one to lease, and refuses if that one is
// not ready. The [Change]s say which weights have come and gone.
//
// Every collection has a bound, given by the queue's [Limits]: an Insert beyond
// it is refused, dead letters and remembered ids beyond it make the oldest go.
package pqueue
