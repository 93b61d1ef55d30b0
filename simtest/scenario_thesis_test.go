package simtest

import (
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
)

// The thesis's faults that visitors meet; the list is in thesis_faults_test.go.

// B8: a ticket that was shown at m nodes was queued m times, and queued again
// with its old place after it had been used.
func TestThesisACopiedTicketQueuesOnce(t *testing.T) {
	s := founded(t, short(4))
	var inside []*browser
	for i := range 12 {
		inside = append(inside, s.visit(i%4))
	}
	b := s.browser()
	b.must(0, opJoin)
	tabs := []*browser{b.copy(), b.copy(), b.copy(), b.copy()}
	for i, c := range tabs {
		c.must(i, opCheckIn)
	}
	s.run(200 * time.Millisecond)
	if n := s.queuedNow(); n != 1 {
		t.Errorf("one ticket, shown at four nodes, is queued %d times", n)
	}
	inside[0].must(0, opEnd)
	s.until(time.Second, "the call", func() bool { return s.hosts[0].seen.rooms[0].Called == 1 })
	first := tabs[0]
	first.must(3, opLeave)
	for i, c := range tabs[1:] { // while the pass is good, every tab gets this one
		c.must(i, opLeave)
		if c.pass != first.pass {
			t.Errorf("tab %d has the pass %+v, the first one %+v", i+1, c.pass, first.pass)
		}
	}
	if _, used := s.ownedNow(); used != 12 {
		t.Errorf("%d slots in use, want 12", used)
	}
	first.must(1, opEnd)
	for i := range 4 {
		if _, err := b.copy().ask(i, opCheckIn); !errors.Is(err, ticket.ErrUsed) {
			t.Errorf("a used ticket at n%02d: %v, want %v", i, err, ticket.ErrUsed)
		}
	}
	s.run(200 * time.Millisecond)
	if _, used := s.ownedNow(); used != 11 || s.queuedNow() != 0 {
		t.Errorf("%d slots in use and %d in line, want 11 and nobody", used, s.queuedNow())
	}
	s.finish()
}

// B9: leaving the queue was not idempotent, and who did not get the answer had
// neither ticket nor pass. The same ticket gives the same pass while that lives.
func TestThesisALostAnswerCostsNothing(t *testing.T) {
	o := short(3)
	o.Rooms[0].QueueAll = true
	s := founded(t, o)
	b := s.browser()
	b.must(1, opJoin)
	s.until(time.Second, "the call", func() bool { return s.hosts[1].seen.rooms[0].Called == 1 })
	ticket := b.copy() // all that the browser has when no answer comes back
	b.must(1, opLeave)
	for i := range 3 {
		s.run(300 * time.Millisecond)
		again := ticket.copy()
		if a := again.must(i, opLeave); a.State != node.Admitted || again.pass != b.pass {
			t.Errorf("the second try at n%02d gives %+v, the first gave %+v", i, again.pass, b.pass)
		}
	}
	if _, used := s.ownedNow(); used != 1 {
		t.Errorf("%d slots in use for one visitor", used)
	}
	s.finish()
}

// B10: every node at which a pass was shown counted it. It counts where its
// slot is, and moves with it when that node is lost.
func TestThesisARoamingPassCountsOnce(t *testing.T) {
	o := short(4)
	o.Rooms[0].Session = 6 * time.Second
	s := founded(t, o)
	const home = 3
	b := s.visit(home)
	for i := range 12 {
		b.must(i%4, opRefresh)
		s.run(100 * time.Millisecond)
		if _, used := s.ownedNow(); used != 1 {
			t.Fatalf("%d slots in use for one visitor", used)
		}
	}
	s.down(home)
	tabs := []*browser{b.copy(), b.copy(), b.copy()}
	for i := range 40 {
		tabs[i%3].patient((i+i/3)%3, opRefresh)
		s.run(100 * time.Millisecond)
		if _, used := s.ownedNow(); used > 1 {
			t.Fatalf("%d slots in use for one visitor: %s", used, s.ledgers(0))
		}
	}
	if _, used := s.ownedNow(); used != 1 {
		t.Errorf("%d slots in use: the pass was not taken over", used)
	}
	s.finish()
}

// B16: the rank in the local queue was shown as the position. It is a position
// in the whole room, and true at once for who comes to a node where nobody
// waits.
func TestThesisPositionsAreOfTheWholeRoom(t *testing.T) {
	o := short(3)
	o.Rooms[0].Session, o.Rooms[0].Refresh, o.Rooms[0].TicketTTL = time.Minute, 10*time.Second, 30*time.Second
	s := founded(t, o)
	for i := range 12 {
		s.visit(i % 3)
	}
	var before []*browser
	for i := range 30 {
		b := s.browser()
		b.must(i%2, opJoin)
		before = append(before, b)
	}
	s.run(1200 * time.Millisecond)
	b := s.browser()
	b.must(2, opJoin)
	s.run(1200 * time.Millisecond)
	if a := b.must(2, opCheckIn); a.Position != 31 {
		t.Errorf("the 31st in line, the first at its node, is told %d", a.Position)
	}
	for _, o := range before[:10] {
		o.must(2, opAbandon)
	}
	s.run(1200 * time.Millisecond)
	if a := b.must(2, opCheckIn); a.Position != 21 {
		t.Errorf("the 21st in line is told %d", a.Position)
	}
	s.finish()
}

// B19: who had been called at a node that died was queued again with the mark
// of the called, and their slot was forgotten. They are the first to be called
// again, and the slot is made again after D.
func TestThesisTheCalledOfALostNodeAreCalledAgain(t *testing.T) {
	o := short(3)
	o.Rooms[0].QueueAll = true
	s := founded(t, o)
	const x = 2
	b := s.browser()
	b.must(x, opJoin)
	s.until(time.Second, "the call", func() bool { return s.hosts[x].seen.rooms[0].Called == 1 })
	b.must(x, opCheckIn)
	s.o.Load.Browse = Range{time.Minute, time.Minute}
	s.arrive(0, 20) // they take what slots are left
	s.run(time.Second)
	s.down(x)
	s.run(1500 * time.Millisecond)
	if a := b.must(0, opCheckIn); a.State == node.Called {
		t.Errorf("called with the slot of a lost node")
	}
	from := s.now
	s.until(2*s.delay(), "the call", func() bool { return b.must(1, opCheckIn).State == node.Called || s.now > from+10_000_000 })
	mine := &s.crowd.tickets[s.ticketOf(b.ticket.ID)]
	for i := range s.crowd.tickets { // nobody who came later went first; a slot may have been elsewhere
		tk := &s.crowd.tickets[i]
		if tk.calledAt >= from && tk.epoch > mine.epoch && tk.stamp > mine.stamp && tk.calledAt < s.now-50_000 {
			t.Errorf("ticket %d was called %v before the lost node's", i, micros(s.now-tk.calledAt))
		}
	}
	if a := b.must(0, opLeave); a.State != node.Admitted {
		t.Errorf("not let in: %+v", a)
	}
	s.run(2 * s.delay())
	if owned, _ := s.ownedNow(); owned != 12 {
		t.Errorf("%d slots, want 12: %s", owned, s.ledgers(0))
	}
	s.finish()
}
