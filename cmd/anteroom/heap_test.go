package main

import "testing"

func TestHeapGrowsByHalfAndByEnoughForASmallNode(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{{0, 4800}, {1 << 20, 4800}, {10 << 20, 480}, {48 << 20, 100}, {96 << 20, 50}, {10 << 30, 50}} {
		if got := collectPercent(c.live); got != c.want {
			t.Errorf("%d bytes alive: %d %%, want %d", c.live, got, c.want)
		}
	}
}
