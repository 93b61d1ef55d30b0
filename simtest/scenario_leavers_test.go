package simtest

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// Two nodes leave at once. What they give of their visits waits at another until its heirs keep them, and
// comes then, one after the other.
func TestScenarioVisitsOfTwoWhoLeaveAreTakenInOneByOne(t *testing.T) {
	o := short(4)
	o.Cluster.Copies = 1
	o.Rooms[0].Session = time.Minute
	s := founded(t, o)
	for i := range 12 {
		s.visit(i % 4)
	}
	s.run(2 * time.Second)
	type message struct {
		from  int32
		total int
	}
	waiting, held := make(map[message]bool), true
	s.tap = func(f *flight) verdict {
		switch b := f.m.Body.(type) {
		case *eviction.CopiesAck:
			if f.to == 0 && held {
				return keep // by which it hears that a visit is kept
			}
		case *eviction.Slots:
			if f.to == 0 && len(b.Visits) > 0 {
				waiting[message{f.from, b.Total}] = true
			}
		}
		return pass
	}
	for _, i := range []int{2, 3} {
		s.goodbye(&s.hosts[i])
		s.run(20 * time.Millisecond)
	}
	s.until(2*time.Second, "visits in two messages", func() bool { return len(waiting) >= 2 })
	s.run(80 * time.Millisecond) // what was not acknowledged is said again, all in one
	held = false
	s.release()
	s.finish()
}

// Two of four nodes leave at once, and each may be heir of what the other has: they give nothing to each
// other that would go back and forth until one of them has gone with it. Every pass can be extended soon after.
func TestScenarioTwoWhoLeaveAtOnceLoseNoVisit(t *testing.T) {
	for _, copies := range []int{0, 1} {
		for apart := range 12 {
			o := short(4)
			o.Cluster.Copies = copies
			o.Rooms[0].Target = 60
			o.Rooms[0].Session = time.Minute
			s := founded(t, o)
			var in []*browser
			for i := range 60 {
				in = append(in, s.visit(i%4))
			}
			s.run(2 * time.Second)
			s.goodbye(&s.hosts[2])
			s.run(time.Duration(apart) * 10 * time.Millisecond)
			s.goodbye(&s.hosts[3])
			s.run(4 * time.Second)
			owned, used := s.ownedNow(0, 1)
			lost := 0
			for _, b := range in {
				before := b.pass.Expires
				_, err := b.ask(0, opRefresh)
				if err != nil || b.pass.Expires <= before {
					lost++
				}
			}
			if owned != 60 || used != 60 || lost > 0 {
				t.Errorf("copies %d, %d ms apart: owned %d used %d, want 60, and %d visits are lost", copies, apart*10, owned, used, lost)
			}
		}
	}
}

// And everybody who waits is in line at those who stay, whether they ask meanwhile or not.
func TestScenarioTwoWhoLeaveAtOnceGiveAllPlaces(t *testing.T) {
	for _, copies := range []int{0, 1} {
		for apart := range 6 {
			o := short(4)
			o.Cluster.Copies = copies
			o.Rooms[0].Target, o.Rooms[0].Session, o.Rooms[0].QueueAll = 4, time.Minute, true
			o.Rooms[0].Refresh, o.Rooms[0].TicketTTL = 20*time.Second, time.Minute
			s := founded(t, o)
			for i := range 4 {
				s.visit(i)
			}
			for i := range 80 {
				s.browser().must(i%4, opJoin)
			}
			s.run(1 * time.Second)
			s.goodbye(&s.hosts[2])
			s.run(time.Duration(apart) * 10 * time.Millisecond)
			s.goodbye(&s.hosts[3])
			at := s.now
			for s.hosts[0].seen.rooms[0].Queued+s.hosts[1].seen.rooms[0].Queued < 80 && s.now < at+3_000_000 {
				s.run(10 * time.Millisecond)
			}
			if stay := s.hosts[0].seen.rooms[0].Queued + s.hosts[1].seen.rooms[0].Queued; stay < 80 {
				t.Errorf("copies %d, %d ms apart: %d of 80 places are at those who stay after 3 s", copies, apart*10, stay)
			}
		}
	}
}
