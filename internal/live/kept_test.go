package live

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway/admin"
)

// One of three nodes is cut off from the other two for three times as long as a place is
// kept without a sign of life. Ten people who wait there, and ten whose home is at the
// others, ask it all the while, which says that they wait. To the others they are silent,
// and are given up there. When all three are together each has their place.
func TestWhoAsksACutOffNodeKeepsTheirPlace(t *testing.T) {
	t.Parallel()
	if !ownNetwork(t) {
		return
	}
	const ttl = 8 * time.Second
	c := newCluster(t, 3)
	c.session, c.users, c.refresh, c.ttl = 5*time.Minute, true, 2*time.Second, ttl
	c.run(3)
	for range c.limit {
		c.nodes[0].enter("")
	}
	lead, alone := c.coordinator()
	type person struct {
		newest answer
		joined string
	}
	var people []*person
	for i := range 20 {
		home := lead
		if i%2 == 1 {
			home = alone
		}
		a := home.visit("join", nil)
		if a.State != "waiting" {
			t.Fatalf("join: %+v, want waiting", a)
		}
		people = append(people, &person{a, a.Joined})
	}
	ask := func(p *person) answer {
		a := alone.visit("checkin", map[string]string{"ticket": p.newest.Ticket})
		if a.Status == http.StatusOK {
			p.newest = a
		}
		return a
	}
	for _, p := range c.nodes {
		if p != alone {
			p.cutTo(alone, true)
			alone.cutTo(p, true)
		}
	}
	c.phase("%s reaches neither of the others", alone.id)
	for end := time.Now().Add(3 * ttl); time.Now().Before(end); time.Sleep(time.Second) {
		for _, p := range people {
			if a := ask(p); a.Status != http.StatusOK && a.Status != http.StatusServiceUnavailable {
				t.Fatalf("%s tells somebody who asks all the while: %+v", alone.id, a)
			}
		}
	}
	var f admin.Figures
	askRoom(t, lead, "history?from=-10m&step=1m", &f)
	c.phase("the others have given up %.0f places", f.Total.DropOuts)
	if f.Total.DropOuts == 0 {
		t.Error("nobody was given up elsewhere meanwhile")
	}
	for _, p := range c.nodes {
		if p != alone {
			p.cutTo(alone, false)
			alone.cutTo(p, false)
		}
	}
	c.serving(3)
	c.until("answers to all", 5*time.Second, func() bool {
		return !slices.ContainsFunc(people, func(p *person) bool { return ask(p).Status == http.StatusServiceUnavailable })
	})
	for i, p := range people {
		if a := ask(p); a.State != "waiting" || a.Joined != p.joined {
			t.Errorf("of those who asked all the while number %d hears %+v; it joined at %s", i, a, p.joined)
		}
	}
}
