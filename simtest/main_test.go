package simtest_test

import (
	"runtime/debug"
	"testing"
)

// TestMain collects garbage seldom: a world is a few megabytes that live for as long as
// it does, and most of what its nodes make is dropped at once. It is a quarter of the
// time of a swarm.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	m.Run()
}
