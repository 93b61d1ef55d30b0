package loop

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

func told(all [watchesMax]listener) (names string) {
	for _, a := range all {
		names += string(a.at.Name)
	}
	return names
}

// Of more nodes than may watch a ticket those are told that asked last, once.
func TestTwoNodesAreToldOfATicketTheLatest(t *testing.T) {
	s := listeners{max: 10}
	w := watched{"shop", qpid.ItemID{1}}
	for i, name := range []qpid.NodeID{"a", "b", "a", "c"} {
		s.add(w, eviction.Member{Name: name}, 0, int64(100+i))
	}
	if got := told(s.take(w, 50)); got != "ac" {
		t.Errorf("told are %q, want the two that asked last", got)
	}
	if got := told(s.take(w, 50)); got != "" || len(s.of) != 0 {
		t.Errorf("told again are %q, and %d tickets are remembered", got, len(s.of))
	}
}

// Who does not ask again in time is not told, and takes up no room for long.
func TestAListenerLapses(t *testing.T) {
	s := listeners{max: 2}
	ids := []watched{{"shop", qpid.ItemID{1}}, {"shop", qpid.ItemID{2}}, {"shop", qpid.ItemID{3}}}
	at := eviction.Member{Name: "a"}
	s.add(ids[0], at, 0, 100)
	s.add(ids[1], at, 0, 200)
	if s.add(ids[2], at, 10, 300); told(s.take(ids[2], 20)) != "" || s.refused.Load() != 1 {
		t.Errorf("a third ticket of two is told of; %d were refused", s.refused.Load())
	}
	if s.add(ids[0], at, 20, 150); told(s.take(ids[0], 149)) != "a" {
		t.Error("one that is known is not told while there is no room for others")
	}
	if got := told(s.take(ids[1], 200)); got != "" {
		t.Errorf("%q is told when its time is over", got)
	}
	later := sweepEvery.Microseconds()
	s.add(ids[0], at, later-1, later)
	s.add(ids[1], at, later-1, later+2)
	if s.add(ids[2], at, later+1, later+500); told(s.take(ids[2], later+1)) != "a" || told(s.take(ids[1], later+1)) != "a" {
		t.Error("one whose time is over keeps another out, or went with one whose time is not")
	}
}

func TestAListenerIsTakenOffWhereThePlaceIsNot(t *testing.T) {
	s := listeners{max: 10}
	w := watched{"shop", qpid.ItemID{1}}
	a, b := eviction.Member{Name: "a"}, eviction.Member{Name: "b"}
	s.remove(w, a)
	s.add(w, a, 0, 100)
	s.add(w, b, 0, 100)
	if s.remove(w, a); told(s.take(w, 50)) != "b" {
		t.Error("not b alone is told after a is taken off")
	}
	s.add(w, a, 0, 100)
	if s.remove(w, a); len(s.of) != 0 {
		t.Error("a ticket is remembered of which nobody is told")
	}
}

// A node is told for as long as it may take to ask again, of the place that the answer
// is about.
func TestAListenerIsToldUntilItAsksAgain(t *testing.T) {
	now := int64(1e9)
	l := &Loop{c: Config{Answer: 2 * time.Second, Clock: func() eviction.Time { return eviction.Time{Boot: now} }}, remote: listeners{max: 10}}
	q := &ticket.Request{Op: ticket.CheckIn, Room: "shop", Ticket: ticket.Ticket{ID: qpid.ItemID{1}}, Listener: eviction.Member{Name: "a"}}
	old, anew := watched{"shop", qpid.ItemID{1}}, watched{"shop", qpid.ItemID{2}}
	a := ticket.Answer{Ticket: ticket.Ticket{ID: anew.id}, Refresh: time.Hour}

	l.expect(q)
	l.expectMore(q, &a, nil)
	if later := now + time.Hour.Microseconds() + 1; told(l.remote.take(anew, later)) != "a" || told(l.remote.take(old, now)) != "" {
		t.Error("it is not told of the place that the answer is about, or of the one before")
	}
	for what, answer := range map[string]struct {
		a   ticket.Answer
		err error
	}{
		"elsewhere": {ticket.Answer{Ticket: q.Ticket, Forward: eviction.Member{Name: "z"}}, nil},
		"over":      {ticket.Answer{}, ticket.ErrExpired},
		"on site":   {ticket.Answer{State: ticket.Admitted}, nil},
	} {
		l.expect(q)
		if l.expectMore(q, &answer.a, answer.err); len(l.remote.of) != 0 {
			t.Errorf("it is told of a place that is %s", what)
		}
	}
}

func BenchmarkHappenedWhereNobodyListens(b *testing.B) {
	var l Loop
	w := watched{"shop", qpid.ItemID{1}}
	now := time.Now().UnixMicro()
	b.ReportAllocs()
	for b.Loop() {
		l.happened(w, now)
	}
}
