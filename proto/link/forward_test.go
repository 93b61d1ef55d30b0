package link_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/link"
)

func TestForwardedRequestIsAnswered(t *testing.T) {
	pair(t, nil, func(t *testing.T, _ *wires, a, b *end) {
		q := ticket.Request{Op: ticket.CheckIn, Room: "shop", Ticket: ticket.Ticket{Room: "shop", Stamp: 7, Home: b.self}}
		want := ticket.Answer{State: ticket.Called, Ticket: q.Ticket, Position: 3, Refresh: 2 * time.Second}
		b.answers = func(_ context.Context, got ticket.Request) (ticket.Answer, error) {
			if got != q {
				t.Errorf("b was asked %+v, want %+v", got, q)
			}
			return want, nil
		}
		if got, err := a.Forward(t.Context(), b.self, q); got != want || err != nil {
			t.Errorf("Forward = %+v, %v, want %+v", got, err, want)
		}
	})
}

func TestRefusalsKeepTheirIdentity(t *testing.T) {
	pair(t, nil, func(t *testing.T, _ *wires, a, b *end) {
		for _, want := range []error{ticket.ErrUsed, ticket.ErrExpired, ticket.ErrBusy, ticket.ErrRoomUnknown} {
			b.answers = func(context.Context, ticket.Request) (ticket.Answer, error) {
				return ticket.Answer{}, fmt.Errorf("room shop: %w", want)
			}
			if _, err := a.Forward(t.Context(), b.self, ticket.Request{}); !errors.Is(err, want) {
				t.Errorf("Forward = %v, want %v", err, want)
			}
		}
		b.answers = func(context.Context, ticket.Request) (ticket.Answer, error) {
			return ticket.Answer{}, errors.New("a secret of b")
		}
		if _, err := a.Forward(t.Context(), b.self, ticket.Request{}); !errors.Is(err, ticket.ErrUnavailable) {
			t.Errorf("Forward = %v, want ErrUnavailable", err)
		}
	})
}

// What asks for a node that can do nothing itself is carried out wherever that is.
func TestForwardedForANodeThatIsLeftOutIsRelayed(t *testing.T) {
	pair(t, nil, func(t *testing.T, _ *wires, a, b *end) {
		for _, by := range []eviction.Member{{}, a.self} {
			var got ticket.Request
			b.answers = func(_ context.Context, q ticket.Request) (ticket.Answer, error) {
				got = q
				return ticket.Answer{Position: 1}, nil
			}
			want := 1
			if by != (eviction.Member{}) {
				want = relayed
			}
			if answer, err := a.Forward(t.Context(), b.self, ticket.Request{Op: ticket.CheckIn, Room: "shop", Relay: by}); err != nil || answer.Position != want || got.Relay != by {
				t.Errorf("for %v: %+v, %v, asked for %v", by, answer, err, got.Relay)
			}
		}
	})
}

func TestForwardToWhoDoesNotAnswerIsUnavailable(t *testing.T) {
	pair(t, nil, func(t *testing.T, w *wires, a, b *end) {
		if _, err := a.Forward(t.Context(), member("c", 1), ticket.Request{}); !errors.Is(err, ticket.ErrUnavailable) {
			t.Errorf("Forward to no member = %v, want ErrUnavailable", err)
		}
		b.answers = func(ctx context.Context, _ ticket.Request) (ticket.Answer, error) {
			<-ctx.Done()
			return ticket.Answer{}, ctx.Err()
		}
		start := time.Now()
		if _, err := a.Forward(t.Context(), b.self, ticket.Request{}); !errors.Is(err, ticket.ErrUnavailable) || time.Since(start) > 6*time.Second {
			t.Errorf("Forward to a node that hangs = %v after %v, want ErrUnavailable", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Forward(ctx, b.self, ticket.Request{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Forward past the caller's own deadline = %v, want DeadlineExceeded", err)
		}

		failed := make(chan error, 1)
		go func() {
			_, err := a.Forward(t.Context(), b.self, ticket.Request{})
			failed <- err
		}()
		synctest.Wait()
		w.frozen.Store(true)
		start = time.Now()
		if err := <-failed; !errors.Is(err, ticket.ErrUnavailable) || time.Since(start) > 3500*time.Millisecond {
			t.Errorf("Forward to a node that died = %v after %v, want ErrUnavailable within 3.5 s", err, time.Since(start))
		}
		if _, err := a.Forward(t.Context(), b.self, ticket.Request{}); !errors.Is(err, ticket.ErrUnavailable) {
			t.Errorf("Forward without a link = %v, want ErrUnavailable", err)
		}
	})
}

func TestForwardsUnderWayAreBounded(t *testing.T) {
	pair(t, func(c *link.Config) { c.ForwardsMax = 2 }, func(t *testing.T, _ *wires, a, b *end) {
		hold := make(chan struct{})
		b.answers = func(context.Context, ticket.Request) (ticket.Answer, error) {
			<-hold
			return ticket.Answer{}, nil
		}
		results := make(chan error)
		ask := func() {
			go func() {
				_, err := a.Forward(t.Context(), b.self, ticket.Request{})
				results <- err
			}()
			synctest.Wait()
		}
		ask()
		ask()
		if _, err := a.Forward(t.Context(), b.self, ticket.Request{}); !errors.Is(err, ticket.ErrBusy) {
			t.Errorf("the third Forward = %v, want ErrBusy", err)
		}
		close(hold)
		for range 2 {
			if err := <-results; err != nil {
				t.Errorf("Forward = %v, want an answer", err)
			}
		}
		if _, err := a.Forward(t.Context(), b.self, ticket.Request{}); err != nil {
			t.Errorf("Forward afterwards = %v, want an answer", err)
		}
	})
}

func TestRequestForAnotherLifeIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *wires) {
		b := w.start(t, member("b", 2), nil) // its answers are nil: asking it would panic
		c := w.raw(t, b)
		for name, test := range map[string]struct {
			q    *peerv1.ForwardRequest
			want codes.Code
		}{
			"another life": {&peerv1.ForwardRequest{To: &peerv1.Member{Name: "b", Boot: 1}}, codes.FailedPrecondition},
			"another node": {&peerv1.ForwardRequest{To: &peerv1.Member{Name: "a", Boot: 2}}, codes.FailedPrecondition},
			"nobody":       {&peerv1.ForwardRequest{}, codes.FailedPrecondition},
			"no request":   {&peerv1.ForwardRequest{To: &peerv1.Member{Name: "b", Boot: 2}}, codes.InvalidArgument},
		} {
			if _, err := c.Forward(t.Context(), test.q); status.Code(err) != test.want {
				t.Errorf("%s: Forward = %v, want %v", name, err, test.want)
			}
		}
	})
}
