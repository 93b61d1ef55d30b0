package simtest

import (
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
)

// A room's sessions get shorter, and a node is lost at once. Its passes are as long as
// they were, so its slots are waited for as long: what counts is the longest pass
// that may be about, not the session that passes are given for now.
func TestScenarioAShorterSessionForgetsNoLongerPass(t *testing.T) {
	for _, lost := range []int{0, 2} { // the coordinator, the youngest
		o := short(3)
		o.Rooms[0].Session = 8 * time.Second
		o.Load.Browse = Range{time.Minute, time.Minute}
		s := founded(t, o)
		s.arrive(lost, 8)
		s.run(time.Second)
		room := s.hosts[1].seen.rooms[0].Room
		room.Session = time.Second
		s.setRoom(&s.hosts[1], 0, room)
		s.until(2*time.Second, "all know of it", func() bool {
			for i := range s.hosts {
				if s.hosts[i].seen.rooms[0].Room.Session != room.Session {
					return false
				}
			}
			return true
		})
		s.run(500 * time.Millisecond)
		s.down(lost)
		s.arrive(1, 30)
		s.run(12 * time.Second)
		s.finish()
	}
}

// A room's sessions get longer, and only the coordinator and one other node know of it
// when both are lost. The rest reckons with the sessions that it knows, so nobody
// may have got a longer pass yet.
func TestScenarioALongerSessionWaitsUntilAllAgree(t *testing.T) {
	o := short(5)
	o.Rooms[0].Session = time.Second
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	room := s.hosts[0].seen.rooms[0].Room
	room.Session = 10 * time.Second
	s.setRoom(&s.hosts[0], 0, room)
	commit := ofKind(mCommit, none, none)
	s.tap = func(f *flight) verdict {
		if f.to > 1 && commit(f) {
			return lose
		}
		return pass
	}
	s.until(2*time.Second, "one other knows of it", func() bool { return s.hosts[1].seen.rooms[0].Room.Session == room.Session })
	s.arrive(1, 8)
	s.run(50 * time.Millisecond)
	s.down(0)
	s.down(1)
	s.tap = nil
	s.arrive(2, 30)
	s.run(12 * time.Second)
	s.finish()
}

// A node is a quorum by itself, and its disk is bad. A longer session that it is told of
// is gone with it if it crashes, and there is nobody else who reckons with it. So it gives
// passes as before until its disk has that, and has nobody in a room that is new to it.
func TestScenarioALongerSessionWaitsForTheDisk(t *testing.T) {
	for _, nodes := range []int{1, 2} {
		o := short(nodes)
		o.Faults.Disk = true
		o.Rooms[0].Session = time.Second
		o.Load.Browse = Range{time.Minute, time.Minute}
		s := founded(t, o)
		if nodes == 2 {
			s.down(1)
			s.until(5*time.Second, "one alone with all slots", func() bool { owned, _ := s.ownedNow(0); return owned == o.Rooms[0].Target })
		}
		h := &s.hosts[0]
		h.disk.saveAt = 1 << 60 // no save is even tried
		room := h.seen.rooms[0].Room
		room.Session = 20 * time.Second
		s.setRoom(h, 0, room)
		s.until(2*time.Second, "the longer session", func() bool { return h.seen.rooms[0].Room.Session == room.Session })
		s.arrive(0, 12)
		s.run(time.Second)
		s.down(0)
		s.boot(0)
		s.arrive(0, 30)
		s.run(15 * time.Second)
		s.finish()
	}
}

// As soon as the disk has them, the longer session is given, and the new room is open.
func TestScenarioWhatTheDiskHasIsInForce(t *testing.T) {
	o := short(1)
	o.Faults.Disk = true
	o.Rooms = append(o.Rooms, o.Rooms[0])
	o.Rooms[1].Name = "tickets"
	s := assemble(t, o)
	s.unmade = 1
	s.begin()
	h := &s.hosts[0]
	h.disk.saveAt = 1 << 60
	room := h.seen.rooms[0].Room
	room.Session = 20 * time.Second
	s.setRoom(h, 0, room)
	s.setRoom(h, 1, o.Rooms[1])
	s.run(3 * time.Second)
	lasts := func() time.Duration { return micros(s.visit(0).pass.Expires - h.n.Status().Clock) }
	if d := lasts(); d > o.Rooms[0].Session {
		t.Errorf("a pass of %v, of which no disk knows", d)
	}
	if rs, _ := h.n.Room("tickets", h.clock.read(s.now)); rs.Account.Born == 0 || rs.MayAdmit {
		t.Errorf("account %v of a room of which no disk knows may let somebody in: %v", rs.Account, rs.MayAdmit)
	}
	h.disk.saveAt = 0
	s.run(3 * time.Second)
	if d := lasts(); d < room.Session-time.Second {
		t.Errorf("a pass of %v, and the disk knows of %v", d, room.Session)
	}
	s.visitTo(1, 0)
	s.finish()
}

// A room's sessions get longer, in the cluster and not in the files, and all nodes die.
// They have their signing keys and no disk: the passes are as good as ever, and nobody
// knows how long they last. Slots are made again after D by the files' session, so no
// pass of before is good until then. Seed 90003296 of the swarm.
func TestScenarioALongerSessionIsForgottenWhenAllDie(t *testing.T) {
	o := short(3)
	o.Rooms[0].Session, o.Load.Browse = 4*time.Second, Range{time.Minute, time.Minute}
	s := founded(t, o)
	room := s.hosts[0].seen.rooms[0].Room
	room.Session = 20 * time.Second
	s.setRoom(&s.hosts[0], 0, room)
	s.run(2 * time.Second)
	b := s.visit(1)
	s.arrive(1, 8)
	s.run(time.Second)
	s.allAnew()
	if _, err := b.ask(2, opVisit); err != nil {
		t.Errorf("a pass of before, as old as the files allow: %v", err)
	}
	s.arrive(2, 30)
	s.until(12*time.Second, "slots", func() bool { owned, _ := s.ownedNow(0, 1, 2); return owned > 0 })
	for _, o := range []op{opVisit, opRefresh} {
		if _, err := b.ask(2, o); !errors.Is(err, ticket.ErrPassExpired) {
			t.Errorf("%v by a pass of before, and its slot is made again: %v", o, err)
		}
	}
	s.run(10 * time.Second)
	s.finish()
}

// Who has waited since before all nodes died is let in, and the node that did so dies as
// well. The ticket is older than the cluster; the pass is not, and good everywhere.
func TestScenarioAPassOfATicketFromBeforeAllDiedIsGood(t *testing.T) {
	o := short(3)
	o.Rooms[0].Session, o.Load.Browse = 6*time.Second, Range{time.Minute, time.Minute}
	s := founded(t, o)
	s.arrive(0, 12)
	s.run(time.Second)
	b := s.browser()
	b.must(1, opJoin)
	s.allAnew()
	for a := b.patient(1, opCheckIn); a.State == node.Waiting; a = b.must(1, opCheckIn) {
		s.run(400 * time.Millisecond)
	}
	b.must(1, opLeave)
	b.must(1, opRefresh)
	home := int(s.lives[s.lifeOf(b.pass.Home.Member)].host)
	other := (home + 1) % 3
	s.down(home)
	s.until(3*time.Second, "its loss", func() bool { return len(s.hosts[other].seen.status.List) == 2 })
	if _, err := b.ask(other, opVisit); err != nil {
		t.Errorf("a pass since the founding: %v", err)
	}
	s.run(10 * time.Second)
	s.finish()
}

// allAnew kills all nodes at once and has them found a cluster again.
func (s *script) allAnew() {
	for i := range s.hosts {
		s.down(i)
	}
	for i := range s.hosts {
		s.boot(i)
	}
	s.until(3*time.Second, "a cluster", func() bool { return s.hosts[2].seen.status.Grade >= eviction.Primary })
}
