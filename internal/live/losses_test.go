package live

import (
	"testing"
	"time"
)

// A node is killed and back again and again, sooner than D is over: each time its
// slots are away for D, whatever was lost since, and all others stay usable. With
// -runs above one it goes on for two minutes, with a lease of 10 s and sessions of
// 15 s.
func TestANodeThatIsKilledAgainAndAgain(t *testing.T) {
	c := newCluster(t, 20)
	every, during, people := 5*time.Second, 40*time.Second, 240
	if c.session = 6 * time.Second; *runs > 1 {
		c.lease, c.session, every, during, people = 10*time.Second, 15*time.Second, 12*time.Second, 2*time.Minute, 700
	}
	c.claim = 5 * time.Second
	c.run(5)
	crowd, done := c.crowd(people, during, 2*time.Second, 5)
	c.until("people in line or on the site", 20*time.Second, func() bool { return crowd.Counts().Joined > 20 })
	_, victim := c.coordinator()

	least, kills := c.limit, 0
	for began := time.Now(); time.Since(began) < during; kills++ {
		victim.kill()
		killed := time.Now()
		c.phase("kill -9 %s while the others have %d slots", victim.id, c.slots())
		for time.Since(killed) < every {
			if time.Since(killed) > every/4 && !victim.running() {
				victim.start(0)
			}
			usable := 0
			for _, p := range c.nodes {
				if p != victim { // of its own it has few
					usable += p.room().Here.SlotsOwned
				}
			}
			if least = min(least, usable); 2*usable < c.limit {
				t.Fatalf("%d slots of %d are usable %v after kill %d", usable, c.limit, time.Since(killed), kills+1)
			}
			<-time.After(100 * time.Millisecond)
		}
	}
	c.phase("killed %d times, at least %d of %d slots usable", kills, least, c.limit)
	c.serving(5)
	err := <-done
	c.fair(crowd, err, 1e-3)
	c.until("full limit", c.delay()+5*time.Second, func() bool { return c.slots() == c.limit })
}
