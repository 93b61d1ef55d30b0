package admin

import (
	"cmp"
	"time"
)

// HealthList is the answer to GET /v1/health.
type HealthList struct {
	Rooms []RoomHealth `json:"rooms"` // that have checks, or whose origin has been asked for something
}

// RoomHealth is what the cluster thinks of the origin behind a room.
type RoomHealth struct {
	Room        string        `json:"room"`
	Status      string        `json:"status"` // healthy, unhealthy or unknown
	OnUnhealthy string        `json:"on_unhealthy"`
	Holds       bool          `json:"holds"` // nobody is called because it is unhealthy
	Checks      []CheckHealth `json:"checks"`
	// Answers are those to visitors who came by way of this node; nil: there are none.
	Answers *OriginAnswers `json:"answers,omitempty"`
}

// OriginAnswers are what came of the requests that a node passed on to an origin in the
// last four to five minutes. They decide nothing.
type OriginAnswers struct {
	Count         int64   `json:"count"`
	Failed        int64   `json:"failed"`    // with a 5xx, or without an answer
	NoAnswer      int64   `json:"no_answer"` // of these
	FailedPercent float64 `json:"failed_percent"`
	P50           float64 `json:"p50_seconds"` // until they began
	P95           float64 `json:"p95_seconds"`
	P99           float64 `json:"p99_seconds"`
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
