package notify

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// ReceiverState is how it is going with a receiver at this node.
type ReceiverState struct {
	Name    string
	Kind    string // webhook, slack or email
	Events  []string
	Rooms   []string
	Waiting int
	Oldest  time.Time // since when the first of them waits; zero: none does
	Last    Outcome   // of the last try of this node
}

// Outcome is what came of a try.
type Outcome struct {
	At  time.Time // zero: there was none
	Err error     // nil: it was delivered
}

func (r *Receiver) kind() string {
	switch {
	case r.Mail != nil:
		return "email"
	case r.Slack:
		return "slack"
	}
	return "webhook"
}

// Receivers are all of them.
func (s *Sender) Receivers() (all []ReceiverState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.c.Receivers {
		r := &s.c.Receivers[i]
		state := ReceiverState{
			Name: r.Name, Kind: r.kind(), Events: slices.Clone(r.Events), Rooms: slices.Clone(r.Rooms),
			Waiting: len(s.waiting[r.Name]), Last: s.last[r.Name],
		}
		if state.Waiting > 0 {
			state.Oldest = s.waiting[r.Name][0].Since
		}
		all = append(all, state)
	}
	return all
}

// Test sends a receiver an event that says that it is a test, once and from this
// node. False: there is no such receiver.
func (s *Sender) Test(ctx context.Context, receiver string) (e Event, err error, ok bool) {
	r := s.receiver(receiver)
	if r == nil {
		return Event{}, nil, false
	}
	now := time.Now()
	e = Event{
		ID: ID(Test, s.c.Self, receiver, fmt.Sprint(now.UnixNano())), Type: Test, Time: now.UTC(),
		Text: "A test: node " + s.c.Self + " of anteroom can reach " + receiver, Data: map[string]string{"node": s.c.Self, "receiver": receiver},
	}
	err = s.send(ctx, r, e)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteOf(receiver, err)
	return e, err, true
}

// noteOf remembers what came of a try. The caller holds s.mu.
func (s *Sender) noteOf(receiver string, err error) {
	s.last[receiver] = Outcome{time.Now().UTC(), err}
}
