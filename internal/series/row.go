package series

import (
	"encoding/binary"
	"math"
)

// Count is something that is counted.
type Count uint8

// What is counted. The order is that of the format on disk: new ones go to the end.
const (
	Joins          Count = iota // places given out, those of people who walked straight in among them
	Calls                       // slots set aside
	Admissions                  // let in, after waiting or not
	WalkedIn                    // of them those who did not wait
	EndsLeft                    // visits over before the pass ran out: the visitor or the site ended them
	EndsExpired                 // visits that ran out
	NoShows                     // called, and did not come in time
	DropOuts                    // places given up: abandoned, or silent for too long
	RefusedFull                 // joins refused: the queue is full
	RefusedClosed               // the room lets nobody join
	RefusedNode                 // the node has too much to do, or is part of no cluster
	RefusedAddress              // requests refused: their address has reached a bound
	Estimates                   // estimated waits whose truth has come, one of each person
	UnderP25                    // of them those in which the wait was no longer than p25 said
	UnderP50                    // likewise
	UnderP75
	Terms // no count: a digest of what bounded the visits that are over; 0: not known, or of several kinds
	counts
)

// State is how a room was, the gravest last.
type State uint8

// The states.
const (
	Unknown     State = iota
	Open              // newcomers walk straight in
	Queueing          // they wait
	Passthrough       // nobody is counted
	Draining
	Held
	Paused // nobody may be called: no majority, or no lease
	states
)

// String is the state's name in answers.
func (s State) String() string {
	return [...]string{"", "open", "queueing", "passthrough", "draining", "held", "paused"}[s]
}

// Settings are what held of a room.
type Settings struct {
	Limit uint32
	Rate  uint32 // new users a minute; 0: no limit
	State State
}

// Row is one room in one step at one node, or at several.
type Row struct {
	At int64  // when the step begins, Unix seconds
	Up uint32 // seconds of the step in which the node ran; of several nodes the most
	// Sums over these seconds, so that they add up over nodes; by Up they are means.
	OnSite, InLine, Called uint64
	// The most at once: in the room as a whole as far as the node could see, and
	// never less than at the node itself.
	OnSiteMost, InLineMost uint32
	Settings
	Counts        [counts]uint32
	Waits, Visits Hist
}

// Merge adds what another node, or a part of the same step, has to say.
func (r *Row) Merge(o *Row) {
	r.OnSite, r.InLine, r.Called = r.OnSite+o.OnSite, r.InLine+o.InLine, r.Called+o.Called
	r.OnSiteMost, r.InLineMost = max(r.OnSiteMost, o.OnSiteMost), max(r.InLineMost, o.InLineMost)
	terms := r.terms(o)
	for i, n := range o.Counts {
		r.Counts[i] = plus(r.Counts[i], n)
	}
	r.Counts[Terms] = terms
	r.Waits.Merge(o.Waits)
	r.Visits.Merge(o.Visits)
}

// terms are those of the visits of both.
func (r *Row) terms(o *Row) uint32 {
	switch mine, others := r.Counts[Terms], o.Counts[Terms]; {
	case len(o.Visits) == 0 || mine == others:
		return mine
	case len(r.Visits) == 0:
		return others
	}
	return 0
}

// Beside adds another node's row of the same step.
func (r *Row) Beside(o *Row) {
	r.Merge(o)
	r.Up = max(r.Up, o.Up)
	r.Limit, r.Rate, r.State = max(r.Limit, o.Limit), max(r.Rate, o.Rate), max(r.State, o.State)
}

// Then adds the same node's later row of the same step.
func (r *Row) Then(o *Row) {
	r.Merge(o)
	r.Up += o.Up
	r.Settings = o.Settings
}

// idle reports whether nobody was there and nothing happened.
func (r *Row) idle() bool {
	return r.OnSite|r.InLine|r.Called == 0 && r.OnSiteMost|r.InLineMost == 0 && r.Counts == [counts]uint32{}
}

// append writes the row with its time in steps from base.
func (r *Row) append(b []byte, base, step int64) []byte {
	for _, v := range []uint64{
		uint64((r.At - base) / step), uint64(r.Up), r.OnSite, r.InLine, r.Called, uint64(r.OnSiteMost), uint64(r.InLineMost),
		uint64(r.Limit), uint64(r.Rate), uint64(r.State),
	} {
		b = binary.AppendUvarint(b, v)
	}
	set := uint64(0)
	for i, n := range r.Counts {
		if n > 0 {
			set |= 1 << i
		}
	}
	b = binary.AppendUvarint(b, set)
	for _, n := range r.Counts {
		if n > 0 {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	return r.Visits.append(r.Waits.append(b))
}

// stepsMax is how far from its base a row may be.
const stepsMax = 1 << 32

// row reads what append wrote.
func (r *reader) row(base, step int64) (o Row) {
	o.At = base + int64(r.uvarint(stepsMax))*step
	o.Up = uint32(r.uvarint(math.MaxUint32))
	o.OnSite, o.InLine, o.Called = r.uvarint(math.MaxUint64), r.uvarint(math.MaxUint64), r.uvarint(math.MaxUint64)
	o.OnSiteMost, o.InLineMost = uint32(r.uvarint(math.MaxUint32)), uint32(r.uvarint(math.MaxUint32))
	o.Limit, o.Rate = uint32(r.uvarint(math.MaxUint32)), uint32(r.uvarint(math.MaxUint32))
	o.State = State(r.uvarint(uint64(states) - 1))
	for i, set := 0, r.uvarint(math.MaxUint64); set != 0; i, set = i+1, set>>1 {
		if set&1 == 0 {
			continue
		}
		if n := uint32(r.uvarint(math.MaxUint32)); i < len(o.Counts) { // a later version counts more
			o.Counts[i] = n
		}
	}
	o.Waits, o.Visits = r.hist(), r.hist()
	return o
}

// AppendRow writes a row of a span, for another node.
func AppendRow(b []byte, r *Row, s Span) []byte { return r.append(b, s.From, s.Step) }

// Decode reads what AppendRow wrote: base is where the span begins; visit may return false to hear no more.
func Decode(b []byte, base, step int64, visit func(*Row) bool) error {
	if step <= 0 {
		return errRow
	}
	r := reader{b: b}
	for len(r.b) > 0 {
		row := r.row(base, step)
		if r.bad {
			return errRow
		}
		if !visit(&row) {
			return nil
		}
	}
	return nil
}
