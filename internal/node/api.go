package node

import (
	"errors"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/estimate"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// UsedMax is how many used tickets of other lives and nodes a node remembers, if
// Config does not say: 32 MB.
const UsedMax = 2_000_000

// Config is what one node needs to know at its start.
type Config struct {
	Self      eviction.Peer
	Expect    int  // founding: how many nodes start a new cluster together; 0 with Joins: never founds
	Joins     bool // the node was told of members to join
	KeptKeys  bool // it has signing keys from before: passes of an earlier life may still be good
	Cluster   eviction.Config
	Rooms     []eviction.Room
	Secret    [32]byte             // random bytes that nobody else knows: the seeds of draws are made of them
	RoomsMax  int                  // [1000]
	SpentMax  int                  // finished tickets remembered per room [1,000,000]
	UsedMax   int                  // used tickets of other lives and nodes remembered [UsedMax]
	Used      []eviction.UsedBatch // tickets that earlier lives of this node had used, the oldest first
	Disk      bool                 // ask for what must be kept, in Ready.Save
	Visits    *eviction.VisitsKept // of earlier lives, as the disk has them: ask for what is to be kept of visits, in Ready.Visits; nil: there is no disk for them
	DiskWait  time.Duration        // how long that disk may take nothing until the others go on without this node [Cluster.Lease]
	Persisted *eviction.Record     // what an earlier life of this node had synced; nil: nothing
}

// The words in which a node speaks of a visitor.
type (
	Ticket = ticket.Ticket
	Homes  = ticket.Homes
	Pass   = ticket.Pass
	State  = ticket.State
	Answer = ticket.Answer
	Wait   = ticket.Wait
	Lasted = estimate.Lasted
)

// Where a visitor stands.
const (
	Waiting  = ticket.Waiting
	Called   = ticket.Called
	Admitted = ticket.Admitted
)

// ErrInvalid is a configuration that is refused.
var ErrInvalid = errors.New("invalid configuration")

// Event says what happened to a visitor, for the admission log.
type Event uint8

// A queued visitor is entitled, then called, then admitted. An open admission
// goes straight to admitted.
const (
	Entitled  Event = iota // the cut reached the ticket: its turn is certain
	CalledIn               // a slot was set aside
	AdmittedQ              // took the slot, after waiting
	AdmittedO              // walked straight in
	Parked                 // silent or did not come: out of the queue until it checks in
	Ended                  // the session is over, the slot is free
	TakenOver              // a place came from a node that is gone
	Dropped                // given up: silent for ticket_ttl, or abandoned
	Through                // let in without a slot: the room has become passthrough
	Given                  // a place, or a visit with its slot, came from a node that leaves
	Restamped              // let too many calls pass: the place is that of Key now, at the end of the line
	WentOn                 // the place of a node that is lost was kept here, and goes on
	HandedOn               // another browser has taken the place over, by a link
)

// Admission is one line of the admission log.
type Admission struct {
	Event  Event
	Room   string
	Weight qpid.Weight
	// Line, Epoch and Key order entitlements: the founding of the cluster, the
	// wave, and what that ordered tickets by.
	Line  uint64 // Unix microseconds
	Epoch uint64
	Key   qpid.Weight

	OnSite int    // people on the site at this node, now that it has happened
	Visit  int64  // of Ended: for how long the visitor was on the site, µs
	Early  bool   // of Ended: before the pass ran out
	Terms  uint32 // of Ended: what bounds visits, see VisitTerms
	NoShow bool   // of Parked: was called and did not come
}

// Place is one that this node had, and another goes on with: whoever watches it may
// ask where it stands.
type Place struct {
	Room string
	ID   qpid.ItemID
}

// Ready is the work a node wants done. The caller owns the slices.
type Ready struct {
	// Save must be durable before any of Messages is sent. Nil: nothing to save.
	Save *eviction.Record
	// Visits is to be made durable, whenever that is done: then call VisitsSaved, or else
	// VisitsFailed and try again. There is no other before. Nil: there is nothing to do.
	Visits   *eviction.VisitsBatch
	Used     []uint64           // tickets that are used up: add them to what is kept, to be given back in Config.Used
	Broken   []eviction.Broken  // rooms that this node has given up, each once: let somebody know
	Messages []eviction.Message // send each at most once, in order
	Log      []Admission
	LetGo    []Place
	Kept     []Place       // that another node keeps by now, see Node.Unkept
	Taken    []qpid.Answer // results of DeleteMin called at this node
	Deadline int64         // boot time at which Tick is due next, microseconds
}
