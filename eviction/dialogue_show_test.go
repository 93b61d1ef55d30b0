package eviction

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anteroom/anteroom/qpid"
)

// glimpse is what is told of a node when it changes.
type glimpse struct {
	grade  Grade
	list   string
	line   Line
	voters string
	off    bool // its clock is not to be trusted
	calls  bool // it calls visitors of some room
	rooms  []roomGlimpse
}

type roomGlimpse struct {
	account Account
	minted  int
	books   []PeerAccount
	closed  bool
	limit   int
	voids   []Void
}

func (p *play) glance(a *actor) glimpse {
	g := glimpse{grade: a.grade, list: members(a.list), line: a.line, voters: votersIn(a.voters), off: a.clock.quarantined}
	for _, gate := range a.Gates() {
		g.calls = g.calls || a.Calls(gate, p.time(a)) || gate.closed && a.Admits(gate, p.time(a))
		g.rooms = append(g.rooms, roomGlimpse{
			gate.ledger.account, gate.ledger.minted, gate.ledger.Peers(), gate.closed, gate.now.Target, gate.Voids(),
		})
	}
	return g
}

// notice tells what has changed at a node.
func (p *play) notice(a *actor) {
	was, is := a.was, p.glance(a)
	a.was = is
	if was.grade != is.grade || was.list != is.list {
		p.say(a, "%v wave of %s", is.grade, is.list)
	}
	if was.line != is.line {
		p.say(a, "on line %d", p.line(is.line))
	}
	if was.voters != is.voters {
		p.say(a, "voters %s", is.voters)
	}
	if was.off != is.off {
		p.say(a, "%s", either(is.off, "its clock is off", "its clock is right again"))
	}
	for r := range is.rooms {
		before := roomGlimpse{}
		if r < len(was.rooms) {
			before = was.rooms[r]
		}
		p.noticeRoom(a, r, before, is.rooms[r])
	}
	if was.calls != is.calls {
		p.say(a, "%s", either(is.calls, "may call", "calls nobody"))
	}
}

func (p *play) noticeRoom(a *actor, r int, was, is roomGlimpse) {
	if was.limit != is.limit && was.limit != 0 {
		p.say(a, "%slimit %d", p.of(r), is.limit)
	}
	switch {
	case was.account == is.account:
		made := is.minted - was.minted
		for _, b := range was.books {
			if !slices.ContainsFunc(is.books, func(o PeerAccount) bool { return o.Account == b.Account }) {
				made -= b.Received - b.Sent
			}
		}
		if made != 0 {
			p.say(a, "%s%s %d", p.of(r), either(made > 0, "mints", "burns"), max(made, -made))
		}
	case is.account.Born == 0:
		p.say(a, "%saccount %s closed", p.of(r), accountIn(was.account))
	default:
		p.say(a, "%saccount %s%s", p.of(r), accountIn(is.account), either(is.minted > 0, fmt.Sprintf(", mints %d", is.minted), ""))
	}
	for _, v := range is.voids {
		if i, ok := findVoid(was.voids, v.Member); (!ok || was.voids[i].Epoch < v.Epoch) && !slices.Contains(a.list, v.Member) {
			p.say(a, "%svoid: %s", p.of(r), voidIn(v))
		}
	}
	if was.closed != is.closed {
		p.say(a, "%s%s", p.of(r), either(is.closed, "closed: more slots than the limit", "within the limit again"))
	}
}

func either(a bool, yes, no string) string {
	if a {
		return yes
	}
	return no
}

// line numbers lines in the order in which they turn up.
func (p *play) line(l Line) int {
	if i := slices.Index(p.lines, l); i >= 0 {
		return i + 1
	}
	p.lines = append(p.lines, l)
	return len(p.lines)
}

func memberIn(m Member) string {
	if m.Boot == 1 {
		return string(m.Name)
	}
	return m.String()
}

func members(ms []Member) string {
	names := make([]string, len(ms))
	for i, m := range ms {
		names[i] = memberIn(m)
	}
	return strings.Join(names, " ")
}

func votersIn(v Voters) string {
	s := fmt.Sprint(v.Names)
	if v.Next != nil {
		s += fmt.Sprint(", proposed ", v.Next)
	}
	return s
}

func accountIn(a Account) string { return fmt.Sprintf("%s@%d", memberIn(a.Member), a.Born) }

func voidIn(v Void) string { return fmt.Sprintf("%s up to @%d", memberIn(v.Member), v.Epoch) }

func voidsIn(vs []Void) string {
	var s []string
	for _, v := range vs {
		s = append(s, voidIn(v))
	}
	return strings.Join(s, ", ")
}

func visitorOf(w qpid.Weight) int { return int(w.ID[0])<<8 | int(w.ID[1]) }

func itemOf(visitor int) qpid.ItemID { return qpid.ItemID{byte(visitor >> 8), byte(visitor)} }

// show is a message as a dialogue has it.
func (p *play) show(m Message) string {
	s := fmt.Sprintf("%s→%s %s", memberIn(m.From), memberIn(m.To), m.Body.Kind())
	switch b := m.Body.(type) {
	case *Gather:
		return fmt.Sprintf("%s %d of %s, T %.2f", s, b.Epoch.Num, members(p.lists[b.Epoch]), float64(b.T-wallBase)/1e6)
	case *Reply:
		s += fmt.Sprint(" ", b.Epoch.Num)
		for _, n := range b.Nodes {
			s += fmt.Sprintf("; %s", memberIn(p.lists[b.Epoch][n.Index]))
			if !n.Knows {
				s += " knows nothing"
			}
			for _, r := range b.Rooms {
				s += p.reported(r, n.Index)
			}
		}
		return s
	case *Commit:
		s += fmt.Sprintf(" %d %v", b.Epoch.Num, b.Grade)
		for i := range b.Rooms {
			s += p.decided(&b.Rooms[i], p.lists[b.Epoch])
		}
		return s
	case *Ask:
		return fmt.Sprintf("%s for the list of %d", s, b.Epoch.Num)
	case *Nack:
		return fmt.Sprintf("%s, has seen %d", s, b.Epoch.Num)
	case *Slots:
		return fmt.Sprintf("%s %s to %s: %d ever", s, accountIn(b.From), accountIn(b.To), b.Total)
	case *SlotsAck:
		return fmt.Sprintf("%s %s to %s: %d ever", s, accountIn(b.From), accountIn(b.To), b.Total)
	}
	return s
}

func (p *play) reported(r RoomReply, index int) string {
	for _, n := range r.Nodes {
		if n.Index != index {
			continue
		}
		s := fmt.Sprintf(" %d free %d used %d wait", n.Free, n.Used, n.Queued)
		if len(p.rooms) > 1 {
			s = " " + r.Room + s
		}
		return s
	}
	return ""
}

// decided is what a commit says of a room, as far as it changes anything.
func (p *play) decided(c *RoomCommit, list []Member) string {
	var s []string
	add := func(format string, args ...any) { s = append(s, fmt.Sprintf(format, args...)) }
	if len(p.rooms) > 1 {
		add("%s", c.Room)
	}
	switch cut := c.Cut.Value; {
	case cut == (qpid.Weight{}):
	case cut == qpid.UpTo(cut.Stamp):
		add("cut %.2f", float64(cut.Stamp-wallBase)/1e6)
	default:
		add("cut #%d", visitorOf(cut))
	}
	if c.Mint > 0 {
		add("mint %d", c.Mint)
	}
	for _, b := range c.Burn {
		add("%s burns %d", memberIn(list[b.Index]), b.N)
	}
	for _, m := range c.Moves {
		add("%s sends %d to %s", memberIn(list[m.From]), m.Slots, memberIn(list[m.To]))
	}
	for _, vs := range []struct {
		name string
		of   []Void
	}{{"void", c.Void}, {"safe", c.Safe}, {"settled", c.Settled}} {
		if len(vs.of) > 0 {
			add("%s %s", vs.name, voidsIn(vs.of))
		}
	}
	if c.Open {
		add("open")
	}
	if c.Closed {
		add("closed")
	}
	for _, t := range c.Tokens {
		add("%d tokens to %s", t.N, memberIn(list[t.Index]))
	}
	if s == nil {
		return ""
	}
	return ": " + strings.Join(s, ", ")
}

// state shows everybody.
func (p *play) state() {
	for _, a := range p.actors {
		if !a.up {
			continue
		}
		fmt.Fprintf(&p.out, "%s: %v", memberIn(a.self.Member), a.grade)
		if a.line.Founded() {
			fmt.Fprintf(&p.out, ", line %d", p.line(a.line))
		}
		if a.wave != nil {
			fmt.Fprintf(&p.out, ", frozen")
		}
		for r, g := range a.Gates() {
			fmt.Fprintf(&p.out, "; %s", p.of(r))
			if g.line != a.line && g.line.Founded() {
				fmt.Fprintf(&p.out, "on line %d ", p.line(g.line))
			}
			if g.ledger.account.Born == 0 {
				fmt.Fprintf(&p.out, "no account")
			} else {
				fmt.Fprintf(&p.out, "%s %d free %d used", accountIn(g.ledger.account), g.ledger.Free(), g.ledger.used)
			}
			sep := ", waiting"
			g.Queue.Ascend(func(w qpid.Weight) bool {
				fmt.Fprintf(&p.out, "%s #%d", sep, visitorOf(w))
				sep = ""
				return true
			})
		}
		p.out.WriteByte('\n')
	}
	for r := range p.rooms {
		fmt.Fprintf(&p.out, "%s%d on the site\n", p.of(r), p.inside(r))
	}
}
