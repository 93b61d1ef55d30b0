package config

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// Event is a time at which a room opens to people who gathered before. Its keys
// are Cloudflare's. What is not given is as in the room.
type Event struct {
	Name                  string   `json:"name"`
	Description           string   `json:"description"`
	StartTime             Moment   `json:"event_start_time"`
	EndTime               Moment   `json:"event_end_time"`
	PrequeueStartTime     Moment   `json:"prequeue_start_time"` // zero: nobody gathers
	ShuffleAtEventStart   bool     `json:"shuffle_at_event_start"`
	Suspended             bool     `json:"suspended"`            // as if it were not there
	TotalActiveUsers      int      `json:"total_active_users"`   // 0: the room's
	NewUsersPerMinute     int      `json:"new_users_per_minute"` // 0: the room's
	SessionDuration       Duration `json:"session_duration"`     // 0: the room's
	DisableSessionRenewal Choice   `json:"disable_session_renewal"`
	QueueingMethod        string   `json:"queueing_method"`  // empty: the room's
	CustomPageHTML        string   `json:"custom_page_html"` // empty: the room's
	CustomPageFile        Path     `json:"custom_page_file"` // Load reads it into CustomPageHTML
}

// Moment is a point in time, written as RFC 3339 does: 2026-11-27T18:00:00Z.
type Moment time.Time

func (m Moment) time() time.Time { return time.Time(m) }

// IsZero reports whether no time is given.
func (m Moment) IsZero() bool { return m.time().IsZero() }

func (m Moment) String() string {
	if m.IsZero() {
		return ""
	}
	return m.time().Format(time.RFC3339Nano)
}

// MarshalText makes m read the same in YAML and JSON.
func (m Moment) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText takes RFC 3339.
func (m *Moment) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*m = Moment{}
		return nil
	}
	t, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return errors.New("no point in time; give one with its zone, such as 2026-11-27T18:00:00Z or 2026-11-27T19:00:00+01:00")
	}
	*m = Moment(t)
	return nil
}

// Choice is true, false, or empty: as in the room.
type Choice string

// MarshalText makes c read the same in YAML and JSON.
func (c Choice) MarshalText() ([]byte, error) { return []byte(c), nil }

// UnmarshalText takes true, false and nothing.
func (c *Choice) UnmarshalText(text []byte) error {
	if s := string(text); s != "" && s != "true" && s != "false" {
		return errors.New("neither true nor false; give one of them, or leave it out: as in the room")
	}
	*c = Choice(text)
	return nil
}

// Bounds of events. The second ones are Cloudflare's: what is below them works,
// and is likely to be a mistake or a test.
const (
	prequeueMin, prequeueUsual = time.Second, 5 * time.Minute
	eventMin, eventUsual       = time.Second, time.Minute
)

// checkEvents checks the events of a room, each by itself and together.
func (f *File) checkEvents(key string, r Room) {
	if n := len(r.Events); n > eviction.EventsMax {
		f.fault(key+".events", "%d events; give at most %d. Those that are over can be removed", n, eviction.EventsMax)
		return
	}
	if len(r.Events) > 0 && r.Algorithm == "qpid" {
		f.fault(key+".algorithm", "qpid: a room with events needs cut")
	}
	for i, e := range r.Events {
		at := key + ".events" + index(i)
		if f.unread[at] {
			continue
		}
		f.checkEvent(at, e)
		f.checkEventLimit(key, at, r, e)
		for j, o := range r.Events[:i] {
			if e.Name == o.Name {
				f.fault(at+".name", "%q is the name of events[%d] too; give each its own", e.Name, j)
			}
			if !f.blamed(at) && !f.blamed(key+".events"+index(j)) && !e.Suspended && !o.Suspended &&
				e.opens().Before(o.EndTime.time()) && o.opens().Before(e.EndTime.time()) {
				f.fault(at+".event_start_time", "from its pre-queue to its end it overlaps events[%d]; give them one after the other", j)
			}
		}
	}
}

// opens is when the event begins to count.
func (e Event) opens() time.Time {
	if e.PrequeueStartTime.IsZero() {
		return e.StartTime.time()
	}
	return e.PrequeueStartTime.time()
}

func (f *File) checkEvent(at string, e Event) {
	if !matches(roomPattern, e.Name) {
		f.fault(at+".name", "%q is no name; give up to 64 letters, digits, - and _", e.Name)
	}
	if len(e.Description) > descriptionMax {
		f.fault(at+".description", "%d bytes; give at most %d", len(e.Description), descriptionMax)
	}
	f.checkEventTimes(at, e)
	if e.TotalActiveUsers < 0 {
		f.fault(at+".total_active_users", "%d; give 1 or more, or leave it out: as in the room", e.TotalActiveUsers)
	}
	if e.NewUsersPerMinute < 0 {
		f.fault(at+".new_users_per_minute", "%d; give 1 or more, or leave it out: as in the room", e.NewUsersPerMinute)
	}
	if d := e.SessionDuration; d < 0 || d > durationMax {
		f.fault(at+".session_duration", "%v; give a time above 0 and up to %v, such as 20s or 5m", d, durationMax)
	}
	if !slices.Contains(methods(), e.QueueingMethod) && e.QueueingMethod != "" {
		f.fault(at+".queueing_method", "%q; give %s", e.QueueingMethod, either(methods()))
	}
	if e.CustomPageHTML != "" && e.CustomPageFile != "" {
		f.fault(at+".custom_page_file", "custom_page_html is given too; give one of them")
	}
	if n := len(e.CustomPageHTML); n > pageMax {
		f.fault(at+".custom_page_html", "%d bytes; give at most %d", n, pageMax)
	}
}

// checkEventLimit finds an event that goes by a limit which nobody gave: its room
// may do without one.
func (f *File) checkEventLimit(key, at string, r Room, e Event) {
	if method := cmp.Or(e.QueueingMethod, r.QueueingMethod); e.Suspended || r.Suspended || limitless(method) || e.TotalActiveUsers > 0 {
		return
	}
	switch {
	case !f.given(key+".total_active_users") && limitless(r.QueueingMethod):
		f.fault(at+".total_active_users", "missing, and the room has none either; give how many people may be on the site at a time during the event")
	case r.TotalActiveUsers == 0 && limitless(r.QueueingMethod):
		f.warn(at+".total_active_users", "the room's 0 lets nobody in: everyone waits until the event is over; give the event one of its own")
	}
}

// limitless reports whether a room of that method needs no limit.
func limitless(method string) bool { return method == "passthrough" || method == "reject" }

func (f *File) checkEventTimes(at string, e Event) {
	for _, m := range []struct {
		name string
		m    Moment
	}{{"event_start_time", e.StartTime}, {"event_end_time", e.EndTime}} {
		if m.m.IsZero() {
			f.fault(at+"."+m.name, "missing; give a point in time, such as 2026-11-27T18:00:00Z")
		}
	}
	if f.blamed(at) {
		return
	}
	gather, last := e.StartTime.time().Sub(e.opens()), e.EndTime.time().Sub(e.StartTime.time())
	switch {
	case e.ShuffleAtEventStart && e.PrequeueStartTime.IsZero():
		f.fault(at+".shuffle_at_event_start", "there is no prequeue_start_time, so nobody gathers who could be shuffled; give one")
	case e.opens().Unix() <= 0 || last > durationMax.value() || gather > durationMax.value():
		f.fault(at+".event_end_time", "the event is before 1970 or longer than %v; give times of this age", durationMax)
	case last < eventMin:
		f.fault(at+".event_end_time", "%v is not after the start, %v; give a time at least %v after it", e.EndTime, e.StartTime, Duration(eventUsual))
	case !e.PrequeueStartTime.IsZero() && gather < prequeueMin:
		f.fault(at+".prequeue_start_time", "%v is not before the start, %v; give a time at least %v before it", e.PrequeueStartTime, e.StartTime, Duration(prequeueUsual))
	case !e.PrequeueStartTime.IsZero() && gather < prequeueUsual:
		f.warn(at+".prequeue_start_time", "%v before the start; %v are usual, so that people can gather", Duration(gather), Duration(prequeueUsual))
	case last < eventUsual:
		f.warn(at+".event_end_time", "%v after the start; %v are usual", Duration(last), Duration(eventUsual))
	}
}

// events are those that count, as the core wants them. Their seeds come later.
func (r Room) events() (events []eviction.Event) {
	if r.Suspended {
		return nil
	}
	for _, e := range r.Events {
		if e.Suspended {
			continue
		}
		c := eviction.Event{
			Name: e.Name, Prequeue: e.opens().UnixMicro(), Start: e.StartTime.time().UnixMicro(), End: e.EndTime.time().UnixMicro(),
			Shuffle: e.ShuffleAtEventStart, Target: e.TotalActiveUsers, NewPerMinute: e.NewUsersPerMinute, Session: e.SessionDuration.value(),
			NoRenewal: e.DisableSessionRenewal == "true", Method: eviction.Method(max(slices.Index(methods(), e.QueueingMethod), 0)),
		}
		for set, is := range map[eviction.Set]bool{
			eviction.SetTarget: c.Target > 0, eviction.SetNewPerMinute: c.NewPerMinute > 0, eviction.SetSession: c.Session > 0,
			eviction.SetNoRenewal: e.DisableSessionRenewal != "", eviction.SetMethod: e.QueueingMethod != "",
		} {
			if is {
				c.Set |= set
			}
		}
		events = append(events, c)
	}
	slices.SortFunc(events, func(a, b eviction.Event) int { return cmp.Compare(a.Prequeue, b.Prequeue) })
	return events
}

// WithoutEventPages returns the room with no pages in its events: the cluster
// carries their sums alone.
func (r Room) WithoutEventPages() Room {
	r.Events = slices.Clone(r.Events)
	for i := range r.Events {
		r.Events[i].CustomPageHTML, r.Events[i].CustomPageFile = "", ""
	}
	return r
}
