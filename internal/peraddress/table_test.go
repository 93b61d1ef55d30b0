package peraddress_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/peraddress"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// clock is pass time.
type clock struct{ now int64 }

func (c *clock) read() int64 { return c.now }

func newTable(l peraddress.Limits, proxies ...string) (*peraddress.Table, *clock) {
	c := &clock{now: 1e9}
	config := peraddress.Config{Clock: c.read}
	for _, p := range proxies {
		config.Proxies = append(config.Proxies, netip.MustParsePrefix(p))
	}
	t := peraddress.New(config)
	t.SetRooms(map[string]peraddress.Limits{"shop": l})
	return t, c
}

func TestOurOwnNetworkIsExempt(t *testing.T) {
	table, _ := newTable(peraddress.Limits{}, "10.0.0.0/24")
	for a, want := range map[string]bool{
		"127.0.0.1": true, "::1": true, "10.1.2.3": true, "192.168.7.7": true, "172.16.0.1": true, "fd00::1": true, "fe80::1": true,
		"192.0.2.1": false, "2001:db8::1": false, "100.64.0.1": false, // the last is a carrier's
		"10.0.0.7": false, // a trusted proxy that does not say for whom it asks
	} {
		if got := table.Exempt(netip.MustParseAddr(a)); got != want {
			t.Errorf("%s: exempt %v, want %v", a, got, want)
		}
	}
	if !table.Exempt(netip.Addr{}) {
		t.Error("a connection of no network has bounds")
	}
}

// A node that let somebody in although its state said that people wait: the visit
// is over the bound, and ended at once.
func TestAVisitOverTheBoundIsEndedAtOnce(t *testing.T) {
	table, _ := newTable(peraddress.Limits{Active: 1})
	v := peraddress.Visitor{Addr: netip.MustParseAddr("192.0.2.1"), Room: &ticket.RoomState{Room: eviction.Room{Name: "shop", Target: 9}.WithDefaults()}}
	var asked []ticket.Op
	ask := func(_ context.Context, q ticket.Request) (ticket.Answer, error) {
		asked = append(asked, q.Op)
		return ticket.Answer{State: ticket.Admitted, Pass: ticket.Pass{Room: "shop", ID: q.ID, Home: eviction.Account{Born: 1}, Expires: 2e9}}, nil
	}
	for i := range 2 {
		_, err := table.Do(t.Context(), v, ticket.Request{Op: ticket.Join, Room: "shop", ID: qpid.ItemID{byte(i + 1)}}, ask)
		if full := (*peraddress.Error)(nil); i == 0 && err != nil || i == 1 && (!errors.As(err, &full) || full.Bound != peraddress.Active) {
			t.Errorf("join %d: %v", i, err)
		}
	}
	if len(asked) != 3 || asked[2] != ticket.End {
		t.Errorf("the queue was asked %v, want the second visit ended", asked)
	}
}

// A check-in costs no memory, whoever comes.
func TestCheckInsAllocateNothing(t *testing.T) {
	table, _ := newTable(peraddress.Limits{Joins: 600, Places: 1000, Active: peraddress.Auto})
	v := peraddress.Visitor{Addr: netip.MustParseAddr("2001:db8::1"), Room: &ticket.RoomState{Room: eviction.Room{Name: "shop", Target: 9}.WithDefaults()}}
	ask := func(_ context.Context, q ticket.Request) (ticket.Answer, error) {
		id := q.Ticket.ID
		if q.Op == ticket.Join {
			id = q.ID
		}
		return ticket.Answer{State: ticket.Waiting, Ticket: ticket.Ticket{ID: id}}, nil
	}
	id := qpid.ItemID{1}
	if _, err := table.Do(t.Context(), v, ticket.Request{Op: ticket.Join, Room: "shop", ID: id}, ask); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		_, _ = table.Do(ctx, v, ticket.Request{Op: ticket.CheckIn, Room: "shop", Ticket: ticket.Ticket{ID: id}}, ask)
	}); n != 0 {
		t.Errorf("%v allocations a check-in", n)
	}
}

func BenchmarkCheckIn(b *testing.B) {
	table, _ := newTable(peraddress.Limits{Joins: 1e9, Places: 1000, Active: peraddress.Auto})
	state := &ticket.RoomState{Room: eviction.Room{Name: "shop", Target: 9}.WithDefaults()}
	ask := func(_ context.Context, q ticket.Request) (ticket.Answer, error) {
		return ticket.Answer{State: ticket.Waiting, Ticket: q.Ticket}, nil
	}
	const n = 100_000
	id := func(i int) qpid.ItemID { return qpid.ItemID{byte(i * 151), byte(i), byte(i >> 8), byte(i >> 16), 1} }
	at := func(i int) peraddress.Visitor {
		return peraddress.Visitor{Addr: netip.AddrFrom4([4]byte{198, byte(i >> 12), byte(i >> 6), byte(i)}), Room: state}
	}
	for i := range n {
		_, _ = table.Do(b.Context(), at(i), ticket.Request{Op: ticket.Join, Room: "shop", ID: id(i)}, func(context.Context, ticket.Request) (ticket.Answer, error) {
			return ticket.Answer{State: ticket.Waiting, Ticket: ticket.Ticket{ID: id(i)}}, nil
		})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		k := i * 7919 % n
		_, _ = table.Do(b.Context(), at(k), ticket.Request{Op: ticket.CheckIn, Room: "shop", Ticket: ticket.Ticket{ID: id(k)}}, ask)
	}
}
