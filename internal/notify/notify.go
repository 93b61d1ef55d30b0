// Package notify tells other programs by webhooks, and people by mail, what has
// happened.
//
// All nodes see what is changed in the rooms, and give it the same ID: such an Event
// is made of what the cluster has agreed on. What follows from figures, such as that
// people wait, one node decides, and tells the others: see Conditions. So all of
// them have a notification to send, and one does: the first in an order that follows
// from the ID, of the nodes that are there. It tells the others when it is at it, and when it is done. If it
// goes, or never saw the event, the next one sends. Whoever receives may get a
// notification twice then, with the same ID.
//
// What is sent is signed as Standard Webhooks has it: webhook-id,
// webhook-timestamp, and webhook-signature, which is v1, and the HMAC-SHA256 of
// all three parts, once for each secret.
//
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Types of events. Test is one that an operator asks for.
const (
	OriginUnhealthy = "origin.unhealthy"
	OriginHealthy   = "origin.healthy"
	RoomChanged     = "room.changed"
	QueueingBegan   = "queueing.began"
	QueueingEnded   = "queueing.ended"
	WaitAbove       = "wait.above"
	WaitBelow       = "wait.below"
	LimitReached    = "limit.reached"
	LimitFree       = "limit.free"
	SlotsMissing    = "slots.missing"
	SlotsBack       = "slots.back"
	NodeLost        = "node.lost"
	NodeBack        = "node.back"
	MajorityLost    = "majority.lost"
	MajorityBack    = "majority.back"
	ClockOff        = "clock.off"
	ClockRight      = "clock.right"
	EventPrequeue   = "event.prequeue"
	EventStarted    = "event.started"
	CertExpiring    = "certificate.expiring"
	Test            = "test"
)

// Types lists those that a receiver may choose from.
func Types() []string {
	return []string{
		OriginUnhealthy, OriginHealthy, RoomChanged, QueueingBegan, QueueingEnded, WaitAbove, WaitBelow, LimitReached, LimitFree,
		SlotsMissing, SlotsBack, NodeLost, NodeBack, MajorityLost, MajorityBack, ClockOff, ClockRight, EventPrequeue, EventStarted, CertExpiring,
	}
}

// Event is something that has happened, and what is sent of it.
type Event struct {
	ID   string    `json:"id"`
	Type string    `json:"type"`
	Time time.Time `json:"timestamp"`
	Room string    `json:"room,omitempty"`
	Text string    `json:"text"` // for people
	Data any       `json:"data"`
}

// ID is the same for the same parts.
func ID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return "msg_" + hex.EncodeToString(sum[:16])
}

// Receiver is one webhook, or one list of addresses of mail.
type Receiver struct {
	Name    string
	Mail    *Mail    // nil: a webhook
	URL     string   // may itself be a secret
	Secrets [][]byte // each signs; none: nothing is signed
	Slack   bool     // the text alone, as Slack wants it
	Events  []string // types; empty: all
	Rooms   []string // empty: all
}

// wants reports whether the receiver is to hear of e.
func (r *Receiver) wants(e *Event) bool {
	return e.Type == Test ||
		(len(r.Events) == 0 || slices.Contains(r.Events, e.Type)) && (len(r.Rooms) == 0 || slices.Contains(r.Rooms, e.Room))
}

// body is what the receiver gets of e.
func (r *Receiver) body(e *Event) []byte {
	var b []byte
	if r.Slack {
		b, _ = json.Marshal(map[string]string{"text": e.Text}) // a string
	} else {
		b, _ = json.Marshal(e) // strings and what was decoded from JSON
	}
	return b
}

// sign returns the value of webhook-signature.
func (r *Receiver) sign(id string, at time.Time, body []byte) string {
	var all []string
	for _, secret := range r.Secrets {
		h := hmac.New(sha256.New, secret)
		fmt.Fprintf(h, "%s.%d.%s", id, at.Unix(), body)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil)))
	}
	return strings.Join(all, " ")
}

// secretPrefix begins a secret in text.
const secretPrefix = "whsec_"

// ParseSecret reads a secret: whsec_ and 24 to 64 bytes in base64.
func ParseSecret(text string) ([]byte, error) {
	in, ok := strings.CutPrefix(text, secretPrefix)
	secret, err := base64.StdEncoding.DecodeString(in)
	if !ok || err != nil || len(secret) < 24 || len(secret) > 64 {
		return nil, errors.New(`no secret of a webhook; give whsec_ and 24 to 64 bytes in base64: echo "whsec_$(openssl rand -base64 32)"`)
	}
	return secret, nil
}

// order returns the nodes in the order in which they are to send a notification.
func order(id string, nodes []string) []string {
	weight := func(node string) string {
		sum := sha256.Sum256([]byte(id + "\x00" + node))
		return string(sum[:])
	}
	sorted := slices.Clone(nodes)
	slices.SortFunc(sorted, func(a, b string) int { return strings.Compare(weight(a), weight(b)) })
	return sorted
}

func headers(r *Receiver, id string, at time.Time, body []byte) map[string]string {
	h := map[string]string{
		"Content-Type": "application/json", "User-Agent": "anteroom", "webhook-id": id, "webhook-timestamp": strconv.FormatInt(at.Unix(), 10),
	}
	if len(r.Secrets) > 0 {
		h["webhook-signature"] = r.sign(id, at, body)
	}
	return h
}
