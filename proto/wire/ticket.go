package wire

import (
	"errors"
	"fmt"
	"math"

	"github.com/anteroom/anteroom/internal/ticket"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/qpid"
)

// FromRequest encodes a visitor's request.
func FromRequest(q ticket.Request) *peerv1.Request {
	return &peerv1.Request{
		Op: peerv1.Op(q.Op) + 1, Room: q.Room, Id: bytesOf(q.ID[:]), Ticket: fromTicket(q.Ticket), Pass: fromPass(q.Pass), Async: q.Async, Hold: q.Hold,
		Listener: fromMember(q.Listener), Relay: fromMember(q.Relay),
	}
}

// ToRequest decodes a visitor's request.
func ToRequest(p *peerv1.Request) (ticket.Request, error) {
	var r reader
	q := ticket.Request{
		Op: ticket.Op(r.enum("op", int32(p.GetOp()), uint8(ticket.Take))), Room: r.name(p.GetRoom()), ID: r.id(p.GetId()),
		Ticket: r.ticket(p.GetTicket()), Pass: r.pass(p.GetPass()), Async: p.GetAsync(), Hold: p.GetHold(),
		Listener: r.member(p.GetListener()), Relay: r.member(p.GetRelay()),
	}
	return q, r.err
}

// FromHint encodes a ticket to which something has happened.
func FromHint(room string, id qpid.ItemID) *peerv1.Hint {
	return &peerv1.Hint{Room: room, Id: bytesOf(id[:])}
}

// ToHint decodes a ticket to which something has happened.
func ToHint(p *peerv1.Hint) (room string, id qpid.ItemID, err error) {
	var r reader
	room, id = r.name(p.GetRoom()), r.id(p.GetId())
	return room, id, r.err
}

// FromAnswer encodes what a visitor is told.
func FromAnswer(a ticket.Answer) *peerv1.Answer {
	return &peerv1.Answer{
		Standing: peerv1.Standing(a.State) + 1, Ticket: fromTicket(a.Ticket), Pass: fromPass(a.Pass), Position: int64(a.Position),
		Queued: int64(a.Queued), WaitP25: fromDuration(a.Wait.P25), WaitP50: fromDuration(a.Wait.P50), WaitP75: fromDuration(a.Wait.P75),
		Refresh: fromDuration(a.Refresh), Paused: string(a.Paused), Forward: fromMember(a.Forward), Wave: a.Wave,
		Link: bytesOf(a.Link.ID[:]), LinkUntil: a.Link.Until,
	}
}

// ToAnswer decodes what a visitor is told.
func ToAnswer(p *peerv1.Answer) (ticket.Answer, error) {
	var r reader
	a := ticket.Answer{
		State:  ticket.State(r.enum("standing", int32(p.GetStanding()), uint8(ticket.Admitted))),
		Ticket: r.ticket(p.GetTicket()), Pass: r.pass(p.GetPass()), Position: r.number(p.GetPosition()), Queued: r.number(p.GetQueued()),
		Wait: ticket.Wait{
			P25: toDuration(p.GetWaitP25()), P50: toDuration(p.GetWaitP50()), P75: toDuration(p.GetWaitP75()),
		},
		Refresh: toDuration(p.GetRefresh()), Paused: ticket.Pause(r.text("pause", p.GetPaused(), textMax)), Forward: r.member(p.GetForward()),
		Wave: p.GetWave(), Link: ticket.Link{ID: r.id(p.GetLink()), Until: p.GetLinkUntil()},
	}
	if a.Position < 0 || a.Queued < 0 || a.Refresh < 0 || min(a.Wait.P25, a.Wait.P50, a.Wait.P75) < 0 {
		r.fail("position %d of %d, wait %v, refresh %v", a.Position, a.Queued, a.Wait, a.Refresh)
	}
	return a, r.err
}

// refusals pairs the errors of visitor operations with their names on the wire.
func refusals() [11]error {
	return [...]error{
		peerv1.Refusal_REFUSAL_ROOM_UNKNOWN - 1: ticket.ErrRoomUnknown,
		peerv1.Refusal_REFUSAL_EXPIRED - 1:      ticket.ErrExpired,
		peerv1.Refusal_REFUSAL_USED - 1:         ticket.ErrUsed,
		peerv1.Refusal_REFUSAL_NOT_CALLED - 1:   ticket.ErrNotCalled,
		peerv1.Refusal_REFUSAL_PASS_EXPIRED - 1: ticket.ErrPassExpired,
		peerv1.Refusal_REFUSAL_QUEUE_FULL - 1:   ticket.ErrQueueFull,
		peerv1.Refusal_REFUSAL_UNAVAILABLE - 1:  ticket.ErrUnavailable,
		peerv1.Refusal_REFUSAL_REJECTED - 1:     ticket.ErrRejected,
		peerv1.Refusal_REFUSAL_BUSY - 1:         ticket.ErrBusy,
		peerv1.Refusal_REFUSAL_HANDED_ON - 1:    ticket.ErrHandedOn,
		peerv1.Refusal_REFUSAL_LINK_OVER - 1:    ticket.ErrLinkOver,
	}
}

// FromError encodes why a request was not granted. An error that is not one of
// package ticket's is REFUSAL_UNSPECIFIED: what it says stays on its node.
func FromError(err error) peerv1.Refusal {
	for i, known := range refusals() {
		if errors.Is(err, known) {
			return peerv1.Refusal(i + 1)
		}
	}
	return peerv1.Refusal_REFUSAL_UNSPECIFIED
}

// ToError decodes why a request was not granted. What this version does not
// know is ticket.ErrUnavailable.
func ToError(p peerv1.Refusal) error {
	all := refusals()
	if p < 1 || int(p) > len(all) {
		return fmt.Errorf("%w: refused for a reason %d that is not known here", ticket.ErrUnavailable, p)
	}
	return all[p-1]
}

func fromTicket(t ticket.Ticket) *peerv1.Ticket {
	if t == (ticket.Ticket{}) {
		return nil
	}
	p := &peerv1.Ticket{
		Room: t.Room, Weight: fromWeight(t.Weight()), Home: fromMember(t.Home), Gen: t.Gen, Position: t.Position, Issued: t.Issued,
		Missed: uint32(t.Missed), Slept: uint32(t.Slept), Anew: t.Anew, Quiet: t.Quiet, Hand: uint32(t.Hand),
	}
	if t.Past != (ticket.Homes{}) {
		p.Past = encoded(t.Past[:], memberIn)
	}
	return p
}

func (r *reader) ticket(p *peerv1.Ticket) ticket.Ticket {
	w := r.weight(p.GetWeight())
	t := ticket.Ticket{
		Room: r.name(p.GetRoom()), ID: w.ID, Stamp: w.Stamp, Home: r.member(p.GetHome()), Gen: p.GetGen(), Position: p.GetPosition(),
		Issued: p.GetIssued(), Missed: uint8(min(p.GetMissed(), math.MaxUint8)), Slept: uint8(min(p.GetSlept(), math.MaxUint8)), Anew: p.GetAnew(), Quiet: p.GetQuiet(),
		Hand: r.small(p.GetHand()),
	}
	copy(t.Past[:], list(r, "former homes", p.GetPast(), len(t.Past), r.member))
	return t
}

func fromPass(s ticket.Pass) *peerv1.Pass {
	if s == (ticket.Pass{}) {
		return nil
	}
	return &peerv1.Pass{Room: s.Room, Weight: fromWeight(qpid.Weight{Stamp: s.Stamp, ID: s.ID}), Home: fromAccount(s.Home), Expires: s.Expires, Started: s.Started}
}

func (r *reader) pass(p *peerv1.Pass) ticket.Pass {
	w := r.weight(p.GetWeight())
	return ticket.Pass{Room: r.name(p.GetRoom()), ID: w.ID, Stamp: w.Stamp, Home: r.account(p.GetHome()), Expires: p.GetExpires(), Started: p.GetStarted()}
}
