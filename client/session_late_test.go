package client

import (
	"context"
	"testing"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

// late ends once it is asked for its end, just after the answer has come.
type late struct {
	context.Context
	answer func()
	over   bool
}

func (l *late) Done() <-chan struct{} {
	l.answer()
	l.over = true
	done := make(chan struct{})
	close(done)
	return done
}

func (l *late) Err() error {
	if l.over {
		return context.Canceled
	}
	return nil
}

// A caller gives up in the moment in which the answer comes. What a take has brought is
// theirs: nobody else would have it before its lease is over.
func TestAnAnswerThatIsThereIsNotDropped(t *testing.T) {
	for range 64 {
		s := &session{}
		st := &stream{of: s, wake: make(chan struct{}, 1), done: make(chan struct{}), calls: map[uint64]chan *anteroomv1.SessionAnswer{}}
		s.open = st
		ctx := &late{Context: t.Context(), answer: func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			st.out = nil // written
			st.hand([]*anteroomv1.SessionAnswer{{Id: st.next}})
		}}
		take := &anteroomv1.SessionCall{Call: &anteroomv1.SessionCall_DeleteMin{DeleteMin: &anteroomv1.DeleteMinRequest{}}}
		if a, err := s.do(ctx, take); err != nil || a == nil {
			t.Fatalf("%v, %v, want the answer", a, err)
		}
	}
}
