package gateway

import (
	"encoding/hex"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
)

// Draw is what somebody can check of the draw of an event that they take part in.
// Everything but Ticket and Key is the same for all.
type Draw struct {
	Event      string    `json:"event"`
	StartsAt   time.Time `json:"starts_at"`
	Start      uint64    `json:"start"`          // the same, in Unix microseconds, as the key is made with
	Commitment string    `json:"commitment"`     // SHA-256 of the seed, in hexadecimal digits
	Seed       string    `json:"seed,omitempty"` // once the order is drawn
	Ticket     string    `json:"ticket"`         // id of the ticket: no secret, and of no use to others
	Key        uint64    `json:"key,omitempty"`  // the smallest goes first; see eviction.Shuffled
}

// draw is nil for somebody who takes part in none.
func (c *call) draw(a *ticket.Answer) *Draw {
	d := &c.state.Draw
	t := &a.Ticket
	if d.Start == 0 || a.State == ticket.Admitted || t.Stamp >= uint64(d.Start) {
		return nil
	}
	p := &Draw{
		Event: d.Event, StartsAt: time.UnixMicro(d.Start).UTC(), Start: uint64(d.Start),
		Commitment: hex.EncodeToString(d.Commitment[:]), Ticket: hex.EncodeToString(t.ID[:]),
	}
	if d.Over() {
		p.Seed, p.Key = hex.EncodeToString(d.Seed[:]), eviction.Shuffled(d.Seed, uint64(d.Start), t.ID)
	}
	return p
}

// PublicDraw is what everybody may know of a draw.
type PublicDraw struct {
	Event      string    `json:"event"`
	StartsAt   time.Time `json:"starts_at"`
	Start      uint64    `json:"start"`
	Commitment string    `json:"commitment"`
	Seed       string    `json:"seed,omitempty"`
}

// publicDraw is nil if there is none.
func (c *call) publicDraw() *PublicDraw {
	d := &c.state.Draw
	if d.Start == 0 {
		return nil
	}
	p := &PublicDraw{Event: d.Event, StartsAt: time.UnixMicro(d.Start).UTC(), Start: uint64(d.Start), Commitment: hex.EncodeToString(d.Commitment[:])}
	if d.Over() {
		p.Seed = hex.EncodeToString(d.Seed[:])
	}
	return p
}
