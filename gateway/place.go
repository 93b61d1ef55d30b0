package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
)

// Place is the waiting object: what a visitor is told, whichever way they ask.
type Place struct {
	Room                   string     `json:"room"`
	State                  string     `json:"state"` // waiting, called or admitted
	Ticket                 string     `json:"ticket,omitempty"`
	Pass                   string     `json:"pass,omitempty"`
	PassJWT                string     `json:"pass_jwt,omitempty"`
	PassExpires            *time.Time `json:"pass_expires_at,omitempty"`
	Position               *int       `json:"position"`     // from 1; null: not known, or a draw decides
	PeopleAhead            *int       `json:"people_ahead"` // null when position is
	Queued                 int        `json:"queued"`
	EstimatedWaitSeconds   *Seconds   `json:"estimated_wait_seconds"` // null: not known
	RefreshIntervalSeconds int        `json:"refresh_interval_seconds"`
	JoinedAt               time.Time  `json:"joined_at"`
	LastUpdated            time.Time  `json:"last_updated"`
	CountedAt              *time.Time `json:"counted_at,omitempty"`     // of what moment queued and position are, on a side without a majority
	CalledInWave           uint64     `json:"called_in_wave,omitempty"` // turns go by it, then by joined_at
	QueueingMethod         string     `json:"queueing_method"`
	Paused                 string     `json:"paused,omitempty"`      // why nobody is called, in English,
	PausedCode             string     `json:"paused_code,omitempty"` // and as a code
	Reason                 string     `json:"reason,omitempty"`      // why this is not the place that it was
	HeldUntil              *time.Time `json:"held_until,omitempty"`
	StartsAt               *time.Time `json:"starts_at,omitempty"`
	Why                    string     `json:"why,omitempty"` // of somebody who waits: what limits the flow
	WhyUntil               *time.Time `json:"why_until,omitempty"`
	Draw                   *Draw      `json:"draw,omitempty"`
	Messages               []Message  `json:"messages,omitempty"` // of the operator, the newest first
	Cloudflare             cloudflare `json:"cfWaitingRoom"`
}

// MissedCalls is the reason of a place that was stamped anew: nobody came when the
// one before was called, claims_max times.
const MissedCalls = "missed_calls"

// Seconds are the quartiles of a wait.
type Seconds struct {
	P25 int `json:"p25"`
	P50 int `json:"p50"`
	P75 int `json:"p75"`
}

// cloudflare has the field names of Cloudflare's waiting room, for apps and
// templates that were written for it.
type cloudflare struct {
	InWaitingRoom                bool   `json:"inWaitingRoom"`
	WaitTimeKnown                bool   `json:"waitTimeKnown"`
	WaitTime                     int    `json:"waitTime"` // minutes
	WaitTime25Percentile         int    `json:"waitTime25Percentile"`
	WaitTime50Percentile         int    `json:"waitTime50Percentile"`
	WaitTime75Percentile         int    `json:"waitTime75Percentile"`
	WaitTimeFormatted            string `json:"waitTimeFormatted"`
	QueueIsFull                  bool   `json:"queueIsFull"`
	QueueAll                     bool   `json:"queueAll"`
	LastUpdated                  string `json:"lastUpdated"`
	RefreshIntervalSeconds       int    `json:"refreshIntervalSeconds"`
	QueueingMethod               string `json:"queueingMethod"`
	IsFIFOQueue                  bool   `json:"isFIFOQueue"`
	IsRandomQueue                bool   `json:"isRandomQueue"`
	IsPassthroughQueue           bool   `json:"isPassthroughQueue"`
	IsRejectQueue                bool   `json:"isRejectQueue"`
	IsEventActive                bool   `json:"isEventActive"`
	IsEventPrequeueing           bool   `json:"isEventPrequeueing"`
	TimeUntilEventStart          int    `json:"timeUntilEventStart"` // minutes
	TimeUntilEventStartFormatted string `json:"timeUntilEventStartFormatted"`
	TimeUntilEventEnd            int    `json:"timeUntilEventEnd"`
	TimeUntilEventEndFormatted   string `json:"timeUntilEventEndFormatted"`
	ShuffleAtEventStart          bool   `json:"shuffleAtEventStart"`
	Turnstile                    string `json:"turnstile"`
	InfiniteQueue                bool   `json:"infiniteQueue"`
}

// place tells what the queue said. Sealed strings are added by the caller.
func (c *call) place(a ticket.Answer) Place {
	now := time.UnixMicro(c.g.c.Queue.Clock()).UTC()
	stamp := a.Ticket.Stamp
	if a.State == ticket.Admitted {
		stamp = a.Pass.Stamp
	}
	room := &c.state.Room
	p := Place{
		Room: c.room.Name, State: a.State.String(), Queued: a.Queued,
		JoinedAt: time.UnixMicro(int64(stamp)).UTC(), LastUpdated: now, QueueingMethod: room.Method.String(), Paused: c.paused(a).Text(), PausedCode: string(c.paused(a)),
		CalledInWave: a.Wave,
	}
	if a.State == ticket.Waiting && a.Ticket.Anew {
		p.Reason = MissedCalls
	}
	if a.Wait != (ticket.Wait{}) {
		c.seconds = secondsOf(a.Wait)
		p.EstimatedWaitSeconds = &c.seconds
	}
	if a.State != ticket.Admitted {
		p.RefreshIntervalSeconds = max(1, ceil(a.Refresh, time.Second))
	} else {
		p.PassExpires = moment(a.Pass.Expires)
	}
	if a.Position > 0 && room.Method != eviction.Random {
		c.position, c.ahead = a.Position, a.Position-1
		p.Position, p.PeopleAhead = &c.position, &c.ahead
	}
	if c.state.HeldUntil > now.UnixMicro() {
		p.HeldUntil = moment(c.state.HeldUntil)
	}
	if c.state.Counted > 0 && a.State == ticket.Waiting {
		p.CountedAt = moment(c.state.Counted)
	}
	if room.Event.Start > now.UnixMicro() {
		p.StartsAt = moment(room.Event.Start)
	}
	if a.State == ticket.Waiting {
		p.Why, p.WhyUntil = why(&c.state, c.paused(a), now.UnixMicro())
		p.Messages = c.room.due(now)
	}
	p.Draw = c.draw(&a)
	c.likeCloudflare(&p, &a, room, now)
	return p
}

// paused says why nobody is called: what the ticket's home says comes first.
func (c *call) paused(a ticket.Answer) ticket.Pause {
	if a.Paused != "" || a.State != ticket.Waiting {
		return a.Paused
	}
	return c.state.Paused
}

func (c *call) likeCloudflare(p *Place, a *ticket.Answer, room *eviction.Room, now time.Time) {
	p.Cloudflare = cloudflare{
		InWaitingRoom: a.State != ticket.Admitted, WaitTimeFormatted: "unavailable",
		QueueIsFull: a.Wait.P50 > 24*time.Hour, QueueAll: room.QueueAll, LastUpdated: c.g.texts.second(now),
		RefreshIntervalSeconds: p.RefreshIntervalSeconds, QueueingMethod: p.QueueingMethod,
		IsFIFOQueue: room.Method == eviction.FIFO, IsRandomQueue: room.Method == eviction.Random,
		IsPassthroughQueue: room.Method == eviction.Passthrough, IsRejectQueue: room.Method == eviction.Reject,
		TimeUntilEventStartFormatted: "unavailable", TimeUntilEventEndFormatted: "unavailable",
		ShuffleAtEventStart: room.Event.Shuffle,
	}
	f := &p.Cloudflare
	if f.IsRejectQueue {
		f.RefreshIntervalSeconds = 0
	}
	f.IsEventActive = room.Event.Start != 0
	f.IsEventPrequeueing = now.UnixMicro() < room.Event.Start
	if end := room.Event.End; end > 0 {
		f.TimeUntilEventEnd = ceil(max(0, moment(end).Sub(now)), time.Minute)
		f.TimeUntilEventEndFormatted = c.g.texts.minutes(f.TimeUntilEventEnd)
	}
	if p.EstimatedWaitSeconds != nil && !f.QueueAll && !f.IsEventPrequeueing && p.Paused == "" {
		c.waitLikeCloudflare(f, a.Wait)
	}
	if f.IsEventPrequeueing {
		f.TimeUntilEventStart = ceil(p.StartsAt.Sub(now), time.Minute)
		f.TimeUntilEventStartFormatted = c.g.texts.minutes(f.TimeUntilEventStart)
	}
}

// waitLikeCloudflare tells an estimate: its quartiles only where a draw decides.
func (c *call) waitLikeCloudflare(f *cloudflare, w ticket.Wait) {
	f.WaitTimeKnown, f.WaitTime = true, ceil(w.P50, time.Minute)
	f.WaitTimeFormatted = c.g.texts.minutes(f.WaitTime)
	if f.IsRandomQueue {
		f.WaitTime25Percentile, f.WaitTime50Percentile, f.WaitTime75Percentile = ceil(w.P25, time.Minute), f.WaitTime, ceil(w.P75, time.Minute)
		f.WaitTimeFormatted = c.g.texts.minutes(f.WaitTime25Percentile) + " to " + c.g.texts.minutes(f.WaitTime75Percentile)
	}
}

func secondsOf(w ticket.Wait) Seconds {
	return Seconds{ceil(w.P25, time.Second), ceil(w.P50, time.Second), ceil(w.P75, time.Second)}
}

// ceil counts the units that d takes, a part of one as a whole.
func ceil(d, unit time.Duration) int {
	n := int(d / unit)
	if d > time.Duration(n)*unit {
		n++
	}
	return n
}

func moment(micros int64) *time.Time {
	return new(time.UnixMicro(micros).UTC())
}

// sealed puts the strings into p that the visitor goes on with. A ticket or
// pass that came as a cookie goes back as one, out of the reach of scripts.
func (c *call) sealed(p *Place, a ticket.Answer) (err error) {
	if a.State == ticket.Admitted {
		s := c.g.sessions.confirm(a.Pass, c.g.c.Queue.Clock())
		if !prefers(c.r.Header, "return=minimal") { // the signature is a quarter of what a visitor costs
			if p.PassJWT, err = c.g.jwt(s); err != nil {
				return err
			}
		}
		if c.from != fromCookie {
			p.Pass, err = c.g.sealPass(a.Pass)
		}
		return err
	}
	if c.from != fromCookie {
		p.Ticket, err = c.g.sealTicket(a.Ticket)
	}
	return err
}

// keep has the browser keep the ticket or pass of a.
func (c *call) keep(a ticket.Answer) error {
	k, err := c.passOrTicketCookie(a)
	if err == nil {
		c.setCookie(k)
	}
	return err
}

func (c *call) passOrTicketCookie(a ticket.Answer) (*http.Cookie, error) {
	if a.State == ticket.Admitted {
		return c.passCookie(a.Pass)
	}
	return c.ticketCookie(a.Ticket)
}

// tell writes the waiting object.
func (c *call) tell(status int, a ticket.Answer) error {
	p := c.place(a)
	if err := c.sealed(&p, a); err != nil {
		return err
	}
	c.w.Header()["Cache-Control"] = c.g.noStore
	c.writePlace(status, &p)
	return nil
}

func (c *call) writePlace(status int, p *Place) {
	buf := c.g.buffers.Get().(*bytes.Buffer)
	defer c.g.buffers.Put(buf)
	buf.Reset()
	buf.Grow(placeLen)
	buf.Write(append(p.appendJSON(buf.AvailableBuffer()), '\n'))
	writeObject(c.w, c.r, status, buf.Bytes())
}

// placeLen is enough for most waiting objects, in bytes.
const placeLen = 2 << 10

func writeJSON(w http.ResponseWriter, r *http.Request, status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	writeObject(w, r, status, append(b, '\n'))
	return nil
}

func writeObject(w http.ResponseWriter, r *http.Request, status int, b []byte) {
	h, values := w.Header(), [...]string{"application/json", "nosniff", strconv.Itoa(len(b))}
	h["Content-Type"], h["X-Content-Type-Options"], h["Content-Length"] = values[0:1:1], values[1:2:2], values[2:3:3]
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b)
	}
}
