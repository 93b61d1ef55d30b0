package simtest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/simtest"
)

// Seeds of the swarm in which a promise was once broken, by what broke it.

// hold runs the worlds of seeds, in which every promise has to hold.
func hold(t *testing.T, world func(seed uint64) simtest.Options, seeds ...uint64) {
	t.Helper()
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if _, err := run(world(seed)); err != nil {
				t.Error(err)
			}
		})
	}
}

// unwritten is the world that a seed had before visits were on disks: what was found in it then is
// kept as it was found.
func unwritten(seed uint64) simtest.Options {
	o := simtest.Swarm(seed)
	f := &o.Faults
	f.Visits, f.Damage, f.Hangs, f.PowerCuts = false, 0, 0, 0
	return o
}

// again is the world of one seed, in which what is left to chance is by others.
func again(world func(seed uint64) simtest.Options, of uint64) func(seed uint64) simtest.Options {
	return func(seed uint64) simtest.Options {
		o := world(of)
		o.Seed = seed
		return o
	}
}

// TestSeedsThatLostAPlace keeps seeds in which two nodes took a place over, from
// the same lost one, and a node told somebody that it was given up whose own copy
// was, while the other copy was kept; and one in which a home that had been told of
// the newest home alone made a ticket that does not name those between.
func TestSeedsThatLostAPlace(t *testing.T) {
	hold(t, unwritten, 22, 141, 313, 641, 740, 1382)
}

// An heir went on with the place of a lost node that another had taken over from that one
// long before, as it knew; and then it did not note again where the place was. And of two
// heirs that had gone on with one the other let go of it, and told the home of both that
// it had it for longer than it knew where it was.
func TestSeedsWithAPlaceThatTwoWentOnWith(t *testing.T) {
	t.Parallel()
	hold(t, unwritten, 575, 90001912)
}

// Two nodes had gone on with somebody's place, with the same number, and one of them gave its
// copy up, and then heard of the other: it refused its own tickets of it as expired.
func TestSeedsWithTwoCopiesOfOneGeneration(t *testing.T) {
	hold(t, unwritten, 91000454, 91000586)
}

// An event had raised the limit, and the one of two nodes that may go on alone was restarted with a
// disk from before: it took it that no more slots exist than there were then.
func TestSeedsWithALimitThatARestartForgot(t *testing.T) {
	hold(t, unwritten, 96004602)
}

// A machine stood still with its clocks while a limit was lowered, and calls somebody before it is
// told: by the limit of then, which is not the others'.
func TestSeedsWithACallAfterAStandstill(t *testing.T) {
	hold(t, unwritten, 96005917)
}

// Two nodes, on two lines, had gone on with a visit, and extended it at the same time: its browser ended it at
// one with the pass of the other. And a ticket had waited at both: what one called, the other stamped anew.
func TestSeedsWithAVisitOnTwoLines(t *testing.T) {
	hold(t, unwritten, 96008273)
}

// A copy of a ticket that another node had taken over waits where it did, and is the lightest.
func TestSeedsWithACopyAtTheRoot(t *testing.T) {
	hold(t, unwritten, 96010215)
}

// A wave that is decided late reckons with fewer slots than there are by then, and so does one of a room that
// stays on an older line.
func TestSeedsWithWavesThatReckonLate(t *testing.T) {
	hold(t, unwritten, 96001213, 96002637, 96004483)
}

// A node that had said goodbye, and given away what it had, took a place up again that it had
// given up for silence.
func TestSeedsWithAPlaceTakenUpByANodeThatLeaves(t *testing.T) {
	hold(t, unwritten, 91004241)
}

// Waves of one node and of several had one number, and a cut says no more: what the one
// entitled was put down to the other, which had left somebody before them in line.
func TestSeedsWithAWaveOfOneNodeBesideOthers(t *testing.T) {
	hold(t, unwritten, 91001397)
}

// Nodes that had forgotten everything began anew beside one that had not: it was slow, or
// another life of its name counted for it, or all of them but the coordinator heard of it.
func TestSeedsThatBeganBesideWhoRemembers(t *testing.T) {
	hold(t, unwritten, 90010250, 91004532, 91005541, 91007791)
}

// An heir was to get a place anew and, before that was said, no more, as another one was to
// have it: it was told that the place is gone, though it still was the one to keep it.
func TestSeedsWithAnHeirThatIsToKeepAPlaceUntilAnotherHasIt(t *testing.T) {
	hold(t, unwritten, 90005894)
}

// Somebody's join was taken back by a node that found nobody to keep the place, and they had
// joined with the same id at another: the first one refused them as given up.
func TestSeedsWithAJoinThatWasTakenBack(t *testing.T) {
	hold(t, unwritten, 90010381)
	hold(t, again(unwritten, 90010381), 3, 7, 9, 11)
}

// A home stood still and was in the list all the while, as another node was slow: its heirs
// forgot its places, of which they had not heard for too long.
func TestSeedsWithAHomeThatStandsStillInTheList(t *testing.T) {
	hold(t, unwritten, 90009311, 90013680)
}

// Two nodes lead for a moment, and their waves have one number: who is in both has the cut of
// the first, which is beyond the T of the second, and gave the room up for it.
func TestSeedsWithTwoWavesOfOneNumber(t *testing.T) {
	hold(t, unwritten, 90009479, 90014594)
}

// A node went on with a place that it had had before, or that a node that left had sent
// it, and took somebody for gone who had asked at the other one since.
func TestSeedsWithAPlaceThatWasAskedForElsewhere(t *testing.T) {
	t.Parallel()
	hold(t, unwritten, 90000692, 90000753, 90001086, 90001912)
}

// Nodes that were killed and back from their disks many times, with all of them
// there at last and no quorum: dead lives had been listed in later waves than
// those who have their disks stood for.
func TestSeedsThatLostTheirQuorum(t *testing.T) {
	hold(t, killed, 3, 23, 157, 239, 572, 853)
}

// killed is a world of the swarm in which all that happens is that nodes are killed
// and come back from their disks, every second or two.
func killed(seed uint64) simtest.Options {
	o := unwritten(seed)
	o.Users, o.Nodes, o.Rooms = 20, 3+int(seed%3), o.Rooms[:1]
	o.Faults.Every, o.Faults.Disk, o.Faults.Gone = time.Second+time.Duration(seed%4)*500*time.Millisecond, true, 0
	o.Faults.Mix = [][]simtest.Fault{
		{simtest.Crash, simtest.CrashMost},
		{simtest.Rolling, simtest.Crash},
		{simtest.Crash, simtest.CrashTwo, simtest.CrashLead},
		{simtest.CrashMost, simtest.CrashAfterFirst, simtest.Add},
	}[seed%4]
	if o.Faults.Last.Max == 0 {
		o.Faults.Last = simtest.Range{Min: 500 * time.Millisecond, Max: 3 * time.Second}
	}
	return o
}

// All nodes of a small cluster die at once, again and again, with their visits on disks: some
// come back, some late, some find their disk damaged.
func TestSeedsOfPowerCuts(t *testing.T) {
	hold(t, powerCuts, 1, 2, 3, 4, 5, 6, 7, 8, 7400480)
}

// powerCuts is such a world of the swarm.
func powerCuts(seed uint64) simtest.Options {
	o := simtest.Swarm(seed)
	o.Users, o.Nodes, o.Rooms = min(o.Users, 150), 1+int(seed%5), o.Rooms[:1]
	o.Expect = o.Nodes
	o.Faults.Disk, o.Faults.Visits, o.Faults.KeepKeys, o.Faults.Gone = true, true, true, 0
	o.Faults.PowerCuts, o.Faults.Damage = 1+int(seed%4), []int{0, 0, 0, 15}[seed/4%4]
	o.Faults.Hangs = []int{0, 5, 50}[seed/16%3]
	if seed%3 == 0 {
		o.Faults.Every = 0
	}
	if o.Faults.Every == 0 { // a gray node is judged where nothing else happens
		o.Faults.Grays = 0
	}
	return o
}

// TestSeedsThatFoundedTwice keeps seeds in which a room was founded at both sides of
// a split: it had been on no line yet when another room's survivor_after began one.
func TestSeedsThatFoundedTwice(t *testing.T) {
	hold(t, unwritten, 1731)
}

// A node with a slow clock stood still while passes of its own ran out by the
// others' clocks and the limit fell. It goes on and extends them: they were good all
// the time, and nobody came in.
func TestSeedsWithANodeThatStoodStill(t *testing.T) {
	hold(t, unwritten, 90000504)
}

// A node woke up, was the only one in a wave of its own, and forgot a longer session in
// it, so that an account lapsed just then. Its room went on with slots that were gone:
// a ledger releases no more than it uses.
func TestSeedsWithAnAccountThatLapsesInAWave(t *testing.T) {
	hold(t, unwritten, 90008583)
}

// A node goes on alone, by survivor_after, with a clock that is two hours ahead, and
// whoever joins there has a place of that time. When the others take such a place over it
// is in line from then on: no wave would have reached it for two hours.
func TestSeedsWithPlacesOfATimeToCome(t *testing.T) {
	hold(t, unwritten, 90018657)
}

// A node turns gray where the period is longer than the deadline: four waves fail before its
// second slow round trip is known, and the one without it takes its time, too.
func TestSeedsWithASlowNodeAndALongPeriod(t *testing.T) {
	hold(t, unwritten, 90007240)
}

// The clock of the most senior node is as far off as it may be, so that it takes the lead
// and gives it up over and over: each time another one has to notice. And two nodes whose clocks are
// both right, and as far from each other.
func TestSeedsWithAClockOnTheBorder(t *testing.T) {
	hold(t, unwritten, 90000933, 90001465)
}

// Two nodes wake up from a pause in a room that shares, and take over the people of a third
// one, which has gone on alone all the time: what parted them happened to those two.
func TestSeedsWithATakeOverAfterAPause(t *testing.T) {
	hold(t, unwritten, 90001037)
}

// A node that cannot save is the only one of its own waves in a room that shares, and takes
// over the people of a home that is well: to that nothing has happened.
func TestSeedsWithATakeOverByWhoCannotSave(t *testing.T) {
	hold(t, unwritten, 90016892)
}

// A node comes back so soon that a wave lists its earlier life beside it, which it was in
// no wave with: it is nobody who may have taken its people over.
func TestSeedsWithAnEarlierLifeInTheList(t *testing.T) {
	hold(t, unwritten, 90018126)
}

// A node stood still while it asked for somebody who waits at one that it does not reach.
// It renewed their ticket by the clock of before, and they heard too soon that their place was
// given up.
func TestSeedsWithATicketThatIsRenewedAfterAPause(t *testing.T) {
	hold(t, unwritten, 90017774)
}

// A node leaves, and tells the others whose tickets are used. One that it had given up for
// silence is not: its bearer asked elsewhere.
func TestSeedsWithAPlaceGivenUpByANodeThatLeaves(t *testing.T) {
	hold(t, unwritten, 90500861)
}

// A home and an heir of its stand still together, and go on with a wave: what the heir keeps is
// not out of date for that.
func TestSeedsWithAnHeirThatStoodStill(t *testing.T) {
	hold(t, unwritten, 90500884)
}

// A node of an older life under its name, which others know to be void, runs the wave of a
// side: nobody sends it slots.
func TestSeedsWithASlotForAnAccountThatIsVoid(t *testing.T) {
	hold(t, unwritten, 90700963)
}

// A node starts with a clock that is far ahead, and for a moment nobody else is there. It
// holds no draw that is to come: when the others are back they would hold it, too.
func TestSeedsWithADrawByAWrongClock(t *testing.T) {
	hold(t, unwritten, 90701062)
}

// Somebody ends their visit by a node that takes their home for lost, and keeps the visit for
// it. Another copy of the pass is shown at the home, which is alive: it stood still, or cannot
// be heard of there. It goes on with no visit that may have ended so.
func TestSeedsWithAVisitThatIsEndedElsewhere(t *testing.T) {
	t.Parallel()
	hold(t, unwritten, 90003381, 90015198, 90019198, 90019322)
	hold(t, again(unwritten, 90015198), 24, 37)
}

// A disk holds up slots that are on their way to an account, which is known to be void when
// they leave at last: they were sent before that.
func TestSeedsWithSlotsThatADiskHeldUp(t *testing.T) {
	hold(t, unwritten, 90002210, 90008384)
}

// A node that stood still has the commit of another, sends it slots by that, and at once runs a
// wave by itself, in which that one is lost.
func TestSeedsWithSlotsForOneWhoIsLostInTheNextWave(t *testing.T) {
	hold(t, unwritten, 93000135)
}

// A node that is cut off renews a ticket and asks another one, which can say nothing: what the
// bearer is told is of when it was renewed.
func TestSeedsWithAnAnswerThatWaitedForAnother(t *testing.T) {
	hold(t, unwritten, 90007254)
}

// The last of three nodes goes on alone, with a clock that is 80 s ahead, and begins an event
// by it: nobody is left who could tell. Or it goes on by itself with one that is 8 min ahead, and lets nobody in
// from when that is found out until what went by it is over.
func TestSeedsWithOneClockThatIsLeftAndWrong(t *testing.T) {
	hold(t, unwritten, 90014105)
	hold(t, simtest.Swarm, 90003355)
}

// Two nodes ran under one name, both in the last wave before all but one of them died. The other was back with its disk,
// in a life that comes after both by its number, and voted; so did the one that had lived on, which comes after
// the life that was in that wave: two quorums of four.
func TestSeedsWithANameThatTwoHadWhenAllButOneDied(t *testing.T) {
	hold(t, simtest.Swarm, 98200373)
	hold(t, again(simtest.Swarm, 98200373), 83, 624)
}
