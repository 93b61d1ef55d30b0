// Package membership knows who is alive. Gossip (hashicorp/memberlist, which is
// [SWIM] with the extensions of [Lifeguard]) goes in; views, the members in
// order of seniority with the addresses at which to reach them, come out. It
// decides nothing about the queue.
//
// # Use
//
//	m, err := membership.New(membership.Config{…, OnView: func(v membership.View) { … }})
//	go m.Run(ctx) // blocks until ctx is done, then says goodbye
//	<-m.Ready()   // gossip is up, the first view has been handed out
//
// # What a view promises
//
// Little. Two nodes' views may differ at any time, a member in a view may be
// gone, and one that is not may be alive and serving: a process that stands
// still hears nothing of its own absence. What must not happen while views
// differ is stopped by leases and quorums (package eviction), never from here.
// What can be relied on:
//
//   - A view has the node itself, and no two members of one name.
//   - Every member in it has said when it started, which life of its name it is
//     and where its peer service listens. One whose word cannot be read, or that
//     speaks another version of the protocol, is left out, with a line in the log.
//   - A node killed among healthy ones is out of all views within a few seconds,
//     one that says goodbye within a fraction of one.
//   - When nothing changes any more, all views become equal.
//
// # Lives
//
// A member is a name and a boot id. A node that is back before anybody missed
// it does not leave and join: gossip only reports that what it says of itself
// has changed. For a view that is one member going and another one coming.
//
// # Coming together again
//
// Gossip alone does not heal a split that lasted: each side forgets the other.
// So a node keeps calling at the addresses of its configuration, looked up anew
// each time, and at those of members lost within the last hour, for as long as
// one of them is not a member. While there is news it also exchanges all it
// knows with a member at random, for gossip may have missed that one.
//
// # Two processes of one name
//
// A name is configured by people, so two processes may get the same one. Gossip
// keeps the address it knew first and tells those who see both. Its word is not
// enough for anybody to end, or to be left out: it may be old, recorded, or about
// one who is gone. So a process that hears of another one of its name asks who is
// at the peer service there (Config.Ask), over a connection on which both ends
// prove to be members, and which is made for this one question.
//
// The answer is which life of which node it is, and whether it is settled: it has
// been among the others, or has run for a while, without finding that it must
// give way. Of two processes the settled one stays. If both are, because they
// meet when a split heals, or neither is, the one that started earlier stays. The
// other one's Run returns [ErrNameTaken], with the address of who has the name,
// and says no goodbye, which would be in the other's name. It has handed out no
// view but the first, unless it was on its own side of a split. Who stays logs the
// address of the other, and calls there, in case it has not heard.
//
// If nobody answers for Config.Silent, which is cluster.exclude_after, or
// somebody else does, the name has moved with this process: it stays, and the
// cluster takes it in at the new address some ten seconds after a crash, at once
// after a goodbye. Views wait for that only once in a process's life, at its
// start. Later words of other lives of its name hold nothing up.
//
// # Strangers
//
// With Keys all packets and streams are sealed with AES-GCM. What somebody sends
// who has none of the keys is dropped, and counted in the log. Before that is
// known memberlist reads all of a stream, so there are at most 64 at a time, 32 of
// one address, of 4 MiB, for 2 s each.
//
// A sealed packet can be recorded and sent again, for as long as its key is in
// the list, by whoever sees what goes between the nodes:
//
//   - That a member is suspected, dead or has left: memberlist drops what is older
//     than the member's latest word of itself. A word from an earlier life may have
//     the higher number; then the member is out of views until it hears of it and
//     denies it, well under a second later, and with a number that is higher still.
//     So each recorded packet works once for a life, at most.
//   - That an earlier life of a member is alive where that member is now: the same.
//     Elsewhere: it is a second address under one name, and ignored.
//   - That a member is alive which is gone: it is in views until it is found dead,
//     a second or two later, and once in ten minutes. Nobody hears from it, so it
//     takes no part in anything.
//   - That another life of a node's own name is alive: it asks there, as above.
//
// None of it ends a process or keeps a member out. Whoever can record can as well
// drop what he likes, which costs the cluster more. Exchanging the key makes all
// recordings worthless.
//
// Who has the key is a member, and believed: with it one can say that anybody is
// dead, though not for long. Even so names, addresses and what members say of
// themselves are read with bounds, a cluster has at most 1,024 names, and log
// lines that others can cause are counted rather than written.
//
// # References
//
// [SWIM] A. Das, I. Gupta, A. Motivala. SWIM: Scalable Weakly-consistent
// Infection-style Process Group Membership Protocol. DSN 2002.
//
// [Lifeguard] A. Dadgar, J. Phillips, J. Currey. Lifeguard: SWIM-ing with
// Situational Awareness. arXiv:1707.00788, 2017.
package membership
