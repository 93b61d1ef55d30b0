package waitingroom

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

// placeOf puts into words what the queue said, and seals what the visitor keeps.
func (s *Server) placeOf(room string, a ticket.Answer) (*anteroomv1.Place, error) {
	is, ok := s.c.Queue.Room(room)
	if !ok {
		return nil, ticket.ErrRoomUnknown
	}
	now := s.c.Queue.Clock()
	p := &anteroomv1.Place{
		State: anteroomv1.State(a.State) + 1, Room: room, Queued: uint64(a.Queued), EstimatedWaitSeconds: secondsOf(a.Wait),
		JoinedAt: moment(int64(a.Ticket.Stamp)), LastUpdated: moment(now), QueueingMethod: method(is.Room), Paused: a.Paused.Text(), PausedCode: string(a.Paused),
		HeldUntil: ahead(is.HeldUntil, now), StartsAt: ahead(is.Room.Event.Start, now), CalledInWave: a.Wave,
	}
	if p.GetPaused() == "" && a.State == ticket.Waiting { // what the ticket's home says comes first
		p.Paused, p.PausedCode = is.Paused.Text(), string(is.Paused)
	}
	if a.State == ticket.Waiting {
		p.CountedAt = counted(is)
	}
	if a.State == ticket.Waiting && a.Ticket.Anew {
		p.Reason = missedCalls
	}
	if a.Position > 0 && is.Room.Method != eviction.Random {
		position, people := uint64(a.Position), uint64(a.Position-1)
		p.Position, p.PeopleAhead = &position, &people
	}
	var err error
	if a.State == ticket.Admitted {
		p.JoinedAt, p.PassExpiresAt = moment(int64(a.Pass.Stamp)), moment(a.Pass.Expires)
		p.Pass, p.PassJwt, err = s.sealPass(a.Pass)
		return p, err
	}
	p.RefreshIntervalSeconds = uint32(max(1, ceil(a.Refresh)))
	p.Ticket, err = s.c.Sealer.Ticket(a.Ticket)
	return p, err
}

// missedCalls is the reason of a place that was stamped anew.
const missedCalls = "missed_calls"

func (s *Server) sealPass(p ticket.Pass) (pass, jwt string, err error) {
	if pass, err = s.c.Sealer.Pass(p); err != nil {
		return "", "", err
	}
	jwt, err = s.c.Sealer.JWT(p, s.c.Issuer)
	return pass, jwt, err
}

// Status says how busy a room is.
func (s *Server) Status(_ context.Context, r *anteroomv1.StatusRequest) (*anteroomv1.StatusResponse, error) {
	is, ok := s.c.Queue.Room(r.GetRoom())
	if !ok {
		return nil, s.statusOf(ticket.ErrRoomUnknown)
	}
	now := s.c.Queue.Clock()
	word := anteroomv1.StatusResponse_STATUS_NOT_QUEUEING
	switch {
	case is.Room.Event.Start > now:
		word = anteroomv1.StatusResponse_STATUS_EVENT_PREQUEUEING
	case is.Room.Method != eviction.Passthrough && (is.Queued > 0 || !is.Open):
		word = anteroomv1.StatusResponse_STATUS_QUEUEING
	}
	return &anteroomv1.StatusResponse{
		Status: word, Queued: uint64(is.Queued), Active: uint64(is.Active), Called: uint64(is.Called), TotalActiveUsers: uint64(is.Room.Target),
		AdmittedPerMinute: is.AdmittedPerMinute, EstimatedWaitSeconds: secondsOf(is.Wait), QueueingMethod: method(is.Room), Paused: is.Paused.Text(), PausedCode: string(is.Paused),
		HeldUntil: ahead(is.HeldUntil, now), StartsAt: ahead(is.Room.Event.Start, now), LastUpdated: moment(now), CountedAt: counted(is),
	}, nil
}

// method is the room's queueing method; the wire counts from 1.
func method(r eviction.Room) anteroomv1.QueueingMethod {
	return anteroomv1.QueueingMethod(r.Method) + 1
}

// moment is a time in Unix microseconds.
func moment(micros int64) *timestamppb.Timestamp { return timestamppb.New(time.UnixMicro(micros)) }

// ahead is a moment that is still to come, nil if it is not.
func ahead(micros, now int64) *timestamppb.Timestamp {
	if micros <= now {
		return nil
	}
	return moment(micros)
}

// counted is of what moment the room's figures are, nil if of now.
func counted(is ticket.RoomState) *timestamppb.Timestamp {
	if is.Counted == 0 {
		return nil
	}
	return moment(is.Counted)
}

// secondsOf rounds up, so that nobody is back too early; nil: not known.
func secondsOf(w ticket.Wait) *anteroomv1.WaitSeconds {
	if w == (ticket.Wait{}) {
		return nil
	}
	return &anteroomv1.WaitSeconds{P25: ceil(w.P25), P50: ceil(w.P50), P75: ceil(w.P75)}
}

func ceil(d time.Duration) uint64 { return uint64((max(0, d) + time.Second - 1) / time.Second) }
