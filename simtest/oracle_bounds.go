package simtest

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// S23, bounds. While a node may act under a lease, those voters of its line who reckon with a
// shorter one than it acts by, or with better clocks, are no quorum: they might make its slots
// again while it still uses them.
func (w *world) checkBounds(h *host, before, s *node.Status) {
	if s.Acts.Lease < h.file.Lease.Microseconds() {
		w.reached.n[reachHeldBack]++
	}
	if s.Reckons.Lease < before.Reckons.Lease {
		w.reached.n[reachSunk]++
	}
	for i := range w.hosts {
		x := &w.hosts[i]
		st := w.statusOf(x, h, s)
		if !x.up() || st.Grade < eviction.Primary || x.clock.boot(w.now) >= st.LeaseUntil {
			continue
		}
		var less []qpid.NodeID
		for j := range w.hosts {
			o := &w.hosts[j]
			os := w.statusOf(o, h, s)
			if o.up() && os.Knows && os.Line == st.Line && (os.Reckons.Lease < st.Acts.Lease || os.Reckons.MaxSkew < st.Acts.MaxSkew) && w.votesFor(o) {
				less = append(less, o.name)
			}
		}
		if half(st.Voters.Names, func(name qpid.NodeID) bool { return slices.Contains(less, name) }) {
			w.fail("S23", "%s acts by a lease of %v, and of its voters %v %v reckon with less", x.name, micros(st.Acts.Lease), st.Voters.Names, less)
		}
	}
}

// votesFor reports whether x is the node of its name that was in a primary wave last: a name
// votes once.
func (w *world) votesFor(x *host) bool {
	for i := range w.hosts {
		if o := &w.hosts[i]; o.since > x.since && o.name == x.name && o.up() {
			return false
		}
	}
	return true
}

// statusOf is the last that was seen of x's node; of h's it is s.
func (w *world) statusOf(x, h *host, s *node.Status) *node.Status {
	if x == h {
		return s
	}
	return &x.seen.status
}
