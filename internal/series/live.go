package series

import (
	"math"
	"slices"
	"sync"
)

// self is the name under which a node keeps when it ran: one row a step, whatever
// happened. No room has it.
const self = ""

// bytesMax bounds the rows of seconds and of ten seconds of all rooms. Beyond it
// the oldest of the latter go first.
const bytesMax = 64 << 20

// Sample is how a room is at a node.
type Sample struct {
	Room                   string
	OnSite, InLine, Called int // at this node
	RoomOnSite, RoomInLine int // in the room as a whole, as far as the node knows
	Settings
}

// Live counts what happens at a node and keeps its seconds and tens of seconds.
// Its methods may be called from many goroutines at once.
type Live struct {
	mu    sync.Mutex
	rooms map[string]*room
	began int64 // the first second
	last  int64 // the last second that is over, Unix seconds
	life  uint32
	max   int // bytesMax but for tests
}

// room is one of them: what has happened in the step that runs, for each step that
// is kept, and the rows.
type room struct {
	now           Row // this second
	tens, minute  Row // so far, without this second
	seconds, rows tier
	told          Settings // of the last row of a minute
	toldAt        int64    // when that was
	seen          bool     // in the last sample
}

// New returns one that has nothing. Another life of the same node has another number.
func New(life uint32) *Live {
	return &Live{rooms: make(map[string]*room), life: life, max: bytesMax}
}

// Count adds n of something that has happened in a room.
func (l *Live) Count(room string, c Count, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := &l.of(room).now
	now.Counts[c] = plus(now.Counts[c], uint32(max(0, n)))
}

// Admitted notes that somebody was let in, and how long the wait was in µs; 0: there
// was none. onSite is how many there are at this node now.
func (l *Live) Admitted(room string, wait int64, onSite int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := &l.of(room).now
	now.Counts[Admissions]++
	now.OnSiteMost = max(now.OnSiteMost, uint32(max(0, onSite)))
	if wait == 0 {
		now.Counts[WalkedIn]++
		return
	}
	now.Waits.Record(wait / 1000)
}

// CameTrue notes that somebody was called who had been told an estimate, and under
// which quartiles of it the wait was.
func (l *Live) CameTrue(room string, under [3]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := &l.of(room).now
	now.Counts[Estimates]++
	for i, c := range [...]Count{UnderP25, UnderP50, UnderP75} {
		if under[i] {
			now.Counts[c]++
		}
	}
}

// Ended notes that a visit of so many µs is over, and a digest of the terms that bounded
// it.
func (l *Live) Ended(room string, visit int64, early bool, terms uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := &l.of(room).now
	if len(now.Visits) == 0 {
		now.Counts[Terms] = terms
	} else if now.Counts[Terms] != terms {
		now.Counts[Terms] = 0
	}
	if early {
		now.Counts[EndsLeft]++
	} else {
		now.Counts[EndsExpired]++
	}
	now.Visits.Record(visit / 1000)
}

func (l *Live) of(name string) *room {
	r := l.rooms[name]
	if r == nil {
		r = &room{seconds: tier{step: second, span: minute}, rows: tier{step: ten, span: 10 * minute}}
		l.rooms[name] = r
	}
	return r
}

// Minute is what a node has of all rooms in a minute that is over.
type Minute struct {
	At   int64
	Rows []NamedRow
}

// NamedRow is one of a room.
type NamedRow struct {
	Room string
	Row  Row
}

// Tick ends a second: now is the one that has begun, in Unix seconds. It returns the
// minutes that are over with it; no second is in two of them.
func (l *Live) Tick(now int64, samples []Sample) []Minute {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := now - 1
	if at <= l.last {
		return nil // the clock was set back: what happened is of a second to come
	}
	var over []Minute
	if l.last > 0 && at/minute != l.last/minute {
		over = append(over, l.turn())
	}
	if l.last > 0 && at/ten != l.last/ten {
		for _, r := range l.rooms {
			r.rows.add(&r.tens)
			r.tens = Row{}
		}
	}
	for _, r := range l.rooms {
		r.seen = false
	}
	for i := range samples {
		l.of(samples[i].Room).sample(&samples[i])
	}
	me := l.of(self)
	me.seen = true
	me.now.Up, me.now.Rate = 1, l.life
	for name, r := range l.rooms {
		r.end(at)
		if !r.seen && r.gone(at) {
			delete(l.rooms, name)
		}
	}
	if l.began == 0 {
		l.began = at
	}
	l.last = at
	return over
}

// sample notes how the room is now. Idle seconds are not kept: they are told by the
// node's own row.
func (r *room) sample(s *Sample) {
	u := func(n int) uint64 { return uint64(max(0, n)) }
	most := func(a, b int) uint32 { return uint32(min(math.MaxUint32, max(u(a), u(b)))) }
	r.seen = true
	now := &r.now
	now.OnSite, now.InLine, now.Called = u(s.OnSite), u(s.InLine), u(s.Called)
	now.OnSiteMost = max(now.OnSiteMost, most(s.OnSite, s.RoomOnSite))
	now.InLineMost = max(now.InLineMost, most(s.InLine, s.RoomInLine))
	now.Settings = s.Settings
}

// end puts the second where it belongs.
func (r *room) end(at int64) {
	r.now.At = at
	if !r.seen {
		r.now.Settings = r.seconds.last
	}
	r.seconds.add(&r.now)
	for _, longer := range []struct {
		row  *Row
		step int64
	}{{&r.tens, ten}, {&r.minute, minute}} {
		if longer.row.At == 0 {
			*longer.row = Row{At: at / longer.step * longer.step}
		}
		longer.row.Then(&r.now)
	}
	r.now = Row{}
}

// gone reports whether nothing is left to tell of a room that is no more.
func (r *room) gone(at int64) bool {
	r.seconds.dropBefore(at - KeepSeconds)
	return len(r.rows.chunks) == 0 && len(r.seconds.chunks) == 0 && r.minute.idle()
}

// turn ends the minute of the last second, and forgets what is too old.
func (l *Live) turn() Minute {
	m := Minute{At: l.last / minute * minute}
	size := 0
	for name, r := range l.rooms {
		row := &r.minute
		if fresh := row.Settings != r.told || m.At/day != r.toldAt/day; row.At == m.At && (name == self || fresh || !row.idle()) {
			m.Rows = append(m.Rows, NamedRow{name, *row})
			r.told, r.toldAt = row.Settings, m.At
		}
		r.minute = Row{}
		r.seconds.dropBefore(l.last - KeepSeconds)
		r.rows.dropBefore(l.last - KeepTens)
		size += r.seconds.size() + r.rows.size()
	}
	l.shrink(size)
	return m
}

// shrink forgets the oldest ten seconds while there is too much.
func (l *Live) shrink(size int) {
	for size > l.max {
		oldest := int64(math.MaxInt64)
		for _, r := range l.rooms {
			if len(r.rows.chunks) > 0 {
				oldest = min(oldest, r.rows.chunks[0].start)
			}
		}
		if oldest == math.MaxInt64 {
			return
		}
		for _, r := range l.rooms {
			before := r.rows.size()
			r.rows.dropBefore(oldest + r.rows.span)
			size -= before - r.rows.size()
		}
	}
}

// read adds to f what there is of a room in steps of less than a minute.
func (l *Live) read(name string, f *fold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.rooms[name]
	if r == nil {
		return
	}
	if f.Step%ten != 0 {
		r.seconds.read(f)
		return
	}
	r.rows.read(f)
	if r.tens.At > 0 {
		f.add(&r.tens)
	}
}

// Waits are how long people had waited who got in from a second on, Unix seconds, by
// room. Who did not wait is not in them.
func (l *Live) Waits(from int64) map[string]Hist {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]Hist{}
	for name, r := range l.rooms {
		waits := slices.Clone(r.now.Waits) // the second that runs goes on
		for _, c := range r.seconds.chunks {
			if c.start+r.seconds.span <= from {
				continue
			}
			_ = Decode(c.rows, c.start, second, func(row *Row) bool { // written here
				if row.At >= from {
					waits.Merge(row.Waits)
				}
				return true
			})
		}
		if len(waits) > 0 {
			all[name] = waits
		}
	}
	return all
}

// minuteOf is what there is of the minute that runs.
func (l *Live) minuteOf(name string) (Row, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.rooms[name]
	if r == nil || r.minute.At == 0 {
		return Row{}, false
	}
	return r.minute, true
}

// Last is what has happened since the last minute that Tick has returned, for a node
// that ends. What has happened in the second that runs is counted to the one before.
func (l *Live) Last() (Minute, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if me := l.rooms[self]; me == nil || me.minute.At == 0 {
		return Minute{}, false
	}
	for _, r := range l.rooms {
		if r.minute.At == 0 {
			r.minute = Row{At: l.last / minute * minute}
		}
		r.now.Settings = r.seconds.last
		r.minute.Then(&r.now)
		r.now = Row{}
	}
	return l.turn(), true
}

// Known reports whether the node keeps a room, or has of late.
func (l *Live) Known(room string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rooms[room] != nil && room != self
}

// Since is when the node began to count, Unix seconds; 0: it has not yet.
func (l *Live) Since() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.began
}

// Seen notes how many people are on the site at this node now.
func (l *Live) Seen(room string, onSite int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := &l.of(room).now
	now.OnSiteMost = max(now.OnSiteMost, uint32(max(0, onSite)))
}
