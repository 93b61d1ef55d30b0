package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// heapRoom is by how much the heap of a node may grow before it is collected, in
// bytes. Go's default, as much again as is alive, has a small node collect 10 MB
// every thousand requests, for a tenth of its time; and it lets a node with a
// million people take twice the memory that they need.
const heapRoom = 48 << 20

// collectPercent is GOGC for a heap of which so many bytes are alive: it may grow
// by half, and by heapRoom in any case.
func collectPercent(live uint64) int {
	live = max(live, 1<<20)
	return int(100 * max(heapRoom, live/2) / live)
}

// tuneHeap follows the size of the heap until ctx ends. Where the environment
// says GOGC, that is what counts. Changing it stops the world for some
// microseconds, so small changes are left out.
func tuneHeap(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	every := time.NewTicker(time.Second)
	defer every.Stop()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for had := 100; ; {
		metrics.Read(live)
		if now := collectPercent(live[0].Value.Uint64()); now > had*5/4 || now < had*4/5 {
			debug.SetGCPercent(now)
			had = now
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}
