package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/brand"
)

// message adds one to those that people who wait for a room read: from now on, or
// from a time on. Where there are as many as there may be, it takes the place of the
// oldest that has been read.
func (a *admin) message(w http.ResponseWriter, r *http.Request) {
	body, ok := a.body(w, r, "application/json")
	if !ok {
		return
	}
	var m gateway.Message
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		a.fail(w, r, http.StatusBadRequest, "request_invalid", `Send an object such as {"text": "Open.", "at": "2026-11-27T18:00:00Z"}; without at it is read from now on.`)
		return
	}
	room, ok := a.c.Operator.Configured(r.PathValue("room"))
	if !ok {
		a.unknown(w, r)
		return
	}
	var has struct {
		Messages []gateway.Message `json:"messages"`
	}
	_ = json.Unmarshal(room.Keys, &has) // our own
	now := time.Now().UTC()
	if m.At == nil {
		m.At = &now
	}
	all, ok := added(has.Messages, m, now)
	if !ok {
		a.fail(w, r, http.StatusConflict, "messages_full", fmt.Sprintf("%d messages wait for their time, and a room has no more. Take one of them back.", brand.MessagesMax))
		return
	}
	has.Messages = all
	patch, _ := json.Marshal(has) // times and strings
	a.change(w, r, room, patch)
}

// added puts m with the others, in the order of their times; false: there is no
// room, for none of them has been read.
func added(all []gateway.Message, m gateway.Message, now time.Time) ([]gateway.Message, bool) {
	all = append(slices.Clone(all), m)
	slices.SortStableFunc(all, func(a, b gateway.Message) int { return a.At.Compare(*b.At) })
	if len(all) <= brand.MessagesMax {
		return all, true
	}
	return all[1:], !all[0].At.After(now) && all[0] != m
}
