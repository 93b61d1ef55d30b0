package series

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

// The steps that are kept, and for how long.
const (
	second = 1
	ten    = 10
	minute = 60
	hour   = 3600
	day    = 24 * hour

	KeepSeconds = 15 * minute
	KeepTens    = day
	KeepMinutes = 32 * day // on disk; in memory KeepTens
)

// chunk is the rows of one room in a part of a tier.
type chunk struct {
	start int64
	rows  []byte
}

// tier is one room's rows of one step, in memory, the oldest chunk first.
type tier struct {
	step, span int64 // of a row and of a chunk
	chunks     []chunk
	before     Settings // of the last row that is dropped
	last       Settings // of the last row
}

// add keeps a row unless it says nothing new.
func (t *tier) add(r *Row) {
	if r.idle() && r.Settings == t.last && r.Up == 0 {
		return
	}
	t.last = r.Settings
	start := r.At / t.span * t.span
	n := len(t.chunks)
	if n == 0 || t.chunks[n-1].start != start {
		if n > 0 {
			t.chunks[n-1].rows = bytes.Clone(t.chunks[n-1].rows) // without room to grow
		}
		t.chunks = append(t.chunks, chunk{start: start})
		n++
	}
	c := &t.chunks[n-1]
	c.rows = r.append(c.rows, c.start, t.step)
}

// size is the memory behind the rows.
func (t *tier) size() (n int) {
	for _, c := range t.chunks {
		n += cap(c.rows)
	}
	return n
}

// dropBefore forgets chunks that are over by then.
func (t *tier) dropBefore(at int64) {
	for len(t.chunks) > 0 && t.chunks[0].start+t.span <= at {
		c := t.chunks[0]
		_ = Decode(c.rows, c.start, t.step, func(r *Row) bool { t.before = r.Settings; return true }) // written here
		t.chunks = append([]chunk(nil), t.chunks[1:]...)
	}
}

// read adds the rows of a span to f.
func (t *tier) read(f *fold) {
	f.before(t.before)
	for _, c := range t.chunks {
		if c.start >= f.To {
			return
		}
		f.chunk(c, t.step)
	}
}

// Span is a time in steps: [From, To), Unix seconds. From and To are multiples of
// Step.
type Span struct{ From, To, Step int64 }

// Steps is how many there are.
func (s Span) Steps() int { return int((s.To - s.From) / s.Step) }

// fold puts rows together into the steps of a span.
type fold struct {
	Span
	until int64    // what begins then or later is left out
	first Settings // before the span begins
	rows  []Row
	have  []bool
}

func newFold(s Span) *fold {
	return &fold{Span: s, until: s.To, rows: make([]Row, s.Steps()), have: make([]bool, s.Steps())}
}

func (f *fold) before(s Settings) {
	if s != (Settings{}) {
		f.first = s
	}
}

// add takes rows of one node. The last one that is added tells the settings.
func (f *fold) add(r *Row) {
	switch {
	case r.At < f.From:
		f.before(r.Settings)
		return
	case r.At >= min(f.To, f.until):
		return
	}
	i := int((r.At - f.From) / f.Step)
	if f.have[i] {
		f.rows[i].Then(r)
		return
	}
	f.have[i], f.rows[i] = true, *r
	f.rows[i].At = f.From + int64(i)*f.Step
}

func (f *fold) chunk(c chunk, step int64) {
	_ = Decode(c.rows, c.start, step, func(r *Row) bool { // what was damaged was left out when it was read
		f.add(r)
		return true // to the end: minutes may have come in any order
	})
}

// within gives every step in which the node ran its row: up says when it did, and
// between rows a room was as the last one says, with nobody in it.
func (f *fold) within(up *fold) []Row {
	rows := make([]Row, 0, len(f.rows))
	last := f.first
	for i := range f.rows {
		if f.have[i] {
			last = f.rows[i].Settings
		}
		if !up.have[i] {
			continue
		}
		r := f.rows[i]
		if !f.have[i] {
			r = Row{At: f.From + int64(i)*f.Step, Settings: last}
		}
		r.Up = up.rows[i].Up
		rows = append(rows, r)
	}
	return rows
}

// RowsMax is how many steps one reading may have.
const RowsMax = 10_000

// Check says what is wrong with a span.
func (s Span) Check() error {
	switch {
	case s.Step <= 0 || s.From < 0 || s.To <= s.From || s.To >= stepsMax || s.From%s.Step != 0 || s.To%s.Step != 0:
		return errors.New("the span is not in whole steps")
	case s.Steps() > RowsMax:
		return fmt.Errorf("it is %d steps, and one answer has at most %d; ask for a longer step, or for less at a time", s.Steps(), RowsMax)
	}
	return nil
}

// stepsWanted is how many steps a span has at most if nobody says how long they are.
const stepsWanted = 1000

// Fit makes a span of whole steps of a time. With a step of 0 it finds one of which
// there are enough, and not too many, and that is still kept.
func Fit(from, to, step, now int64) (Span, error) {
	from, to = max(0, from), max(1, to)
	if step == 0 {
		for _, step = range []int64{1, 2, 5, 10, 30, minute, 5 * minute, 10 * minute, 30 * minute, hour, 3 * hour, 6 * hour, day, 7 * day} {
			if (to-from)/step <= stepsWanted && keptFor(step) >= now-from {
				break
			}
		}
	}
	if keeps := keptFor(step); now-from > keeps && step < minute {
		return Span{}, fmt.Errorf("steps of %d s go back %d minutes; ask for a step of whole minutes, or for a later from", step, keeps/minute)
	}
	s := Span{From: from / step * step, To: (to + step - 1) / step * step, Step: step}
	return s, s.Check()
}

// keptFor is how far back steps of that length go.
func keptFor(step int64) int64 {
	switch {
	case step%minute == 0:
		return math.MaxInt64 // what is too old is not there
	case step%ten == 0:
		return KeepTens
	}
	return KeepSeconds
}
