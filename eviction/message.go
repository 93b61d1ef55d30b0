package eviction

import "github.com/anteroom/anteroom/qpid"

// Message is what nodes send each other. Messages and all they point to are
// immutable once sent.
type Message struct {
	From, To Member
	Body     Body
}

// Body is one of the message kinds of this package.
type Body interface{ Kind() string }

// Gather goes down the tree: the wave of an epoch asks for replies.
type Gather struct {
	Epoch  qpid.Epoch
	Lead   Peer     // the coordinator
	Quorum bool     // that it lists, as far as it knows: see bid
	List   []Member // who takes part; the coordinator first, then by seniority. Nil: as in wave As
	T      uint64   // replies promise to stamp nothing at or before T, Unix µs
	Wait   int64    // µs that the receiver may wait for its children
	Rooms  []RoomGather
	// As names the wave that the coordinator installed last, if its list is the same,
	// and Voters the one that carried the voters which the coordinator holds. Zero:
	// there is none. See names.go.
	As, Voters qpid.Epoch
	Reckons    Bounds // what the coordinator does
}

// Ask is for the list of the gather of a wave, by one who does not know the wave that
// the gather names. It goes up the tree.
type Ask struct{ Epoch qpid.Epoch }

// RoomGather asks about one room.
type RoomGather struct {
	Room    string
	Version Version    // the coordinator's configuration
	Want    int        // how many of the lightest weights to report; 0: none
	UpTo    uint64     // none stamped later, Unix µs; 0: however late
	Cut     Cut        // of the last commit, for those whom it did not reach
	Key     qpid.Epoch // of the draw in a random room
	Keying  uint64     // of the coordinator's queue, and the seed it was drawn with
	Seed    [32]byte
	Digest  bool // report a position digest
}

// Reply goes up the tree: what a node and those below it know.
type Reply struct {
	Epoch qpid.Epoch
	Nodes []NodeReply // in any order; a missing one did not answer in time
	Met   []Sighting  // members not in the list
	Rooms []RoomReply
	// Rivals are the other lives of listed names that votes may depend on, by line and
	// member.
	Rivals []Rival
	Bounds BoundsSum
}

// Rival is the number of the last wave in which nodes on a line, or those who have a
// room there that stayed behind, saw a member.
type Rival struct {
	Line   Line
	Member Member
	Wave   uint64
}

// NodeReply is what a wave needs of each node.
type NodeReply struct {
	Index    int // in the gather's list
	Clock    int64
	HLC      uint64
	Line     Line
	Knows    bool // took part in a committed primary wave of Line in this life
	Forgot   bool // and has not heard of each room since: it does not vote, see Node.remember
	Voters   Voters
	Expect   int  // for founding
	Joins    bool // for founding
	KeptKeys bool
	Leaving  bool
	Lapsed   int64    // µs since the last primary wave it took part in, or heard of; -1: never
	Since    uint64   // number of the wave up to which it stands for its name, see votes
	Lives    []uint64 // boots of earlier lives whose disk it has, see votes
	Busy     []string // rooms that the next wave should ask about
	More     bool     // and there are more of them
	// Restored is a node that knows from its disk alone. It has to guess when others
	// were in waves last: not after its own start. That counts only where it is
	// needed. If those who remember are a quorum of its line, somebody of them was in the
	// last primary wave of anybody lost there, and remembers when; and of waves of another
	// line it has heard by one of this line, as they have, from a node that they know to
	// have been in that one, and wait for no less long. Of its own line, if that is another,
	// a quorum of this one may know nothing since it was left: then its guesses count.
	Restored bool
	Stood    uint64 // boot of the life that was in the wave Since, if Restored; 0: not known
	Guesses  []Sighting
	Named    bool  // Voters is left out: they are those that the gather names
	Up       int64 // µs since this life began, if a room shares; 0: none does
	// Holdout is a coordinator of which this node has heard within exclude_after, and which
	// is on another line.
	Holdout     Member
	HoldoutLine Line
}

// Sighting says how long ago a member was last in a wave with the reporter.
type Sighting struct {
	Member Member
	Age    int64  // µs
	Epoch  uint64 // number of that wave
	Left   bool   // it said goodbye
	Wave   uint64 // like Epoch, but never more: what a restart makes of Epoch is a guess
}

// Commit goes down the tree: what the wave decided.
type Commit struct {
	Epoch    qpid.Epoch
	Grade    Grade
	Line     Line
	Voters   Voters
	Met      []Sighting
	SideFor  int64 // µs since the line's last primary wave, 0 in a primary one
	HLC      uint64
	Rooms    []RoomCommit
	RestMin  []qpid.Weight // QPID rooms, by index in Rooms: lightest weight outside the receiver's subtree
	Founding bool          // nothing is leased or minted yet
	Kept     bool          // founding, with signing keys from before: old passes may still be good
	Recalled bool          // by a quorum that remembers: the guesses of those who were restored do not count
	Reckons  Bounds        // everybody does from here on
	Acts     Bounds        // all who count did when they replied: nobody acts for longer
	Known    int           // 2 + how many rooms there are; 1: more than the coordinator has; 0: a version does not say
	Outvoted []int         // by index: another life of their name has its vote, see Node.remember
	Carried  bool          // Voters are those that the gather names, as of this wave; left out for who has them
}

// Nack tells a coordinator that its gather came too late or from the wrong one.
type Nack struct {
	Epoch qpid.Epoch // the highest the sender has seen
	Lead  Peer       // a more senior coordinator that the sender follows; zero: none
}

// Probe asks a member whether it could take part, and measures its clock.
type Probe struct {
	Lead  Peer
	Epoch qpid.Epoch
	Sent  int64 // the coordinator's clock
	Off   bool  // by the clocks of a quorum the other's is certain to be out of bounds
	Line  Line  // of the coordinator
}

// ProbeAck answers a Probe.
type ProbeAck struct {
	Sent    int64 // copied from the Probe
	Clock   int64 // the sender's clock
	Follow  Peer  // in whose waves the sender is, its own perhaps, if that goes before the receiver's for all that the sender knows; zero: nobody's
	Quorum  bool  // they are primary
	Epoch   qpid.Epoch
	Leaving bool
	Line    Line // of the sender
	Forgot  bool // the sender does not vote there
}

// Urgent tells the coordinator that someone started to wait.
type Urgent struct{ Room string }

// Slots moves slots between accounts. Total counts all slots ever sent from
// one account to the other, so that repeating a message changes nothing.
type Slots struct {
	Room     string
	From, To Account
	Line     Line // of From: slots of another line are no slots of To's; zero: a version before sends it
	Total    int
	// Visits use the last of them: a node that leaves gives a slot away together with
	// whoever is on the site by it. They count if all slots before them have arrived.
	Visits []Visit
}

// Visit is somebody on the site, whose slot goes to another account.
type Visit struct {
	ID      qpid.ItemID
	Stamp   uint64
	Gen     uint32    // of the ticket, as the receiver's
	Expires int64     // pass time: of the newest pass
	Started int64     // pass time
	Homes   []Account // before the sender's, the latest first: its pass may be of one of them
	Hand    uint8     // of the ticket
}

// HomesMax bounds the homes of a visit: who has been given away more often and has
// renewed no pass meanwhile is not known by it any more.
const HomesMax = 7

// VisitsMax bounds the visits of one Slots message: to some 40 KiB.
const VisitsMax = 512

// Places are people who wait at a node that leaves, and go on at the receiver. It
// answers as for tickets that it has taken over, with a SyncReply.
type Places struct {
	Room   string
	Places []Place
}

// Place is one of them. Its ticket says the rest.
type Place struct {
	ID       qpid.ItemID
	Stamp    uint64
	Gen      uint32 // of the ticket, as the receiver's
	Past     Member // its home before the sender; zero: none
	Silent   int64  // µs since it asked last: for nodes of an older version
	Refresh  uint32 // ms until it asks again, as told
	Missed   uint8  // calls that its browser was told of and let pass
	Slept    uint8  // calls that passed while it did not ask
	Anew     bool   // an earlier place let too many pass
	Entitled bool   // its turn is certain,
	Wave     uint64 // since the wave of this number
	Parked   bool   // out of line until it asks again
	Hand     uint8  // of its ticket
}

// PlacesMax bounds the places of one Places message: to some 40 KiB.
const PlacesMax = 512

// Copies has the receiver, the heir of these places, keep them: if the sender is lost,
// it goes on with them. They come down a lane, one batch after the other: the next when
// the last was acknowledged, and until then that one again.
type Copies struct {
	Lane  uint64 // number of the lane, of a life of the sender; a later one is higher
	Seq   uint64 // of the batch, from 1; with 1 all that was kept of the sender before is forgotten
	Rooms []RoomCopies
}

// RoomCopies are those of one room. All together are PlacesMax at most.
type RoomCopies struct {
	Room   string
	Places []Place
	Gone   []qpid.ItemID // need not be kept any more
	Visits []VisitKept
	Ended  []qpid.ItemID // are over: their passes are good for nothing
	Moved  []qpid.ItemID // go on, and are kept by another member
}

// VisitKept is somebody on the site who has, or is about to get, a pass that is good for
// no longer than Until, in pass time.
type VisitKept struct {
	ID    qpid.ItemID
	Until int64
}

// CopiesAck says that the batch is kept.
type CopiesAck struct {
	Lane, Seq uint64
	Unknown   bool // the receiver does not know what came before on the lane, and keeps no place of it
	Visits    int  // 1 more than are kept of the batch; 0 of a version that keeps none
}

// SlotsAck says how many of them have arrived.
type SlotsAck struct {
	Room     string
	From, To Account // as in the Slots message
	Total    int
}

// RoomQPID carries one room's QPID message.
type RoomQPID struct {
	Room string
	Msg  qpid.Message
}

// SyncRequest asks which of the sender's tickets the receiver took over; a node
// that was cut off asks it of everyone before it calls anybody again.
type SyncRequest struct{}

// SyncReply lists them. It also comes unasked, until it is acknowledged.
type SyncReply struct {
	Taken []TakenTicket
	More  bool // there are more than fit
}

// SyncAck says that the sender has let go of its copies.
type SyncAck struct{ Taken []TakenTicket }

// TakenTicket is one ticket that a node took over from another.
type TakenTicket struct {
	Room string
	ID   qpid.ItemID
	Gen  uint32
	At   Member // who did, of whom the receiver is to find out: the sender was told by both; zero: the sender
}

// Used lists tickets that the sender knows to be used, so that nobody who might
// take one over honours it again. The receiver says how far it has got, and gets
// the next ones.
type Used struct {
	From    uint64   // how many of the sender's list come before these
	Tickets []uint64 // hashes of their ids, at most UsedMax
}

// UsedAck says how many of the list have arrived.
type UsedAck struct{ Upto uint64 }

// UsedBatch is what was kept of used tickets.
type UsedBatch struct {
	At      int64    // pass time, Unix microseconds: not before any of them was used
	Tickets []uint64 // hashes of their ids
}

// UsedMax bounds the tickets of one Used message: to 256 KiB.
const UsedMax = 32 << 10

// Goodbye says that a node leaves: what it could give away has been given.
type Goodbye struct{}

// Kind names a body for traces.
func (*Gather) Kind() string      { return "gather" }
func (*Ask) Kind() string         { return "ask" }
func (*Reply) Kind() string       { return "reply" }
func (*Commit) Kind() string      { return "commit" }
func (*Nack) Kind() string        { return "nack" }
func (*Probe) Kind() string       { return "probe" }
func (*ProbeAck) Kind() string    { return "probe_ack" }
func (*Urgent) Kind() string      { return "urgent" }
func (*Slots) Kind() string       { return "slots" }
func (*SlotsAck) Kind() string    { return "slots_ack" }
func (*RoomQPID) Kind() string    { return "qpid" }
func (*SyncRequest) Kind() string { return "sync_request" }
func (*SyncReply) Kind() string   { return "sync_reply" }
func (*SyncAck) Kind() string     { return "sync_ack" }
func (*Goodbye) Kind() string     { return "goodbye" }
func (*Used) Kind() string        { return "used" }
func (*UsedAck) Kind() string     { return "used_ack" }
func (*Places) Kind() string      { return "places" }
func (*Copies) Kind() string      { return "copies" }
func (*CopiesAck) Kind() string   { return "copies_ack" }
