package admin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/anteroom/anteroom/gateway"
)

// Operator changes rooms. It may be called from many goroutines at once. What it
// refuses is a *Refusal.
type Operator interface {
	// Configured is what a room runs with; false: there is no such room.
	Configured(room string) (Configured, bool)
	// Put makes a room what body says: a JSON object with the keys of a room in a
	// configuration file. What is not in it has its default.
	Put(ctx context.Context, e Edit, body []byte) (Outcome, error)
	// Delete ends a room.
	Delete(ctx context.Context, e Edit) (Outcome, error)
	// SetMode holds, releases or drains a room.
	SetMode(ctx context.Context, e Edit, m Mode) (Outcome, error)
	// Reclaim says that a node will not return, in all rooms that wait for it.
	Reclaim(ctx context.Context, e Edit, node string) (Reclaimed, error)
	// Find says what would become of a request to the site.
	Find(p gateway.Probe) gateway.Finding
	// History are samples of a room, the oldest first; false: there is no such room.
	History(room string) ([]Sample, bool)
	// Audit are the last changes that this node knows of, the newest first.
	Audit() []AuditEntry
	// Receivers are who is notified of what happens.
	Receivers() []Receiver
	// TestReceiver sends one of them a notification; false: there is no such one.
	TestReceiver(ctx context.Context, name string) (TestSent, bool)
}

// Mode is what an operator does with a room by hand, beside its configuration.
type Mode string

// The modes of a room.
const (
	Normal   Mode = "normal"
	Held     Mode = "held"
	Draining Mode = "draining"
)

// Edit says which room is to change, who wants it, and on which condition.
type Edit struct {
	Room        string
	Who         string // for the audit log
	From        string // the address that asks
	IfMatch     string // the header; empty: whatever the room is now
	IfNoneMatch string // the header; "*": only if there is no such room
}

// Configured is a room's configuration as the cluster runs with it.
type Configured struct {
	Keys []byte // a JSON object with all keys that a file has for a room, but for a page of its own
	ETag string
	Mode Mode
}

// Outcome is what became of an edit.
type Outcome struct {
	Room    Configured
	Created bool
	// Pending: the change is on its way, and no wave has brought it into force
	// here yet.
	Pending bool
}

// Refusal is an edit that was not carried out.
type Refusal struct {
	Status int
	Code   string
	Detail string
	Errors []FieldError
}

func (r *Refusal) Error() string { return r.Code + ": " + r.Detail }

// FieldError is one mistake in the configuration of a room.
type FieldError struct {
	Key    string `json:"key,omitempty"` // such as bypass_rules[0].expression; empty: the room as a whole
	Detail string `json:"detail"`
}

// Configuration is the answer about one room: the keys that a file has for it,
// how it is, and what an operator did with it by hand. Of the read-only keys the
// ones that a configuration has as well are left out.
type Configuration struct {
	Mode    Mode   `json:"mode"`
	ETag    string `json:"etag"`
	Pending bool   `json:"pending,omitempty"`
}

// Reclaimed is the answer to a node given up.
type Reclaimed struct {
	Node  string   `json:"node"`
	Rooms []string `json:"rooms"` // that no longer wait for it
}

// Sample is how a room was at a moment, as a whole.
type Sample struct {
	At                   time.Time `json:"at"`
	Queued               int       `json:"queued"`
	Called               int       `json:"called"`
	Active               int       `json:"active"`
	TotalActiveUsers     int       `json:"total_active_users"`
	AdmittedPerMinute    float64   `json:"admitted_per_minute"`
	EstimatedWaitSeconds float64   `json:"estimated_wait_seconds"`
}

// HistoryList is the answer to GET /v1/rooms/{room}/history.
type HistoryList struct {
	Room    string   `json:"room"`
	Samples []Sample `json:"samples"`
}

// AuditEntry is one change of a room.
type AuditEntry struct {
	At      time.Time `json:"at"`
	Who     string    `json:"who"`            // admin_token, loopback, sighup, or node and the name of the one that was asked
	From    string    `json:"from,omitempty"` // the address that asked
	Action  string    `json:"action"`         // create, update, delete, hold, release, drain or reclaim
	Room    string    `json:"room"`
	Changes []Change  `json:"changes"`
}

// Change is a key that is not what it was. The values are JSON, cut short where
// they are long.
type Change struct {
	Key  string `json:"key"`
	From string `json:"from"`
	To   string `json:"to"`
}

// AuditList is the answer to GET /v1/audit.
type AuditList struct {
	Entries []AuditEntry `json:"entries"`
}

// reply is one object of a configuration, of how the room is, and of what there
// is to say of both.
func reply(c Configured, pending bool, state any) (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	parts := []any{state, json.RawMessage(c.Keys), Configuration{c.Mode, c.ETag, pending}}
	for _, part := range parts { // a later one counts
		b, err := json.Marshal(part)
		if err == nil {
			err = json.Unmarshal(b, &all)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ReadOnly are the keys of an answer about a room that no configuration has. Who
// sends them back with a PUT says nothing by them.
func ReadOnly() []string {
	return []string{
		"active", "admitted_per_minute", "called", "counted_at", "estimated_wait_seconds", "etag", "governed", "held_until", "here", "mode", "mode_by", "mode_since",
		"next_event", "open", "origin_health", "origin_holds", "origin_reason", "origin_since", "paused", "pending", "queued", "root", "session_seconds", "slots_missing", "whole_at",
	}
}
