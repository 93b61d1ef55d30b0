package waitingroom

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/anteroom/anteroom/internal/challenge"
	"github.com/anteroom/anteroom/internal/peraddress"
	"github.com/anteroom/anteroom/internal/ticket"
)

// Domain is the one of the ErrorInfo that every error carries.
const Domain = "anteroom"

var (
	errTicketInvalid = errors.New("not a ticket of this room")
	errPassInvalid   = errors.New("not a pass of this room")
)

// verdict is what a caller is told of an error.
type verdict struct {
	err    error
	code   codes.Code
	reason string        // the HTTP API's stable code
	retry  time.Duration // worth another try after this long; 0: not
}

func verdicts() []verdict {
	return []verdict{
		{ticket.ErrRoomUnknown, codes.NotFound, "room_unknown", 0},
		{errTicketInvalid, codes.Unauthenticated, "ticket_invalid", 0},
		{errPassInvalid, codes.Unauthenticated, "pass_invalid", 0},
		{ticket.ErrExpired, codes.FailedPrecondition, "ticket_expired", 0},
		{ticket.ErrUsed, codes.FailedPrecondition, "ticket_used", 0},
		{ticket.ErrHandedOn, codes.FailedPrecondition, "place_moved", 0},
		{ticket.ErrLinkOver, codes.FailedPrecondition, "transfer_over", 0},
		{ticket.ErrNotCalled, codes.FailedPrecondition, "not_called_yet", 0},
		{ticket.ErrPassExpired, codes.FailedPrecondition, "pass_expired", 0},
		{ticket.ErrRejected, codes.FailedPrecondition, "room_closed", 0},
		{ticket.ErrQueueFull, codes.ResourceExhausted, "queue_full", 30 * time.Second},
		{ticket.ErrBusy, codes.ResourceExhausted, "too_many_requests", time.Second},
		{ticket.ErrSuperseded, codes.Aborted, "stream_superseded", 0},
		{ticket.ErrUnavailable, codes.Unavailable, "unavailable", 2 * time.Second},
	}
}

// statusOf turns every error into one that a caller may see.
func (s *Server) statusOf(err error) error {
	if err == nil {
		return nil
	}
	if full := (*peraddress.Error)(nil); errors.As(err, &full) {
		return verdict{errors.New(full.Detail()), codes.ResourceExhausted, "too_many_requests", time.Duration(full.RetryAfter) * time.Second}.status()
	}
	if asks := (*challenge.Error)(nil); errors.As(err, &asks) {
		v := verdict{errors.New(asks.Detail()), codes.PermissionDenied, "challenge_required", 0}
		if asks.Full() {
			v.code, v.reason, v.retry = codes.ResourceExhausted, "too_many_requests", time.Duration(asks.RetryAfter)*time.Second
			return v.status()
		}
		return v.status("challenge_url", asks.URL)
	}
	for _, v := range verdicts() {
		if errors.Is(err, v.err) {
			return v.status()
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	s.log.Error("request failed", slog.Any("err", err))
	return verdict{errors.New("something went wrong here"), codes.Internal, "internal", 0}.status()
}

// status makes the verdict an error, with one more pair of key and value if there
// are two words.
func (v verdict) status(more ...string) error {
	info := &errdetails.ErrorInfo{Reason: v.reason, Domain: Domain}
	if len(more) == 2 {
		info.Metadata = map[string]string{more[0]: more[1]}
	}
	is := status.New(v.code, v.err.Error())
	with, err := is.WithDetails(info)
	if err == nil && v.retry > 0 {
		with, err = with.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(v.retry)})
	}
	if err != nil {
		panic("waitingroom: an error does not encode: " + err.Error()) // two strings and a number
	}
	return with.Err()
}
