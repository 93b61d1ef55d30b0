package live

import (
	"slices"
	"syscall"
	"testing"
	"time"

	admissions "github.com/anteroom/anteroom/internal/history"
)

// A crowd waits at five nodes, one is killed, then the one that runs the waves: nobody is
// overtaken, and the calls go on within seconds, although most who waited there have not
// asked anywhere since.
func TestANodeIsKilledAndNobodyIsOvertaken(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 100)
	c.session = 5 * time.Minute
	c.run(5)
	stay := 3 * time.Second
	crowd, done := c.crowd(6*c.limit, 2*time.Second, stay, 17)
	_, x := c.coordinator()
	c.until("people in line", 20*time.Second, func() bool { return x.room().Queued > 200 && x.room().Here.Queued > 20 })
	for range 2 {
		kept := 0.0
		for _, p := range c.up() {
			kept += p.metric("anteroom_room_kept_here")
		}
		killed := time.Now()
		c.phase("kill -9 %s, where %d wait; %.0f places are kept by another node", x.id, x.room().Here.Queued, kept)
		x.kill()
		c.serving(len(c.up()))
		<-time.After(time.Until(killed.Add(6 * time.Second)))
		gap := c.withoutACall(killed, killed.Add(6*time.Second))
		c.phase("at most %.2f s without a call", gap.Seconds())
		if gap > 3500*time.Millisecond {
			t.Errorf("nobody was called for %v, while people waited", gap)
		}
		x, _ = c.coordinator()
	}
	err := <-done
	c.fair(crowd, err, 0)
}

// A node of five stands still for eight seconds under a crowd, which is longer than
// browsers wait for an answer, and then the one that runs the waves: nobody is overtaken.
func TestANodeHangsAndNobodyIsOvertaken(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 100)
	c.session = 5 * time.Minute
	c.run(5)
	crowd, done := c.crowd(8*c.limit, 8*time.Second, 3*time.Second, 17)
	metronome, began := c.metronome(), time.Now()
	_, x := c.coordinator()
	c.until("people in line", 20*time.Second, func() bool { return x.room().Here.Queued > 40 })
	for range 2 {
		c.phase("%s stands still, where %d wait", x.id, x.room().Here.Queued)
		x.signal(syscall.SIGSTOP)
		<-time.After(8 * time.Second)
		x.signal(syscall.SIGCONT)
		<-time.After(3 * time.Second)
		x, _ = c.coordinator()
	}
	err, tau := <-done, 0.0
	if had := float64(metronome.between(began.UnixMicro(), time.Now().UnixMicro())) / float64(time.Since(began)); had < awake {
		c.phase("the machine had %.0f %% of its time for us: the order in which people waited says nothing", 100*had)
		tau = 1
	}
	c.fair(crowd, err, tau)
}

// withoutACall is the longest time between two calls from one time to another, by the
// logs of all nodes.
func (c *cluster) withoutACall(from, to time.Time) (longest time.Duration) {
	c.t.Helper()
	calls := []int64{from.UnixMicro(), to.UnixMicro()}
	for _, e := range c.events() {
		if e.Event == admissions.Called && e.At > calls[0] && e.At < calls[1] {
			calls = append(calls, e.At)
		}
	}
	slices.Sort(calls)
	for i := 1; i < len(calls); i++ {
		longest = max(longest, time.Duration(calls[i]-calls[i-1])*time.Microsecond)
	}
	return longest
}

// A node is killed with people on the site by it, whose passes last for five minutes. As
// soon as its lease is over all of the limit is in use again: what was free of its slots is made
// again, and the others are those of people who go on with their visits.
func TestAKilledNodesSlotsComeBackWithItsLease(t *testing.T) {
	t.Parallel()
	for _, which := range []string{"a node", "the one that runs the waves"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 100)
			c.session = 5 * time.Minute
			c.run(5)
			crowd, done := c.crowd(6*c.limit, 2*time.Second, 4*time.Second, 18)
			_, x := c.coordinator()
			c.until("people in line", 20*time.Second, func() bool { return x.room().Queued > 200 })
			if which == "a node" {
				x = c.nodes[(slices.Index(c.nodes, x)+1)%len(c.nodes)]
			}
			slots := x.room().Here.SlotsOwned
			killed := time.Now()
			x.kill()
			other := c.up()[0]
			c.until("slots missing", 10*time.Second, func() bool { return other.room().SlotsMissing > 0 })
			c.until("all of the limit", time.Minute, func() bool { return other.room().SlotsMissing == 0 })
			whole := time.Since(killed)
			c.phase("kill -9 %s, which had %d slots: none is missing after %.1f s", which, slots, whole.Seconds())
			if whole > 15*time.Second {
				t.Errorf("the limit is whole %v after the kill", whole)
			}
			c.fair(crowd, <-done, 0)
		})
	}
}
