package admin

import (
	"cmp"
	"time"
)

// HealthList is the answer to GET /v1/health.
type HealthList struct {
	Rooms []RoomHealth `json:"rooms"` // that have checks
}

// RoomHealth is what the cluster thinks of the origin behind a room.
type RoomHealth struct {
	Room        string        `json:"room"`
	Status      string        `json:"status"` // healthy, unhealthy or unknown
	OnUnhealthy string        `json:"on_unhealthy"`
	Holds       bool          `json:"holds"` // nobody is called because it is unhealthy
	Checks      []CheckHealth `json:"checks"`
}

// CheckHealth is what it thinks by one check.
type CheckHealth struct {
	ID            string      `json:"health_check_id"`
	Name          string      `json:"name"`
	Status        string      `json:"status"`
	Since         *time.Time  `json:"since,omitempty"`
	Reason        string      `json:"reason"` // why the status changed last
	ExpectedCodes []string    `json:"expected_codes"`
	ActualCode    int         `json:"actual_code"` // 0: no answer
	Past          []CheckTurn `json:"past"`        // what was thought before, the newest first
	Seen          []CheckSeen `json:"seen"`        // by the nodes that look
}

// CheckTurn is what the cluster thought by a check from a time on.
type CheckTurn struct {
	Status     string    `json:"status"`
	Since      time.Time `json:"since"`
	Reason     string    `json:"reason"`
	ActualCode int       `json:"actual_code"`
}

// CheckSeen is what one node thinks, as this node has heard it last.
type CheckSeen struct {
	Node       string     `json:"node"`
	Status     string     `json:"status"`
	Reason     string     `json:"reason"`
	ActualCode int        `json:"actual_code"`
	Seconds    float64    `json:"seconds"` // that it took
	At         *time.Time `json:"at,omitempty"`
	Silent     bool       `json:"silent"` // too long to count
}

// HealthText is how a status is written; an empty one is unknown.
func HealthText(status string) string { return cmp.Or(status, "unknown") }
