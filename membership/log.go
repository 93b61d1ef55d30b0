package membership

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// limiter thins out log lines that a stranger can cause, and counts the rest.
type limiter struct {
	mu     sync.Mutex
	rate   *rate.Limiter
	missed int
}

func newLimiter(every time.Duration, burst int) *limiter {
	return &limiter{rate: rate.NewLimiter(rate.Every(every), burst)}
}

// write writes the line unless there were too many of late.
func (l *limiter) write(to *slog.Logger, level slog.Level, msg string, args ...any) {
	l.mu.Lock()
	ok := l.rate.Allow()
	missed := l.missed
	if ok {
		l.missed = 0
	} else {
		l.missed++
	}
	l.mu.Unlock()
	if !ok {
		return
	}
	if missed > 0 {
		args = append(args, "missed", missed) // as many more, not written
	}
	to.Log(context.Background(), level, msg, args...)
}

// gossipLog turns memberlist's log lines into records: what it calls errors and
// warnings are warnings, for most are the ordinary signs of a member that went.
// memberlist never writes keys into its log.
type gossipLog struct {
	to    *slog.Logger
	warns *limiter
	keys  *limiter
}

var _ io.Writer = (*gossipLog)(nil)

func newGossipLog(to *slog.Logger) *gossipLog {
	return &gossipLog{to: to, warns: newLimiter(5*time.Second, 10), keys: newLimiter(time.Minute, 1)}
}

const lineMax = 300 // bytes of a line of memberlist's; some quote what came in

// Write takes one line.
func (g *gossipLog) Write(b []byte) (int, error) {
	line := string(bytes.TrimSpace(b[:min(len(b), lineMax)]))
	level := slog.LevelWarn
	if rest, ok := strings.CutPrefix(line, "["); ok {
		if tag, text, ok := strings.Cut(rest, "] "); ok {
			line = text
			if tag == "DEBUG" || tag == "INFO" {
				level = slog.LevelDebug
			}
		}
	}
	line = strings.TrimPrefix(line, "memberlist: ")
	switch {
	case isKeyTrouble(line):
		g.keys.write(g.to, slog.LevelError, "gossip under another key: set the same security.gossip_key on all nodes", "detail", line)
		return len(b), nil
	case strings.HasPrefix(line, "Conflicting address for "), // NotifyConflict says it better
		strings.HasPrefix(line, "Refuting an alive message for "): // every restart does
		level = slog.LevelDebug
	}
	if level == slog.LevelDebug {
		g.to.Debug("gossip", "detail", line)
	} else {
		g.warns.write(g.to, level, "gossip", "detail", line)
	}
	return len(b), nil
}

// isKeyTrouble recognises memberlist's words for a peer that has another key,
// or none, or has one while this node has none. A test holds them to the
// version that go.mod pins.
func isKeyTrouble(line string) bool {
	for _, words := range []string{
		"o installed keys could decrypt the message",
		"encryption is configured but remote state is not encrypted",
		"remote state is encrypted and encryption is not configured",
		"Decrypt packet failed",
	} {
		if strings.Contains(line, words) {
			return true
		}
	}
	return false
}
