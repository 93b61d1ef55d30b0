package live

import (
	"testing"
	"time"
)

// loss is what a node had when it was killed.
type loss struct {
	at    time.Time
	slots int
}

// A node is killed and back again and again, sooner than D is over: each time the
// slots that it has are away for D, whatever was lost since, and all others stay
// usable. With -runs above one it goes on for two minutes, with a lease of 10 s and
// sessions of 15 s.
func TestANodeThatIsKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
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

	var losses []loss
	var looks, sum, under int
	least, enough := c.limit, time.Now()
	for began := time.Now(); time.Since(began) < during; {
		own := victim.room().Here.SlotsOwned
		c.phase("kill -9 %s, which has %d of %d slots", victim.id, own, c.slots())
		victim.kill()
		losses = append(losses, loss{time.Now(), own + 1}) // one may have been on its way there
		for killed := time.Now(); time.Since(killed) < every; <-time.After(100 * time.Millisecond) {
			if time.Since(killed) > every/4 && !victim.running() {
				victim.start(0)
			}
			usable := c.slots()
			if due := c.limit - missing(losses, c.delay()); usable >= due {
				enough = time.Now()
			} else if time.Since(enough) > 2*time.Second { // those on their way are with nobody
				t.Fatalf("%d slots of %d are usable %v after kill %d, want %d", usable, c.limit, time.Since(killed), len(losses), due)
			}
			looks, sum = looks+1, sum+usable
			if least = min(least, usable); 2*usable < c.limit {
				under++
			}
		}
	}
	c.phase("killed %d times: of %d slots %.1f were usable, at least %d, fewer than half for %.1f %% of the time",
		len(losses), c.limit, float64(sum)/float64(looks), least, 100*float64(under)/float64(looks))
	if 2*sum < c.limit*looks {
		t.Errorf("fewer than half of the slots were usable")
	}
	c.serving(5)
	err := <-done
	c.fair(crowd, err, 1e-3)
	c.until("full limit", c.delay()+5*time.Second, func() bool { return c.slots() == c.limit })
}

// missing is how many slots may be away: those of each loss for a D of its own, and
// for the time that it takes to see a later loss, in which none are made.
func missing(losses []loss, delay time.Duration) (slots int) {
	for _, l := range losses {
		if time.Since(l.at) < delay+4*time.Second {
			slots += l.slots
		}
	}
	return slots
}
