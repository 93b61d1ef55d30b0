package admin

import "time"

// Code names what limits how fast people get into a room.
type Code string

// What may limit the flow. Why looks in this order: the first that holds says it.
const (
	NotServing  Code = "not_serving"      // the node is part of no cluster, or its clock is off
	BrokenHere  Code = "broken_here"      // the node has found the room not as it must be
	NoMajority  Code = "no_majority"      // it is on a side of a split that may call nobody
	Suspended   Code = "suspended"        // the room is off: everybody goes through
	Passthrough Code = "passthrough"      // queueing_method: everybody goes through
	Rejecting   Code = "reject"           // queueing_method: nobody is let in
	HeldByHand  Code = "held"             // an operator holds the room
	Unhealthy   Code = "origin_unhealthy" // and on_unhealthy: hold
	ColdStart   Code = "cold_start"       // passes of before the restart may still be good
	BeforeStart Code = "before_event"     // people gather for an event
	LimitZero   Code = "limit_zero"       // total_active_users is 0
	OverLimit   Code = "over_limit"       // the limit was lowered below who is on the site
	Drained     Code = "draining"         // nobody may join any more, and nobody waits
	NobodyWaits Code = "nobody_waits"     // whoever comes walks in
	QueueAll    Code = "queue_all"        // nobody waits; who comes does, until the next wave
	ByRate      Code = "rate"             // new_users_per_minute
	ByMissing   Code = "slots_missing"    // those of lost nodes are not made again yet
	ByLimit     Code = "limit"            // total_active_users
	ByOrigin    Code = "governor"         // outflow: adaptive, because of what the origin bears
	Calling     Code = "calling"          // there is room, and people are being called
	FullNow     Code = "full_and_nobody"  // nobody waits, and the next who comes will
)

// Level says how much an operator should mind.
type Level string

// The levels.
const (
	Fine    Level = "fine"    // nobody waits
	Queued  Level = "queued"  // people wait, as the room is set up
	Stopped Level = "stopped" // nobody gets in, by somebody's will or for a time that is known
	Broken  Level = "broken"  // nobody gets in, and somebody has to look
)

// Reason is what limits the flow into a room, with the figures behind it.
type Reason struct {
	Code              Code       `json:"code"`
	Level             Level      `json:"level"`
	Text              string     `json:"text"`                          // for people; times are in UTC
	Limit             int        `json:"total_active_users"`            // that holds
	Configured        int        `json:"configured_total_active_users"` // at least as many
	Rate              int        `json:"new_users_per_minute"`          // 0: no limit
	Inside            int        `json:"inside"`                        // on the site, or called and on the way
	Queued            int        `json:"queued"`
	AdmittedPerMinute float64    `json:"admitted_per_minute"`
	SlotsMissing      int        `json:"slots_missing"`
	Since             *time.Time `json:"since,omitempty"`
	Until             *time.Time `json:"until,omitempty"`
	By                string     `json:"by,omitempty"`     // who holds the room
	Detail            string     `json:"detail,omitempty"` // why the node does not serve; what is not as it must be; how the origin answers; the event's name
	Advice            []Advice   `json:"advice,omitempty"` // that the last hour gives, where it was asked for
}

// Why says what limits the flow into a room. It goes by what the node sees at now,
// and by nothing else.
func Why(c *Cluster, r *Room, now time.Time) Reason {
	w := Reason{
		Limit: r.TotalActiveUsers, Rate: r.NewUsersPerMinute, Inside: r.Called + r.Active, Queued: r.Queued,
		AdmittedPerMinute: r.AdmittedPerMinute, SlotsMissing: r.SlotsMissing,
	}
	if e := r.Event; e != nil && e.Holds(now) {
		w.Limit, w.Rate = e.TotalActiveUsers, e.NewUsersPerMinute
	}
	w.Configured = w.Limit
	if g := r.Governed; g != nil && g.Bound > 0 {
		w.Limit = min(w.Limit, g.Bound)
	}
	w.Code = stops(c, r, &w, now)
	if w.Code == "" {
		w.Code = limits(r, &w)
	}
	w.Level = w.Code.level()
	switch w.Code {
	case NotServing, NoMajority:
		w.Since, w.Detail = c.WaitingSince, c.Waiting
	case BrokenHere:
		w.Detail = r.Here.Broken
	case HeldByHand:
		w.Since, w.By = r.ModeSince, r.ModeBy
	case Unhealthy:
		w.Since, w.Detail = r.OriginSince, r.OriginReason
	case ColdStart:
		w.Until = r.HeldUntil
	case BeforeStart:
		w.Until, w.Detail = &r.Event.StartsAt, r.Event.Name
	case ByMissing:
		w.Until = r.WholeAt
	case ByOrigin:
		w.Since, w.Detail = r.Governed.Since, r.Governed.Reason()
	default: // no other knows a time
	}
	w.Text = w.Say(func(t time.Time) string { return t.UTC().Format("15:04:05 UTC") })
	return w
}

// stops is why nobody is called, or why nobody needs to be; empty: they are.
func stops(c *Cluster, r *Room, w *Reason, now time.Time) Code {
	switch {
	case c.Grade == "side" && !c.Quarantined && len(c.Voters) > 0:
		return NoMajority
	case c.Waiting != "":
		return NotServing
	case r.Here.Broken != "":
		return BrokenHere
	case r.Suspended:
		return Suspended
	case r.QueueingMethod == "passthrough":
		return Passthrough
	case r.QueueingMethod == "reject":
		return Rejecting
	case r.Mode == Held:
		return HeldByHand
	case r.OriginHolds:
		return Unhealthy
	case r.HeldUntil != nil && r.HeldUntil.After(now):
		return ColdStart
	case r.Event != nil && r.Event.Holds(now) && r.Event.StartsAt.After(now):
		return BeforeStart
	case w.Limit == 0:
		return LimitZero
	case w.Inside > w.Configured:
		return OverLimit
	}
	return ""
}

// limits is what a room that lets people in goes by.
func limits(r *Room, w *Reason) Code {
	full := w.Inside >= w.Limit
	governed := w.Limit < w.Configured && 10*w.Inside >= 9*w.Limit // between two waves it is not full
	switch {
	case w.Queued == 0 && r.Mode == Draining:
		return Drained
	case w.Queued == 0 && r.QueueAll:
		return QueueAll
	case w.Queued == 0 && full:
		return FullNow
	case w.Queued == 0:
		return NobodyWaits
	case !full && w.Inside+w.SlotsMissing >= w.Limit:
		return ByMissing
	case governed:
		return ByOrigin
	case full:
		return ByLimit
	case w.Rate > 0:
		return ByRate
	}
	return Calling
}

func (c Code) level() Level {
	switch c {
	case NotServing, NoMajority, BrokenHere, Unhealthy:
		return Broken
	case Rejecting, HeldByHand, ColdStart, BeforeStart, LimitZero, OverLimit, Drained:
		return Stopped
	case ByRate, ByMissing, ByLimit, ByOrigin, Calling:
		return Queued
	default:
		return Fine
	}
}
