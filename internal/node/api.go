package node

import (
	"errors"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// Config is what one node needs to know at its start.
type Config struct {
	Self      eviction.Peer
	Expect    int  // founding: how many nodes start a new cluster together; 0 with Joins: never founds
	Joins     bool // the node was told of members to join
	KeptKeys  bool // it has signing keys from before: passes of an earlier life may still be good
	Cluster   eviction.Config
	Rooms     []eviction.Room
	RoomsMax  int              // [1000]
	SpentMax  int              // finished tickets remembered per room [1,000,000]
	Disk      bool             // ask for what must be kept, in Ready.Save
	Persisted *eviction.Record // what an earlier life of this node had synced; nil: nothing
}

// Ticket is a place in a queue. It lives in the visitor's browser, sealed.
type Ticket struct {
	Room     string
	ID       qpid.ItemID
	Stamp    uint64 // Unix microseconds: when the visitor joined
	Home     eviction.Member
	Gen      uint32 // raised each time another node takes the place over
	Past     Homes  // before Home, the latest first: they may still have a copy
	Position uint32 // last shown; 0: none yet
	Issued   int64  // pass time, Unix microseconds: when this copy was made
}

// Homes are the last former homes of a ticket that was taken over.
type Homes [2]eviction.Member

// Weight is the ticket's place in the order.
func (t Ticket) Weight() qpid.Weight { return qpid.Weight{Stamp: t.Stamp, ID: t.ID} }

// Pass lets its bearer onto the site until it expires.
type Pass struct {
	Room    string
	ID      qpid.ItemID
	Stamp   uint64
	Home    eviction.Account // whose slot backs it
	Expires int64            // pass time, Unix microseconds
}

// State is where a visitor stands.
type State uint8

// A visitor waits, is called, and is admitted by leaving the queue.
const (
	Waiting State = iota
	Called
	Admitted
)

// Answer is what a visitor is told.
type Answer struct {
	State    State
	Ticket   Ticket // replaces the one sent; the zero Ticket once admitted
	Pass     Pass   // when admitted
	Position int    // from 1; 0: not known, or a random room
	Queued   int    // people waiting in the whole room, as of the last wave
	Wait     Wait
	Refresh  time.Duration // ask again after this long
	Paused   string        // why nobody is called just now; empty: they are
	// Forward is set when another node must answer: ask that one.
	Forward eviction.Member
}

// Wait is the estimated time until the call; zero: not known.
type Wait struct{ P25, P50, P75 time.Duration }

// Errors of visitor operations. The gateway turns each into its code.
var (
	ErrRoomUnknown   = errors.New("node: no such room")
	ErrTicketExpired = errors.New("node: the ticket has expired, its place was given up")
	ErrTicketUsed    = errors.New("node: the ticket was used")
	ErrNotCalled     = errors.New("node: not called yet")
	ErrPassExpired   = errors.New("node: the pass has expired")
	ErrQueueFull     = errors.New("node: the queue is full")
	ErrUnavailable   = errors.New("node: not part of a cluster just now, or its clock is off")
	ErrRejected      = errors.New("node: the room lets nobody in")
	ErrInvalid       = errors.New("node: invalid configuration")
)

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
)

// Admission is one line of the admission log.
type Admission struct {
	Event  Event
	Room   string
	Weight qpid.Weight
	// Epoch and Key order entitlements: by epoch, then key.
	Epoch uint64
	Key   qpid.Weight
}

// Ready is the work a node wants done. The caller owns the slices.
type Ready struct {
	// Save must be durable before any of Messages is sent. Nil: nothing to save.
	Save     *eviction.Record
	Messages []eviction.Message // send each at most once, in order
	Log      []Admission
	Taken    []qpid.Answer // results of DeleteMin called at this node
	Deadline int64         // boot time at which Tick is due next, microseconds
}
