package server

import (
	"slices"
	"sync"
	"time"

	"github.com/anteroom/anteroom/gateway/admin"
)

const (
	sampleEvery = 10 * time.Second
	samplesMax  = 360 // of one room: the last hour
)

// samples are how the rooms were lately. They are in memory: a restart begins anew.
type samples struct {
	mu    sync.Mutex
	rooms map[string][]admin.Sample
	at    time.Time // of the last
}

// take adds a sample of each room when it is time, and forgets rooms that are gone.
func (h *samples) take(now time.Time, rooms func() []admin.Room) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Sub(h.at) < sampleEvery {
		return
	}
	h.at = now
	next := make(map[string][]admin.Sample)
	for _, r := range rooms() {
		of := h.rooms[r.Name]
		if len(of) == samplesMax {
			of = slices.Delete(of, 0, 1)
		}
		next[r.Name] = append(of, admin.Sample{
			At: now.UTC(), Queued: r.Queued, Called: r.Called, Active: r.Active, TotalActiveUsers: r.Limit(),
			AdmittedPerMinute: r.AdmittedPerMinute, EstimatedWaitSeconds: r.EstimatedWaitSeconds,
		})
	}
	h.rooms = next
}

// of returns the samples of a room, the oldest first.
func (h *samples) of(room string) []admin.Sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]admin.Sample{}, h.rooms[room]...)
}
