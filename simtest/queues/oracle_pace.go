package queues

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// receipt names a lease.
func (o *oracle) receipt(queue string, node qpid.NodeID, r pqueue.Result) string {
	return fmt.Sprint(queue, node, o.w.node(node).m.Boot, r.Number, r.Lease)
}

// grant checks the pace of a queue with an interval: every lease counts, also
// one that its caller never hears of.
func (o *oracle) grant(queue string, node qpid.NodeID, r pqueue.Result) {
	receipt := o.receipt(queue, node, r)
	again := o.given[receipt]
	o.given[receipt] = true
	if again || !strings.HasPrefix(queue, "slow") {
		return
	}
	at := r.Until - leaseFor - clockBase - o.w.node(node).skew
	g := o.grants[queue]
	i, _ := slices.BinarySearch(g, at)
	g = slices.Insert(g, i, at)
	o.grants[queue] = g
	short := int64(0)
	if queue == "slow/safe" {
		short = skewMax // of the nodes that have led its log, whose time it goes by
	}
	for last := max(i, slowMany); last <= i+slowMany && last < len(g); last++ {
		if span := g[last] - g[last-slowMany]; span < slowEvery-short {
			o.fail("queue %s lets %d items out within %d µs, at %d; %v has one", queue, slowMany+1, span, g[last], node)
		}
	}
}
