/*
Package broker is one node's part of the priority queues of a cluster: it knows
which shards (package pqueue) have a queue's items, joins them to one queue with
QPID (package qpid), and brings every caller's request to the node that must
answer it. Like those packages it is a pure state machine:

	b.Do(now, call)          // or Take, Step, SetView, Tick …
	r := b.Ready()
	send(r.Messages)         // each at most once, in order
	propose(r.Proposals)     // to the logs of durable and replicated queues
	answer(r.Answers)

# Where an item is

Items of a queue in memory, and of a durable one, are at home at the node that
wins a rendezvous of all members over the item's id: so an Insert that is
repeated at another node meets the same shard, which knows the id. An id of the
form …@node is at home at that node; ids that are made here have it, so that
what is inserted without an id stays where it was inserted. When members come or
go some ids get another home, while the items stay. For a minute after it an
Insert first asks the homes of before. What it cannot ask is a node that is gone: an
Insert that was lost with its node, and is repeated, makes a second item, and if
the queue is durable both are there when the node is back. A replicated queue's items
are all with the node that leads its log.

A handle names the node, and so Ack and all else that has one goes straight
there. By id alone the home is asked, and if it does not know the item, everybody.

# DeleteMin

Every named queue has a qpid.Node at every node. Its items are the ready ones of
the shards that this node leads. A deleteMin goes along the pointers to the root,
which takes its first item out of QPID, leases it through its shard, and so
through its log if it has one, and sends it to the caller. The caller repeats
what is not answered under the same number: the root then finds the lease that
it has given, or, if it has lost its office, leases another item; whoever gets
what it does not wait for any more gives it back, without a mark on the item. A
lease of which nobody heard lapses.

So no item is leased while its lease lasts, and an item is delivered again only
after its lease has lapsed or was given back. Order is QPID's: a deleteMin that
is faster than the news of a lighter item does not wait for it.

# Rounds

QPID needs all tables to be made from one snapshot whenever the tree changes or
a message is lost. The waves of the waiting rooms do that for their queues; here
it is a round of its own, because waves come five times a second, and what was
lost is to be made good at once.

	gather(epoch, list)     coordinator to all: freeze, and say what you have
	frozen(epoch, fronts)   from each: its lightest item of every queue
	commit(epoch, fronts)   install, all with the same ones

The coordinator is the first of the list of the last wave, and the round's list
is that list, in its order, with the tree of the waves (children of position i
at 8i+1 … 8i+8). There is a round when the list has changed, and when somebody
misses a message. A member that misses three rounds in a row is left out until it
says something.

From the fronts each node writes its table down by itself: a side weighs what the
lightest item on it does, and a side without any what its lowest position does,
which is 0 on the parent's side and the child's own on a child's. Both ends of a
link thus have the same two numbers. What comes and goes at a node after it was
frozen counts as inserted or taken just after the install, which QPID allows at
any time; those updates and findRoots are part of the new epoch. This is right
because an epoch begins only when all who are in it are frozen: no root of an older
one is at work among them. So a round overtakes nothing: whatever was ready when it
began is known to all who grant in it. There is room for frontsMax fronts, for each
member an equal part. Those of a queue in which two members have the same item, as
they may while its log changes hands, are left out. A queue without fronts begins
empty, and its items are news.

A queue of which a node hears for the first time in the middle of an epoch is
installed then, from the same fronts: as long as nobody has told it anything, its
table is that of the beginning.

A node that is not in the list stays in its old epoch, and may be root there, of
its own items. Two roots hand out different items, so this does no harm, but for
queues with an interval or a bound on what is leased at once.

# Interval

A queue with an interval lets at most so many items out in any such time. Only a
root does, and only with authority: the coordinator vouches that the root's round
is still the last one and that its own last wave had a quorum and is less than
Fresh ago. The word holds for Fresh, counted from when it was asked for. So the
authority of a root that was left out ends 2 Fresh after the last wave that its
coordinator was in, by clocks that run at the same rate. A node that was out of
the waves for longer than Fresh, or on a side without a quorum, has no authority,
and gives none, before the next round: there may have been one without it.

The times of the last grants travel with the root's office, as ages, and in
rounds. A round in which everybody reports who was in any of the last rounds of
its members knows all grants, and the next one may follow at once when its time
has come. If somebody is missing, or if nobody was in a round before, nothing goes
out for 3 Fresh and an interval: no grant that nobody remembers can be younger.
Grants are counted over a window that slides, so an idle time earns nothing.

With no quorum such a queue stands still, until the waves let one side go on
alone (survivor_after). If both sides of a split do, each keeps the interval for
itself.

# Settings

The settings of a queue are a register, as its mode is: of two, that with the higher
stamp holds. A change goes to all nodes of the view at once, and the shards have it
from whoever leads them, through their logs. Who was not there is told before the next
round: a node sends the coordinator what it may not know before it says that it is
frozen, and the coordinator each member before the commit. Links are in order, so a
node has the newest settings that anybody in its round had when that began, unless a
link broke meanwhile; then there is another round. Settings of a queue in memory live
as long as a node does that knows them; the others are in its log as well.

As long as nodes have different intervals, each root goes by its own, and all hand on
the grants that any of them may have to count. So no more than the largest per_interval
of them goes out in any of the shortest interval. Once all have the new ones, what they
say holds for all that goes out from then on.

# In flight

A queue with a bound on what is leased at once has as many slots. A replicated one has them
in its log: the shard counts. Of the others each node counts its own leases, and the slots are
shared out: a node has as many as it has leases, and the root has the free ones, which go
with its office. A lease that ends frees a slot where it was kept, and that goes along the
pointers to the root. So nobody is asked before a grant, and slots are not made by anybody.

A round counts them. Members report their leases and slots; if all who may have leases are
there, the first root gets what the leases leave, whatever was lost on its way. If not, those
who are there keep what they have, and what is missing from the whole is lost: it may be in
use at those who are not there. It goes with the office like free slots, and is free again when
these are back in a round, or when their leases must have ended. A root needs authority, as
with an interval, so a node that is left out grants nothing 2 Fresh after; and it extends a
lease up to the longest one after it was last vouched for. So 3 Fresh and the longest lease after
a round without it, it has none. Members that come from different rounds bring no slots:
what their leases leave is lost until then, or until all are there.

A lease on its way through a log that does not say what became of it keeps its slot until
it must have ended.

# Exclusive keys

Of a queue with exclusive keys one item of a key is leased at a time. Within a shard the
shard sees to that: only the first ready item of a key of which none is leased may be
leased. So a replicated queue needs no more. Of the others all items of a key are put at
one node, the winner of a rendezvous over the key; but when members come and go it is
another one, while the items stay.

In a round each key has a home, the winner among its members. Only the home leases items
of the key, or the one to which it has lent it: a node that has the key's items, and is
not its home, asks for the key before it puts the first of them into QPID (want, lend,
back), and gives it back when it has nothing of it any more that is ready or leased. Of
its own items the home lets none go as long as somebody else asks.

What was lent does not outlive the round, unless an item of it is leased. After an install
each node asks all others for the keys that are at home there and leased here (ask, held),
and as a root grants none of its own keys before all have answered. Nobody is granted
anything while the round is made, so the answers have all leases of members. Whether there
may be any besides is what the slots say, of which such a queue has as many as anybody
wants: as long as some are lost, a root takes its items with keys out of QPID, and goes by
what has none. So this holds through whatever that does.

# Fair keys

Where the keys of a queue take turns, QPID knows of each key, in each priority, only the
first item here, and that one not by when it was put but by the key's turn: when it came,
or when the one before it went. So the key goes next whose last item went the longest time
ago. A turn is a time, and comes after all that were given: the root gives them, and
the latest one travels with its office. So the clocks of nodes do not matter but for keys
that come anew. All items of a key are put at one node, as where keys are exclusive; when
members come and go a key may have items, and so turns, at two.

Turns are of the node that keeps the items, and in no log: who begins to lead one
has all keys come anew, in the order of their first items. A lease that comes to nothing,
or does not reach its taker, gives the turn back.

# Who is missing

An answer about a whole queue is made of what all nodes of the view said. Who may
have items, and is neither among them nor in the view, is named as missing: of
those in the view, who did not answer; of the others, who still has a vote, and
of a durable queue who has ever been in a view here, as its disk keeps what it
had. A Take names the latter two, and who is in no round: what these have may go
before the items that it brings, or is all there is. It goes by the round in which
its items were let out, so one that is back when it ends is named as well; a root
lets nothing out to a caller that is not in its round, and may have lighter items.
(A replicated queue's are all with who leads its log: nobody else has any.) A Take
that finds nothing ends with its wait: what is on its way to a root that does not
answer, or waits for authority, is given up EndWithin after it.

A Take of many items has its deleteMins run at once, and each answer comes when it
can. So a Take ends when all of them are answered, and has its items in the order
of their weights: at rest they are the first of the queue. A list asks each node
for page after page; it may show whatever is no heavier than the last item of each
node that has more, since what a node has not shown is heavier than what it has.

# Bounds

Queues, calls, waiting callers, commands on their way through a log, held
deleteMins, remembered grants: each has a bound in Config or a constant, and is
refused beyond it. What another node asks for is bounded by what its callers may.
A queue that was made on use is forgotten when it has been empty and unused for ten
minutes; in the middle of an epoch whose tree knows it, with the next round.
*/
package broker
