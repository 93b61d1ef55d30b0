package eviction

import (
	"testing"

	"github.com/anteroom/anteroom/qpid"
)

// What a lost node had goes on in equal parts at those who were there when it came. One who
// started later has none of it, and who is left out has none but their own moved.
func TestHeirsShareWhatIsLost(t *testing.T) {
	const stamp, tickets = 1000, 3000
	var heirs []Peer
	for i, start := range []int64{1, 2, 3, 4, stamp + 1} {
		heirs = append(heirs, Peer{Member{qpid.NodeID(rune('a' + i)), uint64(start)}, start})
	}
	got := map[qpid.NodeID]int{}
	for i := range tickets {
		id := qpid.ItemID{byte(i), byte(i >> 8), 9}
		heir := HeirAmong(heirs, id, stamp)
		got[heir.Name]++
		if without := HeirAmong(heirs[1:], id, stamp); heir.Name != "a" && without != heir {
			t.Fatalf("without a, %v has what %v had", without, heir)
		}
	}
	for _, p := range heirs {
		n := got[p.Name]
		if p.Start > stamp && n > 0 {
			t.Errorf("%v, which started later, has %d", p.Member, n)
		}
		if share := tickets / 4; p.Start <= stamp && (n < share*9/10 || n > share*11/10) {
			t.Errorf("%v has %d of %d, want about a quarter", p.Member, n, tickets)
		}
	}
	if heir := HeirAmong(heirs, qpid.ItemID{1}, 0); heir != heirs[0].Member {
		t.Errorf("nobody is left who was there: %v has it, want the most senior", heir)
	}
}
