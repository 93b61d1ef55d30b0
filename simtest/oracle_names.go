package simtest

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// S21, names. What goes by the name of a wave means the same to everybody: who has
// installed a wave has the list that its coordinator gathered with and, in a primary
// one, the same voters as everybody else in it, however little of either the messages
// carried.

// namedWave is what a wave said in full, as its coordinator and the first who installed
// it have it.
type namedWave struct {
	epoch  qpid.Epoch
	list   []eviction.Member
	voters *eviction.Voters // nil: nobody has installed it yet
}

// listOf is who takes part in the wave of a gather that h sends as coordinator.
func listOf(h *host, g *eviction.Gather) []eviction.Member {
	if g.List == nil {
		return h.n.Status().List
	}
	return g.List
}

// keepNames notes what a coordinator gathers with.
func (c *checker) keepNames(e qpid.Epoch, list []eviction.Member) {
	const remembered = 64
	if len(c.named) == remembered {
		c.named = slices.Delete(c.named, 0, remembered/2)
	}
	c.named = append(c.named, namedWave{epoch: e, list: slices.Clone(list)})
}

// checkNames compares what h's node has just installed with what others have of it.
func (w *world) checkNames(h *host, s *node.Status) {
	i := slices.IndexFunc(w.checker.named, func(n namedWave) bool { return n.epoch == s.Installed })
	if i < 0 {
		return // of one node, or of long ago
	}
	n := &w.checker.named[i]
	if !slices.Equal(n.list, s.List) {
		w.fail("S21", "%s has installed %v as a wave of %v, it was one of %v", h.name, s.Installed, s.List, n.list)
	}
	if s.Grade < eviction.Primary {
		return
	}
	if n.voters == nil {
		v := s.Voters
		n.voters = &v
	} else if !sameVoters(n.voters, &s.Voters) || s.Voters.At != s.Installed {
		w.fail("S21", "%s has installed %v with voters %v, others with %v", h.name, s.Installed, s.Voters, *n.voters)
	}
}

func sameVoters(a, b *eviction.Voters) bool {
	return a.Version == b.Version && a.At == b.At && a.From == b.From &&
		slices.Equal(a.Names, b.Names) && slices.Equal(a.Next, b.Next) && slices.Equal(a.Founders, b.Founders)
}
