package simtest

import (
	"errors"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
)

// browser is a visitor whose every step the script takes. Answers reach it at
// once.
type browser struct {
	s       *script
	room    uint8 // which of the world's
	ticket  node.Ticket
	pass    node.Pass
	session int32
	key     uint64
}

func (s *script) browser() *browser { return &browser{s: s, session: none} }

// ask sends a request to host h and follows a forward while the link is alive.
// An error changes nothing of what the browser holds.
func (b *browser) ask(h int, o op) (node.Answer, error) {
	s := b.s
	i := s.crowd.requests.take()
	defer s.crowd.requests.put(i)
	q := request{
		op: o, visitor: none, first: int32(h), at: int32(h), life: s.hosts[h].life, session: b.session, key: b.key,
		room: b.room, ticket: b.ticket, pass: b.pass,
	}
	if o == opJoin {
		q.key = 0
		q.ticket = node.Ticket{Room: s.o.Rooms[b.room].Name, ID: s.newID()}
		s.crowd.tickets = append(s.crowd.tickets, place{id: q.ticket.ID, room: b.room, joined: s.now, session: none, home: none})
	}
	s.crowd.requests.at[i] = q
	if !s.hosts[h].running() {
		return node.Answer{}, errRefused
	}
	s.execute(i, &s.hosts[h])
	for range ticket.HopsMax {
		a := &s.crowd.requests.at[i]
		if a.err != nil || a.answer.Forward == (eviction.Member{}) {
			break
		}
		to := s.lives[s.lifeOf(a.answer.Forward)].host
		a.at = to
		if !s.hosts[to].running() || s.wires.dead(int32(h), to) || s.wires.dead(to, int32(h)) {
			return node.Answer{}, errTimeout
		}
		if a.answer.Ticket != (node.Ticket{}) {
			a.ticket = a.answer.Ticket
		}
		s.execute(i, &s.hosts[to])
	}
	q = s.crowd.requests.at[i]
	if q.err == nil && q.answer.Forward != (eviction.Member{}) {
		q.err = ticket.ErrUnavailable
	}
	if q.err != nil {
		return node.Answer{}, q.err
	}
	if q.answer.Ticket != (node.Ticket{}) {
		b.ticket = q.answer.Ticket
	}
	if q.answer.State == node.Admitted && q.answer.Pass != (node.Pass{}) {
		b.pass = q.answer.Pass
	}
	b.session, b.key = q.session, q.sealed
	return q.answer, nil
}

// must is ask for a request that has to succeed.
func (b *browser) must(h int, o op) node.Answer {
	b.s.t.Helper()
	a, err := b.ask(h, o)
	b.s.check()
	if err != nil {
		b.s.t.Fatalf("%v at %s: %v%s", o, b.s.hosts[h].name, err, b.s.statuses())
	}
	return a
}

// patient asks again, at most for a second and a half, while a node takes a lost
// one for alive.
func (b *browser) patient(h int, o op) node.Answer {
	b.s.t.Helper()
	for range 15 {
		if a, err := b.ask(h, o); !errors.Is(err, errTimeout) && !errors.Is(err, ticket.ErrUnavailable) {
			if err != nil {
				b.s.t.Fatalf("%v at %s: %v%s", o, b.s.hosts[h].name, err, b.s.statuses())
			}
			return a
		}
		b.s.run(100 * time.Millisecond)
	}
	return b.must(h, o)
}

// copy is a second tab.
func (b *browser) copy() *browser { c := *b; return &c }

// visit takes a visitor onto the site through host h; a slot must come free there
// within five seconds.
func (s *script) visit(h int) *browser {
	s.t.Helper()
	return s.visitTo(0, h)
}

// visitTo is visit for another room than the first.
func (s *script) visitTo(room uint8, h int) *browser {
	s.t.Helper()
	b := s.browser()
	b.room = room
	a := b.must(h, opJoin)
	for range 100 {
		switch a.State {
		case node.Admitted:
			return b
		case node.Called:
			if a = b.must(h, opLeave); a.State == node.Called { // until another node keeps the visit
				s.run(10 * time.Millisecond)
			}
		default:
			s.run(50 * time.Millisecond)
			a = b.must(h, opCheckIn)
		}
	}
	s.t.Fatalf("nobody is let in at %s: %s", s.hosts[h].name, s.ledgers(0))
	return nil
}
