package eviction

import "testing"

// A node leads if its waves are those that are installed, or are about to be the first. Whom a
// founding waits for is of matter to one that would lead it.
func TestStatusTellsWhoLeadsAndWhoIsWaitedFor(t *testing.T) {
	for _, test := range []struct {
		name         string
		active       bool
		list         []Member
		grade        Grade
		leads, waits bool
	}{
		{"before its first wave", true, nil, NoGrade, true, true},
		{"in its waves", true, []Member{memberB, memberC}, Primary, true, false},
		{"in its waves, on a side", true, []Member{memberB, memberC}, Side, true, true},
		{"in another's, ready to take over", true, []Member{memberA, memberB}, Primary, false, false},
		{"in another's", false, []Member{memberA, memberB}, Side, false, false},
		{"in none", false, nil, NoGrade, false, false},
	} {
		n := NewNode(Config{}, Start{Self: Peer{Member: memberB}}, nil, Time{Boot: 1e12, Wall: 1e15})
		n.lead.active, n.list, n.grade, n.lead.holdout = test.active, test.list, test.grade, memberC
		if s := n.Status(); s.Leading != test.leads || (s.Holdout == memberC) != test.waits {
			t.Errorf("%s: leads %v, waits for %v; want %v, and to wait for somebody: %v", test.name, s.Leading, s.Holdout, test.leads, test.waits)
		}
	}
}
