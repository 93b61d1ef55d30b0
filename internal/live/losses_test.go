package live

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway/admin"
)

// underMax is for how long looks may say that fewer than half of the slots are usable. A
// look asks one node after the other. So a slot that goes to another node meanwhile may be
// seen at both or at neither, as may be all that a wave moves: one or two looks in a row say
// nothing of how many there are, and those of half a second, in which there are two waves, do.
const underMax = 500 * time.Millisecond

// loss is what a node had when it was killed.
type loss struct {
	at    time.Time
	slots int
}

// A node is killed and back again and again, sooner than D is over: each time the
// slots that it has are away for D at most, whatever was lost since, and all others stay
// usable: half of the limit at any time, unless it had more than the other half in lives of
// which D is not over. With -runs above one it goes on for two minutes, with a lease of 10 s and sessions of 15 s.
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
	var looks, unsaid, sum int
	var under time.Duration // in which no look saw half, by those at which all answered
	least, enough, underSince := c.limit, time.Now(), time.Time{}
	for began := time.Now(); time.Since(began) < during; {
		own := victim.room().Here.SlotsOwned
		c.phase("kill -9 %s, which has %d of %d slots", victim.id, own, c.slots())
		victim.kill()
		losses = append(losses, loss{time.Now(), own + 1}) // one may have been on its way there
		for killed := time.Now(); time.Since(killed) < every; <-time.After(100 * time.Millisecond) {
			if time.Since(killed) > every/4 && !victim.running() {
				victim.start(0)
			}
			asked := time.Now()
			usable, all := c.count(victim)
			due := c.limit - missing(losses, c.delay())
			if usable >= due {
				enough = time.Now()
			} else if time.Since(enough) > 2*time.Second { // those on their way are with nobody
				t.Fatalf("%d slots of %d are usable %v after kill %d, want %d", usable, c.limit, time.Since(killed), len(losses), due)
			}
			looks, sum, least = looks+1, sum+usable, min(least, usable)
			switch {
			case !all:
				unsaid++
			case 2*usable >= c.limit, 2*due < c.limit:
				underSince = time.Time{}
			case underSince.IsZero():
				underSince = time.Now()
			default:
				under = max(under, asked.Sub(underSince))
			}
		}
	}
	c.phase("killed %d times: of %d slots %.1f were usable, at least %d, fewer than half for at most %v; at %d of %d looks not all nodes answered",
		len(losses), c.limit, float64(sum)/float64(looks), least, under.Round(time.Millisecond), unsaid, looks)
	if under > underMax || 2*unsaid > looks {
		t.Errorf("fewer than half of the slots were usable for %v, or too few looks say whether they were: %d of %d", under, looks-unsaid, looks)
	}
	c.serving(5)
	err := <-done
	c.fair(crowd, err, 1e-3)
	c.until("full limit", c.delay()+5*time.Second, func() bool { return c.slots() == c.limit })
}

// count asks all nodes that run how many slots they own, and whether all answered: one that
// was just started need not, as it has none before it does.
func (c *cluster) count(started *process) (owned int, all bool) {
	all = true
	for _, p := range c.up() {
		var r admin.Room
		err := p.ask("/v1/rooms/shop", &r)
		owned += r.Here.SlotsOwned
		all = all && (err == nil || p == started)
	}
	return owned, all
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
