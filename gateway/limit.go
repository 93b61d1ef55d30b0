package gateway

import (
	"math"
	"net/netip"
	"sync"
)

// addressesMax bounds how many addresses are remembered; who is forgotten
// starts afresh.
const addressesMax = 100_000

// joinLimit bounds how many places one address can take: a client that keeps
// no cookies joins with every request. It is the generic cell rate algorithm:
// each join pushes the address's time on by one interval, and that time may be
// ahead of the clock by a burst of them.
type joinLimit struct {
	interval int64 // µs
	burst    int64 // µs; negative: no limit
	mu       sync.Mutex
	ahead    *lru[netip.Prefix, int64] // µs
}

func newJoinLimit(rate float64, burst int) *joinLimit {
	l := &joinLimit{burst: -1, ahead: newLRU[netip.Prefix, int64](addressesMax)}
	if rate > 0 && burst > 0 {
		l.interval = max(1, int64(1e6/rate))
		l.burst = l.interval * min(int64(burst), math.MaxInt64/2/l.interval)
	}
	return l
}

// take counts a join at time now, or says after how many seconds there may be
// another. This machine itself is not limited.
func (l *joinLimit) take(a netip.Addr, now int64) (retryAfter int, ok bool) {
	if l.burst < 0 || !a.IsValid() || a.IsLoopback() {
		return 0, true
	}
	bits := 32
	if a.Is6() {
		bits = 64 // what one household has
	}
	p, err := a.WithZone("").Prefix(bits)
	if err != nil {
		return 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := now
	if v := l.ahead.at(p); v != nil {
		t = max(t, *v)
	}
	if t += l.interval; t-now > l.burst {
		return int((t - now - l.burst + 999_999) / 1e6), false
	}
	l.ahead.put(p, t)
	return 0, true
}
