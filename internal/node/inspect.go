package node

import (
	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// Status is what an operator, or an oracle, sees of a node.
type Status struct {
	Self        eviction.Member
	Epoch       qpid.Epoch // highest seen
	Installed   qpid.Epoch // last committed wave that this node was in
	Grade       eviction.Grade
	LeaseUntil  int64 // boot time, µs
	Line        eviction.Line
	Knows       bool
	Voters      eviction.Voters
	List        []eviction.Member // of the last committed wave
	Frozen      bool              // replied to a wave whose commit is not here
	Leading     bool              // runs waves
	Quarantined bool              // its clock is off
	Left        bool              // it has said goodbye
	Unwritten   bool              // its disk takes no visits: it calls nobody
	Vouched     bool              // a quorum has taken its clock for right in this life; before it judges no pass
	Acts        eviction.Bounds   // by which the node acts,
	Reckons     eviction.Bounds   // and with which it reckons of others
	HLC         uint64
	Clock       int64           // pass time, µs
	ClockAt     int64           // boot time, µs, of that reading
	Waiting     ticket.Pause    // why it is not part of a cluster; empty: it is
	Holdout     eviction.Member // for whom this coordinator founds none, see eviction.Status
}

// RoomStatus is one room at one node.
type RoomStatus struct {
	Room       eviction.Room // as configured, with its events
	Now        eviction.Room // what of it holds, as of the last wave
	Draw       eviction.Draw // that comes, or that was
	Account    eviction.Account
	Line       eviction.Line
	Minted     int
	Owned      int // = Minted + ΣReceived − ΣSent
	Used       int // called + on site
	Free       int // Owned − Used
	Peers      []eviction.PeerAccount
	Voided     []eviction.Void
	Queued     int
	Called     int
	OnSite     int
	Parked     int
	Spent      int
	Cut        eviction.Cut
	Open       bool
	Closed     bool  // over the limit: nobody is called until slots are burned
	MayAdmit   bool  // lease, line and policy allow calls now
	LeaseUntil int64 // boot time, µs: until then the account may act
	QPIDRoot   bool
	QPIDFrozen bool       // its weight table waits for the next wave
	QPIDEpoch  qpid.Epoch // of the room's weight table: that of the last wave which asked about the room
	Total      int        // waiting in the whole room, as of the last wave
	Counted    int64      // pass time, µs: as of when that is, on a side without a majority; 0: as of the last wave
	Active     int        // called or on the site in the whole room, as of the last wave
	Coming     int        // of them, not yet on the site
	Rate       float64    // calls per second in the whole room, lately
	Wait       Wait       // of somebody who joins now; zero: not known
	Wanting    int        // sessions of lost nodes that wait for a slot here
	Shares     bool       // somebody may go on with their slots on a side of a split, also if the room has stopped sharing since
	Missing    int        // slots that cannot be made yet: whoever had them may still act
	WholeAt    int64      // boot time, µs: when the last of them can
	Bound      int        // of the limit, see Govern; 0: none
	HeldUntil  int64      // boot time, µs: after a cold start nobody is called before
	Tokens     int        // pacing tokens in hand; -1: no limit
	Bare       int        // who wait here and are kept by no other node; -1: they are not counted
	Kept       int        // places of other nodes that are kept here
	Broken     string     // what is not as it must be, so that this node has given the room up; empty: nothing
}
