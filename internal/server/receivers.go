package server

import (
	"context"
	"time"

	"github.com/anteroom/anteroom/gateway/admin"
)

// Receivers are who is notified, as it goes at this node.
func (o operator) Receivers() []admin.Receiver {
	all := []admin.Receiver{}
	for _, r := range o.s.sender.Receivers() {
		shown := admin.Receiver{Name: r.Name, Kind: r.Kind, Events: append([]string{}, r.Events...), Rooms: append([]string{}, r.Rooms...), Waiting: r.Waiting}
		if !r.Oldest.IsZero() {
			at := r.Oldest.UTC()
			shown.Oldest = &at
		}
		if at := r.Last.At; !at.IsZero() {
			shown.LastAt = &at
		}
		if r.Last.Err != nil {
			shown.LastErr = r.Last.Err.Error()
		}
		all = append(all, shown)
	}
	return all
}

// TestReceiver sends a test from this node. The others hear nothing of it.
func (o operator) TestReceiver(ctx context.Context, name string) (admin.TestSent, bool) {
	began := time.Now()
	e, err, ok := o.s.sender.Test(ctx, name)
	if !ok {
		return admin.TestSent{}, false
	}
	sent := admin.TestSent{Receiver: name, ID: e.ID, Delivered: err == nil, Seconds: time.Since(began).Seconds()}
	if err != nil {
		sent.Error = err.Error()
	}
	o.s.log.Info("a test notification was sent", "receiver", name, "event", e.ID, "delivered", sent.Delivered, "err", sent.Error)
	return sent, true
}
