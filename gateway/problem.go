package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/anteroom/anteroom/internal/challenge"
	"github.com/anteroom/anteroom/internal/peraddress"
	"github.com/anteroom/anteroom/internal/ticket"
)

// Problem is an error as RFC 9457 writes it. Programs go by Code, which stays
// the same between versions; Detail is for people.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Code   string `json:"code"`

	ChallengeURL string `json:"challenge_url,omitempty"` // where the token comes from that a join takes
}

// HTTPError is an error with its answer: what the client is told, and what
// only the log is.
type HTTPError struct {
	Status     int
	Code       string // stable
	Title      string // what kind of error
	Detail     string // what to do about it
	RetryAfter int    // seconds; 0: trying again is no use, or whenever
	Err        error  // for the log; may be nil

	ChallengeURL string
}

func (e *HTTPError) Error() string {
	if e.Err != nil {
		return e.Code + ": " + e.Err.Error()
	}
	return e.Code + ": " + e.Title
}

func (e *HTTPError) Unwrap() error { return e.Err }

func invalid(detail string) *HTTPError {
	return &HTTPError{Status: 400, Code: "request_invalid", Title: "The request is invalid", Detail: detail}
}

func badTicket(detail string) *HTTPError {
	return &HTTPError{Status: 401, Code: "ticket_invalid", Title: "The ticket is not valid here", Detail: detail}
}

func badPass(detail string) *HTTPError {
	return &HTTPError{Status: 401, Code: "pass_invalid", Title: "The pass is not valid here", Detail: detail}
}

func tooMany(retryAfter int) *HTTPError {
	return &HTTPError{
		Status: 429, Code: "too_many_requests", Title: "Too many requests at once",
		Detail: "Nothing was lost. Try again after the time in Retry-After.", RetryAfter: max(1, retryAfter),
	}
}

func wrongMethod(detail string) *HTTPError {
	return &HTTPError{Status: 405, Code: "method_not_allowed", Title: "The method is not allowed here", Detail: detail}
}

func notFound() *HTTPError {
	return &HTTPError{Status: 404, Code: "not_found", Title: "Nothing here", Detail: "No waiting room guards this address."}
}

// errorOf gives every error its answer.
func errorOf(err error) *HTTPError {
	var e *HTTPError
	var full *peraddress.Error
	var asks *challenge.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &full):
		return &HTTPError{Status: 429, Code: "too_many_requests", Title: "Too many from your network", Detail: full.Detail(), RetryAfter: full.RetryAfter, Err: err}
	case errors.As(err, &asks) && asks.Full():
		return &HTTPError{Status: 429, Code: "too_many_requests", Title: "Too many requests at once", Detail: asks.Detail(), RetryAfter: asks.RetryAfter, Err: err}
	case errors.As(err, &asks):
		return &HTTPError{Status: 403, Code: "challenge_required", Title: "Joining takes a token", Detail: asks.Detail(), ChallengeURL: asks.URL, Err: err}
	case errors.Is(err, ticket.ErrRoomUnknown):
		return &HTTPError{Status: 404, Code: "room_unknown", Title: "There is no such room", Err: err}
	case errors.Is(err, ticket.ErrExpired):
		return &HTTPError{Status: 410, Code: "ticket_expired", Title: "The ticket has expired", Detail: "Its place was given up after too long a silence. Join again.", Err: err}
	case errors.Is(err, ticket.ErrUsed):
		return &HTTPError{Status: 410, Code: "ticket_used", Title: "The ticket was used", Detail: "Its session is over. Join again.", Err: err}
	case errors.Is(err, ticket.ErrHandedOn):
		return &HTTPError{Status: 410, Code: "place_moved", Title: "The place is on another device", Detail: "Somebody took it over by its link. Join for another place.", Err: err}
	case errors.Is(err, ticket.ErrLinkOver):
		return &HTTPError{Status: 410, Code: "transfer_over", Title: "The link works no more", Detail: "It was used, or is older than five minutes. Whoever has the place can have another one made.", Err: err}
	case errors.Is(err, ticket.ErrNotCalled):
		return &HTTPError{Status: 409, Code: "not_called_yet", Title: "Not called yet", Detail: "Check in until the state is called.", Err: err}
	case errors.Is(err, ticket.ErrPassExpired):
		return &HTTPError{Status: 410, Code: "pass_expired", Title: "The pass has expired", Detail: "Join again.", Err: err}
	case errors.Is(err, ticket.ErrQueueFull):
		return &HTTPError{Status: 503, Code: "queue_full", Title: "The queue is full", RetryAfter: 30, Err: err}
	case errors.Is(err, ticket.ErrRejected):
		return &HTTPError{Status: 403, Code: "room_closed", Title: "The room lets nobody in", Err: err}
	case errors.Is(err, ticket.ErrSuperseded):
		return &HTTPError{Status: 409, Code: "stream_superseded", Title: "Newer streams of the ticket are open", Detail: "A ticket has two at most, the newest. Do not open this one again.", Err: err}
	case errors.Is(err, ticket.ErrBusy):
		return tooMany(1)
	case errors.Is(err, ticket.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return &HTTPError{Status: 503, Code: "unavailable", Title: "Not available just now", Detail: "Places and passes are kept. Try again.", RetryAfter: 2, Err: err}
	}
	return &HTTPError{Status: 500, Code: "internal", Title: "Something went wrong here", Err: err}
}

// fail writes err as problem+json, and logs what the client cannot help.
func (g *Gateway) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := errorOf(err)
	if e.Status == 500 && r.Context().Err() == nil { // else it comes of that, and there may be nobody to be told
		g.c.Logger.LogAttrs(r.Context(), slog.LevelError, "request failed", slog.String("path", r.URL.Path), slog.String("error", err.Error()))
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	if e.Status == 401 {
		h.Set("WWW-Authenticate", "Bearer")
	}
	b, err := json.Marshal(problem(e))
	if err != nil {
		panic("gateway: a problem does not encode: " + err.Error()) // strings and a number
	}
	h.Set("Content-Length", strconv.Itoa(len(b)+1))
	w.WriteHeader(e.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(b, '\n'))
	}
}

func problem(e *HTTPError) Problem {
	return Problem{
		Type: "urn:anteroom:problem:" + e.Code, Title: e.Title, Status: e.Status, Code: e.Code,
		Detail: cmp.Or(e.Detail, e.Title+"."), ChallengeURL: e.ChallengeURL,
	}
}
