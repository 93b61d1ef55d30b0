package admin

import (
	"net/http"
	"time"
)

// ReceiverList is the answer to GET /v1/notifications.
type ReceiverList struct {
	Receivers []Receiver `json:"receivers"`
}

// Receiver is who is notified, and how that goes at this node. Where it is, is not
// shown: the addresses of chats are secrets.
type Receiver struct {
	Name    string     `json:"name"`
	Kind    string     `json:"kind"`    // webhook, slack or email
	Events  []string   `json:"events"`  // empty: all
	Rooms   []string   `json:"rooms"`   // empty: all
	Waiting int        `json:"waiting"` // notifications that are not delivered yet
	Oldest  *time.Time `json:"oldest,omitempty"`
	LastAt  *time.Time `json:"last_at,omitempty"` // the last try of this node
	LastErr string     `json:"last_error"`        // empty: it was delivered
}

// TestSent is the answer to a test of a receiver.
type TestSent struct {
	Receiver  string  `json:"receiver"`
	ID        string  `json:"id"`
	Delivered bool    `json:"delivered"`
	Error     string  `json:"error,omitempty"`
	Seconds   float64 `json:"seconds"` // that it took
}

// notifications adds who is notified.
func (a *admin) notifications(mux *http.ServeMux) {
	o := a.c.Operator
	a.on(mux, "/v1/notifications", methods{http.MethodGet: func(w http.ResponseWriter, r *http.Request) { a.json(w, r, ReceiverList{o.Receivers()}) }})
	a.on(mux, "/v1/notifications/{receiver}/test", methods{http.MethodPost: func(w http.ResponseWriter, r *http.Request) {
		sent, ok := o.TestReceiver(r.Context(), r.PathValue("receiver"))
		if !ok {
			a.fail(w, r, http.StatusNotFound, "receiver_unknown", "This node's configuration has no notifications of that name.")
			return
		}
		a.json(w, r, sent)
	}})
}
