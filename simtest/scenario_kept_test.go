package simtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
)

// A node is cut off from the other two for longer than a place is kept without a sign of
// life. Somebody who waits there, or whose home is at the others, asks it all the while, as
// it says that they should; to the others they are silent, and their place is given up.
// When all are together it is there again, before whoever joined after them.
func TestScenarioWhoAsksACutOffNodeKeepsTheirPlace(t *testing.T) {
	const alone = 2
	for home := range 3 {
		t.Run(fmt.Sprintf("home n%02d", home), func(t *testing.T) {
			o := short(3)
			o.Cluster.Copies = 1
			r := &o.Rooms[0]
			r.Target, r.QueueAll, r.Session = 1, true, time.Hour
			s := founded(t, o)
			inside := s.visit(0)
			first, next := s.browser(), s.browser()
			first.must(home, opJoin)
			place := first.ticket.Weight()
			s.run(time.Second)
			next.must(1, opJoin)
			s.split(hosts(0, 1), hosts(alone))
			gaveUp := s.reached.n[reachDropped]
			for end := s.now + 3*r.TicketTTL.Microseconds(); s.now < end; s.run(r.Refresh) {
				first.patient(alone, opCheckIn)
				next.must(1, opCheckIn)
			}
			if s.reached.n[reachDropped] == gaveUp {
				t.Error("no node gave the place up meanwhile")
			}
			s.mend()
			s.until(5*time.Second, "all together", func() bool { return s.together(3) })
			if a := first.patient(alone, opCheckIn); a.State != node.Waiting || first.ticket.Weight() != place {
				t.Errorf("who asked all the while is %v with the place %v, want to be waiting with %v", a.State, first.ticket.Weight(), place)
			}
			inside.must(0, opEnd)
			s.turn(first, next)
			s.finish()
		})
	}
}

// Somebody's home has given their place up for silence, as they asked a node that is cut off
// from it. When they find their way back it leaves: it sends them on, and takes nothing up that
// it could not give away any more.
func TestScenarioAPlaceThatWasGivenUpIsNotTakenUpByANodeThatLeaves(t *testing.T) {
	const home, alone = 0, 2
	o := short(3)
	o.Cluster.Copies = 1
	r := &o.Rooms[0]
	r.Target, r.QueueAll, r.Session = 1, true, time.Hour
	s := founded(t, o)
	s.visit(1)
	b := s.browser()
	b.must(home, opJoin)
	place := b.ticket.Weight()
	s.run(time.Second)
	s.split(hosts(0, 1), hosts(alone))
	for end := s.now + 3*r.TicketTTL.Microseconds(); s.now < end; s.run(r.Refresh) {
		b.patient(alone, opCheckIn)
	}
	if s.reached.n[reachDropped] == 0 {
		t.Fatal("the home has not given the place up")
	}
	s.mend()
	s.until(5*time.Second, "all together", func() bool { return s.together(3) })
	s.goodbye(&s.hosts[home])
	for range 20 {
		_, _ = b.ask(home, opCheckIn) // it may say anything but that it has the place
		s.run(50 * time.Millisecond)
		if rs := &s.hosts[home].seen.rooms[0]; rs.Queued+rs.Parked > 0 {
			t.Fatal("a node that leaves has taken a place up")
		}
	}
	if a := b.patient(1, opCheckIn); a.State != node.Waiting || b.ticket.Weight() != place {
		t.Errorf("%v with the place %v, want to be waiting with %v", a.State, b.ticket.Weight(), place)
	}
	s.check()
}

// A node is away for a moment, and another goes on with somebody's place, of whose browser
// neither hears from then on: it asks a third node, which is cut off from both for longer
// than a place is kept. Their ticket is of the first one, which knows where the place went
// and passes them on, however long ago that was.
func TestScenarioWhereAPlaceWentIsKnownWhileItsBearerAsksElsewhere(t *testing.T) {
	const home, alone = 3, 2
	o := short(4)
	o.Cluster.Copies = 1
	r := &o.Rooms[0]
	r.Target, r.QueueAll, r.Session = 1, true, time.Hour
	s := founded(t, o)
	inside := s.visit(0)
	var all []*browser
	for range 8 {
		b := s.browser()
		b.must(home, opJoin)
		all = append(all, b)
	}
	next := s.browser()
	s.run(time.Second)
	next.must(0, opJoin)
	ask := func(d time.Duration) {
		for end := s.now + d.Microseconds(); s.now < end; s.run(r.Refresh) {
			for _, b := range all {
				b.patient(alone, opCheckIn)
			}
			next.must(0, opCheckIn)
		}
	}
	s.split(hosts(home), hosts(0, 1, alone))
	s.until(5*time.Second, "waves without it", func() bool { return s.together(4) == false && s.reached.n[reachWentOn] > 0 })
	s.split(hosts(alone), hosts(0, 1))
	s.run(time.Second)
	s.end(s.splits[0])
	s.topology()
	s.split(hosts(alone), hosts(home))
	ask(4 * r.TicketTTL)
	s.mend()
	s.until(5*time.Second, "all together", func() bool { return s.together(4) })
	for i, b := range all {
		if a := b.patient(alone, opCheckIn); a.State != node.Waiting {
			t.Errorf("of those who asked all the while number %d is %v, want to be waiting", i, a.State)
		}
	}
	inside.must(0, opEnd)
	s.turn(all[0], append(all[1:], next)...)
	s.finish()
}

// The ticket is used meanwhile, by the same person in another tab, or given back. The
// cut-off node cannot know, and says that they wait; it is of no use afterwards.
func TestScenarioAUsedTicketIsNoBetterForACutOffNode(t *testing.T) {
	const home, alone = 0, 2
	for _, how := range []op{opLeave, opAbandon, opEnd} {
		o := short(3)
		r := &o.Rooms[0]
		r.Target, r.QueueAll, r.Session = 1, true, time.Hour
		s := founded(t, o)
		inside := s.visit(1)
		b := s.browser()
		b.must(home, opJoin)
		tab := b.copy()
		s.split(hosts(0, 1), hosts(alone))
		s.run(time.Second)
		inside.must(1, opEnd)
		s.turn(b)
		if how != opEnd { // else it is given up, and then given back
			b.must(home, how)
		}
		for end := s.now + 3*r.TicketTTL.Microseconds(); s.now < end; s.run(r.Refresh) {
			tab.patient(alone, opCheckIn)
		}
		s.mend()
		s.until(5*time.Second, "all together", func() bool { return s.together(3) })
		if how == opEnd {
			b.patient(home, opAbandon)
		}
		a, err := tab.ask(alone, opCheckIn)
		for range 10 {
			if !errors.Is(err, ticket.ErrUnavailable) {
				break
			}
			s.run(r.Refresh)
			a, err = tab.ask(alone, opCheckIn)
		}
		if admitted := err == nil && a.State == node.Admitted && how == opLeave; !admitted && !errors.Is(err, ticket.ErrUsed) && !errors.Is(err, ticket.ErrExpired) {
			t.Errorf("%v: the other tab is %v, %v", how, a.State, err)
		}
		if how == opLeave {
			b.must(home, opEnd)
		}
		s.finish()
	}
}

// Two nodes keep a place, as the first of them was not heard to have it, and both go on with
// it when its home is cut off. Neither is told of by the other: each tells the home and the
// heir, of which one has lost the place and the other never had it. They have the two meet,
// and one goes on. Seed 96010390 of the swarm.
func TestScenarioTwoThatKeepAPlaceHearOfEachOther(t *testing.T) {
	const home = 3
	o := short(4)
	o.Cluster.Copies = 1
	r := &o.Rooms[0]
	r.Target, r.QueueAll, r.Session, r.TicketTTL = 1, true, time.Hour, time.Minute
	s := founded(t, o)
	inside := s.visit(0)
	var heirs []int32 // in the order in which they were to keep it
	s.tap = func(f *flight) verdict {
		switch {
		case f.kind == mCopies && f.from == home && len(heirs) == 0:
			heirs = append(heirs, f.to)
			return lose
		case f.kind == mCopies && f.from == home && f.to == heirs[0]:
			return lose
		case f.kind == mCopies && f.from == home && len(heirs) < 3 && f.to != heirs[len(heirs)-1]:
			heirs = append(heirs, f.to)
		}
		if f.kind == mCopiesAck && f.to == home && len(heirs) > 1 && f.from == heirs[1] {
			return lose
		}
		return pass
	}
	one := s.browser()
	one.must(home, opJoin)
	id := one.ticket.ID
	has := func(i int32) bool { return s.hosts[i].n.Keeps(r.Name, s.hosts[home].member(s.world), id) }
	s.until(3*time.Second, "two that keep the place", func() bool { return len(heirs) == 3 && has(heirs[1]) && has(heirs[2]) })
	s.split(hosts(home), heirs)
	s.until(3*time.Second, "both to go on with it", func() bool { return s.reached.n[reachWentOn] == 2 })
	s.tap = nil
	s.mend()
	s.until(5*time.Second, "all together", func() bool { return s.together(4) })
	other := one.copy()
	for range 6 {
		s.run(r.Refresh)
		one.patient(int(heirs[1]), opCheckIn)
		other.patient(int(heirs[2]), opCheckIn)
	}
	if one.ticket.Home != other.ticket.Home || one.ticket.Gen != other.ticket.Gen {
		t.Errorf("one tab has the place at %v, generation %d, the other at %v, %d", one.ticket.Home, one.ticket.Gen, other.ticket.Home, other.ticket.Gen)
	}
	one.must(0, opAbandon)
	inside.must(0, opEnd)
	s.finish()
}
