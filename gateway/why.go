package gateway

import (
	"time"

	"github.com/anteroom/anteroom/internal/ticket"
)

// Why somebody waits, in Place.Why, Status.Why and View.Why: what limits the flow,
// by the codes of the admin port's /v1/rooms/{room}/why as far as visitors are
// concerned.
const (
	WhyNotServing = "not_serving"      // nobody is called here for now, see Place.Paused
	WhyHeld       = "held"             // an operator holds the room
	WhyUnhealthy  = "origin_unhealthy" // the site does not answer as it should
	WhyOverLimit  = "over_limit"       // the limit was lowered below who is on the site
	WhyAddress    = "address_limit"    // as many are on the site from the visitor's address as may
	WhyColdStart  = "cold_start"       // passes of before a restart may still be good
	WhyBefore     = "before_event"     // the doors are not open yet
	WhyFull       = "limit"            // as many people are on the site as may
	WhyMissing    = "slots_missing"    // as many as may while a node is lost
	WhyRate       = "rate"             // there is room, and so many a minute go in
	WhyCalling    = "calling"          // there is room, and people are being called
)

// why says what keeps people waiting at now, and until when if that is known.
// paused is why nobody is called, as the visitor's home has it.
func why(s *RoomState, paused ticket.Pause, now int64) (code string, until *time.Time) {
	inside := s.Called + s.Active
	switch {
	case paused == ticket.PausedAddress:
		return WhyAddress, nil
	case paused == ticket.PausedHeld:
		return WhyHeld, nil
	case paused == ticket.PausedUnhealthy:
		return WhyUnhealthy, nil
	case paused == ticket.PausedOverLimit:
		return WhyOverLimit, nil
	case paused != "":
		return WhyNotServing, nil
	case s.Room.Event.Start > now:
		return WhyBefore, moment(s.Room.Event.Start)
	case s.HeldUntil > now:
		return WhyColdStart, moment(s.HeldUntil)
	case inside >= s.Room.Target:
		return WhyFull, nil
	case inside+s.Missing >= s.Room.Target && s.WholeAt > now:
		return WhyMissing, moment(s.WholeAt)
	case s.Room.NewPerMinute > 0:
		return WhyRate, nil
	}
	return WhyCalling, nil
}
