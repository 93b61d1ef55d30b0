// Package history keeps what happened to visitors: as lines of an admission
// log, one JSON object each, and in a book from which their fairness is
// measured.
//
// A log has no ticket and no pass in it, only the random id inside a ticket,
// which opens nothing.
package history

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// Entry is one line of an admission log.
type Entry struct {
	At     int64  `json:"at"` // Unix microseconds, by the node's wall clock
	Node   string `json:"node"`
	Event  string `json:"event"`
	Room   string `json:"room"`
	Ticket string `json:"ticket"`           // id, 32 hexadecimal digits
	Joined uint64 `json:"joined"`           // Unix microseconds: the stamp
	Line   uint64 `json:"line,omitempty"`   // of an entitlement: when its cluster was founded, Unix microseconds,
	Epoch  uint64 `json:"epoch,omitempty"`  // the wave of that cluster,
	Stamp  uint64 `json:"stamp,omitempty"`  // and the weight by which that ordered tickets (or of the new ticket),
	ID     string `json:"key_id,omitempty"` // and its id
}

// The events of a log.
const (
	Entitled = "entitled" // the cut reached the ticket: its turn is certain
	Called   = "called"   // a slot was set aside
	Admitted = "admitted" // took the slot, after waiting
	Open     = "open"     // walked straight in
	Parked   = "parked"   // silent or did not come: out of the queue until it checks in
	Ended    = "ended"    // the session is over
	TookOver = "taken_over"
	Dropped  = "dropped"   // given up
	Through  = "through"   // let in without a slot: the room has become passthrough
	Given    = "given"     // a place, or a visit with its slot, came from a node that leaves
	Handed   = "handed_on" // another browser has taken the place over, by a link
	Anew     = "restamped" // let too many calls pass: the person waits anew, with the ticket of key_id stamped at stamp
)

func name(e node.Event) string {
	switch e {
	case node.Entitled:
		return Entitled
	case node.CalledIn:
		return Called
	case node.AdmittedQ:
		return Admitted
	case node.AdmittedO:
		return Open
	case node.Parked:
		return Parked
	case node.Ended:
		return Ended
	case node.TakenOver, node.WentOn:
		return TookOver
	case node.Dropped:
		return Dropped
	case node.Through:
		return Through
	case node.Given:
		return Given
	case node.Restamped:
		return Anew
	case node.HandedOn:
		return Handed
	}
	panic(fmt.Sprintf("history: event %d has no name", e))
}

// Of makes the line for what a node says has happened.
func Of(at int64, nodeName qpid.NodeID, a node.Admission) Entry {
	e := Entry{
		At: at, Node: string(nodeName), Event: name(a.Event), Room: a.Room,
		Ticket: hex.EncodeToString(a.Weight.ID[:]), Joined: a.Weight.Stamp,
	}
	if a.Event == node.Entitled {
		e.Line, e.Epoch = a.Line, a.Epoch
	}
	if a.Event == node.Entitled || a.Event == node.Restamped {
		e.Stamp, e.ID = a.Key.Stamp, hex.EncodeToString(a.Key.ID[:])
	}
	return e
}

// Read hands each line of a log to visit. A last line that was cut short, as by
// a crash, is left out.
func Read(r io.Reader, visit func(Entry)) error {
	lines := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("line %d: %w", n, err)
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("line %d is no line of an admission log: %w", n, err)
		}
		visit(e)
	}
}

// person is what a book knows of one ticket.
type person struct {
	fairness.Admission
	room             string
	line             uint64
	entitled, called bool
}

// Book collects what happened to people, at one node or at all. It is not safe
// for concurrent use.
type Book struct {
	max    int
	people map[string]*person
	order  []string // of arrival in the book
}

// NewBook returns a book of at most so many people; the first to be written in
// it is the first to be forgotten.
func NewBook(people int) *Book { return &Book{max: people, people: make(map[string]*person)} }

// Add writes down a line of a log. Lines of several nodes may come in any order.
func (b *Book) Add(e Entry) {
	if e.Event != Entitled && e.Event != Called && e.Event != Open {
		return
	}
	p := b.person(e)
	if p == nil {
		return
	}
	switch order := (fairness.Order{Epoch: e.Epoch, Key: weight(e.Stamp, e.ID)}); {
	case e.Event == Entitled && (!p.entitled || e.Line < p.line || e.Line == p.line && order.Compare(p.Entitled) < 0):
		p.entitled, p.line, p.Entitled, p.EntitledAt = true, e.Line, order, e.At
	case e.Event == Called && (!p.called || e.At < p.CalledAt):
		p.called, p.CalledAt = true, e.At
	case e.Event == Open:
		p.called, p.Open, p.CalledAt, p.EntitledAt = true, true, e.At, e.At
	}
}

func (b *Book) person(e Entry) *person {
	key := e.Room + "/" + e.Ticket
	if p := b.people[key]; p != nil {
		return p
	}
	if len(b.order) == b.max {
		delete(b.people, b.order[0])
		b.order = b.order[1:]
	}
	p := &person{room: e.Room}
	p.Joined, p.JoinedAt = weight(e.Joined, e.Ticket), int64(e.Joined)
	b.people[key], b.order = p, append(b.order, key)
	return p
}

func weight(stamp uint64, id string) qpid.Weight {
	w := qpid.Weight{Stamp: stamp}
	if b, err := hex.DecodeString(id); err == nil {
		copy(w.ID[:], b)
	}
	return w
}

// Rooms returns the names of the rooms that people in the book were in.
func (b *Book) Rooms() []string {
	var names []string
	for _, key := range b.order {
		if n := b.people[key].room; !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

// Report measures the fairness of a room towards everyone who was called, "" of
// all rooms. overLimit is the most people beyond the limit that anyone saw.
// People of different rooms are in different lines: over all rooms, only the
// order within each counts.
func (b *Book) Report(room string, overLimit int) fairness.Report {
	whole := b.measure(room, overLimit)
	rooms := b.Rooms()
	if room != "" || len(rooms) < 2 {
		return whole
	}
	whole.DiscordantPairs, whole.MaxOvertakenBy, whole.OpenInversions = 0, 0, 0
	var pairs, everybody, mistakes float64
	for _, name := range rooms {
		r := b.measure(name, 0)
		pairs += pairsOf(r.N)
		n := pairsOf(r.N + r.OpenAdmissions) // the thesis's count is over them too
		everybody, mistakes = everybody+n, mistakes+n*r.KendallTauThesis
		whole.DiscordantPairs += r.DiscordantPairs
		whole.MaxOvertakenBy = max(whole.MaxOvertakenBy, r.MaxOvertakenBy)
		whole.OpenInversions += r.OpenInversions
	}
	whole.KendallTau = float64(whole.DiscordantPairs) / max(1, pairs)
	whole.KendallTauThesis = mistakes / max(1, everybody)
	return whole
}

func pairsOf(n int) float64 { return float64(n) * float64(n-1) / 2 }

func (b *Book) measure(room string, overLimit int) fairness.Report {
	var all []fairness.Admission
	waves := b.waves()
	for _, key := range b.order {
		if p := b.people[key]; p.called && (p.Open || p.entitled) && (room == "" || p.room == room) {
			a := p.Admission
			a.Entitled.Epoch = uint64(waves[wave{p.line, a.Entitled.Epoch}])
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(x, y fairness.Admission) int { return cmp.Compare(x.JoinedAt, y.JoinedAt) })
	return fairness.Measure(all, overLimit)
}

// wave is one of a cluster that was founded at line. A cluster that is founded
// anew counts its waves from 1.
type wave struct{ line, epoch uint64 }

// waves numbers the waves in which anyone was entitled, over all foundings.
func (b *Book) waves() map[wave]int {
	var all []wave
	for _, p := range b.people {
		all = append(all, wave{p.line, p.Entitled.Epoch})
	}
	slices.SortFunc(all, func(x, y wave) int { return cmp.Or(cmp.Compare(x.line, y.line), cmp.Compare(x.epoch, y.epoch)) })
	number := make(map[wave]int)
	for i, w := range slices.Compact(all) {
		number[w] = i
	}
	return number
}
