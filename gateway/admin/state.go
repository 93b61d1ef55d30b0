package admin

import "time"

// Cluster is what one node sees of its cluster.
type Cluster struct {
	Node        string    `json:"node"`
	Boot        string    `json:"boot"` // a string: JSON numbers lose digits of it
	Version     string    `json:"version"`
	ClusterID   string    `json:"cluster_id"` // empty: part of none yet
	Founded     time.Time `json:"founded,omitzero"`
	Epoch       uint64    `json:"epoch"` // number of the last wave that this node was in
	Coordinator string    `json:"coordinator"`
	Grade       string    `json:"grade"`         // of the lease: none, side, primary or unanimous
	Lease       float64   `json:"lease_seconds"` // left
	Quarantined bool      `json:"quarantined"`   // its clock is off
	Waiting     string    `json:"waiting"`       // why it serves nobody; empty: it serves
	// WaitingSince is since when it does not, where that is so.
	WaitingSince *time.Time `json:"waiting_since,omitempty"`
	Relay        string     `json:"relay,omitempty"` // the node that answers this one's visitors meanwhile
	Voters       []string   `json:"voters"`
	Warnings     []string   `json:"warnings,omitempty"` // what an operator should change
	Members      []Member   `json:"members"`            // by seniority: the order of the tree
}

// Member is one node of the cluster.
type Member struct {
	Name      string    `json:"name"`
	Boot      string    `json:"boot"`
	Address   string    `json:"address"` // of its peer service
	Version   string    `json:"version,omitempty"`
	Started   time.Time `json:"started"`
	Parent    string    `json:"parent"`  // in the tree; empty: the coordinator
	InWave    bool      `json:"in_wave"` // of the last wave; gossip may call a member alive that waves leave out
	RoundTrip float64   `json:"round_trip_seconds"`
	// ClockAhead is how far its clock is ahead of this node's, give or take half a
	// round trip; 0: not measured.
	ClockAhead float64 `json:"clock_ahead_seconds"`
}

// Room is one room: its limits, how it is doing as a whole, and what this node
// has of it.
type Room struct {
	Name                 string     `json:"name"`
	TotalActiveUsers     int        `json:"total_active_users"`
	NewUsersPerMinute    int        `json:"new_users_per_minute"`
	QueueingMethod       string     `json:"queueing_method"`
	Algorithm            string     `json:"algorithm"`
	QueueAll             bool       `json:"queue_all"`
	Suspended            bool       `json:"suspended"`
	Mode                 Mode       `json:"mode"`
	ModeBy               string     `json:"mode_by,omitempty"`    // who held, drained or released it last, where this node heard of it
	ModeSince            *time.Time `json:"mode_since,omitempty"` // and when
	Event                *Event     `json:"next_event,omitempty"` // the one that holds, or the one that comes next
	SessionSeconds       float64    `json:"session_seconds"`
	Queued               int        `json:"queued"`
	CountedAt            *time.Time `json:"counted_at,omitempty"` // as of when, on a side without a majority
	Called               int        `json:"called"`
	Active               int        `json:"active"`
	AdmittedPerMinute    float64    `json:"admitted_per_minute"`
	EstimatedWaitSeconds float64    `json:"estimated_wait_seconds"` // of somebody who joins now; 0: not known
	Open                 bool       `json:"open"`                   // newcomers walk straight in
	Paused               string     `json:"paused"`                 // why nobody is called; empty: they are
	HeldUntil            *time.Time `json:"held_until,omitempty"`
	OriginHealth         string     `json:"origin_health"`           // healthy, unhealthy, or unknown: there are no checks, or none has an answer yet
	OriginHolds          bool       `json:"origin_holds"`            // nobody is called because it is unhealthy
	OriginSince          *time.Time `json:"origin_since,omitempty"`  // since when it is unhealthy
	OriginReason         string     `json:"origin_reason,omitempty"` // and by which check, and why
	Governed             *Governed  `json:"governed,omitempty"`      // with outflow: adaptive
	SlotsMissing         int        `json:"slots_missing"`           // they were lost, and whoever had them may still act
	WholeAt              *time.Time `json:"whole_at,omitempty"`      // when the last of them are made again
	WaitsFor             []string   `json:"waits_for,omitempty"`     // nodes that are gone and may be on the other side of a split; Operator.Reclaim ends that
	Root                 string     `json:"root,omitempty"`          // of its QPID tree, where this node knows
	Here                 RoomHere   `json:"here"`
}

// RoomHere is one node's part of a room.
type RoomHere struct {
	SlotsOwned int    `json:"slots_owned"`
	SlotsUsed  int    `json:"slots_used"` // called + on site
	SlotsFree  int    `json:"slots_free"`
	Queued     int    `json:"queued"`
	Called     int    `json:"called"`
	OnSite     int    `json:"on_site"`
	Parked     int    `json:"parked"`    // silent: out of the queue until they check in
	Bare       int    `json:"bare"`      // who wait here and whose place no other node keeps; -1: they are not counted
	Kept       int    `json:"kept"`      // places of other nodes that are kept here
	MayAdmit   bool   `json:"may_admit"` // lease and policy allow calls now
	IsRoot     bool   `json:"is_root"`
	Unwritten  bool   `json:"unwritten,omitempty"` // its disk takes no visits: it calls nobody
	Broken     string `json:"broken,omitempty"`    // what is not as it must be, so that this node has given the room up; empty: nothing
}

// Event is one for which people gather, or that holds.
type Event struct {
	Name              string     `json:"name"`
	Prequeue          time.Time  `json:"prequeue_start_time"` // from here to its start everybody waits
	StartsAt          time.Time  `json:"event_start_time"`
	EndsAt            *time.Time `json:"event_end_time,omitempty"` // none: it never ends
	Shuffle           bool       `json:"shuffle_at_event_start"`
	Drawn             bool       `json:"drawn"` // the order of who gathered is drawn, and its seed public
	TotalActiveUsers  int        `json:"total_active_users"`
	NewUsersPerMinute int        `json:"new_users_per_minute"`
}

// Holds reports whether the event has anything to say.
func (e *Event) Holds(now time.Time) bool {
	return !now.Before(e.Prequeue) && (e.EndsAt == nil || now.Before(*e.EndsAt))
}

// RoomList is the answer to GET /v1/rooms.
type RoomList struct {
	Rooms []Room `json:"rooms"`
}
