/*
Package qpid is a distributed priority queue in which items stay where they were
inserted: each node queues its own, and together the queues behave like one. It
follows QPID [QPID]; what is different is listed at the end.

# Model

The nodes form a tree. An item has a [Weight], and the lightest leaves first.
Every node keeps

  - a local [Queue] of the weights of its items;
  - a weight table, with one entry for itself, the lightest weight of its own
    queue, and one for each neighbour in the tree, the lightest weight on that
    neighbour's side of the link;
  - a parent pointer, to itself or to a neighbour.

The node that points to itself is the root. Following the pointers from anywhere
leads there, and at rest the root has the lightest item of the network. What a
node reports to a neighbour is the lightest weight in its table on all other
sides. Reports go towards the root only, so a node's entries for those that point
at it are right, while the one for its parent's side may be out of date; nobody
needs that one, until the root comes by and brings it up to date.

# Operations

Four operations keep it so.

  - insert puts an item into the local queue. If it is the lightest there, the
    table's own entry changes. Removing an item that was the lightest does too.
  - update: a node whose report to its parent changes sends the new one. The
    parent corrects its entry, which may change its own report, and so on. Where
    a report stays the same the update stops, so most inserts cost nothing.
  - findRoot: when the root's table is lighter on another side, the root points
    there and hands its office to that neighbour, with its report. The neighbour
    is root now, and does the same with its own table. So there is at most one
    root, and none while the message travels.
  - deleteMin follows the pointers to the root and takes the root's first item.
    As the root's own entry has changed, a findRoot may follow.

In this package the first two and the last come down to one rule, run after every
change of a queue or a table: the root goes where the table is lightest, and
everybody else keeps the parent's entry for it right.

# Example

Three nodes in a row, a–b–c, each with an item: 10, 20 and 30. All point towards
a, the root. The tables, own entries in brackets:

	a [10] b:20          root
	b a:10 [20] c:30     → a
	c b:10 [30]          → b

An item 5 is inserted at c. c's report to b changes from 30 to 5, so it sends
update 5; b's report to a changes from 20 to 5, so it sends update 5 as well. a
finds b's side lighter, points at b and sends findRoot 10, its report to b. b
finds c lightest, points at c and sends findRoot 10. c finds itself lightest:

	a [10] b:5           → b
	b a:10 [20] c:5      → c
	c b:10 [5]           root

A deleteMin at a goes to b and to c. c removes the 5, tells a directly, finds b's
side lighter now and sends findRoot 30; b passes findRoot 20 on to a:

	a [10] b:20          root
	b a:10 [20] c:30     → a
	c b:10 [30]          → b

The files in testdata are more such examples, and tests.

# Use

A [Node] is a state machine: it reads no clock, draws no random numbers, starts
nothing and is not safe for concurrent use. Whoever owns it calls its methods and
then does the work that [Node.Ready] returns:

	for {
		select {
		case m := <-inbox:
			if err := n.Step(m); errors.Is(err, qpid.ErrGap) {
				// ask for a wave at once
			}
		case w := <-joins:
			n.Insert(w)
		case w := <-leaves:
			n.Remove(w)
		}
		r := n.Ready()
		for _, m := range r.Messages {
			transport.Send(m)
		}
		for _, x := range r.Removed {
			letIn(x)
		}
		for _, a := range r.Answers {
			finish(a)
		}
	}

A node starts frozen. A wave, which is not part of this package, brings it to
life, and does so again whenever the tree changes, a link breaks, or simply from
time to time: under a new [Epoch] every node calls [Node.Freeze] and reports its
lightest weight, or [Empty] of its place in the member list; once all have
reported, each gets a [Snapshot] made of these weights and calls [Node.Install].
A node that has reported to a newer epoch does not install an older one. Items
may be inserted and removed at any time.

# Delivery

Messages from one node to another must arrive at most once and in the order in
which they were sent, while the link is up. When a link breaks, messages may be
lost: both ends must then Freeze and stay so until the next wave. Updates and
findRoots carry a sequence number that starts at 1 with each install; a node that
finds one missing freezes by itself, and drops repeated ones.

A deleteMin is answered, unless it or its answer is lost: with the item taken,
with the news that nothing waits, or with a refusal because a bound of [Config]
was hit. It may wait at frozen nodes until their install. The caller may repeat it
under the same [OpID]; a node that has answered it (one of the last
Config.AnsweredMax) gives the same answer and takes nothing. If the root has moved
meanwhile, a repetition takes a second item. [Removal] names the operation, so an
owner that only leases items to callers gets the unused one back in the end.

# Guarantees

  - At most one node is root in an epoch at any time. As long as every wave
    includes every node that takes itself for a member, at most one is root at
    all.
  - At rest, when no message travels and all nodes have installed the same epoch:
    there is one root, it has the lightest item of the network, all pointers lead
    to it, and each node's entry for a child is the lightest weight of the
    subtree behind it (Eq. 1 of the paper, the weight-table invariant).
  - An item leaves once, and only from the front of its queue if a deleteMin
    takes it. DeleteMins that follow one another at rest take the items in order.
    One that overtakes news of a lighter item does not wait for it.
  - After a loss or a break the next complete wave restores all of this.
  - No message makes a node panic or exceed the bounds of its Config.

The tests explore all interleavings of small networks for this, and random ones
of larger networks.

# Deviations from the paper

  - Epochs and installs. The paper has a fixed tree. Here a new tree, a lost
    message or a crash is dealt with in one way: all tables are made anew from
    one snapshot. The two ends of a link then compare the same two numbers, so
    there is exactly one root. Patching tables at the time of a change does not
    work, because entries of the parent's side may be out of date.
  - The freeze between report and install. Without it an old epoch's root may
    still be at work when the new one's is installed.
  - Sequence numbers check that links are in order. The paper assumes it. Numbers
    that only pick the latest message [Koopmans] do not notice a lost findRoot.
  - Whether the root moves is decided by the table, never by the weight in the
    message that has just arrived.
  - One function handles every change, so an item that leaves without a deleteMin
    moves the weights like one that a deleteMin takes, upwards too.
  - An empty queue has a weight, heavier than any item and different for each
    node. So the root of an empty network needs no rule of its own, and a root
    whose queue empties stays if nobody has anything.
  - The result of a deleteMin goes straight to its caller, not back along the
    path. Hops are bounded.
  - Updates that wait in the same Ready are sent as one.

The method of QPID is also described in US patent 8,484,651.

# References

[QPID] R. Bajpai, K. K. Dhara, V. Krishnaswamy: QPID: A Distributed Priority
Queue with Item Locality. ISPA 2008, pp. 215–223. DOI 10.1109/ISPA.2008.90.

[Koopmans] J. Koopmans: Distributed Virtual Waiting Room. Bachelor's thesis, 2024.
Its chapters 3.3 and 4.3 and its code are the account of QPID that the operations
here follow.
*/
package qpid
