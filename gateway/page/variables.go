package page

import (
	"fmt"
	"strings"
	"time"

	"github.com/anteroom/anteroom/gateway"
)

// Variable is one that a custom page may use. docs/pages.md has them all.
type Variable struct {
	Name string
	// of returns a bool, an int or a string: no other kind of value could loop,
	// call or be looked into by a template.
	of func(p *Pages, l *language, v *gateway.View) any
}

// Variables lists the variables of custom pages, Cloudflare's first.
func Variables() []Variable { return append(theirs(), ours()...) }

// theirs are the variables of Cloudflare's waiting room.
func theirs() []Variable {
	of := func(name string, value func(f *gateway.Cloudflare) any) Variable {
		return Variable{name, func(_ *Pages, _ *language, v *gateway.View) any { return value(&v.Cloudflare) }}
	}
	return []Variable{
		of("inWaitingRoom", func(f *gateway.Cloudflare) any { return f.InWaitingRoom }),
		of("waitTimeKnown", func(f *gateway.Cloudflare) any { return f.WaitTimeKnown }),
		of("waitTime", func(f *gateway.Cloudflare) any { return f.WaitTime }),
		of("waitTimeHours", func(f *gateway.Cloudflare) any { return f.WaitTime / 60 }),
		of("waitTimeHourMinutes", func(f *gateway.Cloudflare) any { return f.WaitTime % 60 }),
		of("waitTimeFormatted", func(f *gateway.Cloudflare) any { return f.WaitTimeFormatted }),
		of("waitTime25Percentile", func(f *gateway.Cloudflare) any { return f.WaitTime25Percentile }),
		of("waitTime50Percentile", func(f *gateway.Cloudflare) any { return f.WaitTime50Percentile }),
		of("waitTime75Percentile", func(f *gateway.Cloudflare) any { return f.WaitTime75Percentile }),
		of("queueIsFull", func(f *gateway.Cloudflare) any { return f.QueueIsFull }),
		of("queueAll", func(f *gateway.Cloudflare) any { return f.QueueAll }),
		of("lastUpdated", func(f *gateway.Cloudflare) any { return f.LastUpdated }),
		of("refreshIntervalSeconds", func(f *gateway.Cloudflare) any { return f.RefreshIntervalSeconds }),
		of("queueingMethod", func(f *gateway.Cloudflare) any { return f.QueueingMethod }),
		of("isFIFOQueue", func(f *gateway.Cloudflare) any { return f.IsFIFOQueue }),
		of("isRandomQueue", func(f *gateway.Cloudflare) any { return f.IsRandomQueue }),
		of("isPassthroughQueue", func(f *gateway.Cloudflare) any { return f.IsPassthroughQueue }),
		of("isRejectQueue", func(f *gateway.Cloudflare) any { return f.IsRejectQueue }),
		of("isEventActive", func(f *gateway.Cloudflare) any { return f.IsEventActive }),
		of("isEventPrequeueing", func(f *gateway.Cloudflare) any { return f.IsEventPrequeueing }),
		of("timeUntilEventStart", func(f *gateway.Cloudflare) any { return f.TimeUntilEventStart }),
		of("timeUntilEventStartHours", func(f *gateway.Cloudflare) any { return f.TimeUntilEventStart / 60 }),
		of("timeUntilEventStartHourMinutes", func(f *gateway.Cloudflare) any { return f.TimeUntilEventStart % 60 }),
		of("timeUntilEventStartFormatted", func(f *gateway.Cloudflare) any { return f.TimeUntilEventStartFormatted }),
		of("timeUntilEventEnd", func(f *gateway.Cloudflare) any { return f.TimeUntilEventEnd }),
		of("timeUntilEventEndHours", func(f *gateway.Cloudflare) any { return f.TimeUntilEventEnd / 60 }),
		of("timeUntilEventEndHourMinutes", func(f *gateway.Cloudflare) any { return f.TimeUntilEventEnd % 60 }),
		of("timeUntilEventEndFormatted", func(f *gateway.Cloudflare) any { return f.TimeUntilEventEndFormatted }),
		of("shuffleAtEventStart", func(f *gateway.Cloudflare) any { return f.ShuffleAtEventStart }),
		of("turnstile", func(*gateway.Cloudflare) any { return "" }), // we have no such widget
		of("infiniteQueue", func(f *gateway.Cloudflare) any { return f.InfiniteQueue }),
	}
}

// ours are the variables that Cloudflare has not.
func ours() []Variable {
	plain := func(name string, value func(v *gateway.View) any) Variable {
		return Variable{name, func(_ *Pages, _ *language, v *gateway.View) any { return value(v) }}
	}
	return []Variable{
		plain("state", func(v *gateway.View) any { return string(v.Kind) }),
		plain("room", func(v *gateway.View) any { return v.Room }),
		plain("message", func(v *gateway.View) any { return v.Message }),
		plain("newMessage", func(v *gateway.View) any { _, text := newest(v); return text }),
		plain("newMessageAt", func(v *gateway.View) any { at, _ := newest(v); return at }),
		plain("positionKnown", func(v *gateway.View) any { return v.Position > 0 }),
		plain("position", func(v *gateway.View) any { return v.Position }),
		plain("peopleAhead", func(v *gateway.View) any { return v.PeopleAhead }),
		plain("queued", func(v *gateway.View) any { return v.Queued }),
		plain("called", func(v *gateway.View) any { return v.Kind == gateway.PageCalled }),
		plain("full", func(v *gateway.View) any { return v.Kind == gateway.PageFull }),
		plain("closed", func(v *gateway.View) any { return v.Kind == gateway.PageClosed }),
		plain("rejoined", func(v *gateway.View) any { return v.Rejoined }),
		plain("missed", func(v *gateway.View) any { return v.Missed }),
		plain("joinedAt", func(v *gateway.View) any { return instant(v.JoinedAt) }),
		plain("heldUntil", func(v *gateway.View) any { return instant(v.HeldUntil) }),
		plain("startsAt", func(v *gateway.View) any { return instant(v.StartsAt) }),
		plain("nonce", func(v *gateway.View) any { return v.Nonce }),
		plain("hereURL", func(v *gateway.View) any { return tame(v.HereURL) }),
		plain("refreshURL", func(v *gateway.View) any { return tame(v.RefreshURL) }),
		plain("streamURL", func(v *gateway.View) any { return tame(v.StreamURL) }),
		plain("checkInURL", func(v *gateway.View) any { return tame(v.CheckInURL) }),
		plain("abandonURL", func(v *gateway.View) any { return tame(v.AbandonURL) }),
		{"paused", func(p *Pages, l *language, v *gateway.View) any { return p.note(l, *v) }},
		{"language", func(_ *Pages, l *language, _ *gateway.View) any { return l.tag.String() }},
		{"direction", func(_ *Pages, l *language, _ *gateway.View) any { return l.Direction }},
		{"title", func(p *Pages, l *language, v *gateway.View) any { t, _ := headline(l, v); return t }},
		{"lead", func(p *Pages, l *language, v *gateway.View) any { _, t := headline(l, v); return t }},
		{"positionText", func(_ *Pages, l *language, v *gateway.View) any { return l.number(v.Position) }},
		{"waitText", func(_ *Pages, l *language, v *gateway.View) any { return l.wait(estimateOf(v), v.Method) }},
	}
}

// headline is the title and the first sentence of the built-in page.
func headline(l *language, v *gateway.View) (title, lead string) {
	switch {
	case v.Kind == gateway.PageCalled:
		return l.say("turn"), l.say("turn.lead")
	case v.Kind != gateway.PageWaiting:
		return l.say(string(v.Kind) + ".title"), l.say(string(v.Kind) + ".text")
	case v.Method == random:
		title, lead = l.say("random.title"), l.lead(v.Why, l.say("random.lead"))
	default:
		title, lead = l.say("fifo.title"), l.lead(v.Why, l.say("fifo.lead"))
	}
	if v.StartsAt.After(v.LastUpdated) {
		lead = l.say("starts.lead")
	}
	return title, lead
}

// newest is the last message that came at a time.
func newest(v *gateway.View) (at, text string) {
	for _, m := range v.Messages {
		if m.At != nil {
			return instant(*m.At), m.Text
		}
	}
	return "", ""
}

// estimateOf is v's, which is for a line that moves.
func estimateOf(v *gateway.View) gateway.Estimate {
	e := v.Wait
	e.Known = e.Known && v.Paused == ""
	return e
}

func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// tame escapes what could end a string or an attribute: the visitor wrote the
// address, and a template may put it in without escaping.
func tame(address string) string {
	const wild = "<>\"'`{}"
	if !strings.ContainsAny(address, wild) {
		return address
	}
	var b strings.Builder
	for _, r := range address {
		if strings.ContainsRune(wild, r) {
			fmt.Fprintf(&b, "%%%02X", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
