package gateway

import (
	"strconv"
	"sync/atomic"
	"time"
)

// texts are what answer after answer says in the same words, put together once.
type texts struct {
	last atomic.Pointer[secondText]
	wait [2 * 60]atomic.Pointer[string] // by minutes
}

type secondText struct {
	unix int64
	text string
}

// secondFormat is ISO 8601 as scripts and Cloudflare write it.
const secondFormat = "2006-01-02T15:04:05.000Z07:00"

// second writes a time that is true to the second. It is a time of now.
func (t *texts) second(at time.Time) string {
	last := t.last.Load()
	if unix := at.Unix(); last == nil || last.unix != unix {
		last = &secondText{unix, at.Truncate(time.Second).Format(secondFormat)}
		t.last.Store(last)
	}
	return last.text
}

// minutes writes n as Cloudflare's pages do.
func (t *texts) minutes(n int) string {
	if n < 0 || n >= len(t.wait) {
		return inMinutes(n)
	}
	text := t.wait[n].Load()
	if text == nil {
		text = new(inMinutes(n))
		t.wait[n].Store(text)
	}
	return *text
}

func inMinutes(n int) string {
	if n == 1 {
		return "1 minute"
	}
	return strconv.Itoa(n) + " minutes"
}
