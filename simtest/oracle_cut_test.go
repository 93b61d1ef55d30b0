package simtest

import (
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// Where sides call on their own, a node that suspects all others runs waves of
// one while another still has it in its own: neither's commits are certain to
// come before the other's next wave. Found by seed 5863.
func TestANodeThatRunsWavesOfOneLeads(t *testing.T) {
	n1, n2 := eviction.Member{Name: "n01", Boot: 1}, eviction.Member{Name: "n02", Boot: 1}
	c := checker{gatherer: n2}
	for i, step := range []struct {
		list  []eviction.Member
		leads int32
	}{
		{[]eviction.Member{n1, n2}, 0}, // of n2's gather
		{[]eviction.Member{n1}, 1},
		{[]eviction.Member{n1}, 1},
	} {
		c.installed(qpid.Epoch{Num: uint64(i)}, step.list)
		if c.leads != step.leads {
			t.Errorf("step %d: %d changes of the coordinator, want %d", i, c.leads, step.leads)
		}
	}
}
