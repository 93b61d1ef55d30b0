package eviction

import (
	"errors"

	"github.com/anteroom/anteroom/qpid"
)

// ErrSettled says that it is too late for other settings.
var ErrSettled = errors.New("eviction: this node was in a wave, and its settings count from then on")

// Adopt replaces the node's settings by those that its cluster runs with. It is
// refused from the first wave on that the node installs: what it may do since
// then, and what others reckon with, goes by the settings of that moment. A wave
// that is under way goes on without the node, as its commit would grant a lease
// that is not the one the coordinator counts on. What an earlier life left on
// disk is no hindrance: no account of that life is taken up.
func (n *Node) Adopt(now Time, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if n.installed != (qpid.Epoch{}) {
		return ErrSettled
	}
	c = c.WithDefaults()
	n.read(now)
	before := make([]int64, len(n.gates))
	for i, g := range n.gates {
		before[i] = g.delay()
	}
	n.c.take(c)
	n.clock.skew = micros(c.MaxSkew)
	for i, g := range n.gates {
		if g.ttlUntil > 0 { // restored: D from the start of this life
			g.ttlUntil += g.delay() - before[i]
		}
		// What restore promised goes as far as max_skew allows.
		n.clock.promise(min(g.cut.Value.Stamp, uint64(n.clock.now+2*micros(c.MaxSkew))))
		n.changed(g)
	}
	// If the node is to lead, it begins anew: its waves and their pacing are timed by c.
	n.wave, n.lead.active, n.lead.open = nil, false, false
	n.steer(now)
	return nil
}
