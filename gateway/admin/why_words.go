package admin

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Sentences are what is said of each code. What stands in braces is a figure of
// the reason; what stands in brackets is left out where a figure in it is not
// known. The dashboard fills in the same ones.
func Sentences() map[Code]string {
	return map[Code]string{
		NotServing:  "This node is not serving[ since {since}]: {detail}.",
		NoMajority:  "This node sees no majority of the nodes[ since {since}], so it calls nobody. Places and passes are kept.",
		BrokenHere:  "This node has found the room not as it must be ({detail}) and calls nobody in it until it is restarted. The other nodes go on.",
		Suspended:   "The room is suspended: everybody goes through, nothing is counted.",
		Passthrough: "queueing_method is passthrough: everybody goes through.",
		Rejecting:   "queueing_method is reject: nobody is let in.",
		HeldByHand:  "Held[ by {by}][ since {since}]: nobody is called until it is released. {queued} wait.",
		Unhealthy:   "The origin is unhealthy[ since {since}][ ({detail})], and on_unhealthy is hold: nobody is called until it is well again. {queued} wait.",
		ColdStart:   "Nobody is called until {until}: after a start of everything, passes of before may still be good until then.",
		BeforeStart: "The event {detail} opens at {until}. {queued} wait for it.",
		LimitZero:   "total_active_users is 0: everybody waits, {queued} people now.",
		OverLimit:   "{inside} people are inside and the limit is {limit}: nobody is called until {over} have left.",
		Drained:     "The room drains: nobody may join, and nobody waits.",
		NobodyWaits: "Nobody waits: there is room for {room} more.",
		QueueAll:    "queue_all sends everybody through the line, and nobody waits just now.",
		ByRate:      "new_users_per_minute limits the flow: {rate} a minute, {per_minute} got in of late. {inside} of {limit} are inside.",
		ByMissing:   "{missing} of {limit} slots went with a lost node[ and are back at {until}]. The others are in use.",
		ByLimit:     "total_active_users limits the flow: {inside} of {limit} are inside, and {per_minute} a minute got in of late.",
		ByOrigin:    "The governor lets no more than {limit} of the {configured} of total_active_users in[ since {since}][: {detail}]. {inside} are inside, {queued} wait.",
		FullNow:     "Full, and nobody waits: {inside} of {limit} are inside, and whoever comes now waits.",
		Calling:     "People are being called: there is room for {room} more, and {queued} wait.",
	}
}

// Say puts the reason into words, with times as the reader tells them.
func (w *Reason) Say(at func(time.Time) string) string {
	moment := func(t *time.Time) string {
		if t == nil {
			return ""
		}
		return at(*t)
	}
	figures := map[string]string{
		"since": moment(w.Since), "until": moment(w.Until), "by": w.By, "detail": w.Detail,
		"limit": strconv.Itoa(w.Limit), "configured": strconv.Itoa(w.Configured), "rate": strconv.Itoa(w.Rate), "inside": strconv.Itoa(w.Inside), "queued": strconv.Itoa(w.Queued),
		"missing": strconv.Itoa(w.SlotsMissing), "over": strconv.Itoa(w.Inside - w.Limit), "room": strconv.Itoa(w.Limit - w.Inside),
		"per_minute": strconv.FormatFloat(math.Round(w.AdmittedPerMinute), 'f', -1, 64),
	}
	var b strings.Builder
	for i, part := range strings.Split(Sentences()[w.Code], "[") {
		optional, always := "", part
		if i > 0 {
			optional, always, _ = strings.Cut(part, "]")
		}
		if text, whole := filled(optional, figures); whole {
			b.WriteString(text)
		}
		text, _ := filled(always, figures)
		b.WriteString(text)
	}
	return b.String()
}

// filled puts figures into a text; false: one of them is not known.
func filled(text string, figures map[string]string) (string, bool) {
	whole := true
	var b strings.Builder
	for {
		before, rest, more := strings.Cut(text, "{")
		b.WriteString(before)
		if !more {
			return b.String(), whole
		}
		name, after, _ := strings.Cut(rest, "}")
		whole = whole && figures[name] != ""
		b.WriteString(figures[name])
		text = after
	}
}
