package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Reason is why a call failed, for errors.Is. The values are those that nodes
// send as google.rpc.ErrorInfo.
type Reason string

// Error is the reason itself.
func (r Reason) Error() string { return string(r) }

const (
	// ErrQueueUnknown is a queue that nobody has put anything into, nor configured.
	ErrQueueUnknown Reason = "queue_unknown"
	// ErrItemUnknown is an item that is not there: never put, long done, cancelled.
	ErrItemUnknown Reason = "item_unknown"
	// ErrItemFinished is an item that is done, cancelled or expired.
	ErrItemFinished Reason = "item_finished"
	// ErrLeaseLost is a lease that has lapsed: somebody else may have the item.
	ErrLeaseLost Reason = "lease_lost"
	// ErrDraining is a queue that takes nothing in until Resume.
	ErrDraining Reason = "queue_draining"
	// ErrFull is a queue, or a node's memory, that has no room. Put tries again
	// for as long as it has patience.
	ErrFull Reason = "queue_full"
	// ErrStorageFull is a disk that has no room for what a durable or replicated
	// queue must write. Calls try again, for as long as they have patience.
	ErrStorageFull Reason = "storage_full"
	// ErrTooManyQueues is a cluster that makes no further queue by itself.
	ErrTooManyQueues Reason = "too_many_queues"
	// ErrTooManyRequests is a node that has enough to do. Calls try again.
	ErrTooManyRequests Reason = "too_many_requests"
	// ErrInvalid is a request that no try can mend.
	ErrInvalid Reason = "request_invalid"
	// ErrTokenRequired is a node that wants a token; see WithToken.
	ErrTokenRequired Reason = "token_required"
	// ErrTokenInvalid is a token that the node does not know.
	ErrTokenInvalid Reason = "token_invalid"
	// ErrNotAllowed is a token that may not do this, or not with this queue.
	ErrNotAllowed Reason = "not_allowed"
	// ErrUnavailable is a cluster of which no node could answer in time. Whether
	// the call was carried out is not known.
	ErrUnavailable Reason = "unavailable"
)

// Error is a call that failed.
type Error struct {
	Op, Queue  string        // what was called, as in "put"
	Reason     Reason        // empty: nothing that this package knows; Code and Text say what
	Code       codes.Code    // of gRPC
	Text       string        // as the node said it
	RetryAfter time.Duration // when another try makes sense; 0: the node did not say

	cause  error // of gRPC, or of the context
	passes bool  // another try may succeed
}

// Error says what failed and why.
func (e *Error) Error() string {
	where := e.Op
	if e.Queue != "" {
		where += " " + e.Queue
	}
	if e.Reason == "" {
		return fmt.Sprintf("queue: %s: %s (%v)", where, e.Text, e.Code)
	}
	return fmt.Sprintf("queue: %s: %s (%s)", where, e.Text, e.Reason)
}

// Is compares with a Reason.
func (e *Error) Is(target error) bool {
	r, ok := target.(Reason)
	return ok && r == e.Reason
}

// Unwrap is the context's error, if that ended the call, else gRPC's.
func (e *Error) Unwrap() error { return e.cause }

// within is e, and why nothing more was tried.
func (e *Error) within(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		e.cause = err
	}
	return e
}

// errorOf reads what a node, or gRPC in its place, says.
func errorOf(r *request, err error) *Error {
	s := status.Convert(err)
	e := &Error{Op: r.op, Queue: r.queue, Code: s.Code(), Text: s.Message(), cause: err}
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			e.Reason = Reason(d.GetReason())
		case *errdetails.RetryInfo:
			e.RetryAfter = d.GetRetryDelay().AsDuration()
			e.passes = true
		}
	}
	if e.Reason == "" {
		e.Reason = reasonOf(e.Code)
	}
	if e.Reason == ErrUnavailable || e.Reason == ErrTooManyRequests {
		e.passes = true
	}
	return e
}

// reasonOf stands in where a proxy or gRPC itself has answered. A try that took
// too long is a node that is stopped, or cut off.
func reasonOf(c codes.Code) Reason {
	switch c {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return ErrUnavailable
	case codes.ResourceExhausted:
		return ErrTooManyRequests
	case codes.InvalidArgument:
		return ErrInvalid
	default:
		return ""
	}
}

// gone reports whether err says that a lease is over, however it ended.
func gone(err error) bool {
	return errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrItemUnknown) || errors.Is(err, ErrItemFinished)
}
