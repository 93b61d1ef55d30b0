package live

import (
	"flag"
	"fmt"
	"syscall"
	"testing"
	"time"

	admissions "github.com/anteroom/anteroom/internal/history"
)

var runs = flag.Int("runs", 1, "how many times TestFaultsUnderACrowd runs")

// One fault after the other, each once all nodes are in the waves again, under
// a crowd ten times the limit. Everyone gets in, the shop never counts more live
// passes than the limit, nobody's join time changes, and D after the last fault
// all slots are there.
func TestFaultsUnderACrowd(t *testing.T) {
	for run := range *runs {
		t.Run(fmt.Sprint("run ", run+1), func(t *testing.T) {
			t.Parallel()
			faultsUnderACrowd(t, uint64(run))
		})
	}
}

func faultsUnderACrowd(t *testing.T, seed uint64) {
	c := newCluster(t, 40)
	c.run(5)
	crowd, done := c.crowd(400, 12*time.Second, 4*time.Second, seed)
	c.until("people in line", 20*time.Second, func() bool { n := crowd.Counts(); return n.Waiting > 60 })

	_, victim := c.coordinator()
	c.phase("kill -9 %s", victim.id)
	victim.kill()
	c.serving(4)

	victim, paused := c.coordinator()
	c.phase("kill -9 %s, which ran the waves", victim.id)
	victim.kill()
	c.serving(3)

	c.phase("stop %s for 5 s", paused.id)
	paused.signal(syscall.SIGSTOP)
	<-time.After(5 * time.Second)
	paused.signal(syscall.SIGCONT)
	c.serving(3)

	added := c.add()
	c.phase("add %s", added.id)
	added.start(0)
	c.serving(4)

	c.phase("start %s again under its name", victim.id)
	victim.start(0)
	c.serving(5)
	healed := time.Now()

	err := <-done
	c.fair(crowd, err, 1e-3)
	c.until("full limit", max(0, time.Until(healed.Add(c.delay())))+5*time.Second, func() bool { return c.slots() == c.limit })
}

// The whole cluster is killed and started again: places are kept, and nobody
// who came later overtakes.
func restartOfEverything(t *testing.T, c *cluster) {
	c.run(3)
	crowd, done := c.crowd(120, 4*time.Second, 3*time.Second, 2)
	c.until("people in line", 20*time.Second, func() bool { return crowd.Counts().Joined == 120 })
	for _, p := range c.nodes {
		p.kill()
	}
	c.phase("all nodes are dead; start them again")
	for _, p := range c.nodes {
		p.start(3)
	}
	c.serving(3)
	late, lateDone := c.crowd(40, 4*time.Second, 3*time.Second, 3)
	err := <-done
	if lateErr := <-lateDone; err == nil {
		err = lateErr
	}
	if n := late.Counts(); n.Done != 40 {
		t.Errorf("%d of the 40 who came after the restart were in", n.Done)
	}
	c.fair(crowd, err, 1e-3)
	c.until("full limit", c.delay()+5*time.Second, func() bool { return c.slots() == c.limit })
}

func TestPlacesSurviveARestartOfEverythingWithKeys(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 20)
	c.keys = true
	restartOfEverything(t, c)
}

func TestPlacesSurviveARestartOfEverythingWithData(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 20)
	c.data = true
	restartOfEverything(t, c)
}

// All nodes are killed, or the only one, with people on the site whose passes last for a minute.
// When all serve again others come in as soon as those who waited had the time to come back:
// whoever is on the site goes on, and their passes are not waited for.
func TestVisitsGoOnAfterACrashOfEverything(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprintf("nodes=%d", nodes), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 20)
			c.data, c.session = true, time.Minute
			c.run(nodes)
			crowd, done := c.crowd(120, 3*time.Second, 3*time.Second, 17)
			c.until("people in line", 20*time.Second, func() bool { return crowd.Counts().Waiting > 60 })
			for _, p := range c.nodes {
				p.kill()
			}
			c.phase("all nodes are dead; start them again")
			for _, p := range c.nodes {
				p.start(nodes)
			}
			c.serving(nodes)
			back := time.Now()
			c.until("somebody who comes in", 40*time.Second, func() bool { return c.calledSince(back) > 0 })
			after := time.Since(back)
			c.fair(crowd, <-done, 1e-3)
			c.phase("others were called %.1f s after all nodes served again", after.Seconds())
			if after > 20*time.Second {
				t.Errorf("nobody was called for %v after the start", after)
			}
		})
	}
}

// calledSince counts who was called after that, by the logs of all nodes.
func (c *cluster) calledSince(at time.Time) (n int) {
	c.t.Helper()
	for _, e := range c.events() {
		if e.Event == admissions.Called && e.At > at.UnixMicro() {
			n++
		}
	}
	return n
}
