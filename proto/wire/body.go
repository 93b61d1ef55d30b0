package wire

import (
	"fmt"

	"github.com/anteroom/anteroom/eviction"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/qpid"
)

// FromBody encodes a message body. The error is ErrKind: a kind was added to
// package eviction and not here.
func FromBody(b eviction.Body) (*peerv1.Body, error) {
	switch b := b.(type) {
	case *eviction.Gather:
		return &peerv1.Body{Kind: &peerv1.Body_Gather{Gather: fromGather(b)}}, nil
	case *eviction.Reply:
		return &peerv1.Body{Kind: &peerv1.Body_Reply{Reply: fromReply(b)}}, nil
	case *eviction.Commit:
		return &peerv1.Body{Kind: &peerv1.Body_Commit{Commit: fromCommit(b)}}, nil
	case *eviction.Ask:
		return &peerv1.Body{Kind: &peerv1.Body_Ask{Ask: &peerv1.Ask{Epoch: fromEpoch(b.Epoch)}}}, nil
	case *eviction.Nack:
		return &peerv1.Body{Kind: &peerv1.Body_Nack{Nack: &peerv1.Nack{Epoch: fromEpoch(b.Epoch), Lead: fromPeer(b.Lead)}}}, nil
	case *eviction.Probe:
		return &peerv1.Body{Kind: &peerv1.Body_Probe{Probe: &peerv1.Probe{
			Lead: fromPeer(b.Lead), Epoch: fromEpoch(b.Epoch), Sent: b.Sent, Off: b.Off, Line: fromLine(b.Line),
		}}}, nil
	case *eviction.ProbeAck:
		return &peerv1.Body{Kind: &peerv1.Body_ProbeAck{ProbeAck: &peerv1.ProbeAck{
			Sent: b.Sent, Clock: b.Clock, Follow: fromPeer(b.Follow), Epoch: fromEpoch(b.Epoch), Leaving: b.Leaving, Line: fromLine(b.Line), Quorum: b.Quorum, Forgot: b.Forgot,
		}}}, nil
	case *eviction.Urgent:
		return &peerv1.Body{Kind: &peerv1.Body_Urgent{Urgent: &peerv1.Urgent{Room: b.Room}}}, nil
	case *eviction.Slots:
		s := &peerv1.Slots{Room: b.Room, From: fromAccount(b.From), To: fromAccount(b.To), Total: int64(b.Total), Line: fromLine(b.Line)}
		if len(b.Visits) > 0 {
			return &peerv1.Body{Kind: &peerv1.Body_SlotsInUse{SlotsInUse: &peerv1.SlotsInUse{Slots: s, Visits: encoded(b.Visits, fromVisit)}}}, nil
		}
		return &peerv1.Body{Kind: &peerv1.Body_Slots{Slots: s}}, nil
	case *eviction.SlotsAck:
		return &peerv1.Body{Kind: &peerv1.Body_SlotsAck{SlotsAck: &peerv1.SlotsAck{
			Room: b.Room, From: fromAccount(b.From), To: fromAccount(b.To), Total: int64(b.Total),
		}}}, nil
	case *eviction.RoomQPID:
		return &peerv1.Body{Kind: &peerv1.Body_Qpid{Qpid: fromQPID(b)}}, nil
	case *eviction.SyncRequest:
		return &peerv1.Body{Kind: &peerv1.Body_SyncRequest{SyncRequest: &peerv1.SyncRequest{}}}, nil
	case *eviction.SyncReply:
		return &peerv1.Body{Kind: &peerv1.Body_SyncReply{SyncReply: &peerv1.SyncReply{Taken: encoded(b.Taken, fromTaken), More: b.More}}}, nil
	case *eviction.SyncAck:
		return &peerv1.Body{Kind: &peerv1.Body_SyncAck{SyncAck: &peerv1.SyncAck{Taken: encoded(b.Taken, fromTaken)}}}, nil
	case *eviction.Used:
		return &peerv1.Body{Kind: &peerv1.Body_Used{Used: &peerv1.Used{From: b.From, Tickets: b.Tickets}}}, nil
	case *eviction.UsedAck:
		return &peerv1.Body{Kind: &peerv1.Body_UsedAck{UsedAck: &peerv1.UsedAck{Upto: b.Upto}}}, nil
	case *eviction.Places:
		return &peerv1.Body{Kind: &peerv1.Body_Places{Places: &peerv1.Places{Room: b.Room, Places: encoded(b.Places, fromPlace)}}}, nil
	case *eviction.Copies:
		return &peerv1.Body{Kind: &peerv1.Body_Copies{Copies: &peerv1.Copies{Lane: b.Lane, Seq: b.Seq, Rooms: encoded(b.Rooms, fromRoomCopies)}}}, nil
	case *eviction.CopiesAck:
		return &peerv1.Body{Kind: &peerv1.Body_CopiesAck{CopiesAck: &peerv1.CopiesAck{Lane: b.Lane, Seq: b.Seq, Unknown: b.Unknown, Visits: int64(b.Visits)}}}, nil
	case *eviction.Goodbye:
		return &peerv1.Body{Kind: &peerv1.Body_Goodbye{Goodbye: &peerv1.Goodbye{}}}, nil
	default:
		return nil, fmt.Errorf("%w: %T", ErrKind, b)
	}
}

// ToBody decodes a message body. The error is ErrKind or ErrMalformed.
func ToBody(p *peerv1.Body) (eviction.Body, error) {
	var r reader
	b := r.body(p)
	if b == nil && r.err == nil {
		return nil, ErrKind
	}
	return b, r.err
}

func (r *reader) body(p *peerv1.Body) eviction.Body {
	switch k := p.GetKind().(type) {
	case *peerv1.Body_Gather:
		return r.gather(k.Gather)
	case *peerv1.Body_Reply:
		return r.reply(k.Reply)
	case *peerv1.Body_Commit:
		return r.commit(k.Commit)
	case *peerv1.Body_Ask:
		return &eviction.Ask{Epoch: r.epoch(k.Ask.GetEpoch())}
	case *peerv1.Body_Nack:
		return &eviction.Nack{Epoch: r.epoch(k.Nack.GetEpoch()), Lead: r.peer(k.Nack.GetLead())}
	case *peerv1.Body_Probe:
		return &eviction.Probe{Lead: r.peer(k.Probe.GetLead()), Epoch: r.epoch(k.Probe.GetEpoch()), Sent: k.Probe.GetSent(), Off: k.Probe.GetOff(), Line: r.line(k.Probe.GetLine())}
	case *peerv1.Body_ProbeAck:
		a := k.ProbeAck
		return &eviction.ProbeAck{
			Sent: a.GetSent(), Clock: a.GetClock(), Follow: r.peer(a.GetFollow()), Epoch: r.epoch(a.GetEpoch()), Leaving: a.GetLeaving(), Line: r.line(a.GetLine()),
			Quorum: a.GetQuorum(), Forgot: a.GetForgot(),
		}
	case *peerv1.Body_Urgent:
		return &eviction.Urgent{Room: r.name(k.Urgent.GetRoom())}
	case *peerv1.Body_Slots:
		return r.slots(k.Slots)
	case *peerv1.Body_SlotsInUse:
		s := r.slots(k.SlotsInUse.GetSlots())
		if s.Visits = list(r, "visits", k.SlotsInUse.GetVisits(), eviction.VisitsMax, r.visit); s.Visits == nil {
			r.fail("slots in use by nobody")
		}
		return s
	case *peerv1.Body_Places:
		return &eviction.Places{Room: r.name(k.Places.GetRoom()), Places: list(r, "places", k.Places.GetPlaces(), eviction.PlacesMax, r.place)}
	case *peerv1.Body_SlotsAck:
		s := k.SlotsAck
		return &eviction.SlotsAck{
			Room: r.name(s.GetRoom()), From: r.account(s.GetFrom()), To: r.account(s.GetTo()), Total: r.number(s.GetTotal()),
		}
	case *peerv1.Body_Qpid:
		return r.qpid(k.Qpid)
	case *peerv1.Body_SyncRequest:
		return &eviction.SyncRequest{}
	case *peerv1.Body_SyncReply:
		return &eviction.SyncReply{Taken: list(r, "tickets", k.SyncReply.GetTaken(), recordsMax, r.taken), More: k.SyncReply.GetMore()}
	case *peerv1.Body_SyncAck:
		return &eviction.SyncAck{Taken: list(r, "tickets", k.SyncAck.GetTaken(), recordsMax, r.taken)}
	case *peerv1.Body_Used:
		return &eviction.Used{From: k.Used.GetFrom(), Tickets: r.used(k.Used.GetTickets())}
	case *peerv1.Body_Copies:
		return &eviction.Copies{
			Lane: k.Copies.GetLane(), Seq: k.Copies.GetSeq(), Rooms: list(r, "rooms", k.Copies.GetRooms(), roomsMax, r.roomCopies),
		}
	case *peerv1.Body_CopiesAck:
		return &eviction.CopiesAck{Lane: k.CopiesAck.GetLane(), Seq: k.CopiesAck.GetSeq(), Unknown: k.CopiesAck.GetUnknown(), Visits: r.number(k.CopiesAck.GetVisits())}
	case *peerv1.Body_UsedAck:
		return &eviction.UsedAck{Upto: k.UsedAck.GetUpto()}
	case *peerv1.Body_Goodbye:
		return &eviction.Goodbye{}
	default:
		return nil
	}
}

func (r *reader) used(hashes []uint64) []uint64 {
	if len(hashes) > eviction.UsedMax {
		r.fail("%d used tickets, at most %d", len(hashes), eviction.UsedMax)
		return nil
	}
	return hashes
}

func (r *reader) slots(s *peerv1.Slots) *eviction.Slots {
	return &eviction.Slots{
		Room: r.name(s.GetRoom()), From: r.account(s.GetFrom()), To: r.account(s.GetTo()), Total: r.number(s.GetTotal()), Line: r.line(s.GetLine()),
	}
}

func fromPlace(p eviction.Place) *peerv1.Place {
	return &peerv1.Place{
		Id: bytesOf(p.ID[:]), Stamp: p.Stamp, Gen: p.Gen, Past: fromMember(p.Past), Silent: p.Silent, Refresh: p.Refresh,
		Missed: uint32(p.Missed), Slept: uint32(p.Slept), Anew: p.Anew, Entitled: p.Entitled, Wave: p.Wave, Parked: p.Parked,
		Hand: uint32(p.Hand),
	}
}

func (r *reader) place(p *peerv1.Place) eviction.Place {
	return eviction.Place{
		ID: r.id(p.GetId()), Stamp: p.GetStamp(), Gen: p.GetGen(), Past: r.member(p.GetPast()), Silent: p.GetSilent(), Refresh: p.GetRefresh(),
		Missed: r.small(p.GetMissed()), Slept: r.small(p.GetSlept()), Anew: p.GetAnew(), Entitled: p.GetEntitled(), Wave: p.GetWave(), Parked: p.GetParked(),
		Hand: r.small(p.GetHand()),
	}
}

func fromRoomCopies(c eviction.RoomCopies) *peerv1.RoomCopies {
	return &peerv1.RoomCopies{
		Room: c.Room, Places: encoded(c.Places, fromPlace), Gone: encoded(c.Gone, fromID), Ended: encoded(c.Ended, fromID), Moved: encoded(c.Moved, fromID),
		Visits: encoded(c.Visits, func(v eviction.VisitKept) *peerv1.VisitKept {
			return &peerv1.VisitKept{Id: fromID(v.ID), Until: v.Until}
		}),
	}
}

func fromID(id qpid.ItemID) []byte { return bytesOf(id[:]) }

func (r *reader) roomCopies(p *peerv1.RoomCopies) eviction.RoomCopies {
	return eviction.RoomCopies{
		Room: r.name(p.GetRoom()), Places: list(r, "places", p.GetPlaces(), eviction.PlacesMax, r.place),
		Gone: list(r, "ids", p.GetGone(), eviction.PlacesMax, r.id), Ended: list(r, "ids", p.GetEnded(), eviction.PlacesMax, r.id),
		Moved: list(r, "ids", p.GetMoved(), eviction.PlacesMax, r.id),
		Visits: list(r, "visits", p.GetVisits(), eviction.PlacesMax, func(p *peerv1.VisitKept) eviction.VisitKept {
			return eviction.VisitKept{ID: r.id(p.GetId()), Until: p.GetUntil()}
		}),
	}
}

func fromVisit(v eviction.Visit) *peerv1.VisitGiven {
	return &peerv1.VisitGiven{
		Id: bytesOf(v.ID[:]), Stamp: v.Stamp, Gen: v.Gen, Expires: v.Expires, Started: v.Started, Homes: encoded(v.Homes, fromAccount), Hand: uint32(v.Hand),
	}
}

func (r *reader) visit(p *peerv1.VisitGiven) eviction.Visit {
	return eviction.Visit{
		ID: r.id(p.GetId()), Stamp: p.GetStamp(), Gen: p.GetGen(), Expires: p.GetExpires(), Started: p.GetStarted(),
		Homes: list(r, "homes", p.GetHomes(), eviction.HomesMax, r.account), Hand: r.small(p.GetHand()),
	}
}

func fromTaken(t eviction.TakenTicket) *peerv1.TakenTicket {
	return &peerv1.TakenTicket{Room: t.Room, Id: bytesOf(t.ID[:]), Gen: t.Gen, At: fromMember(t.At)}
}

func (r *reader) taken(p *peerv1.TakenTicket) eviction.TakenTicket {
	t := eviction.TakenTicket{Room: r.name(p.GetRoom()), ID: r.id(p.GetId()), Gen: p.GetGen()}
	if p.GetAt() != nil {
		t.At = r.member(p.GetAt())
	}
	return t
}

// The kinds and outcomes of package qpid count from 1, as the wire does.

func fromQPID(b *eviction.RoomQPID) *peerv1.RoomQPID {
	m := b.Msg
	return &peerv1.RoomQPID{
		Room: b.Room, Kind: peerv1.QPIDKind(m.Kind), From: string(m.From), To: string(m.To), Epoch: fromEpoch(m.Epoch), Seq: m.Seq,
		Weight: fromWeight(m.Weight), OpCaller: string(m.Op.Caller), OpSeq: m.Op.Seq, Hops: m.Hops, Outcome: peerv1.QPIDOutcome(m.Outcome),
	}
}

func (r *reader) qpid(p *peerv1.RoomQPID) *eviction.RoomQPID {
	kind, outcome := p.GetKind(), p.GetOutcome()
	taken := kind == peerv1.QPIDKind_QPID_KIND_TAKEN
	switch {
	case kind < peerv1.QPIDKind_QPID_KIND_UPDATE || kind > peerv1.QPIDKind_QPID_KIND_TAKEN:
		r.fail("qpid message of kind %d", kind)
	case outcome < 0 || outcome > peerv1.QPIDOutcome_QPID_OUTCOME_REFUSED || taken != (outcome != 0):
		r.fail("qpid message of kind %d with outcome %d", kind, outcome)
	}
	return &eviction.RoomQPID{Room: r.name(p.GetRoom()), Msg: qpid.Message{
		Kind: qpid.Kind(kind), From: r.node(p.GetFrom()), To: r.node(p.GetTo()), Epoch: r.epoch(p.GetEpoch()), Seq: p.GetSeq(),
		Weight: r.weight(p.GetWeight()), Op: qpid.OpID{Caller: r.node(p.GetOpCaller()), Seq: p.GetOpSeq()},
		Hops: p.GetHops(), Outcome: qpid.Outcome(outcome),
	}}
}
