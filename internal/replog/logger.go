package replog

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	repeatEvery = time.Minute // a message of raft's is worth repeating
	repeatMax   = 64          // messages that are remembered; more are repeated sooner
)

// chatter brings raft's log lines to ours. Raft repeats itself many times a second
// while a node is away, so a line is passed on once a minute; and most of what it
// has to say is for those who look into raft.
type chatter struct {
	to *slog.Logger

	mu   sync.Mutex
	said map[string]time.Time
}

// forRaft returns a logger for raft that writes to l.
func forRaft(l *slog.Logger) hclog.Logger {
	h := hclog.NewInterceptLogger(&hclog.LoggerOptions{Name: "raft", Level: hclog.Off, Output: io.Discard})
	h.RegisterSink(&chatter{to: l, said: map[string]time.Time{}})
	return h
}

// Accept takes a line.
func (c *chatter) Accept(_ string, level hclog.Level, text string, args ...any) {
	to := slog.LevelDebug
	if level == hclog.Error {
		to = slog.LevelWarn
	}
	if !c.to.Enabled(context.Background(), to) || to > slog.LevelDebug && c.repeated(text) {
		return
	}
	attrs := make([]any, 0, len(args)+2)
	for i := 0; i+1 < len(args); i += 2 {
		attrs = append(attrs, args[i], hclogValue(args[i+1]))
	}
	c.to.Log(context.Background(), to, "raft: "+text, attrs...)
}

// hclogValue lets go of a type that only hclog formats.
func hclogValue(v any) any {
	if f, ok := v.(hclog.Format); ok && len(f) > 0 {
		return f[1:]
	}
	return v
}

func (c *chatter) repeated(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if last, ok := c.said[text]; ok && now.Sub(last) < repeatEvery {
		return true
	}
	if len(c.said) >= repeatMax {
		clear(c.said)
	}
	c.said[text] = now
	return false
}
