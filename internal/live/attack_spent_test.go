package live

import (
	"encoding/json"
	"net/http"
	"syscall"
	"testing"
	"time"
)

// lineUp joins at p, as soon as that has keys, and waits to be called: else a join
// that finds room goes in at once.
func (p *process) lineUp() (a answer) {
	p.c.t.Helper()
	client := http.Client{Timeout: 5 * time.Second}
	p.c.await("place at "+p.id, 10*time.Second, func() bool {
		q, err := http.NewRequest(http.MethodPost, p.gateway()+"/_anteroom/v1/rooms/shop/join", nil)
		if err != nil {
			p.c.t.Fatal(err)
		}
		q.Header.Set("Prefer", "respond-async")
		r, err := client.Do(q)
		if err != nil {
			return false
		}
		defer func() { _ = r.Body.Close() }()
		return json.NewDecoder(r.Body).Decode(&a) == nil && a.State == "waiting"
	})
	return a
}

// used lets somebody in at p, ends the visit, and returns the ticket.
func (p *process) used() (ticket string) {
	p.c.t.Helper()
	ticket = p.lineUp().Ticket
	body := func() map[string]string { return map[string]string{"ticket": ticket} }
	p.c.await("call at "+p.id, 30*time.Second, func() bool { return p.visit("checkin", body()).State == "called" })
	a := p.visit("leave", body())
	if a.State != "admitted" {
		p.c.t.Fatalf("leave = %+v", a)
	}
	if a := p.visit("end", map[string]string{"pass": a.Pass}); a.Status != http.StatusNoContent {
		p.c.t.Fatalf("end = %+v", a)
	}
	p.refusesUsed(ticket)
	return ticket
}

// refusesUsed demands that a ticket is refused as used, as soon as the node serves.
func (p *process) refusesUsed(ticket string) {
	p.c.t.Helper()
	for began := time.Now(); ; <-time.After(50 * time.Millisecond) {
		a := p.visit("checkin", map[string]string{"ticket": ticket})
		if a.Code == "ticket_used" && a.Status == http.StatusGone {
			return
		}
		if a.Status != 0 && a.Code != "unavailable" && a.Code != "room_unknown" || time.Since(began) > 20*time.Second {
			p.c.t.Fatalf("%s answers a used ticket with %+v, want 410 ticket_used", p.id, a)
		}
	}
}

// Attack 8: a used ticket is tried again when its node has started anew, after it
// was told to stop and after it was killed.
func TestAttackUsedTicketAfterARestart(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5)
	c.data, c.session = true, time.Second
	c.room = "    queue_all: true\n"
	c.run(1)
	p := c.nodes[0]
	first := p.used()
	c.phase("used, and refused")
	p.signal(syscall.SIGTERM)
	<-p.done
	p.start(1)
	p.refusesUsed(first)
	c.phase("refused after a restart")
	p.c.serving(1)
	c.until("slots of the node's earlier life", 2*c.delay(), func() bool { return p.room().Here.SlotsFree > 0 })
	second := p.used()
	<-time.After(time.Second) // to write it down
	p.kill()
	p.start(1)
	p.refusesUsed(second)
	p.refusesUsed(first)
	c.phase("both refused after a kill")
}

// The same without disks, where the node leaves and others stay.
func TestAttackUsedTicketAfterALeave(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5)
	c.room = "    queue_all: true\n"
	c.run(3)
	p := c.nodes[2]
	ticket := p.used()
	p.signal(syscall.SIGTERM)
	<-p.done
	for _, o := range c.nodes[:2] {
		o.refusesUsed(ticket)
	}
	c.phase("the others refuse what the one that has left had used")
	p.start(3)
	c.serving(3)
	for _, o := range c.nodes {
		o.refusesUsed(ticket)
	}
	c.phase("so do all when it is back")
}
