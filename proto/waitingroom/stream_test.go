package waitingroom_test

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/anteroom/anteroom/internal/ticket"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
	"github.com/anteroom/anteroom/proto/waitingroom"
)

func TestStreamTellsWhatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := shop()
		c := serve(t, q, nil)
		q.will(waiting(4), nil)
		s, err := c.Stream(t.Context(), &anteroomv1.StreamRequest{Room: "shop", Ticket: "t:shop:3000000"})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		next := func() (*anteroomv1.Place, time.Duration) {
			t.Helper()
			r, err := s.Recv()
			if err != nil {
				t.Fatal(err)
			}
			return r.GetPlace(), time.Since(start)
		}
		if p, at := next(); p.GetPosition() != 4 || at != 0 {
			t.Errorf("first position %d after %v, want 4 at once", p.GetPosition(), at)
		}
		time.Sleep(9 * time.Second) // nothing changes
		q.will(waiting(3), nil)
		if p, at := next(); p.GetPosition() != 3 || at != 10*time.Second {
			t.Errorf("position %d after %v, want 3 at the fifth check-in", p.GetPosition(), at)
		}
		q.will(ticket.Answer{}, ticket.ErrUnavailable) // a hiccup is not the end
		time.Sleep(3 * time.Second)
		called := waiting(1)
		called.State, called.Refresh = ticket.Called, time.Hour
		q.will(called, nil)
		q.news <- struct{}{}
		if p, at := next(); p.GetState() != anteroomv1.State_STATE_CALLED || at != 13*time.Second {
			t.Errorf("%v after %v, want called at once", p.GetState(), at)
		}
		q.will(admitted(), nil) // by Leave, in another call
		q.news <- struct{}{}
		if p, _ := next(); p.GetState() != anteroomv1.State_STATE_ADMITTED || p.GetPass() == "" {
			t.Errorf("last %v, want admitted with the pass", p)
		}
		if _, err := s.Recv(); err == nil || status.Code(err) != codes.Unknown || err.Error() != "EOF" {
			t.Errorf("the stream ended with %v, want EOF", err)
		}
		if q.watch != 0 {
			t.Errorf("%d watches remain", q.watch)
		}
	})
}

func TestStreamEndsWhenNewerOnesTakeItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := shop()
		c := serve(t, q, nil)
		q.will(waiting(4), nil)
		s, err := c.Stream(t.Context(), &anteroomv1.StreamRequest{Room: "shop", Ticket: "t:shop:3000000"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); err != nil {
			t.Fatal(err)
		}
		close(q.news) // as the node does
		_, err = s.Recv()
		if reason, retry := detailsOf(t, err); status.Code(err) != codes.Aborted || reason != "stream_superseded" || retry {
			t.Errorf("the stream ended with %v, want Aborted and stream_superseded", err)
		}
	})
}

func TestStreamRenewsTheTicketOfWhoStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := shop()
		c := serve(t, q, nil)
		q.will(waiting(4), nil)
		s, err := c.Stream(t.Context(), &anteroomv1.StreamRequest{Room: "shop", Ticket: "t:shop:3000000"})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for want := range 3 {
			if _, err := s.Recv(); err != nil {
				t.Fatal(err)
			}
			if at := time.Since(start); at != time.Duration(want)*30*time.Second {
				t.Errorf("place %d came after %v, want one every 30 s", want, at)
			}
		}
	})
}

func TestStreamsAreBoundedAndEndWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := shop()
		c := serve(t, q, func(c *waitingroom.Config) { c.StreamsMax = 1 })
		q.will(waiting(4), nil)
		open := func() grpc.ServerStreamingClient[anteroomv1.StreamResponse] {
			s, err := c.Stream(t.Context(), &anteroomv1.StreamRequest{Room: "shop", Ticket: "t:shop:3"})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		if _, err := open().Recv(); err != nil {
			t.Fatal(err)
		}
		_, err := open().Recv()
		if reason, _ := detailsOf(t, err); reason != "too_many_requests" {
			t.Errorf("a stream too many ended with %v, want too_many_requests", err)
		}
	}) // the cleanup's GracefulStop hangs unless the first one ends
}
