package server

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/health"
)

// originHealth is what the cluster has agreed on about a room's origin. It travels
// with the room's configuration, so that all nodes know the same at the same wave,
// and after a restart too. No file has it.
type originHealth struct {
	Checks []health.Verdict `json:"checks,omitempty"`
	// Holds: nobody is called because the origin is unhealthy. The room's mode is
	// Held then, and what operators have set by hand is in ByHand, where they go on
	// setting it: neither hold ends the other.
	Holds  bool          `json:"holds,omitempty"`
	ByHand eviction.Mode `json:"by_hand,omitempty"`
}

func healthOf(r eviction.Room) originHealth {
	s, err := settingsOf(r)
	if err != nil || s.Health == nil {
		return originHealth{}
	}
	return *s.Health
}

// byHand is the mode that operators have set.
func byHand(r eviction.Room) eviction.Mode {
	if r.Mode != eviction.Held {
		return r.Mode
	}
	if h := healthOf(r); h.Holds {
		return h.ByHand
	}
	return r.Mode
}

// withMode returns r with a mode set by hand.
func withMode(r eviction.Room, m eviction.Mode) eviction.Room {
	h := healthOf(r)
	r.Mode, h.ByHand = m, m
	return withHealth(r, h)
}

// withHealth returns r with what was found out about its origin, and held by it
// if h says so. Where everybody goes straight through nobody can be held.
func withHealth(r eviction.Room, h originHealth) eviction.Room {
	mode := h.ByHand
	if h.Holds = h.Holds && r.Method != eviction.Passthrough; h.Holds {
		mode = eviction.Held
	} else {
		h.ByHand = eviction.Normal
	}
	s, err := settingsOf(r)
	if err != nil || r.Mode == eviction.Deleted {
		return r
	}
	r.Mode, s.Health = mode, nil
	if h.Holds || len(h.Checks) > 0 {
		s.Health = &h
	}
	return s.in(r)
}

// carryHealth gives a room of a file, or of an operator, what the cluster knows of
// its origin, and the mode set by hand.
func carryHealth(next, running eviction.Room) eviction.Room {
	h := healthOf(running)
	h.ByHand = byHand(running)
	return withHealth(next, h)
}

// worst is the check that has been unhealthy for longest; nil: none is.
func (h *originHealth) worst() (v *health.Verdict) {
	for i := range h.Checks {
		if c := &h.Checks[i]; c.Status == health.Unhealthy && (v == nil || c.Since < v.Since) {
			v = c
		}
	}
	return v
}

// statusOf is what all checks of a room say together.
func (h *originHealth) status() health.Status {
	has := func(s health.Status) bool {
		return slices.ContainsFunc(h.Checks, func(v health.Verdict) bool { return v.Status == s })
	}
	switch {
	case has(health.Unhealthy):
		return health.Unhealthy
	case has(health.Healthy):
		return health.Healthy
	}
	return health.Unknown
}
