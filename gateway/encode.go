package gateway

import (
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// The waiting object is the answer to almost everything, and encoding/json
// takes longer over it than the queue does. So it is written by hand, to the
// very same bytes: a test compares them.

// object writes the members of a JSON object one after the other. Names come
// with their comma, quotes and colon.
type object []byte

func (o object) text(name, v string) object { return quoted(append(o, name...), v) }

func (o object) optional(name, v string) object {
	if v == "" {
		return o
	}
	return o.text(name, v)
}

func (o object) number(name string, v int) object {
	return strconv.AppendInt(append(o, name...), int64(v), 10)
}

func (o object) numberOrNull(name string, v *int) object {
	if v == nil {
		return append(append(o, name...), "null"...)
	}
	return o.number(name, *v)
}

func (o object) truth(name string, v bool) object {
	if v {
		return append(append(o, name...), "true"...)
	}
	return append(append(o, name...), "false"...)
}

func (o object) time(name string, v time.Time) object {
	o = append(append(o, name...), '"')
	o = v.AppendFormat(o, time.RFC3339Nano)
	return append(o, '"')
}

func (o object) optionalTime(name string, v *time.Time) object {
	if v == nil {
		return o
	}
	return o.time(name, *v)
}

// quoted writes a string. What encoding/json would escape it is left to.
func quoted(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c == 0x7f {
			text, _ := json.Marshal(s) // a string
			return append(b, text...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// appendJSON writes p as json.Marshal does.
func (p *Place) appendJSON(b []byte) []byte {
	o := object(append(b, '{')).text(`"room":`, p.Room).text(`,"state":`, p.State).
		optional(`,"ticket":`, p.Ticket).optional(`,"pass":`, p.Pass).optional(`,"pass_jwt":`, p.PassJWT).
		optionalTime(`,"pass_expires_at":`, p.PassExpires).
		numberOrNull(`,"position":`, p.Position).numberOrNull(`,"people_ahead":`, p.PeopleAhead).number(`,"queued":`, p.Queued)
	if w := p.EstimatedWaitSeconds; w != nil {
		o = append(o, `,"estimated_wait_seconds":{`...)
		o = append(o.number(`"p25":`, w.P25).number(`,"p50":`, w.P50).number(`,"p75":`, w.P75), '}')
	} else {
		o = append(o, `,"estimated_wait_seconds":null`...)
	}
	o = o.number(`,"refresh_interval_seconds":`, p.RefreshIntervalSeconds).
		time(`,"joined_at":`, p.JoinedAt).time(`,"last_updated":`, p.LastUpdated).optionalTime(`,"counted_at":`, p.CountedAt)
	if p.CalledInWave != 0 {
		o = strconv.AppendUint(append(o, `,"called_in_wave":`...), p.CalledInWave, 10)
	}
	o = o.text(`,"queueing_method":`, p.QueueingMethod).optional(`,"paused":`, p.Paused).optional(`,"paused_code":`, p.PausedCode).optional(`,"reason":`, p.Reason).
		optionalTime(`,"held_until":`, p.HeldUntil).optionalTime(`,"starts_at":`, p.StartsAt).
		optional(`,"why":`, p.Why).optionalTime(`,"why_until":`, p.WhyUntil)
	if d := p.Draw; d != nil {
		o = o.text(`,"draw":{"event":`, d.Event).time(`,"starts_at":`, d.StartsAt)
		o = strconv.AppendUint(append(o, `,"start":`...), d.Start, 10)
		o = o.text(`,"commitment":`, d.Commitment).optional(`,"seed":`, d.Seed).text(`,"ticket":`, d.Ticket)
		if d.Key != 0 {
			o = strconv.AppendUint(append(o, `,"key":`...), d.Key, 10)
		}
		o = append(o, '}')
	}
	if len(p.Messages) > 0 {
		o = append(o, `,"messages":`...)
		o = messagesJSON(o, p.Messages)
	}
	return append(p.Cloudflare.append(append(o, `,"cfWaitingRoom":`...)), '}')
}

func (f *cloudflare) append(b []byte) []byte {
	return append(object(append(b, '{')).
		truth(`"inWaitingRoom":`, f.InWaitingRoom).
		truth(`,"waitTimeKnown":`, f.WaitTimeKnown).
		number(`,"waitTime":`, f.WaitTime).
		number(`,"waitTime25Percentile":`, f.WaitTime25Percentile).
		number(`,"waitTime50Percentile":`, f.WaitTime50Percentile).
		number(`,"waitTime75Percentile":`, f.WaitTime75Percentile).
		text(`,"waitTimeFormatted":`, f.WaitTimeFormatted).
		truth(`,"queueIsFull":`, f.QueueIsFull).
		truth(`,"queueAll":`, f.QueueAll).
		text(`,"lastUpdated":`, f.LastUpdated).
		number(`,"refreshIntervalSeconds":`, f.RefreshIntervalSeconds).
		text(`,"queueingMethod":`, f.QueueingMethod).
		truth(`,"isFIFOQueue":`, f.IsFIFOQueue).
		truth(`,"isRandomQueue":`, f.IsRandomQueue).
		truth(`,"isPassthroughQueue":`, f.IsPassthroughQueue).
		truth(`,"isRejectQueue":`, f.IsRejectQueue).
		truth(`,"isEventActive":`, f.IsEventActive).
		truth(`,"isEventPrequeueing":`, f.IsEventPrequeueing).
		number(`,"timeUntilEventStart":`, f.TimeUntilEventStart).
		text(`,"timeUntilEventStartFormatted":`, f.TimeUntilEventStartFormatted).
		number(`,"timeUntilEventEnd":`, f.TimeUntilEventEnd).
		text(`,"timeUntilEventEndFormatted":`, f.TimeUntilEventEndFormatted).
		truth(`,"shuffleAtEventStart":`, f.ShuffleAtEventStart).
		text(`,"turnstile":`, f.Turnstile).
		truth(`,"infiniteQueue":`, f.InfiniteQueue), '}')
}

// plainBody reads the one kind of body that all our own pages and programs send,
// an object with ticket or pass and nothing to unescape. Of any other it says
// nothing: that is for encoding/json to read, or to refuse.
func plainBody(b []byte) (s sealed, ok bool) {
	if b, ok = after(b, '{'); !ok {
		return s, false
	}
	name, b, ok := plainString(b)
	if !ok {
		return s, false
	}
	if b, ok = after(b, ':'); !ok {
		return s, false
	}
	value, b, ok := plainString(b)
	if !ok {
		return s, false
	}
	if b, ok = after(b, '}'); !ok || len(b) > 0 {
		return s, false
	}
	switch string(name) {
	case "ticket":
		s.Ticket = string(value)
	case "pass":
		s.Pass = string(value)
	default:
		return s, false
	}
	return s, true
}

// after skips c and the white space around it.
func after(b []byte, c byte) ([]byte, bool) {
	b = skipSpace(b)
	if len(b) == 0 || b[0] != c {
		return b, false
	}
	return skipSpace(b[1:]), true
}

func skipSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\n' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// plainString takes a JSON string of printable ASCII without escapes off b.
func plainString(b []byte) (s, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, b, false
	}
	for i, c := range b[1:] {
		switch {
		case c == '"':
			return b[1 : i+1], b[i+2:], true
		case c < ' ' || c >= utf8.RuneSelf || c == '\\':
			return nil, b, false
		}
	}
	return nil, b, false
}
