package live

import (
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// from asks for something in the shop's room from one of the stranger's addresses.
func (s *stranger) from(client *http.Client, p *process, what, body string) (a answer) {
	s.t.Helper()
	r, err := client.Post(p.gateway()+"/_anteroom/v1/rooms/shop/"+what, "application/json", strings.NewReader(body))
	if err != nil {
		return answer{}
	}
	defer func() { _ = r.Body.Close() }()
	if b, err := io.ReadAll(r.Body); err != nil || len(b) > 0 && json.Unmarshal(b, &a) != nil {
		s.t.Errorf("%s: %v: %s", what, err, b)
	}
	a.Status = r.StatusCode
	return a
}

// rush joins n times at once, each by the address that at gives, and returns the
// passes and how many were refused.
func (s *stranger) rush(p *process, n int, at func(int) netip.Addr) (passes []string, refused []answer) {
	var mu sync.Mutex
	var all sync.WaitGroup
	clients := map[netip.Addr]*http.Client{}
	for i := range n {
		if a := at(i); clients[a] == nil {
			clients[a] = s.client(a)
		}
		client := clients[at(i)]
		all.Go(func() {
			a := s.from(client, p, "join", "")
			mu.Lock()
			defer mu.Unlock()
			if a.State == "admitted" {
				passes = append(passes, a.Pass)
			} else {
				refused = append(refused, a)
			}
		})
	}
	all.Wait()
	return passes, refused
}

// serves waits until the node takes visitors in. The one who tries leaves again.
func (p *process) serves() {
	p.c.t.Helper()
	p.c.until("places at "+p.id, 10*time.Second, func() bool {
		a := p.visit("join", nil)
		if a.State == "admitted" {
			return p.visit("end", map[string]string{"pass": a.Pass}).Status == http.StatusNoContent
		}
		return a.Ticket != "" && p.visit("abandon", map[string]string{"ticket": a.Ticket}).Status == http.StatusNoContent
	})
}

// bounded is a node that strangers reach, and that bounds what an address has.
func bounded(t *testing.T, limit int, session time.Duration, room string) (*stranger, *process) {
	t.Helper()
	s, c := newStranger(t), newCluster(t, limit)
	c.open(s)
	c.session, c.room = session, room
	c.run(1)
	c.nodes[0].serves()
	return s, c.nodes[0]
}

// Attack 6: one address takes 200 slots in 0.1 s and keeps them at a request a
// second for ever. It gets a quarter of them, others walk in meanwhile, and with
// session_max its visits end however often they are extended.
func TestAttackOneAddressTakesEverySlot(t *testing.T) {
	t.Parallel()
	s, p := bounded(t, 200, 2*time.Second, "    session_max: 6s\n")
	c := p.c
	c.until("an open room", 10*time.Second, func() bool { r := p.room(); return r.Open && r.Here.SlotsFree == c.limit })
	began := time.Now()
	passes, refused := s.rush(p, 200, func(int) netip.Addr { return s.addr(7) })
	c.phase("200 joins from one address in %v: %d came in, %d were refused", time.Since(began).Round(time.Millisecond), len(passes), len(refused))
	if len(passes) != 50 {
		t.Errorf("%d came in, want 50", len(passes))
	}
	for _, a := range refused {
		if a.Status != 429 || a.Code != "too_many_requests" || !strings.Contains(a.Detail, "active_per_address") {
			t.Fatalf("refused with %+v", a)
		}
	}
	if a := s.from(s.client(s.addr(8)), p, "join", ""); a.State != "admitted" {
		t.Errorf("somebody at another address: %+v", a)
	}
	client, extended := s.client(s.addr(7)), 0
	for len(passes) > 0 && time.Since(began) < 20*time.Second {
		kept := passes[:0]
		for _, pass := range passes {
			if a := s.from(client, p, "refresh", `{"pass": "`+pass+`"}`); a.Status == http.StatusOK {
				kept, extended = append(kept, a.Pass), extended+1
			}
		}
		passes = kept
		time.Sleep(500 * time.Millisecond)
	}
	over := time.Since(began)
	c.phase("extended %d times, the visits were over after %v", extended, over.Round(time.Millisecond))
	if len(passes) > 0 || extended < 100 {
		t.Errorf("%d visits go on after %v; they were extended %d times", len(passes), over, extended)
	}
	c.until("the end of all visits", 10*time.Second, func() bool { return p.room().Here.SlotsUsed == 0 })

	if s.host6 == "" {
		c.phase("no IPv6 here: its ranges are tested in internal/peraddress")
		return
	}
	passes, _ = s.rush(p, 120, func(i int) netip.Addr { return s.addr6(1, 0, i+1) })
	if len(passes) != 50 {
		t.Errorf("%d came in from one /64, want 50", len(passes))
	}
	more, _ := s.rush(p, 120, func(i int) netip.Addr { return s.addr6(1, uint16(i+1), 1) })
	c.phase("from one /64 %d came in, from 120 others of the same /48 %d more", len(passes), len(more))
	if len(passes)+len(more) != 100 {
		t.Errorf("%d came in from one /48, want half of 200", len(passes)+len(more))
	}
	if a := s.from(s.client(s.addr6(2, 0, 1)), p, "join", ""); a.State != "admitted" {
		t.Errorf("somebody in another /48: %+v", a)
	}
}

// Attack 6, with a line: the one address has many places and many turns, and
// holds no slot beside those of its visits. Somebody behind it in line is called
// while its people are held back, and those keep their places.
func TestAttackOneAddressTakesEveryTurn(t *testing.T) {
	t.Parallel()
	s, p := bounded(t, 12, 30*time.Second, "    queue_all: true\n    places_per_address: 30\n")
	client := s.client(s.addr(7))
	var tickets []string
	for i := range 30 {
		a := s.from(client, p, "join", "")
		if a.Ticket == "" {
			t.Fatalf("join %d: %+v", i, a)
		}
		tickets = append(tickets, a.Ticket)
	}
	beyond := 0
	for range 10 {
		if a := s.from(client, p, "join", ""); a.Status != 429 || !strings.Contains(a.Detail, "places_per_address") {
			beyond++
		}
	}
	if beyond > 0 {
		t.Errorf("%d places beyond the bound", beyond)
	}
	honest := s.client(s.addr(8))
	last := s.from(honest, p, "join", "")
	in, held, vain, first, joined := 0, 0, 0, "", last.Joined
	for round := 0; round < 20 && last.State != "admitted"; round++ {
		held = 0
		for i, ticket := range tickets {
			if ticket == "" {
				continue
			}
			a := s.from(client, p, "checkin", `{"ticket": "`+ticket+`"}`)
			if tickets[i] = a.Ticket; a.State == "called" {
				if a = s.from(client, p, "leave", `{"ticket": "`+a.Ticket+`"}`); a.State == "admitted" {
					in, tickets[i] = in+1, ""
				} else {
					vain++
				}
			}
			if strings.Contains(a.Paused, "people on your network") {
				held++
				if first == "" {
					first = a.Joined
				}
			}
		}
		if last = s.from(honest, p, "checkin", `{"ticket": "`+last.Ticket+`"}`); last.State == "called" {
			last = s.from(honest, p, "leave", `{"ticket": "`+last.Ticket+`"}`)
		}
		time.Sleep(500 * time.Millisecond)
	}
	p.c.phase("of one address %d are on the site and %d held back in front; the honest one behind them is %s", in, held, last.State)
	if vain > 0 { // each has a slot on its way for nothing, and whoever is behind them waits
		t.Errorf("%d calls of people whose address is full", vain)
	}
	if in != 10 || held == 0 || last.State != "admitted" || first >= joined {
		t.Errorf("%d in, want 10; %d held back (since %s), want some; the honest one (since %s) is %+v", in, held, first, joined, last)
	}
}
