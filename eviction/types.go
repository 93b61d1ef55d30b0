package eviction

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/anteroom/anteroom/qpid"
)

// Time is one reading of a node's two clocks, both in microseconds. Every
// input of the core carries one; the core never reads a clock.
type Time struct {
	Boot int64 // since the machine's boot, sleep included; never steps
	Wall int64 // Unix time; may step when an operator or NTP sets it
}

// Member is one life of a node: a restart under the same name is another member.
type Member struct {
	Name qpid.NodeID
	Boot uint64
}

func (m Member) String() string { return fmt.Sprintf("%s.%d", m.Name, m.Boot) }

// Compare orders members by name and life.
func (m Member) Compare(o Member) int {
	if c := cmp.Compare(m.Name, o.Name); c != 0 {
		return c
	}
	return cmp.Compare(m.Boot, o.Boot)
}

// Peer is a member as gossip presents it.
type Peer struct {
	Member
	Start int64 // Unix microseconds at which this life began, by its own clock
}

// View is what one node's failure detector believes: the members alive, in
// order of seniority. Two nodes' views may differ at any time.
type View []Peer

// Seniority orders peers: who started first comes first. The name breaks ties,
// so equal sets of peers have equal orders on every node.
func Seniority(a, b Peer) int {
	if c := cmp.Compare(a.Start, b.Start); c != 0 {
		return c
	}
	return a.Compare(b.Member)
}

// NewView sorts peers into a View.
func NewView(peers []Peer) View {
	v := slices.Clone(peers)
	slices.SortFunc(v, Seniority)
	return v
}

// index returns the place of m in the view, -1 if it is not there.
func (v View) index(m Member) int {
	return slices.IndexFunc(v, func(p Peer) bool { return p.Member == m })
}

// Account owns slots: a member's ledger of one room, told from the same
// member's earlier ledgers by the number of the epoch at which it was opened.
// A voided ledger never comes back; its node opens another account.
type Account struct {
	Member
	Born uint64 // epoch number; later accounts of one member have higher ones
}

func (a Account) String() string { return fmt.Sprintf("%v/%d", a.Member, a.Born) }

func (a Account) compare(o Account) int {
	if c := a.Member.Compare(o.Member); c != 0 {
		return c
	}
	return cmp.Compare(a.Born, o.Born)
}

// Line names one line of authority: the founding of a cluster, or the moment
// at which a side without a quorum went on alone. When two lines meet, the
// older one that still has its quorum goes on and the other joins it.
type Line struct {
	Stamp uint64      // Unix microseconds; 0: none
	By    qpid.NodeID // who began it, as beginsLine names it
}

// beginsLine names the line that begins with a wave of m at t. Two nodes that run under one
// name may begin one in the same microsecond, so it goes by the life: no life has two
// waves at one time, and of no two lives is the name the same up to its last hyphen and the boot after it.
func beginsLine(m Member, t uint64) Line {
	return Line{t, m.Name + "-" + qpid.NodeID(strconv.FormatUint(m.Boot, 36))}
}

func (l Line) compare(o Line) int {
	if c := cmp.Compare(l.Stamp, o.Stamp); c != 0 {
		return c
	}
	return cmp.Compare(l.By, o.By)
}

// Founded reports whether l is a line at all.
func (l Line) Founded() bool { return l.Stamp != 0 }

// fanout children of list position i in the k-ary heap layout are at
// fanout*i+1 … fanout*i+fanout. Equal lists mean equal trees, and a newcomer
// at the end adds one edge.
func children(i, fanout, n int) (first, end int) {
	first = min(fanout*i+1, n)
	return first, min(first+fanout, n)
}

func parent(i, fanout int) int { return (i - 1) / fanout }
