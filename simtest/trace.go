package simtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// trace is what happened, in order. Its hash tells two runs apart even when
// nobody reads the text.
type trace struct {
	hash  uint64
	print func(line string)
}

const (
	offsetFNV = 0xcbf29ce484222325
	primeFNV  = 0x100000001b3
)

// note folds an event into the hash of the trace.
func (w *world) note(kind byte, a, b uint64) {
	h := w.trace.hash
	for _, x := range [...]uint64{uint64(w.now), uint64(kind), a, b} {
		h = (h ^ x) * primeFNV
		h ^= h >> 29
	}
	w.trace.hash = h
}

// printf adds a line to the text of the trace, if anybody reads it.
func (w *world) printf(format string, args ...any) {
	if w.trace.print != nil {
		w.trace.print(fmt.Sprintf("%11.6f ", float64(w.now)/1e6) + fmt.Sprintf(format, args...))
	}
}

func micros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// complaint is how a trace shows an error.
func complaint(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// name is a member in a trace: its host, and which of all lives it is.
func (w *world) name(m eviction.Member) string {
	if m == (eviction.Member{}) {
		return "nobody"
	}
	return fmt.Sprintf("%s.%d", m.Name, m.Boot&0xffff)
}

// epoch is a wave's name in a trace; its coordinator's is long.
func (w *world) epoch(e qpid.Epoch) string {
	name, _, _ := strings.Cut(string(e.Coordinator), ".")
	return fmt.Sprintf("%d@%s", e.Num, name)
}

func (w *world) account(a eviction.Account) string {
	return fmt.Sprintf("%s@%d", w.name(a.Member), a.Born)
}

func (w *world) names(v eviction.View) string {
	var b strings.Builder
	for i, p := range v {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.name(p.Member))
	}
	return b.String()
}

func (w *world) members(ms []eviction.Member) string {
	var b strings.Builder
	for i, m := range ms {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.name(m))
	}
	return b.String()
}

// body is a message in a trace.
func (w *world) body(b eviction.Body) string {
	switch b := b.(type) {
	case *eviction.Gather:
		return fmt.Sprintf("gather %s [%s] T=%d", w.epoch(b.Epoch), w.members(b.List), b.T-epochWall)
	case *eviction.Reply:
		return fmt.Sprintf("reply %s of %d nodes%s", w.epoch(b.Epoch), len(b.Nodes), w.replies(b))
	case *eviction.Commit:
		return fmt.Sprintf("commit %s %v%s", w.epoch(b.Epoch), b.Grade, w.decisions(b))
	case *eviction.Copies:
		return w.copies(b)
	case *eviction.CopiesAck:
		return fmt.Sprintf("copies_ack %d of lane %d, unknown %t", b.Seq, int64(b.Lane)-epochWall, b.Unknown)
	case *eviction.Nack:
		return fmt.Sprintf("nack %s follow %s", w.epoch(b.Epoch), w.name(b.Lead.Member))
	case *eviction.Probe:
		return fmt.Sprintf("probe %s by %s", w.epoch(b.Epoch), w.name(b.Lead.Member))
	case *eviction.ProbeAck:
		return fmt.Sprintf("probe_ack %s follow %s", w.epoch(b.Epoch), w.name(b.Follow.Member))
	case *eviction.Slots:
		return fmt.Sprintf("slots %s %s to %s: %d ever", b.Room, w.account(b.From), w.account(b.To), b.Total)
	case *eviction.SlotsAck:
		return fmt.Sprintf("slots_ack %s %s to %s: %d ever", b.Room, w.account(b.From), w.account(b.To), b.Total)
	case *eviction.RoomQPID:
		return fmt.Sprintf("qpid %s %v", b.Room, b.Msg)
	}
	return b.Kind()
}

func (w *world) replies(b *eviction.Reply) string {
	var s strings.Builder
	for i := range b.Rooms {
		for _, n := range b.Rooms[i].Nodes {
			fmt.Fprintf(&s, " | %s %d: born %d minted %d free %d used %d queued %d due %d",
				b.Rooms[i].Room, n.Index, n.Born, n.Minted, n.Free, n.Used, n.Queued, n.Due)
		}
	}
	return s.String()
}

func (w *world) voids(vs []eviction.Void) string {
	var s strings.Builder
	for _, v := range vs {
		fmt.Fprintf(&s, " %s<=%d", w.name(v.Member), v.Epoch)
	}
	return s.String()
}

func (w *world) decisions(b *eviction.Commit) string {
	var s strings.Builder
	for i := range b.Rooms {
		r := &b.Rooms[i]
		fmt.Fprintf(&s, " | %s supply %d queued %d cut %v", r.Room, r.Supply, r.Queued, weight(r.Cut.Value))
		if r.Open {
			s.WriteString(" open")
		}
		if !r.Sure {
			s.WriteString(" unsure")
		}
		for _, c := range r.Claims {
			fmt.Fprintf(&s, " claim %d of%s", c.Slots, w.voids(c.Of))
		}
		if r.Closed {
			s.WriteString(" closed")
		}
		if r.Mint != 0 {
			fmt.Fprintf(&s, " mint %d", r.Mint)
		}
		if len(r.Burn) > 0 {
			fmt.Fprintf(&s, " burn %v", r.Burn)
		}
		if len(r.Moves) > 0 {
			fmt.Fprintf(&s, " moves %v", r.Moves)
		}
		if len(r.Void) > 0 {
			fmt.Fprintf(&s, " void%s safe%s settled%s", w.voids(r.Void), w.voids(r.Safe), w.voids(r.Settled))
		}
	}
	return s.String()
}

// weight shows a weight by the time since the world began and its ticket.
func weight(x qpid.Weight) string {
	if x.IsEmpty() || x.Stamp == 0 {
		return "-"
	}
	return fmt.Sprintf("%.6f/%d", (float64(x.Stamp)-epochWall)/1e6, numberIn(x.ID))
}

// shown is a request's subject in a trace.
func (w *world) shown(q *request) string {
	if q.op <= opAbandon {
		return fmt.Sprintf("ticket %d of %s", w.ticketOf(q.ticket.ID), q.ticket.Room)
	}
	return fmt.Sprintf("pass %d of %s until %.6f", w.ticketOf(q.pass.ID), w.account(q.pass.Home), float64(q.pass.Expires-epochWall)/1e6)
}

// outcome is a request's answer in a trace.
func (w *world) outcome(q *request) string {
	a := &q.answer
	switch {
	case q.err != nil:
		return q.err.Error()
	case a.Forward != (eviction.Member{}):
		return "ask " + w.name(a.Forward)
	case a.State == node.Admitted || q.op >= opRefresh:
		return fmt.Sprintf("pass of %s until %.6f", w.account(a.Pass.Home), float64(a.Pass.Expires-epochWall)/1e6)
	}
	state := "waiting"
	if a.State == node.Called {
		state = "called"
	}
	return fmt.Sprintf("%s at %d of %d, home %s generation %d, again in %v %s",
		state, a.Position, a.Queued, w.name(a.Ticket.Home), a.Ticket.Gen, a.Refresh, a.Paused)
}

func (w *world) copies(b *eviction.Copies) string {
	var s strings.Builder
	fmt.Fprintf(&s, "copies %d of lane %d", b.Seq, int64(b.Lane)-epochWall)
	for i := range b.Rooms {
		fmt.Fprintf(&s, " | %s", b.Rooms[i].Room)
		for j := range b.Rooms[i].Places {
			fmt.Fprintf(&s, " %d", w.ticketOf(b.Rooms[i].Places[j].ID))
		}
		for _, id := range b.Rooms[i].Gone {
			fmt.Fprintf(&s, " -%d", w.ticketOf(id))
		}
	}
	return s.String()
}
