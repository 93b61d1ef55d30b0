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
	for last := i; last < len(g); last++ {
		interval, most := o.slowest(queue, g[:last+1])
		if last-most > i {
			return // what is from here on goes without this one
		}
		if last < most {
			continue
		}
		if span := g[last] - g[last-most]; span < interval-short {
			o.fail("queue %s lets %d items out within %d µs, at %d, and no node goes by more than %d in %d; %v has one", queue, most+1, span, g[last], most, interval, node)
		}
	}
}

// slowest is the pace that the last of these grants have to keep: the laxest that any
// node goes by since the first of so many.
func (o *oracle) slowest(queue string, g []int64) (interval int64, most int) {
	last := len(g) - 1
	for n := 0; ; n = most {
		if interval, most = o.laxest(queue, g[max(0, last-n)]); most <= n {
			return interval, most
		}
	}
}
