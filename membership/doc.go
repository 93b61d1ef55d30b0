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
// keeps the address it knew first and tells those who see both. Of the two, the
// one that started later hands out no view until it has called the other at its
// address. If that answers, Run returns [ErrNameTaken] and says no goodbye,
// which would be in the other's name: the later process ends once, and does not
// come and go. If nobody answers, the address is one that the name has left; the
// cluster gives it up, and takes the name in at the new one some ten seconds
// after the crash, at once after a goodbye. The process that started first
// stays, logs who uses its name, and calls there, in case the other has not
// heard.
//
// # Strangers
//
// Without a key anyone who reaches the gossip port is believed, and can take
// members out of views or make a node end as its name is taken; give a key. Even
// so, names, addresses and what members say of themselves are read with bounds,
// a cluster has at most 1,024 names, connections are limited, and log lines
// that a stranger can cause are counted rather than written.
//
// # References
//
// [SWIM] A. Das, I. Gupta, A. Motivala. SWIM: Scalable Weakly-consistent
// Infection-style Process Group Membership Protocol. DSN 2002.
//
// [Lifeguard] A. Dadgar, J. Phillips, J. Currey. Lifeguard: SWIM-ing with
// Situational Awareness. arXiv:1707.00788, 2017.
package membership
