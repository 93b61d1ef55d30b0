package peraddress_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/peraddress"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// crowd are people behind one address who arrive at random moments within some
// seconds, at a room with a line. Each tries again when told to, checks in every
// 20 s while waiting, and leaves the line when it is their turn: so many a minute.
type crowd struct {
	people, within, served int
}

// outcome is what became of them.
type outcome struct {
	refused  int   // people whose first join was
	tries    int   // joins in all
	worst    int64 // longest time from the first join to a place, in seconds
	median   int64
	inLine   int // most at once
	finished bool
}

func (c crowd) run(t *testing.T, l peraddress.Limits) outcome {
	t.Helper()
	table, clock := newTable(l)
	begin := clock.now
	v := peraddress.Visitor{Addr: netip.MustParseAddr("192.0.2.1"), Room: &ticket.RoomState{Room: eviction.Room{Name: "shop", Target: 200}.WithDefaults()}}
	ask := func(_ context.Context, q ticket.Request) (ticket.Answer, error) {
		id := q.Ticket.ID
		if q.Op == ticket.Join {
			id = q.ID
		}
		return ticket.Answer{State: ticket.Waiting, Ticket: ticket.Ticket{ID: id}}, nil
	}
	random := rand.New(rand.NewPCG(1, uint64(c.people)))
	type person struct {
		id             qpid.ItemID
		first, next    int64 // s
		placed, served bool
	}
	all := make([]person, c.people)
	for i := range all {
		at := int64(random.IntN(c.within))
		all[i] = person{id: qpid.ItemID{byte(i), byte(i >> 8), byte(i >> 16), 1}, first: at, next: at}
	}
	var out outcome
	var waits []int64
	var line []int
	do := func(op ticket.Op, p *person) error {
		_, err := table.Do(t.Context(), v, ticket.Request{Op: op, Room: "shop", ID: p.id, Ticket: ticket.Ticket{ID: p.id}}, ask)
		return err
	}
	for now := int64(0); now < 6*3600 && len(waits) < c.people; now++ {
		clock.now = begin + now*1e6
		for i := range all {
			p := &all[i]
			if p.next != now || p.served {
				continue
			}
			if p.placed {
				p.next += 20
				_ = do(ticket.CheckIn, p)
				continue
			}
			out.tries++
			err := do(ticket.Join, p)
			if full := (*peraddress.Error)(nil); errors.As(err, &full) {
				if now == p.first {
					out.refused++
				}
				p.next = now + int64(full.RetryAfter) + int64(random.IntN(2))
				continue
			}
			p.placed, p.next = true, now+20
			line, waits = append(line, i), append(waits, now-p.first)
			out.inLine = max(out.inLine, len(line))
		}
		for range (int(now)+1)*c.served/60 - int(now)*c.served/60 {
			if len(line) > 0 {
				p := &all[line[0]]
				p.served, line = true, line[1:]
				_ = do(ticket.Abandon, p)
			}
		}
	}
	slices.Sort(waits)
	out.finished = len(waits) == c.people
	out.worst, out.median = waits[len(waits)-1], waits[len(waits)/2]
	return out
}

// The defaults let a campus behind one address through. Their figures are in
// docs/configuration.md.
func TestACampusBehindOneAddressGetsThrough(t *testing.T) {
	limits := peraddress.Limits{Joins: 600, Places: 1000, Active: peraddress.Auto, Streams: 1000}
	for _, tt := range []struct {
		crowd
		refused int   // at most
		worst   int64 // s, at most
	}{
		{crowd{people: 300, within: 1, served: 20}, 0, 0},  // a carrier's NAT, at the stroke
		{crowd{people: 1000, within: 1, served: 20}, 0, 0}, // a lecture hall, or a school, at the stroke
		{crowd{people: 1200, within: 60, served: 20}, 250, 1200},
		{crowd{people: 1200, within: 600, served: 20}, 5, 60},
		{crowd{people: 3000, within: 600, served: 20}, 2000, 7200}, // more than one address is made for: late, and through
		{crowd{people: 3000, within: 7200, served: 20}, 0, 0},
	} {
		got := tt.run(t, limits)
		t.Logf("| %d | %d s | %d | %d | %d s | %d s | %d |", tt.people, tt.within, got.inLine, got.refused, got.median, got.worst, got.tries)
		if !got.finished || got.refused > tt.refused || got.worst > tt.worst {
			t.Errorf("%+v: %+v", tt.crowd, got)
		}
	}
}
