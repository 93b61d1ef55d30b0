package eviction

import (
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// A node may have its visits on its disk (package node says how). When everything was down,
// each node goes on with those of its earlier lives, so that nobody has to wait until their
// passes have run out: the rest of the limit is free at once.
//
// A node says in its reply what became of each earlier life whose disk it has (Earlier). Where
// nobody is lost but lives that are so known, the coordinator has all of them go on
// (RoomCommit.Resume): each node books a slot for each visit on its own account, in use. When it
// has said so, and all know that the earlier account is void, that one is not waited for.
//
// Proof that no more slots are in use then than before. The life of whom a node has the disk is
// over: no two processes have one. So what was that life's can do no more than its passes, all
// of which are on the disk, each with a slot of its account (package node, ondisk.go). Free
// slots that it had sent are taken by nobody who knows that it is void. Visits that were on
// their way to it are on no disk: who gave them counts them, or is lost, and they are waited
// for (actLeft).
//
// None of these slots has been made again elsewhere. That is done when D of the loss is over,
// and then no pass is good; or when what is kept of the lost by others is less than they may
// have had (see cover), by a wave that had counted all slots (Sure), and in which all had said
// that the account is void, as their disks had it. By lemma 6 somebody in this wave was in that
// one: in this life, and then does not say Disks; or in one before, and then the
// void is among those that its disk had (Over). That are the voids known in waves that had
// counted all: who is started again while others are waited for has nothing against them. Who is
// a quorum by itself made them by no more than what its disk has, see Gate.knows. An account that
// was followed by another in its life is void as well: the owner says of none that it is whole if
// it has visits of two accounts of one life.
//
// A life that goes on is known to those after it: to who was in its waves, and by its own record,
// which is synced before it says that it can.
//
// So the accounts that live, those that have been resumed and those that can be yet have
// together no more than there was. A visit may be on two disks, as one that was taken over from a lost
// node, or given by one that leaves: it is booked twice, and counts twice. What is booked
// is counted by the wave after, and what is too much is burned as it comes free: so
// nobody is called by a commit that resumes, nor by any until all are counted (hold), and the
// supply that it leaves has all visits that it knows of. That is until who goes on has been in a
// wave that had counted all (uncounted). It was in none when it began to, as it said Disks, so
// such a wave came after and had what it booked. Whether others have been in one says nothing:
// who was away meanwhile has, and it was before.
//
// A pass is extended at one node, lemma 11: others hear who goes on with a life before any
// slot is made, and adopt nothing of it (MayAdopt). Who has not heard that it was to go on may be
// told once more, when others have slots already: they adopt nothing before a wave of their
// life had counted all, and after that nobody goes on in a wave with them, nor with anything
// that was void then (Over).

// EarlierState says what is left of an earlier life of a node.
type EarlierState uint8

const (
	// EarlierNothing is a life of which the disk has no visit: no pass is out but of those that it
	// was being given.
	EarlierNothing EarlierState = iota
	// EarlierWhole is one of which the node has all visits on its disk, and may go on with them.
	EarlierWhole
	// EarlierBooked is one whose visits are on the node's books, and not all on its disk as its own.
	EarlierBooked
	// EarlierResumed is one whose visits are: what is left of it is this life's.
	EarlierResumed
)

// Earlier is an earlier life of a node, which has its disk.
type Earlier struct {
	Account Account // its last one that had visits; without any Born is 0
	Visits  int     // of EarlierWhole
	State   EarlierState
}

// Resuming is what a node says for those who were lost to go on.
type Resuming struct {
	Disks   bool // no wave of this life has counted all slots: none of those who were lost before was made again since. False of a version that knows nothing of it
	Earlier []Earlier
	Over    []Void // what its disk knew to be void, when it started, as of a wave that had counted all; with Disks
}

// Resumption is what a commit says of that.
type Resumption struct {
	Resume  bool     // who has said EarlierWhole goes on with those visits, on slots that it books for them
	Resumed []Member // lives that go on at a later one of their name
}

// resumed is who goes on with what, and what this node has to say against it.
type resumed struct {
	lives  []Member // as of the last primary commit; never changed: another takes its place
	wentOn bool     // somebody went on in a wave of this life
	known  bool     // a later life of this node would know of this one
	sured  bool     // a wave of this life has counted all slots
	toldAt int64    // boot time of the last primary wave that spoke of the room
	early  []Member // whom this node knew when it was sured, or came back to such waves: nobody who came since has gone on with anything
	over   []Void   // what was known to be void in waves that had: of this life, or else of those before; likewise
}

// earlierMax bounds what a node says of its earlier lives.
const earlierMax = LivesMax

// overMax bounds Resuming.Over: who was void for so long is forgotten.
const overMax = 1 << 16

// resuming is what this node replies to wave w. A coordinator, which may be a quorum by itself, has
// no slots that a later life would not know of: others hear its reply when its record is synced.
func (g *Gate) resuming(w *wave) Resuming {
	var r Resuming
	if g.Earlier != nil {
		r.Earlier = g.Earlier()
	}
	if w.index == 0 && g.durable != unbounded && !g.resumed.known {
		r.Earlier = slices.DeleteFunc(r.Earlier, func(e Earlier) bool { return e.State == EarlierWhole })
	}
	if !g.sured {
		r.Disks, r.Over = true, g.over
	}
	return r
}

// installResumption takes in what a primary commit says, and reports whether this node goes
// on with visits of earlier lives.
func (g *Gate) installResumption(n *Node, now int64, w *wave, c *RoomCommit) bool {
	g.lives = c.Resumed
	g.wentOn = g.wentOn || c.Resume || len(c.Resumed) > 0
	b := g.c.waits
	away := now-g.toldAt >= b.Deadline+b.Lease+b.Margin // others may have forgotten this node, died, and gone on without it
	g.toldAt = now
	if c.Sure && !g.sured || g.sured && away {
		g.sured, g.early = true, slices.Clone(w.list)
		for i := range n.met {
			g.early = append(g.early, n.met[i].member)
		}
	}
	if g.sured {
		g.over = g.voids
	}
	return c.Resume && g.ledger.account.Born > 0 && g.ledger.account.Born == c.Born[w.index]
}

// Book makes slots that are in use, for visits of earlier lives of this node.
func (g *Gate) Book(n int) {
	g.ledger.mint(n)
	g.ledger.used += n
	g.busy = true
}

// MayResume reports whether this life may be told yet to go on with visits of earlier ones.
func (g *Gate) MayResume() bool { return !g.sured }

// mayHaveGoneOn reports whether by, another life of the same name, may have gone on with the visits
// of m, as of boot time now.
func (g *Gate) mayHaveGoneOn(m, by Member, now int64) bool {
	b := g.c.waits
	return by.Name == m.Name && by != m && (!g.sured || now-g.toldAt >= b.Deadline+b.Lease+b.Margin || slices.Contains(g.early, by))
}

// GoesOnAt returns the listed member that goes on with the visits of m, a life of before.
func (n *Node) GoesOnAt(g *Gate, m Member) (Member, bool) {
	if !slices.Contains(g.lives, m) {
		return Member{}, false
	}
	return n.MemberOf(m.Name)
}

// MaxPass is the longest that a pass alive may last from its making.
func (g *Gate) MaxPass() int64 { return micros(max(g.ttl, g.cfg.longest())) }

// earlierOf returns what the listed node of that name says of an earlier life of it.
func (rs *roomSums) earlierOf(d *decision, m Member) (e Earlier, ok bool) {
	i := successor(d.list, m)
	if i < 0 {
		return e, false
	}
	for _, e := range rs.nodes[i].Earlier {
		if e.Account.Member == m {
			return e, true
		}
	}
	return e, false
}

// actLeft returns those of lost of whom something may act that is not on the books of this
// wave's nodes. A life of which the disk has nothing may have been given visits that it never took
// in. Who gives them counts them for as long as it lives (see cover). If that one is lost, too, nobody
// knows: nothing is over then but what goes on, until all who may have given some are.
func (rs *roomSums) actLeft(d *decision, lost []Void, safe map[Member]uint64) []Void {
	over := func(v Void) bool {
		e, ok := rs.earlierOf(d, v.Member)
		given := slices.ContainsFunc(rs.visits, func(k VisitCount) bool { return k.Member == v.Member && k.Visits > 0 })
		return ok && safe[v.Member] >= v.Epoch && (e.State == EarlierResumed || e.State == EarlierNothing && !given)
	}
	gives := slices.ContainsFunc(lost, func(v Void) bool {
		_, covered := rs.uses(d, v.Member) // and has given none since
		return !covered && !over(v)
	})
	return slices.DeleteFunc(lost, func(v Void) bool {
		e, _ := rs.earlierOf(d, v.Member)
		return over(v) && (e.State == EarlierResumed || !gives)
	})
}

// resumedBy tells who goes on with which lives.
func (rs *roomSums) resumedBy(d *decision) (lives []Member) {
	for i := range rs.nodes {
		for _, e := range rs.nodes[i].Earlier {
			if m := e.Account.Member; e.State >= EarlierBooked && m.Name == d.list[i].Name && m != d.list[i] {
				lives = append(lives, m)
			}
		}
	}
	return lives
}

// uncounted reports whether a node goes on with visits and no wave of this life of it has counted all
// slots: those that it has booked are in no sum yet.
func (rs *roomSums) uncounted() bool {
	return slices.ContainsFunc(rs.nodes, func(n RoomNode) bool {
		return n.Disks && slices.ContainsFunc(n.Earlier, func(e Earlier) bool { return e.State >= EarlierBooked })
	})
}

// resume has everybody who was lost go on, if all of them can: c is decided but for that.
func (rs *roomSums) resume(d *decision, c *RoomCommit, inside int, lost []Void) {
	if c.Sure || rs.shared || c.From.Founded() || len(lost) == 0 {
		return
	}
	var over []Void
	for i := range rs.nodes {
		n := &rs.nodes[i]
		if !n.Disks || n.Line.Founded() && n.Line != c.Line {
			return
		}
		for _, v := range n.Over {
			over = addVoid(over, v)
		}
	}
	for _, v := range lost {
		if _, ok := rs.earlierOf(d, v.Member); !ok {
			return
		}
	}
	visits := 0
	for i := range rs.nodes {
		for _, e := range rs.nodes[i].Earlier {
			if e.State != EarlierWhole {
				continue
			}
			if i, void := findVoid(over, e.Account.Member); void && over[i].Epoch >= e.Account.Born {
				return // its slots may have been made again
			}
			visits += e.Visits
		}
	}
	if visits == 0 {
		return // all that is left is to know that they are void
	}
	c.Census = nil
	if held := slices.ContainsFunc(rs.nodes, func(n RoomNode) bool { return n.Holds != (qpid.Epoch{}) }); held {
		return // first nobody here has a census: a quorum that does not hear of this wave could go on with it
	}
	c.Resume, rs.resumes = true, true
	c.Supply = max(c.Supply, inside+visits)
}

func (r *Resuming) valid() bool {
	return len(r.Earlier) <= earlierMax && !slices.ContainsFunc(r.Earlier, func(e Earlier) bool { return !count(e.Visits) || e.State > EarlierResumed }) && len(r.Over) <= overMax
}

// VisitLine is a visit as a node's disk has it.
type VisitLine struct {
	ID      qpid.ItemID
	Stamp   uint64
	Gen     uint32
	Until   int64     // pass time: no pass of it is good for longer
	Started int64     // pass time
	Homes   []Account // whose it is; then those before, as of Visit
	Hand    uint8
}

// RoomLines are what becomes of those of one room.
type RoomLines struct {
	Room   string
	Put    []VisitLine
	Struck []qpid.ItemID // are over, or another node's
	Held   int64         // until then, pass time, passes use slots here of which there is no line; 0: as it was; -1: none does
}

// VisitsBatch is what is to be made durable at once: all of it or nothing.
type VisitsBatch struct {
	Leaving bool // visits of this life are given away from now on
	Rooms   []RoomLines
}

// VisitsKept is what a disk has of visits when a life begins.
type VisitsKept struct {
	Lives   []Member    // earlier ones, of which it has all: less than LivesMax, the latest last
	Leaving []Member    // those of them that were giving visits away
	Rooms   []RoomLines // by name; nothing is Struck
}
