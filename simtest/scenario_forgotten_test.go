package simtest

import (
	"testing"
	"time"
)

// Who is away for twice D is forgotten, and with it that its accounts are void. So by then
// its node has closed them, whatever its clock and its settings say: else it would come
// back with slots that were made again meanwhile, and nobody would know.

// peopled is three nodes that have slots, and people who stay.
func peopled(t *testing.T) *script {
	t.Helper()
	o := short(3)
	o.Load.Browse = Range{20 * time.Second, 20 * time.Second}
	s := founded(t, o)
	for i := range 3 {
		s.arrive(i, 4)
	}
	s.run(200 * time.Millisecond)
	return s
}

// withinTheLimit demands that nobody owns more slots than the limit when all are together.
func (s *script) withinTheLimit() {
	s.t.Helper()
	s.until(20*time.Second, "all together", func() bool { return s.together(3) })
	if owned, _ := s.ownedNow(); owned > s.o.Rooms[0].Target {
		s.t.Errorf("%d slots, the limit is %d: %s", owned, s.o.Rooms[0].Target, s.ledgers(0))
	}
	s.finish()
}

// A machine stands still with its clocks for twice D. By its boot clock a moment has
// passed; when its wall clock is set right it follows that and runs the waves again,
// if it is the most senior and nobody lists a quorum, or has to wait until its clock can be set.
// Its account is over either way. Seed 5585 of the swarm.
func TestScenarioWhoStoodStillForTwiceDHasNoAccount(t *testing.T) {
	for x := range 3 {
		s := peopled(t)
		h := &s.hosts[x]
		s.freeze(h, 2*s.delay().Microseconds()+500_000)
		s.arriveOver((x+1)%3, 30, 9*time.Second)
		s.run(2*s.delay() + time.Second)
		if h.stopped || h.seen.rooms[0].Account.Born == 0 {
			t.Fatalf("%s has not heard how late it is, or has closed its account by its own clock: %s", h.name, s.ledgers(0))
		}
		h.clock.set(s.now, 0)
		s.withinTheLimit()
	}
}

// So it is where one that has a quorum by itself is cut off from it just then: of the other two the one that stood still
// runs the waves, if it is the most senior, when its wall clock is right.
func TestScenarioWhoStoodStillForTwiceDAndLeadsHasNoAccount(t *testing.T) {
	for x := range int32(3) {
		s := peopled(t)
		h := &s.hosts[x]
		first, second := max(0, 1-x), min(2, 3-x) // the others; of their two votes the first is a quorum
		s.freeze(h, 2*s.delay().Microseconds()+800_000)
		s.arriveOver(int(x+1)%3, 30, 9*time.Second)
		s.run(2*s.delay() + 500*time.Millisecond)
		s.split(hosts(first), hosts(x, second))
		s.run(500 * time.Millisecond)
		had := h.seen.rooms[0].Account.Born != 0
		h.clock.set(s.now, 0)
		s.run(time.Second)
		if h.stopped || !had {
			t.Fatalf("%s has not heard how late it is, or has closed its account by its own clock: %s", h.name, s.ledgers(0))
		}
		s.mend()
		s.withinTheLimit()
	}
}

// On the side of a split that has no majority a room's sessions are made longer. Nobody at
// the other side knows, so the account there lapses by the session of before.
func TestScenarioALongerSessionOfASideKeepsNoAccount(t *testing.T) {
	s := peopled(t)
	s.split(hosts(2), hosts(0, 1))
	s.run(2 * time.Second)
	room := s.hosts[2].seen.rooms[0].Room
	room.Session = 40 * time.Second
	s.setRoom(&s.hosts[2], 0, room)
	s.run(2*s.delay() + time.Second)
	if got := s.hosts[2].seen.rooms[0].Room.Session; got != room.Session {
		t.Fatalf("a session of %v", got)
	}
	s.mend()
	s.withinTheLimit()
}

// A coordinator stood still with its clocks, which are right again before anybody has told
// it. Its first wave speaks of one of two rooms, and gives the node a lease. In the
// other room nobody acts by what was leased before, though the boot clock says it is good.
func TestScenarioALeaseOfBeforeAStandstillIsOver(t *testing.T) {
	o := short(3)
	o.Rooms = append(o.Rooms, o.Rooms[0])
	o.Rooms[1].Name = "tickets"
	o.Cluster.WaveBytes = 1
	s := founded(t, o)
	h := &s.hosts[0]
	of := []*browser{s.visitTo(0, 0), s.visitTo(1, 0)}
	s.freeze(h, 1_500_000)
	s.run(1500 * time.Millisecond)
	h.clock.set(s.now, 0)
	s.until(2*time.Second, "its own wave", func() bool { return s.together(3) && s.coordinator() == 0 })
	for end := s.now + 300_000; s.now < end; s.run(time.Millisecond) {
		for _, b := range of {
			_, _ = b.ask(0, opRefresh)
			s.check()
		}
	}
	s.finish()
}
