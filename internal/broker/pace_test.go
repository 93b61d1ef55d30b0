package broker

import "testing"

// While a smaller per_interval is on its way, a node that has it hands on all grants that
// a node without it goes by: else that one, whose own are gone, lets more out. It takes
// two changes at once to meet it, and few worlds of the simulator have them.
func TestGrantsAreHandedOnWhileSettingsDiffer(t *testing.T) {
	const second = 1_000_000
	here := pacer{interval: second, most: 3}
	for i := range int64(3) {
		here.grant(uint64(i), i)
	}
	here.set(10, second, 1, 0)

	there := pacer{interval: second, most: 3}
	there.merge(20, here.pace(20))
	if at := there.next(); at < second {
		t.Errorf("a fourth of three in a second may go out at %d µs", at)
	}
}
