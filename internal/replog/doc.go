// Package replog keeps the commands of a shard of priority queues on disks: a log
// that is applied, in order, to a StateMachine. It is github.com/hashicorp/raft,
// and this package says how it is founded, who belongs to it, how it reaches the
// other nodes and what happens when a disk or a node fails.
//
//   - A durable log (Config.Group is nil) is a group of one voter in this node's
//     directory. It founds itself.
//   - A replicated log (Group) is one for the cluster. With R replicas it has
//     2R-1 voters, so that its majority is R of them, and a command that was
//     acknowledged is on R disks.
//
// # Use
//
//	log, err := replog.Open(replog.Config{Dir: dir, Node: "n1", Machine: shard, Leads: leads})
//	go log.Run(ctx)
//	log.Propose(command, adds, func(result []byte, err error) { … })
//
// Only the node that leads takes commands; Leader says which one does. Commands
// that wait go to the disk together, as one entry of the log with one fsync; up
// to four such entries are under way at once.
//
// # Founding
//
// The log of a cluster must begin once. It begins on one node, which is its only
// voter then, and every other node is added by the leader. So two groups could
// only come to be if two nodes founded, and that needs votes:
//
//   - A node founds only if its configuration lets it (Group.Founders > 0), every
//     node that gossip calls alive has answered that it knows no group, these
//     are at least max(Founders, 2R-2), and no other of them that may found has a
//     lower name.
//   - It then gives its attempt a random name and asks all of them for their
//     vote. A node writes its vote to its disk before it answers, and gives it to
//     no other attempt while that one may still succeed. Only if all have voted
//     does the founder write down that it has founded; then it begins the log.
//   - An attempt that has failed is given up by the founder before it lets go of
//     the votes, and does not survive the founder's process. So a voter may vote
//     again once the founder itself says that the attempt is over, or says so by
//     having another one. A founder that says nothing keeps the votes.
//
// Two groups would take two sets of that many nodes, with no node in common, all
// without a log. With Founders more than half of the nodes that start, there are
// no two such sets. What is left is what the waiting rooms' own founding has, too:
// with Founders: 3, three nodes with empty directories that are cut off from all
// others before they ever met them. Groups have names, nodes of different ones
// take nothing from each other, and both sides say so in their logs.
//
// That the founder is alone at first costs nothing: with fewer than 2R-2 voters a
// command is refused. If its disk is lost right then, remove the directory on the
// other nodes, which is empty but for the vote; the log line says so.
//
// # Members
//
// A voter is a node's name with a name for its directory's life, which is
// made when the directory is. A node that comes back with an empty disk is another
// voter: it has forgotten what it acknowledged, and may not count for the
// old one. The leader looks at who is alive every second:
//
//   - Fewer than 2R-1 voters that are not lost, and a node is there that is not
//     in the group: it is added without a vote, and gets one when it has caught up.
//   - A voter is lost when its node has been dead for ReplaceAfter, or has come
//     back with another disk. A lost voter is removed when there are more than 2R-1
//     voters, so only after somebody has taken its place: the group never shrinks
//     below what R needs. Its disk may come back later and be added again.
//
// Raft has no vote for a candidate that the voter does not know as one yet. So if
// the leader is lost for good within the moments in which a new voter has been
// written to it and to one other node only, the others wait for its disk; nothing
// is lost then.
//
// Without a majority nothing is acknowledged and nothing lost: the leader steps
// down within half a second, commands are refused, and the caller tells the client.
//
// # Disks
//
// The log is github.com/hashicorp/raft-wal 0.4.1: one fsync for an append, one for
// each member. Before 0.4.1 it cannot be opened again after a member has dropped
// entries that another leader never had; after it, it does not build with the
// go-metrics that memberlist and raft want. On an ext4 disk that others used too,
// appends of 1 KiB took raft-wal 0.9 to 1.3 ms and of 256 KiB 1.3 to 1.8 ms;
// raft-boltdb, which writes a tree and syncs twice, took 1.3 to 4.2 and 9.6 to
// 10.6 ms (three runs of 300 each, raft-wal 0.4.0).
//
// The library takes zeros for the end of the log, makes a missing last file anew,
// and has no sums of what it sealed. So each entry has its own (see summed), what
// the library remembers is in a file with one (meta), and a witness beside the log
// knows how far it was acknowledged. A note elsewhere (Config.Note) says that there is a log. Open reads all of it. What is wrong is a
// *Damage: a durable log does not open then, and Recover gives up what is lost; a
// replicated one sets its directory aside and becomes another voter with an empty
// one, which neither founds a group nor votes for one. A last record that is torn,
// beyond what the witness knows, was never acknowledged and is cut off.
//
// A disk that is full or gives errors fails the commands under way, with that
// error, and Ready says so until it works again. Votes and terms that cannot be
// written are tried again, for raft cannot go on without them. After a write that
// failed the library is of no use any more, so its log is opened anew and cut back
// to what raft knows of (library). A durable log keeps its leadership meanwhile, and
// its state is to be had; a replicated one is led by another member.
//
// An entry that cannot be read, being of a newer release, is not skipped: the log stops
// at it (Unreadable).
//
// While less is free than what makes room needs (Storage), Room says that there is
// none for what adds to the state, and Propose takes none. How much is free is asked now
// and then, and whenever much was written: a rush of commands must not take what is kept. Of
// the disks of a replicated log, its own among them, the leader knows what they answered last.
//
// Snapshots are taken when the log has grown by CompactBytes, or by as much as the
// last snapshot was large if that is more, so that what they write is in proportion. They travel
// in pieces and go to a file; only restoring one has it in memory, beside the state
// that it replaces, up to SnapshotMax.
//
// # The wire
//
// Raft's own messages go over streams of bytes, each a bidirectional gRPC stream on
// the peers' port, so there is no port or certificate of its own. Both ends
// check the group's name and the other's, before raft sees a byte.
package replog
