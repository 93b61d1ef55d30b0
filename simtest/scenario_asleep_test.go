package simtest

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/node"
)

// A phone sleeps for half an hour: its timers stand still and it has no network.
// Its turn comes meanwhile, and others go in. So does the end of the node that
// keeps its place, for good. With a ticket_ttl of an hour the place is there when
// it wakes, at another node, in order: before those who came after it.
func TestScenarioAPhoneSleepsForHalfAnHour(t *testing.T) {
	const home, other = 1, 2
	o := short(3)
	r := &o.Rooms[0]
	r.Target, r.QueueAll, r.Session, r.Refresh, r.TicketTTL = 1, true, time.Hour, 20*time.Second, time.Hour
	s := founded(t, o)
	inside := s.visit(0)
	join := func(h int) *browser {
		b := s.browser()
		b.must(h, opJoin)
		s.run(time.Second)
		return b
	}
	phone, next, last := join(home), join(0), join(other)
	place := phone.ticket.Weight()
	awake := func(d time.Duration, all ...*browser) {
		for end := s.now + d.Microseconds(); s.now < end; s.run(r.Refresh) {
			for _, b := range all {
				b.must(int(s.lives[s.lifeOf(b.ticket.Home)].host), opCheckIn)
			}
		}
	}
	awake(5*time.Minute, next, last)
	inside.must(0, opEnd)
	s.turn(next, last) // the phone was in front of both
	next.must(0, opLeave)
	awake(5*time.Minute, last)
	s.down(home)
	awake(20*time.Minute, last)

	if a := phone.patient(other, opCheckIn); a.State != node.Waiting || phone.ticket.Weight() != place {
		t.Errorf("after half an hour the phone is %v with the place %v, want to be waiting with %v", a.State, phone.ticket.Weight(), place)
	}
	next.must(0, opEnd)
	s.turn(phone, last)
	phone.must(other, opLeave)
	phone.must(other, opEnd)
	s.turn(last)
	last.must(other, opLeave)
	last.must(other, opEnd)
	s.finish()
}
