package live

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A node that is told of one member and of its own ports has the rest from its
// peers: the settings of the cluster, the room, its limit, its origin, and the
// keys by which it knows places and passes that others gave.
func TestNodeJoinsWithNothingConfigured(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	c.lease = 5 * time.Second
	c.run(3)
	pass := c.nodes[0].enter("")
	c.phase("the only slot is taken")
	waits := c.nodes[0].visit("join", nil)
	if waits.State != "waiting" || waits.Position != 1 {
		t.Fatalf("join = %+v", waits)
	}

	added := c.add()
	added.joinBare(c.nodes[1])
	c.phase("start %s with --join alone", added.id)
	c.serving(4)
	const took = `msg="taking over the cluster's settings"`
	if log := added.log.String(); !strings.Contains(log, took) || !strings.Contains(log, "lease=5s") {
		t.Errorf("%s does not log that it takes over a lease of 5 s:\n%s", added.id, log)
	}
	c.stays("it has a lease of the cluster's", 2*time.Second, func() bool { s := added.cluster(); return s.Lease > 0 && s.Lease <= 5 })
	there := answer{}
	c.until("answer to the visitor at the new node", 5*time.Second, func() bool { // until it has the room it asks them to come again
		there = added.visit("checkin", map[string]string{"ticket": waits.Ticket})
		return there.Code != "unavailable"
	})
	if there.State != "waiting" || there.Position != 1 || there.Joined != waits.Joined {
		t.Errorf("a check-in of %+v at the new node = %+v", waits, there)
	}
	if status, page := added.browse(pass); status != http.StatusOK || !strings.Contains(page, "First Flush") {
		t.Errorf("the shop by way of the new node, with a pass: %d %.200s", status, page)
	}
	if status, page := added.browse(""); status != http.StatusOK || strings.Contains(page, "First Flush") || !strings.Contains(page, `role="status"`) {
		t.Errorf("the shop by way of the new node, without a pass: %d %.200s", status, page)
	}
	c.phase("it knows the place and the pass, and is a proxy to the shop")

	if status, page := added.open(http.MethodPost, "/checkout", pass); status != http.StatusOK {
		t.Errorf("checkout by way of the new node: %d %.200s", status, page)
	}
	pass = added.enter(there.Ticket)
	if status, page := c.nodes[0].browse(pass); status != http.StatusOK || !strings.Contains(page, "First Flush") {
		t.Errorf("the shop with the pass that the new node gave: %d %.200s", status, page)
	}
	if s := c.shop.Stats(); s.Peak > c.limit {
		t.Errorf("the shop counted %d at once, the limit is %d", s.Peak, c.limit)
	}
}

// A node with a period that the others' queues do not reckon with is left out, they go
// on, and it is told which setting it is. One with another lease takes part.
func TestNodeWithOtherSettingsIsLeftOut(t *testing.T) {
	t.Parallel()
	const why = "cluster.period is 200ms at node-1 and 1s at node-4; give all nodes the same `cluster:` settings"
	c := newCluster(t, 10)
	c.lease = 5 * time.Second
	c.run(3)
	c.period = time.Second
	other := c.add()
	other.join(0, c.nodes[0])
	c.phase("start %s with a period of %v", other.id, c.period)
	waits := func() bool { return other.waits("cluster.period is 200ms at node-") }
	c.until("it knows why it waits", 10*time.Second, waits)
	c.stays("the others go on without it", 5*time.Second, func() bool {
		for _, p := range c.nodes[:3] {
			s := p.cluster()
			for _, m := range s.Members {
				if m.InWave == (m.Name == other.id) {
					return false
				}
			}
			if s.Waiting != "" {
				return false
			}
		}
		return waits()
	})
	for _, p := range c.nodes[:3] {
		p.enter("")
	}
	other.refuses(why)
	if log := c.nodes[0].log.String(); !strings.Contains(log, why) {
		t.Errorf("%s does not log %q:\n%s", c.nodes[0].id, why, log)
	}

	other.kill()
	c.period, c.lease = 0, 8*time.Second
	other.join(0, c.nodes[0])
	c.phase("start %s with another lease", other.id)
	c.serving(4)
	other.enter("")
}

// refuses checks what a visitor and an operator are told at a node that is part
// of no cluster yet.
func (p *process) refuses(waiting string) {
	p.c.t.Helper()
	if a := p.visit("join", nil); a.Status != http.StatusServiceUnavailable || a.Code != "unavailable" || a.Detail == "" {
		p.c.t.Errorf("%s: join = %+v", p.id, a)
	}
	if status, page := p.browse(""); status != http.StatusServiceUnavailable || !strings.Contains(page, "<h1") {
		p.c.t.Errorf("%s: a browser gets %d %.200s", p.id, status, page)
	}
	var ready any
	if err := p.ask("/readyz", &ready); err == nil || !strings.Contains(err.Error(), "503") {
		p.c.t.Errorf("%s: /readyz: %v", p.id, err)
	}
	if log := p.log.String(); !strings.Contains(log, waiting) {
		p.c.t.Errorf("%s does not log %q:\n%s", p.id, waiting, log)
	}
}

// waits reports whether a node answers, is part of no cluster, and says what it
// waits for.
func (p *process) waits(waiting string) bool {
	s := p.cluster()
	return s.Node == p.id && s.ClusterID == "" && s.Grade == "none" && strings.Contains(s.Waiting, waiting)
}

// Who is told of members to join and of no number to expect waits for a cluster;
// who is told of neither is one.
func TestNodeThatJoinsWaitsForACluster(t *testing.T) {
	t.Parallel()
	const why = "waiting for a cluster to join"
	c := newCluster(t, 5)
	joins, founds := c.add(), c.add()
	joins.join(0, founds)
	c.phase("start %s, which is to join %s", joins.id, founds.id)
	c.until(why, 10*time.Second, func() bool { return joins.waits(why) })
	c.stays("no cluster", 4*time.Second, func() bool { return joins.waits(why) })
	joins.refuses(why)

	founds.join(0)
	c.phase("start %s, which is to join nobody", founds.id)
	c.serving(2)
	if a, b := joins.cluster().ClusterID, founds.cluster().ClusterID; a != b || !strings.HasPrefix(a, founds.id+"-") {
		t.Errorf("clusters %q and %q, want one, founded by %s", a, b, founds.id)
	}
	joins.enter("")
}

// Nodes that are told to expect three found nothing while they are two.
func TestFoundingTakesAsManyAsWereExpected(t *testing.T) {
	t.Parallel()
	const why = "waiting for 3 nodes"
	c := newCluster(t, 5)
	for range 3 {
		c.add()
	}
	two := c.nodes[:2]
	for _, p := range two {
		p.start(3)
	}
	c.phase("start two of three")
	both := func() bool { return two[0].waits(why) && two[1].waits(why) }
	met := func() bool { return both() && len(two[0].cluster().Members) == 2 && len(two[1].cluster().Members) == 2 }
	c.until("two nodes that know each other", 10*time.Second, met)
	c.stays("no cluster", 3*time.Second, both)
	two[0].refuses(why)

	c.nodes[2].start(3)
	c.phase("start the third")
	c.serving(3)
	if s := two[0].cluster(); len(s.Voters) != 3 {
		t.Errorf("the voters are %v, want all three", s.Voters)
	}
	two[0].enter("")
}

// restartAlone restarts the node that the others join first, while it can reach
// nobody, and returns it.
func restartAlone(c *cluster) (seed *process, others []*process) {
	c.run(3)
	seed, others = c.nodes[0], c.nodes[1:]
	for i := range c.limit {
		at := c.nodes[i%len(c.nodes)]
		if status, _ := at.browse(at.enter("")); status != http.StatusOK {
			c.t.Fatalf("%s: the shop with a pass: %d", at.id, status)
		}
	}
	c.phase("%d people are in the shop, some by way of %s", c.shop.Stats().Now, seed.id)
	for _, p := range others {
		p.signal(syscall.SIGSTOP)
	}
	seed.kill()
	seed.start(0)
	c.phase("stop %s and %s, restart %s", others[0].id, others[1].id, seed.id)
	return seed, others
}

// healed lets the others go on. The limit holds, and in the end all slots are
// there.
func healed(c *cluster, seed *process, others []*process) {
	for _, p := range others {
		p.signal(syscall.SIGCONT)
	}
	c.phase("let the others go on")
	c.serving(3)
	if a, b := seed.cluster().ClusterID, others[0].cluster().ClusterID; a != b {
		c.t.Errorf("clusters %q and %q, want one", a, b)
	}
	for _, p := range c.nodes {
		if status, _ := p.browse(p.enter("")); status != http.StatusOK {
			c.t.Errorf("%s: the shop with a pass: %d", p.id, status)
		}
	}
	c.until("full limit", c.delay()+5*time.Second, func() bool { return c.slots() == c.limit })
	if peak := c.shop.Stats().Peak; peak > c.limit {
		c.t.Errorf("the shop counted %d live passes at once, the limit is %d", peak, c.limit)
	}
}

// A seed that restarts with nothing in memory while it can reach nobody waits:
// it must not take itself for a new cluster, with all slots again.
func TestSeedThatRestartsAloneFoundsNothing(t *testing.T) {
	t.Parallel()
	const why = "waiting for a cluster to join"
	c := newCluster(t, 5)
	seed, others := restartAlone(c)
	c.until(why, 10*time.Second, func() bool { return seed.waits(why) })
	c.stays("no cluster", 6*time.Second, func() bool { return seed.waits(why) })
	seed.refuses(why)
	healed(c, seed, others)
}

// With a data directory it knows of its cluster, and that it is not enough of
// it: it keeps places and calls nobody until the others are back.
func TestSeedThatRestartsAloneWithDataCallsNobody(t *testing.T) {
	t.Parallel()
	const why = "on a side without a quorum"
	c := newCluster(t, 5)
	c.data = true
	seed, others := restartAlone(c)
	alone := func() bool {
		s, r := seed.cluster(), seed.room().Here
		return s.ClusterID != "" && s.Waiting == why && s.Grade != "primary" && !r.MayAdmit && r.SlotsFree == 0
	}
	c.until(why, 10*time.Second, alone)
	c.stays("it calls nobody", 6*time.Second, alone)
	seen := c.shop.Stats().Seen
	if a := seed.visit("join", nil); a.State == "admitted" || a.State == "called" {
		t.Errorf("join at a node without a quorum = %+v", a)
	}
	if log := seed.log.String(); !strings.Contains(log, why) {
		t.Errorf("it does not log %q:\n%s", why, log)
	}
	if now := c.shop.Stats().Seen; now != seen {
		t.Errorf("%d people came in meanwhile", now-seen)
	}
	healed(c, seed, others)
}
