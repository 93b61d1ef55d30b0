package term

import (
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

const (
	redrawEvery = 100 * time.Millisecond
	barWidth    = 24 // characters between the brackets
	lineWidth   = 79 // a full line of the narrowest usual terminal would wrap
)

// ProgressConfig says what a Progress shows and where.
type ProgressConfig struct {
	Out   io.Writer        // where it draws: standard error, so that output stays clean
	Live  bool             // IsTerminal(Out); when false, nothing is ever drawn
	Label string           // what is being done: "visitors"
	Total int64            // how many there will be; 0 when nobody knows
	Now   func() time.Time // time.Now
	Note  func() string    // what else there is to say; nil: nothing
}

// Progress is a line that shows how far a task is, how fast it goes and when it
// will be done:
//
//	visitors [=========>              ]  41 %  410/1,000  52.3/s  12s left
//
// Any goroutine may call its methods. The line is redrawn by Add, so it stands
// still while nothing happens.
type Progress struct {
	cfg   ProgressConfig
	start time.Time
	done  atomic.Int64

	mu    sync.Mutex
	drawn time.Time // of the last drawing; zero before the first
	width int       // characters of the last line, to wipe it
	ended bool
}

// NewProgress starts to count time, and draws nothing yet.
func NewProgress(c ProgressConfig) *Progress {
	return &Progress{cfg: c, start: c.Now()}
}

// Add counts n more as done and redraws the line if it is due.
func (p *Progress) Add(n int64) {
	p.done.Add(n)
	// A line that somebody is drawing right now is recent enough.
	if !p.cfg.Live || !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	now := p.cfg.Now()
	if p.ended || !p.drawn.IsZero() && now.Sub(p.drawn) < redrawEvery {
		return
	}
	p.draw(now)
}

// Finish draws the final count and ends the line. Later calls do nothing.
func (p *Progress) Finish() {
	if !p.cfg.Live {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	p.draw(p.cfg.Now())
	fmt.Fprintln(p.cfg.Out)
}

// draw writes the line over the one before. Progress is for people: a terminal
// that cannot be written to is no reason to stop the task, so errors are dropped.
func (p *Progress) draw(now time.Time) {
	line := p.line(now.Sub(p.start))
	width := utf8.RuneCountInString(line)
	fmt.Fprintf(p.cfg.Out, "\r%s%s", line, strings.Repeat(" ", max(0, p.width-width)))
	p.width, p.drawn = width, now
}

// line is what the terminal shows after elapsed.
func (p *Progress) line(elapsed time.Duration) string {
	done, total := p.done.Load(), p.cfg.Total
	var rate float64 // a second
	if elapsed > 0 {
		rate = float64(done) / elapsed.Seconds()
	}
	var b strings.Builder
	b.WriteString(p.cfg.Label)
	if total > 0 {
		part := min(1, float64(done)/float64(total))
		fmt.Fprintf(&b, " [%s] %3.0f %%  %s/%s", bar(part), math.Floor(100*part), Count(done), Count(total))
	} else {
		fmt.Fprintf(&b, "  %s", Count(done))
	}
	if rate > 0 {
		fmt.Fprintf(&b, "  %s/s", rateText(rate))
	}
	switch {
	case total > 0 && done >= total || p.ended:
		fmt.Fprintf(&b, "  in %s", durationText(elapsed))
	case total > 0 && rate > 0:
		fmt.Fprintf(&b, "  %s left", durationText(secondsLeft(float64(total-done)/rate)))
	}
	if p.cfg.Note != nil && !p.ended {
		fmt.Fprintf(&b, "  %s", p.cfg.Note())
	}
	return clip(b.String(), lineWidth)
}

// secondsLeft keeps a hopeless estimate from overflowing a time.Duration.
func secondsLeft(s float64) time.Duration {
	return time.Duration(min(s, 1000*3600) * float64(time.Second))
}

func bar(part float64) string {
	full := int(part * barWidth)
	if full == barWidth {
		return strings.Repeat("=", barWidth)
	}
	return strings.Repeat("=", full) + ">" + strings.Repeat(" ", barWidth-full-1)
}

// rateText keeps three digits where there are that many to keep.
func rateText(rate float64) string {
	switch {
	case rate < 10:
		return fmt.Sprintf("%.2f", rate)
	case rate < 100:
		return fmt.Sprintf("%.1f", rate)
	}
	return Count(int64(math.Round(rate)))
}

// durationText is d in the units a waiting person thinks in.
func durationText(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", math.Floor(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// clip cuts s to at most width characters.
func clip(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width])
}
