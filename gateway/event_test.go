package gateway_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// A room with an event, by what its visitors are told before, during and after
// it. The seed is told when the doors have opened, and not before.
func TestAnEventAsItsVisitorsAreTold(t *testing.T) {
	at := func(d time.Duration) int64 { return morning.Add(d).UnixMicro() }
	room := shop()
	room.Target, room.QueueAll = 1, true
	room.Events = []eviction.Event{{
		Name: "sale", Prequeue: at(time.Minute), Start: at(3 * time.Minute), End: at(10 * time.Minute), Shuffle: true, Seed: [32]byte{5},
		Set: eviction.SetTarget, Target: 2,
	}}
	w := newWorld(t, nil, room)
	status := func() (s struct {
		Status, EventID string
		Target          int
		Draw            struct{ Commitment, Seed string }
	},
	) {
		var all struct {
			Status string `json:"status"`
			Event  string `json:"event_id"`
			Target int    `json:"total_active_users"`
			Draw   struct{ Commitment, Seed string }
		}
		w.send("GET", "/_anteroom/v1/rooms/shop/status", "").json(t, &all)
		s.Status, s.EventID, s.Target, s.Draw = all.Status, all.Event, all.Target, all.Draw
		return s
	}
	w.join()
	if s := status(); s.EventID != "" || s.Target != 1 || s.Draw.Commitment != "" {
		t.Errorf("before the pre-queue: %+v", s)
	}
	w.pass(90 * time.Second)
	p := w.join()
	f := p.Cloudflare
	if !f.IsEventActive || !f.IsEventPrequeueing || f.TimeUntilEventStart != 2 || f.TimeUntilEventEnd != 9 || !f.ShuffleAtEventStart || p.Position != nil ||
		p.EstimatedWaitSeconds != nil || p.StartsAt == nil || p.Draw == nil {
		t.Fatalf("in the pre-queue: %+v", p)
	}
	sum := sha256.Sum256(append([]byte{5}, make([]byte, 31)...))
	if d := p.Draw; d.Commitment != hex.EncodeToString(sum[:]) || d.Seed != "" || d.Key != 0 || len(d.Ticket) != 32 || d.Start != uint64(at(3*time.Minute)) {
		t.Errorf("in the pre-queue: %+v", d)
	}
	if s := status(); s.Status != "event_prequeueing" || s.EventID != "sale" || s.Target != 2 || s.Draw.Seed != "" || s.Draw.Commitment == "" {
		t.Errorf("in the pre-queue: %+v", s)
	}
	w.pass(95 * time.Second)
	if s := status(); s.EventID != "sale" || s.Draw.Seed != "05"+strings.Repeat("0", 62) {
		t.Errorf("after the start: %+v", s)
	}
	late := w.join()
	if f := late.Cloudflare; !f.IsEventActive || f.IsEventPrequeueing || f.TimeUntilEventStart != 0 || f.TimeUntilEventEnd != 7 || late.Draw != nil {
		t.Errorf("who comes after the start: %+v, %+v", late, late.Draw)
	}
	w.pass(8 * time.Minute)
	if s := status(); s.EventID != "" || s.Target != 1 {
		t.Errorf("after the end: %+v", s)
	}
}
