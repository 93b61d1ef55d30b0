package waitingroom_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
	"github.com/anteroom/anteroom/proto/waitingroom"
	"github.com/anteroom/anteroom/qpid"
)

func TestJoinTellsThePlace(t *testing.T) {
	q := shop()
	c := serve(t, q, nil)
	q.will(waiting(4), nil)
	got, err := c.Join(t.Context(), &anteroomv1.JoinRequest{Room: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	position, ahead := uint64(4), uint64(3)
	want := &anteroomv1.Place{
		State: anteroomv1.State_STATE_WAITING, Room: "shop", Ticket: "t:shop:3000000", Position: &position, PeopleAhead: &ahead, Queued: 9,
		EstimatedWaitSeconds: &anteroomv1.WaitSeconds{P25: 2, P50: 2, P75: 3}, RefreshIntervalSeconds: 2,
		JoinedAt: &timestamppb.Timestamp{Seconds: 3}, LastUpdated: &timestamppb.Timestamp{Seconds: 5},
		QueueingMethod: anteroomv1.QueueingMethod_QUEUEING_METHOD_FIFO,
	}
	if diff := cmp.Diff(want, got.GetPlace(), protocmp.Transform()); diff != "" {
		t.Errorf("Join (-want +got):\n%s", diff)
	}
	asked := q.requests()[0]
	if asked.Op != ticket.Join || asked.Room != "shop" || asked.ID != qpid.ItemID(bytes.Repeat([]byte{7}, 16)) {
		t.Errorf("the queue was asked %+v", asked)
	}
}

func TestLeaveBringsThePassOfAnAdmittedVisitor(t *testing.T) {
	q := shop()
	c := serve(t, q, nil)
	q.will(admitted(), nil)
	got, err := c.Leave(t.Context(), &anteroomv1.LeaveRequest{Room: "shop", Ticket: "t:shop:3000000"})
	if err != nil {
		t.Fatal(err)
	}
	want := &anteroomv1.Place{
		State: anteroomv1.State_STATE_ADMITTED, Room: "shop", Pass: "p:shop:3000000", PassJwt: "anteroom:3000000",
		JoinedAt: &timestamppb.Timestamp{Seconds: 3}, LastUpdated: &timestamppb.Timestamp{Seconds: 5},
		PassExpiresAt: &timestamppb.Timestamp{Seconds: 305}, QueueingMethod: anteroomv1.QueueingMethod_QUEUEING_METHOD_FIFO,
	}
	if diff := cmp.Diff(want, got.GetPlace(), protocmp.Transform()); diff != "" {
		t.Errorf("Leave (-want +got):\n%s", diff)
	}
	if r, err := c.RefreshPass(t.Context(), &anteroomv1.RefreshPassRequest{Room: "shop", Pass: want.GetPass()}); err != nil || r.GetPass() != want.GetPass() {
		t.Errorf("RefreshPass = %v, %v", r, err)
	}
	if _, err := c.EndSession(t.Context(), &anteroomv1.EndSessionRequest{Room: "shop", Pass: want.GetPass()}); err != nil {
		t.Errorf("EndSession: %v", err)
	}
	var ops []ticket.Op
	for _, r := range q.requests() {
		ops = append(ops, r.Op)
	}
	if diff := cmp.Diff([]ticket.Op{ticket.Leave, ticket.Refresh, ticket.End}, ops); diff != "" {
		t.Errorf("the queue was asked (-want +got):\n%s", diff)
	}
}

func TestCalledVisitorWithoutALeaseTriesAgain(t *testing.T) {
	q := shop()
	c := serve(t, q, nil)
	a := waiting(1)
	a.State = ticket.Called
	q.will(a, nil)
	if _, err := c.Leave(t.Context(), &anteroomv1.LeaveRequest{Room: "shop", Ticket: "t:shop:3"}); status.Code(err) != codes.Unavailable {
		t.Errorf("Leave = %v, want Unavailable", err)
	}
}

func TestRandomRoomsShowNoPosition(t *testing.T) {
	q := shop()
	q.state.Room.Method, q.state.Paused, q.state.HeldUntil = eviction.Random, "a vote is on", 8_000_000
	c := serve(t, q, nil)
	a := waiting(4)
	a.Wave = 7
	q.will(a, nil)
	r, err := c.CheckIn(t.Context(), &anteroomv1.CheckInRequest{Room: "shop", Ticket: "t:shop:3"})
	p := r.GetPlace()
	if err != nil || p.GetCalledInWave() != 7 || p.Position != nil || p.PeopleAhead != nil || p.GetPaused() != "a vote is on" || p.GetHeldUntil().GetSeconds() != 8 {
		t.Errorf("CheckIn = %v, %v", p, err)
	}
}

// Why nobody is called is told as a code, too, and of what moment the figures are where
// that is not now: of a place and of the room.
func TestAPauseIsToldAsACode(t *testing.T) {
	q := shop()
	q.state.Paused, q.state.Counted = ticket.PausedSplit, 4_000_000
	c := serve(t, q, nil)
	q.will(waiting(4), nil)
	r, err := c.CheckIn(t.Context(), &anteroomv1.CheckInRequest{Room: "shop", Ticket: "t:shop:3"})
	if p := r.GetPlace(); err != nil || p.GetPausedCode() != "no_majority" || p.GetPaused() == "" || p.GetCountedAt().GetSeconds() != 4 {
		t.Errorf("CheckIn = %v, %v", p, err)
	}
	s, err := c.Status(t.Context(), &anteroomv1.StatusRequest{Room: "shop"})
	if err != nil || s.GetPausedCode() != "no_majority" || s.GetCountedAt().GetSeconds() != 4 {
		t.Errorf("Status = %v, %v", s, err)
	}
	q.state.Paused, q.state.Counted = "", 0
	a := waiting(4)
	a.Paused = ticket.PausedSplit // the ticket's home says it
	q.will(a, nil)
	r, err = c.CheckIn(t.Context(), &anteroomv1.CheckInRequest{Room: "shop", Ticket: "t:shop:3"})
	if p := r.GetPlace(); err != nil || p.GetPausedCode() != "no_majority" || p.GetCountedAt() != nil {
		t.Errorf("CheckIn = %v, %v", p, err)
	}
}

func TestEveryErrorHasItsStableReason(t *testing.T) {
	type want struct {
		code   codes.Code
		reason string
		retry  bool
	}
	for err, want := range map[error]want{
		ticket.ErrRoomUnknown:     {codes.NotFound, "room_unknown", false},
		ticket.ErrExpired:         {codes.FailedPrecondition, "ticket_expired", false},
		ticket.ErrUsed:            {codes.FailedPrecondition, "ticket_used", false},
		ticket.ErrNotCalled:       {codes.FailedPrecondition, "not_called_yet", false},
		ticket.ErrPassExpired:     {codes.FailedPrecondition, "pass_expired", false},
		ticket.ErrRejected:        {codes.FailedPrecondition, "room_closed", false},
		ticket.ErrQueueFull:       {codes.ResourceExhausted, "queue_full", true},
		ticket.ErrBusy:            {codes.ResourceExhausted, "too_many_requests", true},
		ticket.ErrSuperseded:      {codes.Aborted, "stream_superseded", false},
		ticket.ErrUnavailable:     {codes.Unavailable, "unavailable", true},
		errors.New("disk secret"): {codes.Internal, "internal", false},
	} {
		q := shop()
		c := serve(t, q, nil)
		q.will(ticket.Answer{}, fmt.Errorf("node n1: %w", err))
		_, got := c.CheckIn(t.Context(), &anteroomv1.CheckInRequest{Room: "shop", Ticket: "t:shop:3"})
		reason, retry := detailsOf(t, got)
		if status.Code(got) != want.code || reason != want.reason || retry != want.retry || strings.Contains(got.Error(), "secret") {
			t.Errorf("%v became %v, reason %q, retry %v; want %+v", err, got, reason, retry, want)
		}
	}
}

// detailsOf returns an error's reason, and whether it says when to try again.
func detailsOf(t *testing.T, err error) (reason string, retry bool) {
	t.Helper()
	for _, d := range status.Convert(err).Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			reason = d.GetReason()
			if d.GetDomain() != waitingroom.Domain {
				t.Errorf("domain %q, want %q", d.GetDomain(), waitingroom.Domain)
			}
		case *errdetails.RetryInfo:
			retry = d.GetRetryDelay().AsDuration() > 0
		}
	}
	return reason, retry
}

func TestWhatDoesNotOpenIsRefused(t *testing.T) {
	q := shop()
	c := serve(t, q, nil)
	for name, test := range map[string]struct {
		call func() error
		want string
	}{
		"no ticket": {func() error {
			_, err := c.CheckIn(t.Context(), &anteroomv1.CheckInRequest{Room: "shop"})
			return err
		}, "ticket_invalid"},
		"ticket of another room": {func() error {
			_, err := c.Leave(t.Context(), &anteroomv1.LeaveRequest{Room: "shop", Ticket: "t:other:3"})
			return err
		}, "ticket_invalid"},
		"a pass for a ticket": {func() error {
			_, err := c.Abandon(t.Context(), &anteroomv1.AbandonRequest{Room: "shop", Ticket: "p:shop:3"})
			return err
		}, "ticket_invalid"},
		"a ticket for a pass": {func() error {
			_, err := c.EndSession(t.Context(), &anteroomv1.EndSessionRequest{Room: "shop", Pass: "t:shop:3"})
			return err
		}, "pass_invalid"},
		"unknown room": {func() error {
			_, err := c.RefreshPass(t.Context(), &anteroomv1.RefreshPassRequest{Room: "none", Pass: "p:none:3"})
			return err
		}, "room_unknown"},
		"unknown room, status": {func() error {
			_, err := c.Status(t.Context(), &anteroomv1.StatusRequest{})
			return err
		}, "room_unknown"},
	} {
		if reason, _ := detailsOf(t, test.call()); reason != test.want {
			t.Errorf("%s: reason %q, want %q", name, reason, test.want)
		}
	}
	if n := len(q.requests()); n != 0 {
		t.Errorf("the queue was asked %d times", n)
	}
}

func TestAbandonOfAPlaceThatIsGoneIsDone(t *testing.T) {
	q := shop()
	c := serve(t, q, nil)
	q.will(ticket.Answer{}, ticket.ErrExpired)
	if _, err := c.Abandon(t.Context(), &anteroomv1.AbandonRequest{Room: "shop", Ticket: "t:shop:3"}); err != nil {
		t.Errorf("Abandon = %v, want no error", err)
	}
}

func TestStatusSaysWhatTheRoomDoes(t *testing.T) {
	for want, change := range map[anteroomv1.StatusResponse_Status]func(*waitingroom.RoomState){
		anteroomv1.StatusResponse_STATUS_QUEUEING:          func(*waitingroom.RoomState) {},
		anteroomv1.StatusResponse_STATUS_NOT_QUEUEING:      func(s *waitingroom.RoomState) { s.Queued, s.Open = 0, true },
		anteroomv1.StatusResponse_STATUS_EVENT_PREQUEUEING: func(s *waitingroom.RoomState) { s.Room.Event.Start = 6_000_000 },
	} {
		q := shop()
		change(&q.state)
		got, err := serve(t, q, nil).Status(t.Context(), &anteroomv1.StatusRequest{Room: "shop"})
		if err != nil || got.GetStatus() != want || got.GetActive() != 150 || got.GetCalled() != 50 || got.GetTotalActiveUsers() != 200 {
			t.Errorf("Status = %v, %v, want %v", got, err, want)
		}
	}
}

func TestRequestsUnderWayAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := shop()
		q.hold = make(chan struct{})
		c := serve(t, q, func(c *waitingroom.Config) { c.RequestsMax = 1 })
		first := make(chan error)
		go func() {
			_, err := c.Join(t.Context(), &anteroomv1.JoinRequest{Room: "shop"})
			first <- err
		}()
		synctest.Wait()
		_, err := c.Join(t.Context(), &anteroomv1.JoinRequest{Room: "shop"})
		if reason, _ := detailsOf(t, err); reason != "too_many_requests" {
			t.Errorf("the second Join = %v, want too_many_requests", err)
		}
		if err := <-first; status.Code(err) != codes.Unavailable { // the queue never answers
			t.Errorf("the first Join = %v, want Unavailable", err)
		}
	})
}

func TestErrorsOfOurOwnAreLoggedHere(t *testing.T) {
	q := shop()
	var log bytes.Buffer
	c := serve(t, q, func(c *waitingroom.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	q.will(ticket.Answer{}, errors.New("disk is full"))
	if _, err := c.Join(t.Context(), &anteroomv1.JoinRequest{Room: "shop"}); status.Code(err) != codes.Internal || !strings.Contains(log.String(), "disk is full") {
		t.Errorf("Join = %v, log %q", err, log.String())
	}
}
