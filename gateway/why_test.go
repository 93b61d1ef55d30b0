package gateway

import (
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
)

// Nobody is told that a room is full which is not, whatever else they wait for.
func TestWhySaysWhatPeopleWaitFor(t *testing.T) {
	const now = 1_000_000
	tests := []struct {
		what, paused ticket.Pause
		change       func(*RoomState)
		want         string
		until        int64
	}{
		{"an empty room, in the moment before the call", "", func(*RoomState) {}, WhyCalling, 0},
		{"as many as may", "", func(s *RoomState) { s.Active, s.Called = 3, 2 }, WhyFull, 0},
		{"some a minute", "", func(s *RoomState) { s.Room.NewPerMinute = 6 }, WhyRate, 0},
		{"full, and some a minute", "", func(s *RoomState) { s.Room.NewPerMinute, s.Active = 6, 5 }, WhyFull, 0},
		{"a node is lost", "", func(s *RoomState) { s.Active, s.Missing, s.WholeAt = 3, 2, now+9 }, WhyMissing, now + 9},
		{"a node is lost, and there is room", "", func(s *RoomState) { s.Active, s.Missing, s.WholeAt = 1, 2, now+9 }, WhyCalling, 0},
		{"its slots are back", "", func(s *RoomState) { s.Active, s.Missing, s.WholeAt = 3, 2, now }, WhyCalling, 0},
		{"before an event, in an empty room", "", func(s *RoomState) { s.Room.Event.Start = now + 5 }, WhyBefore, now + 5},
		{"after a restart of everything", "", func(s *RoomState) { s.HeldUntil = now + 7 }, WhyColdStart, now + 7},
		{"held, in an empty room", ticket.PausedHeld, func(*RoomState) {}, WhyHeld, 0},
		{"an ill site", ticket.PausedUnhealthy, func(*RoomState) {}, WhyUnhealthy, 0},
		{"a lower limit", ticket.PausedOverLimit, func(s *RoomState) { s.Active = 9 }, WhyOverLimit, 0},
		{"one's own network", ticket.PausedAddress, func(*RoomState) {}, WhyAddress, 0},
		{"a split", ticket.PausedSplit, func(s *RoomState) { s.Active = 5 }, WhyNotServing, 0},
	}
	for _, tt := range tests {
		s := RoomState{Room: eviction.Room{Target: 5}}
		tt.change(&s)
		got, until := why(&s, tt.paused, now)
		if got != tt.want || (until == nil) != (tt.until == 0) || until != nil && until.UnixMicro() != tt.until {
			t.Errorf("%s: %s until %v, want %s until %d", tt.what, got, until, tt.want, tt.until)
		}
	}
}
