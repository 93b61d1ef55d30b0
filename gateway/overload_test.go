package gateway_test

import (
	"context"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/ticket"
)

// stuck is a queue that answers nobody.
type stuck struct{ told }

func (stuck) Do(ctx context.Context, _ ticket.Request) (ticket.Answer, error) {
	<-ctx.Done()
	return ticket.Answer{}, ctx.Err()
}

func TestAQueueThatDoesNotAnswerShedsPolitely(t *testing.T) {
	asked := make(chan struct{})
	w := newWorld(t, func(c *gateway.Config) {
		c.Queue = waiting{stuck{told{room: shop()}}, asked}
		c.Bounds.InFlight, c.Bounds.Answer = 1, 200*time.Millisecond
	}, shop())
	first := make(chan reply)
	go func() { first <- w.api("join", "") }()
	<-asked
	if r := w.api("join", ""); r.StatusCode != 429 || r.code() != "too_many_requests" || r.Header.Get("Retry-After") != "1" {
		t.Errorf("the second: %d %s %v", r.StatusCode, r.body, r.Header)
	}
	if r := <-first; r.StatusCode != 503 || r.code() != "unavailable" || r.Header.Get("Retry-After") != "2" {
		t.Errorf("the first: %d %s", r.StatusCode, r.body)
	}
}

// waiting tells when it is asked.
type waiting struct {
	stuck
	asked chan<- struct{}
}

func (q waiting) Do(ctx context.Context, r ticket.Request) (ticket.Answer, error) {
	q.asked <- struct{}{}
	return q.stuck.Do(ctx, r)
}
