package eviction

import (
	"math"
	"slices"
	"time"

	"github.com/anteroom/anteroom/qpid"
)

// Grade says what a lease allows.
type Grade uint8

const (
	// NoGrade: no cluster yet.
	NoGrade Grade = iota
	// Side: a wave without a quorum; only rooms that share admit on it.
	Side
	// Primary: a wave with a quorum of voters that know.
	Primary
	// Unanimous: a primary wave with every voter.
	Unanimous
)

func (g Grade) String() string { return [...]string{"none", "side", "primary", "unanimous"}[g] }

// names reports whether name is a voter, or proposed as one.
func (v Voters) names(name qpid.NodeID) bool {
	_, voter := slices.BinarySearch(v.Names, name)
	_, next := slices.BinarySearch(v.Next, name)
	return voter || next
}

// PeerAccount is one ledger's record of another account.
type PeerAccount struct {
	Account
	Sent, Received int // ever, in slots
	Acked          int // of Sent
}

// RoomReply is what a subtree says of one room.
type RoomReply struct {
	Room   string
	Nodes  []RoomNode
	Front  Front
	Net    []Net       // slots received from minus sent to each account, summed
	Voids  []VoidCount // summed
	Newest *Room       // a configuration newer than the gather's; nil: none
	Digest *Digest     // for positions; nil: was not asked for
	Supply []Supply    // one of each line that its nodes are on
	Calls  float64     // per second, lately, summed
	Shared bool        // an account of somebody may act on a side, as any of them knows
	// Of members that are not in the wave: whether their accounts were covered, and how many
	// visits of them the nodes keep, summed. See cover.
	Covers []Cover
	Visits []VisitCount
}

// RoomNode is one node's part of it.
type RoomNode struct {
	Index    int // in the gather's list
	Born     uint64
	Line     Line
	Lapsed   int64      // µs since an account of this node last had a primary lease; -1: never
	OldAge   int64      // µs since an earlier account of this life may have acted; -1: none did
	Shut     uint64     // Born of the last of them
	Holds    qpid.Epoch // of the wave whose supply it holds; zero: of none
	Minted   int
	Free     int // may be negative
	Used     int // called or on the site
	Called   int // of them, not yet on the site
	Queued   int // stamped at or before the gather's T
	Due      int // entitled and not called
	Wanted   int // sessions of lost nodes that wait for a slot here
	Version  Version
	Sum      uint64      // of the room's contents
	TTL      int64       // µs: the longest session that a pass alive may have
	Arrivals float32     // joins per second, lately
	Lightest qpid.Weight // QPID rooms
	Voters   Voters      // of Line, when the node itself has gone on to another line
	Goes     Vote        // its vote on Line
	Came     Stay        // see escrow.came
	Without  []Stay      // see escrow.without: when the node has gone on, and but for the line that it is on
	First    uint64      // with a digest: stamp of the lightest ticket beyond the cut; 0: none
	Keying   uint64
	Seed     [32]byte   // of a draw that the coordinator does not know
	Spent    uint64     // pacing tokens, ever
	Tokens   int        // that it still has
	Dealt    qpid.Epoch // of the last wave that dealt here, or would have, if only nothing; number 0: none did; zero: of a version that does not say
	DealtAge int64      // µs for which the coordinator of that one has asked nothing of it
	Left     *Left      // by that wave; nil: the coordinator of this one dealt last, or it is not known
	Held     int64      // µs until people are called, after a cold start; 0: they are; else heldUnknown or heldAnew
	Sides    bool       // its account may act on a side
	// Bare is the stamp under which the first waits here whom no other member of the wave
	// keeps: Nobody if all are kept, 0 if this node does not know.
	Bare  uint64
	Cut   Cut    // where it is newer than the gather's
	Keeps uint64 // likewise of the first whom this node keeps for one that is not in the wave; 0: it keeps none
	// Says is what it says of its account. That it is covered: each pass of it is kept by a
	// member of the wave, and none is given from now on that is not, see cover.
	Says  Says
	Heeds bool // it keeps nothing new of who is void, see Gate.MayKeep: nodes of a version before do not say so
	Resuming
}

// Vote is a node's vote on the line of a room for where that goes, see quorumOf.
type Vote struct {
	To Line // zero: it has not been given
}

// Stay is of a line that a node was on, as it left that.
type Stay struct {
	Line   Line
	Voters Voters
}

// Nobody is later than all stamps: see RoomNode.Bare.
const Nobody = math.MaxInt64

// Net is a sum over ledgers of slots received from an account minus slots sent to it.
type Net struct {
	Account Account
	Slots   int
}

// VoidCount sums up who holds which void.
type VoidCount struct {
	Member   Member
	Min, Max uint64 // epochs, over those that hold one
	Nodes    int    // that hold one, and would after a restart
}

// Move is a transfer of slots that the coordinator asks for.
type Move struct{ From, To, Slots int } // indexes in the list

// Deal is a number of something for one node.
type Deal struct{ Index, N int }

// RoomCommit is what a wave decided about one room.
type RoomCommit struct {
	Room    string
	Config  *Room    // when someone's is older
	Agreed  bool     // everyone has the same configuration
	Sides   bool     // and by it the room shares: accounts that it lets act may from now on act on a side
	Shared  bool     // an account of somebody may act on a side, here or elsewhere
	TTL     int64    // µs, the largest of the replies'
	Line    Line     // the room's ledgers belong to it
	From    Line     // the line that Line continues, when it changed in this wave; Line itself: its voters are asked for their votes, see chooseLine
	Born    []uint64 // each listed node's account
	Void    []Void
	Safe    []Void // carried by every listed node
	Settled []Void // nothing of these accounts can act any more
	Mint    int    // at the coordinator
	Burn    []Deal
	Moves   []Move
	Before  Cut // the newest of a wave before that any node has and the coordinator does not: its commit did not reach everybody
	Cut     Cut
	Key     qpid.Epoch // random rooms: of this wave's draw; zero: no draw
	Drawn   qpid.Weight
	Delete  int      // QPID rooms: how many deleteMins the coordinator runs
	Twins   []Tagged // QPID rooms: copies of a ticket that also waits at an earlier node
	Open    bool
	Closed  bool    // more slots exist than the limit: nobody is called
	Supply  int     // slots that may exist, before what is burned now
	Stands  *Supply // the supplies that nodes hold stay as they are, see roomSums.mayRecall; the newest, for who holds none
	Queued  int
	Waiting []int   // by index
	Digest  *Digest // of the whole room; nil: as before
	First   []int   // with it, by index: at which of its marks, from 1, or just after, the node's first ticket beyond the cut is; 0: none
	Rate    float64 // calls per second
	Active  int     // people called or on the site
	Called  int     // of them, not yet on the site
	Missing int     // slots that cannot be made yet
	WholeIn int64   // µs until the last of them can, if nothing else is lost
	Bound   int     // see Gate.Govern
	Held    int64   // µs in which nobody is called, after a cold start
	Pace
	Reckoning
	KeptBy
	Resumption
}

// Bucket is how a decision leaves the token bucket of new_users_per_minute, for who takes over:
// as if all were spent that nodes may spend.
type Bucket struct {
	Level   int64   // millionths of a token; below 0: more were let in than had accrued
	Debt    int64   // of leads before: as many are to accrue before the level rises
	DebtFor int64   // µs for which that counts
	Owes    bool    // there is more, that is not reckoned up yet
	Pause   int64   // µs in which nothing accrues
	Spent   []Spent // within the last minute, or to be
}

// Left is the bucket of who dealt last, as a node knows it.
type Left struct {
	Bucket
	Age     int64  // µs since the wave that left it
	LastAsk uint64 // number of the last wave of that coordinator that the node was in
}

// Spent is what was let in, or may be.
type Spent struct {
	Age   int64 // µs; below 0: it may be yet, for so long
	Parts int64 // of all that may be let in within a minute, which is 1e15
}

// Pace is what a commit says of new_users_per_minute.
type Pace struct {
	Paced  bool    // there is a rate
	Tokens []Deal  // how many people each node may let in until it hears more
	Idle   bool    // nobody is let in by this commit, whatever there is: it would deal no tokens
	Stay   bool    // it deals none, and nodes have what they have until it lapses
	Bucket *Bucket // as this decision leaves it; nil: another one may deal beside it, or the version does not say
}

// KeptBy is what a commit says of who keeps what, by index: see RoomNode.
type KeptBy struct {
	Bare    []uint64 // nil: some node does not know, or has not said
	Covered []bool   // nil: nothing is said of it
}

// Record is what a node keeps on disk, if it has one.
type Record struct {
	Line   Line
	Voters Voters
	Forgot bool // the life that kept it did not vote yet
	Epoch  uint64
	Member Member
	Since  uint64   // number of the last primary wave that it stands for, see wave.votes
	Stood  uint64   // boot of the life that was in that wave; 0: a version did not keep it
	Lives  []uint64 // boots of earlier lives that had this record, the latest last: LivesMax at most
	Met    []Sighting
	Rooms  []RoomRecord
	// Reckons is what the node waits by for others: it has said so, and they act by it.
	Reckons Bounds
}

// LivesMax bounds Record.Lives.
const LivesMax = 32

// RoomRecord is one room's part of it.
type RoomRecord struct {
	Room    Room
	TTL     time.Duration // the longest session that a pass alive may have
	Line    Line
	Voters  Voters  // of Line, where the node has gone on to another one,
	Goes    Vote    // its vote there,
	Came    Stay    // see escrow.came,
	Without []Stay  // see escrow.without,
	Rivals  []Rival // and the lives of the names of all their voters
	Voids   []Void
	Cut     Cut
	Supply  Supply
	Shared  bool   // an account of somebody may act on a side
	Counts  bool   // Over is kept: a version did not
	Over    []Void // see Resuming
}
