package live

import (
	"testing"
	"time"
)

// Two clusters that were founded apart, each with a line of its own, meet by a
// node that is told of both. The older one goes on, and the younger calls nobody
// from then on. So there are at most the limit of the one and what the other had
// let in, and D later, when nothing of the younger can act any more, the limit
// alone. Everyone who waits on either side keeps the place and gets in.
func TestTwoClustersThatMeetBecomeOne(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	c.session = 6 * time.Second
	for range 5 {
		c.add()
	}
	older, younger, bridge := c.nodes[:2], c.nodes[2:4], c.nodes[4]
	found := func(side []*process) (id string) {
		side[0].join(2, side[1])
		side[1].join(2, side[0])
		c.until("cluster of two", 20*time.Second, func() bool {
			id = side[0].cluster().ClusterID
			return id != "" && side[0].cluster().Waiting == "" && side[1].cluster().Waiting == "" && side[1].cluster().ClusterID == id
		})
		return id
	}
	oldest := found(older)
	if other := found(younger); other == oldest {
		t.Fatalf("one cluster %s, want two", other)
	}
	ours, oursDone := c.crowd(24, 2*time.Second, 3*time.Second, 4, older...)
	theirs, theirsDone := c.crowd(24, 2*time.Second, 3*time.Second, 5, younger...)
	c.until("lines at both", 20*time.Second, func() bool { return ours.Counts().Waiting > 8 && theirs.Counts().Waiting > 8 })

	bridge.join(0, older[0], younger[0])
	c.phase("start %s, which joins both; %d people are in the shop", bridge.id, c.shop.Stats().Now)
	c.serving(5)
	c.until("one cluster, the older", 5*time.Second, func() bool {
		for _, p := range c.nodes {
			if p.cluster().ClusterID != oldest {
				return false
			}
		}
		return true
	})
	<-time.After(c.delay())
	c.high.Store(0)
	c.phase("D is over; %d + %d people wait", ours.Counts().Waiting, theirs.Counts().Waiting)

	// Newcomers, so that the shop is full although most of the others are done.
	late, lateDone := c.crowd(12, 0, 2*time.Second, 6)
	for _, done := range []<-chan error{oursDone, theirsDone, lateDone} {
		if err := <-done; err != nil {
			t.Errorf("somebody was not let in: %v", err)
		}
	}
	c.phase("%d + %d + %d people were in; %d at most at once, %d since D; the limit is %d",
		ours.Counts().Done, theirs.Counts().Done, late.Counts().Done, c.shop.Stats().Peak, c.high.Load(), c.limit)
	if peak := c.shop.Stats().Peak; peak > 2*c.limit {
		t.Errorf("the shop counted %d live passes at once, two limits are %d", peak, 2*c.limit)
	}
	if high := c.high.Load(); high > int64(c.limit) {
		t.Errorf("the shop counted %d live passes at once later than D after the clusters met, the limit is %d", high, c.limit)
	}
	c.until("full limit", 10*time.Second, func() bool { return c.slots() == c.limit })
}
