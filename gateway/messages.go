package gateway

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// Message is an operator's for the people who wait.
type Message struct {
	At   *time.Time `json:"at,omitempty"` // it is shown from then on; nil: always
	Text string     `json:"text"`
}

// due are the messages that people read at a moment: the one that is always there,
// then the newest first.
func (r *Room) due(now time.Time) []Message {
	var all []Message
	if r.Message != "" {
		all = append(all, Message{Text: r.Message})
	}
	for _, m := range slices.Backward(r.Messages) {
		if !m.At.After(now) {
			all = append(all, m)
		}
	}
	return all
}

// messagesJSON writes what encoding/json would.
func messagesJSON(b []byte, all []Message) []byte {
	if all == nil {
		all = []Message{}
	}
	text, _ := json.Marshal(all) // times and strings
	return append(b, text...)
}

// now is the time by the cluster's clock.
func (g *Gateway) now() time.Time { return time.UnixMicro(g.c.Queue.Clock()).UTC() }

// bulletin tells streams that there may be other messages to read than before.
type bulletin struct {
	mu   sync.Mutex
	news chan struct{} // closed then
	due  *time.Timer   // for the next message that is not shown yet; nil: there is none
	over bool
}

// A timer's clock is not the cluster's, and either may be set meanwhile.
const lookMin, lookMax = 20 * time.Millisecond, time.Minute

// post tells all streams, and does so again when the next message is due.
func (g *Gateway) post() {
	b := &g.bulletin
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.news != nil {
		close(b.news)
		b.news = nil
	}
	if b.due != nil {
		b.due.Stop()
		b.due = nil
	}
	var timed []Message
	for _, r := range g.rooms.Load().byName {
		timed = append(timed, r.Messages...)
	}
	if len(timed) == 0 || b.over {
		return
	}
	now := g.now()
	timed = slices.DeleteFunc(timed, func(m Message) bool { return !m.At.After(now) })
	if len(timed) > 0 {
		next := slices.MinFunc(timed, func(a, b Message) int { return a.At.Compare(*b.At) })
		b.due = time.AfterFunc(min(max(next.At.Sub(now), lookMin), lookMax), g.post)
	}
}

// close tells nobody any more.
func (b *bulletin) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if b.due != nil {
		b.due.Stop()
	}
}

// changed is closed when there may be something new.
func (b *bulletin) changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.news == nil {
		b.news = make(chan struct{})
	}
	return b.news
}

// reader is one stream's view of the messages.
type reader struct {
	changed <-chan struct{}
	told    []byte
}

// catchUp returns the event that tells of the messages; nil: they are those of before.
// The room of a stream that was opened long ago is put right on the way.
func (c *call) catchUp(by *reader) []byte {
	by.changed = c.g.bulletin.changed() // first, so that nothing happens in between
	if r := c.g.rooms.Load().byName[c.room.Name]; r != nil {
		c.room = r
	}
	text := messagesJSON(nil, c.room.due(c.g.now()))
	if bytes.Equal(text, by.told) {
		return nil
	}
	by.told = text
	return slices.Concat([]byte("event: messages\ndata: "), text, []byte("\n\n"))
}
