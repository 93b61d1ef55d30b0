package eviction

import "math"

// halfLife of the rates that nodes report, in microseconds.
const halfLife = 60_000_000

// meter is an exponentially decaying event counter.
type meter struct {
	sum   float64
	at    int64
	since int64 // of the first event
}

func (m *meter) add(now int64) {
	if m.since == 0 {
		m.since = now
	}
	m.decay(now)
	m.sum++
}

func (m *meter) decay(now int64) {
	if now > m.at {
		m.sum *= math.Exp2(-float64(now-m.at) / halfLife)
		m.at = now
	}
}

// rate returns events per second.
func (m *meter) rate(now int64) float64 {
	if m.sum == 0 {
		return 0
	}
	m.decay(now)
	age := float64(max(now-m.since, 1_000_000))
	return m.sum * math.Ln2 / (halfLife / 1e6) / (1 - math.Exp2(-age/halfLife))
}
