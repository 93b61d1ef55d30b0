package priorityqueue

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/anteroom/anteroom/internal/pqueue"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

// Bounds of a session, which its caller may reckon with.
const (
	SessionCalls = 256 // under way, and of one frame

	answersMax    = 1 << 20          // bytes of answers that are not read: no further call is then
	sessionsPause = 30 * time.Second // without a call, and a session is over
)

// Allow admits a call of a session as if it had come alone: by the token of the
// session's context. Leave, if it is admitted, ends it.
type Allow func(ctx context.Context, method string, request any) (leave func(), err error)

// Session carries many calls at once.
func (s *Server) Session(stream grpc.BidiStreamingServer[anteroomv1.SessionRequest, anteroomv1.SessionResponse]) error {
	return Serve(stream, s, s.c.Allow, s.closing)
}

// Serve has a service answer the calls of a session, until the caller has no more
// or closing is closed; then it answers what is under way. Nil for allow: every call
// is.
func Serve(stream grpc.BidiStreamingServer[anteroomv1.SessionRequest, anteroomv1.SessionResponse],
	service anteroomv1.PriorityQueueServer, allow Allow, closing <-chan struct{},
) error {
	ctx, cancel := context.WithCancel(stream.Context())
	s := &session{
		ctx: ctx, service: service, allow: allow, calls: make(map[uint64]context.CancelFunc),
		room: make(chan struct{}, SessionCalls), answered: make(chan struct{}, 1), read: make(chan struct{}, 1), ended: make(chan error, 1),
	}
	defer s.running.Wait()
	defer s.end()                                // nothing begins any more
	defer cancel()                               // nobody hears the answers
	go func() { s.ended <- s.receive(stream) }() // Recv ends with this function
	return s.answer(stream, closing)
}

// session is one stream. What its caller can make it hold is bounded by room and
// by answersMax: then nothing more is read, and flow control holds up the caller.
type session struct {
	ctx     context.Context
	service anteroomv1.PriorityQueueServer
	allow   Allow

	room     chan struct{} // a token for each call that is not answered
	answered chan struct{} // there are answers, or a call has begun
	read     chan struct{} // answers were sent
	ended    chan error    // why no more calls come
	running  sync.WaitGroup

	mu      sync.Mutex // of all below
	over    bool       // further calls are not carried out
	begun   uint64     // calls so far
	calls   map[uint64]context.CancelFunc
	answers []*anteroomv1.SessionAnswer
	bytes   int // of answers, and of those that are being sent
}

func errFrame() error {
	return invalid("calls: more than %d in a frame, or two of one id", SessionCalls)
}

// receive begins calls as they come.
func (s *session) receive(stream grpc.BidiStreamingServer[anteroomv1.SessionRequest, anteroomv1.SessionResponse]) error {
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(r.GetCalls()) > SessionCalls {
			return errFrame()
		}
		s.mu.Lock()
		for _, id := range r.GetCancelled() {
			if end := s.calls[id]; end != nil {
				end()
			}
		}
		s.mu.Unlock()
		for _, c := range r.GetCalls() {
			if err := s.begin(c); err != nil {
				return err
			}
		}
	}
}

// begin has a call carried out, when there is room for it. The error ends the session.
func (s *session) begin(c *anteroomv1.SessionCall) error {
	for s.full() {
		select {
		case <-s.read:
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
	}
	select {
	case s.room <- struct{}{}:
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
	ctx, end := s.ctx, func() {}
	if c.GetDeleteMin() != nil { // nothing else takes long
		ctx, end = context.WithCancel(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[c.GetId()] != nil {
		end()
		return errFrame()
	}
	s.begun++
	s.calls[c.GetId()] = end
	if s.over {
		s.finish(&anteroomv1.SessionAnswer{Id: c.GetId(), Answer: failed(failures()[pqueue.Unavailable].status())})
		return nil
	}
	s.running.Go(func() {
		a := s.call(ctx, c)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.finish(a)
	})
	return nil
}

func (s *session) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes >= answersMax
}

// finish has the answer to a call sent. The caller holds mu.
func (s *session) finish(a *anteroomv1.SessionAnswer) {
	s.calls[a.GetId()]()
	delete(s.calls, a.GetId())
	s.answers = append(s.answers, a)
	s.bytes += sizeOf(a)
	<-s.room
	wake(s.answered)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is awake
	}
}

// sizeOf is about as many bytes as an answer has.
func sizeOf(a *anteroomv1.SessionAnswer) int {
	n := 256
	for _, l := range a.GetDeleteMin().GetLeases() {
		n += 1024 + len(l.GetItem().GetPayload())
	}
	return n
}

// answer sends answers as they come, until there are no more to come.
func (s *session) answer(stream grpc.BidiStreamingServer[anteroomv1.SessionRequest, anteroomv1.SessionResponse], closing <-chan struct{}) error {
	idle := time.NewTicker(sessionsPause)
	defer idle.Stop()
	ended, last, begun := s.ended, error(nil), uint64(0)
	for over := false; ; {
		select {
		case <-s.answered:
			runtime.Gosched() // those that are about to be answered go with it
			if err := s.send(stream); err != nil {
				return err
			}
		case err := <-ended:
			if err != nil {
				return err
			}
			ended, over = nil, true
		case <-closing:
			closing, over, last = nil, true, failures()[pqueue.Unavailable].status()
		case <-idle.C:
			s.mu.Lock()
			over = over || len(s.calls) == 0 && s.begun == begun
			begun = s.begun
			s.mu.Unlock()
		}
		if over && s.end() {
			return last
		}
	}
}

// end has no further call carried out, and reports whether all are answered.
func (s *session) end() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return len(s.calls) == 0 && len(s.answers) == 0
}

// send sends all answers that there are.
func (s *session) send(stream grpc.BidiStreamingServer[anteroomv1.SessionRequest, anteroomv1.SessionResponse]) error {
	for {
		s.mu.Lock()
		n, bytes := 0, 0
		for n < len(s.answers) && (n == 0 || bytes < answersMax/4) {
			bytes += sizeOf(s.answers[n])
			n++
		}
		r := &anteroomv1.SessionResponse{Answers: s.answers[:n:n]}
		s.answers = s.answers[n:]
		if len(s.answers) == 0 {
			s.answers = nil
		}
		s.mu.Unlock()
		if n == 0 {
			return nil
		}
		if err := stream.Send(r); err != nil {
			return err
		}
		s.mu.Lock()
		s.bytes -= bytes
		s.mu.Unlock()
		wake(s.read)
	}
}

func failed(err error) *anteroomv1.SessionAnswer_Failure {
	return &anteroomv1.SessionAnswer_Failure{Failure: FailureOf(err)}
}

// call carries out a call as if it had come alone.
func (s *session) call(ctx context.Context, c *anteroomv1.SessionCall) *anteroomv1.SessionAnswer {
	a := &anteroomv1.SessionAnswer{Id: c.GetId()}
	var err error
	switch q := c.GetCall().(type) {
	case *anteroomv1.SessionCall_Insert:
		var r *anteroomv1.InsertResponse
		r, err = single(ctx, s, anteroomv1.PriorityQueue_Insert_FullMethodName, q.Insert, s.service.Insert)
		a.Answer = &anteroomv1.SessionAnswer_Insert{Insert: r}
	case *anteroomv1.SessionCall_DeleteMin:
		if q.DeleteMin.GetMaxItems() > 1 { // what a caller does not read is bounded by that
			err = invalid("max_items: %d; give 1 at most in a session", q.DeleteMin.GetMaxItems())
			break
		}
		var r *anteroomv1.DeleteMinResponse
		r, err = single(ctx, s, anteroomv1.PriorityQueue_DeleteMin_FullMethodName, q.DeleteMin, s.service.DeleteMin)
		a.Answer = &anteroomv1.SessionAnswer_DeleteMin{DeleteMin: r}
	case *anteroomv1.SessionCall_Ack:
		var r *anteroomv1.AckResponse
		r, err = single(ctx, s, anteroomv1.PriorityQueue_Ack_FullMethodName, q.Ack, s.service.Ack)
		a.Answer = &anteroomv1.SessionAnswer_Ack{Ack: r}
	case *anteroomv1.SessionCall_Nack:
		var r *anteroomv1.NackResponse
		r, err = single(ctx, s, anteroomv1.PriorityQueue_Nack_FullMethodName, q.Nack, s.service.Nack)
		a.Answer = &anteroomv1.SessionAnswer_Nack{Nack: r}
	case *anteroomv1.SessionCall_Extend:
		var r *anteroomv1.ExtendResponse
		r, err = single(ctx, s, anteroomv1.PriorityQueue_Extend_FullMethodName, q.Extend, s.service.Extend)
		a.Answer = &anteroomv1.SessionAnswer_Extend{Extend: r}
	default:
		err = invalid("calls: one that this node does not know")
	}
	if err != nil {
		a.Answer = failed(err)
	}
	return a
}

// single has f answer a request that may be made.
func single[Q, R any](ctx context.Context, s *session, method string, q Q, f func(context.Context, Q) (R, error)) (r R, err error) {
	if s.allow == nil {
		return f(ctx, q)
	}
	leave, err := s.allow(ctx, method, q)
	if err != nil {
		return r, err
	}
	defer leave()
	return f(ctx, q)
}
