// Package ticket has the words in which nodes, gateway and links speak of one
// visitor: what a ticket and a pass say, what a visitor may ask for, and what
// the answer is. It decides nothing; package node does.
package ticket

import (
	"errors"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

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
	Missed   uint8  // calls that this place was told of and let pass: see node's claim
	Slept    uint8  // calls that passed while nothing asked for it
	Anew     bool   // it was an earlier place that let too many pass
	Hand     uint8  // raised each time another browser takes the place over by a link: the others' tickets are no good then
	Quiet    bool   // its program does not check in while it waits; not sealed: whoever asks for such a program says so
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
	Started int64            // likewise: when the visit began; 0: not told, as in rooms without session_max
}

// Op is what a visitor asks for.
type Op uint8

// Join needs Room and ID, the next three a Ticket, the next three a Pass. Offer
// needs a Ticket, and 128 random bits as ID; Take what came of these.
const (
	Join    Op = iota
	CheckIn    // where do I stand; keeps the place
	Leave      // go from the queue onto the site
	Abandon    // give the place up
	Refresh    // extend the pass
	End        // give the slot back
	Visit      // is the pass good; extends nothing
	Offer      // make a link by which another browser takes the place over; keeps the place
	Take       // take the place of such a link over

	Ops int = iota // how many there are
)

func (o Op) String() string {
	return [...]string{"join", "check-in", "leave", "abandon", "refresh", "end", "visit", "offer", "take"}[o]
}

// Request is one visitor's wish.
type Request struct {
	Op     Op
	Room   string
	ID     qpid.ItemID // Join: 128 random bits, the ticket's id to be. Offer: likewise, for a link. Take: the link's
	Ticket Ticket      // CheckIn, Leave, Abandon, Offer. Join: only whether it is Quiet
	Pass   Pass        // Refresh, End, Visit
	Hold   bool        // CheckIn: who would be called waits on, in front, and takes no slot: see PausedAddress
	Async  bool        // Join: wants an answer at once, without a position if that is not known yet
	// Listener is where somebody watches the ticket of a CheckIn: that node hears when
	// something happens to it. Nobody does if there is none.
	Listener eviction.Member
	// Relay asks for somebody that it can do nothing for itself: whoever gets the request
	// has it carried out wherever that is, but at Relay. None asks so if it is zero.
	Relay eviction.Member
}

// State is where a visitor stands.
type State uint8

// A visitor waits, is called, and is admitted by leaving the queue.
const (
	Waiting State = iota
	Called
	Admitted
)

func (s State) String() string { return [...]string{"waiting", "called", "admitted"}[s] }

// Answer is what a visitor is told.
type Answer struct {
	State    State
	Ticket   Ticket // replaces the one sent; the zero Ticket once admitted
	Pass     Pass   // when admitted
	Position int    // from 1; 0: not known, or a random room
	Queued   int    // people waiting in the whole room, as of the last wave
	Wait     Wait
	Refresh  time.Duration // ask again after this long
	Wave     uint64        // number of the wave that gave the visitor their turn; 0: not yet, or they walked straight in
	Paused   Pause         // why nobody is called just now; empty: they are
	Link     Link          // of an Offer
	// Forward is set when another node must answer: ask that one, with Ticket where
	// that is set, since the one that was sent is of a home that gave the place away.
	// That node may know better in turn, HopsMax times at most.
	Forward eviction.Member
}

// LinkLen is how much of the id of a link is not zero, in bytes.
const LinkLen = 10

// Link is what another browser takes a place over by, once.
type Link struct {
	ID    qpid.ItemID
	Until int64 // pass time, Unix microseconds
}

// HopsMax bounds how often one request is forwarded. A ticket goes by way of its
// home, and knows the last two of the homes before, so that each of them was told
// where the place is.
const HopsMax = 3

// Wait is the estimated time until the call; zero: not known.
type Wait struct{ P25, P50, P75 time.Duration }

// RoomState is how a room is doing, as of the last wave.
type RoomState struct {
	Room              eviction.Room // what holds now: an event's own settings are its
	Draw              eviction.Draw // of the event that comes, or of the last one
	Queued            int           // people waiting
	Counted           int64         // pass time; as of when, on a side without a majority; 0: as of now
	Called            int           // people called and not there yet
	Active            int           // people on the site
	AdmittedPerMinute float64
	Wait              Wait   // of somebody who joins now; zero: not known
	Open              bool   // newcomers walk straight in
	Paused            Pause  // why nobody is called just now; empty: they are
	HeldUntil         int64  // pass time; nobody is called before; 0: not held
	Missing           int    // slots that went with a lost node,
	WholeAt           int64  // until this pass time
	Front             uint64 // join stamp up to which everybody's turn has come; 0: turns do not go by it
}

// HasRoom reports whether who joins now walks straight in, to the best of our knowledge.
func (s *RoomState) HasRoom() bool { return s.Open && s.Called+s.Active < s.Room.Target }

// Errors of visitor operations. The gateway turns each into its code.
var (
	ErrRoomUnknown = errors.New("no such room")
	ErrExpired     = errors.New("the ticket has expired, its place was given up")
	ErrUsed        = errors.New("the ticket was used")
	ErrHandedOn    = errors.New("another browser has taken the place over")
	ErrLinkOver    = errors.New("the link was used, or is too old")
	ErrNotCalled   = errors.New("not called yet")
	ErrPassExpired = errors.New("the pass has expired")
	ErrQueueFull   = errors.New("the queue is full")
	ErrUnavailable = errors.New("not part of a cluster just now, or its clock is off")
	ErrRejected    = errors.New("the room lets nobody in")
	ErrBusy        = errors.New("too many requests at once")
	ErrSuperseded  = errors.New("two newer streams of the ticket are open") // of a stream alone
)
