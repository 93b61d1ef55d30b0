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
