package priorityqueue

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

// Bounds of a session, which its caller may reckon with.
const (
	SessionCalls = 256 // under way, and of one frame

	answersMax    = 1 << 20          // bytes of answers that are not read: no further call is then
	sessionsPause = 30 * time.Second // without a call, and a session is over
	sessionsTick  = time.Second      // between two looks at what takes too long
)

// Allow admits a call of a session as if it had come alone: by the token of the
// session's context. Leave, if it is admitted, ends it.
type Allow func(ctx context.Context, method string, request any) (leave func(), err error)

// Session carries many calls at once, until the caller has no more or the node stops;
// then it answers what is under way. No call has a goroutine of its own: those of a
// frame are begun together, and whoever answers one leaves the answer here.
func (s *Server) Session(stream grpc.BidiStreamingServer[anteroomv1.SessionRequest, anteroomv1.SessionResponse]) error {
	ss := &session{
		ctx: stream.Context(), server: s, calls: make(map[uint64]*inSession),
		room: make(chan struct{}, SessionCalls), answered: make(chan struct{}, 1), read: make(chan struct{}, 1), ended: make(chan error, 1),
	}
	defer ss.leave()
	go func() { ss.ended <- ss.receive(stream) }() // Recv ends with this function
	return ss.answer(stream, s.closing)
}

// session is one stream. What its caller can make it hold is bounded by room and
// by answersMax: then nothing more is read, and flow control holds up the caller.
type session struct {
	ctx    context.Context
	server *Server

	room     chan struct{} // a token for each call that is not answered
	answered chan struct{} // there are answers
	read     chan struct{} // answers were sent
	ended    chan error    // why no more calls come

	beginning sync.Mutex // held while calls are begun; before mu

	mu      sync.Mutex // of all below; the queues' lock may be held before it, never after
	over    bool       // further calls are not carried out
	begun   uint64     // calls so far
	calls   map[uint64]*inSession
	answers []*inSession
	bytes   int // of answers, and of those that are being sent
}

// inSession is one call of a session.
type inSession struct {
	broker.Ask
	of      *session
	id      uint64                  // of the caller
	request *anteroomv1.SessionCall // nil when it is answered
	until   time.Time               // it is answered by then; zero: its queue sees to that
	leave   func()                  // it is under way no more; nil: nobody counts
	over    bool                    // it is answered. Under of.mu, as are those below
	answer  broker.Answer
	err     error
}

func errFrame() error {
	return invalid("calls: more than %d in a frame, or two of one id", SessionCalls)
}

func errStopping() error { return failures()[pqueue.Unavailable].status() }

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
		if len(r.GetCancelled()) > 0 {
			s.cancel(r.GetCancelled())
		}
		for all := r.GetCalls(); len(all) > 0; {
			n, err := s.makeRoom(len(all))
			if err == nil {
				err = s.begin(all[:n])
			}
			if err != nil {
				return err
			}
			all = all[n:]
		}
	}
}

// makeRoom waits until there is room for a call, and takes that of as many as there is
// room for, up to most.
func (s *session) makeRoom(most int) (n int, err error) {
	for s.full() {
		select {
		case <-s.read:
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		}
	}
	select {
	case s.room <- struct{}{}:
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
	for n = 1; n < most; n++ {
		select {
		case s.room <- struct{}{}:
		default:
			return n, nil
		}
	}
	return n, nil
}

func (s *session) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes >= answersMax
}

// begin has calls carried out, for which there is room. The error ends the session.
func (s *session) begin(all []*anteroomv1.SessionCall) error {
	s.beginning.Lock()
	defer s.beginning.Unlock()
	asks := make([]*broker.Ask, 0, len(all))
	for _, r := range all {
		c := &inSession{of: s, id: r.GetId(), request: r}
		if !s.enter(c) {
			return errFrame()
		}
		err := errStopping()
		if !s.isOver() {
			err = s.admit(c)
		}
		if err != nil {
			c.fail(err)
			continue
		}
		asks = append(asks, &c.Ask)
	}
	s.server.c.Queues.Begin(asks)
	return nil
}

// enter notes a call; false: there is one of its id.
func (s *session) enter(c *inSession) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[c.id] != nil {
		return false
	}
	s.begun++
	s.calls[c.id] = c
	return true
}

func (s *session) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// admit asks whether a call may be made, and puts it into the queues' words.
func (s *session) admit(c *inSession) (err error) {
	method, q := "", any(nil)
	switch r := c.request.GetCall().(type) {
	case *anteroomv1.SessionCall_Insert:
		method, q = anteroomv1.PriorityQueue_Insert_FullMethodName, r.Insert
	case *anteroomv1.SessionCall_DeleteMin:
		method, q = anteroomv1.PriorityQueue_DeleteMin_FullMethodName, r.DeleteMin
	case *anteroomv1.SessionCall_Ack:
		method, q = anteroomv1.PriorityQueue_Ack_FullMethodName, r.Ack
	case *anteroomv1.SessionCall_Nack:
		method, q = anteroomv1.PriorityQueue_Nack_FullMethodName, r.Nack
	case *anteroomv1.SessionCall_Extend:
		method, q = anteroomv1.PriorityQueue_Extend_FullMethodName, r.Extend
	default:
		return invalid("calls: one that this node does not know")
	}
	if s.server.c.Allow != nil {
		if c.leave, err = s.server.c.Allow(s.ctx, method, q); err != nil {
			return err
		}
	}
	return c.word(s.server)
}

// word is the call in the queues' words.
func (c *inSession) word(s *Server) (err error) {
	c.Then, c.until = c.hear, time.Now().Add(s.c.Answer)
	queue := ""
	switch r := c.request.GetCall().(type) {
	case *anteroomv1.SessionCall_DeleteMin:
		if r.DeleteMin.GetMaxItems() > 1 { // what a caller does not read is bounded by that
			return invalid("max_items: %d; give 1 at most in a session", r.DeleteMin.GetMaxItems())
		}
		c.until = time.Time{}
		c.Take, err = s.taking(r.DeleteMin)
		return err
	case *anteroomv1.SessionCall_Insert:
		queue = r.Insert.GetQueue()
		c.Call, err = s.inserted(queue, r.Insert)
	case *anteroomv1.SessionCall_Ack:
		queue = r.Ack.GetQueue()
		c.Call, err = leased(pqueue.OpAck, queue, r.Ack.GetReceipt())
	case *anteroomv1.SessionCall_Nack:
		queue = r.Nack.GetQueue()
		c.Call, err = nacked(r.Nack)
	case *anteroomv1.SessionCall_Extend:
		queue = r.Extend.GetQueue()
		c.Call, err = extended(r.Extend)
	}
	if err == nil {
		err = checkQueue(queue)
	}
	if err != nil {
		c.Call = broker.Call{} // which may be long
	}
	return err
}

// hear takes in the answer. The queues are locked meanwhile.
func (c *inSession) hear(a broker.Answer) { c.finish(a, nil) }

func (c *inSession) fail(err error) { c.finish(broker.Answer{}, err) }

// finish has the call answered, unless it is.
func (c *inSession) finish(a broker.Answer, err error) {
	s := c.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.over {
		return
	}
	c.over, c.answer, c.err = true, a, err
	c.request, c.Call.Command = nil, pqueue.Command{Op: c.Call.Command.Op, ID: c.Call.Command.ID} // what waits to be sent is small
	if c.leave != nil {
		c.leave()
	}
	delete(s.calls, c.id)
	s.answers = append(s.answers, c)
	s.bytes += c.size()
	<-s.room
	wake(s.answered)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is awake
	}
}

// size is about as many bytes as the answer has.
func (c *inSession) size() int {
	n := 1024
	for _, p := range c.answer.Parts {
		n += 1024 + len(p.Result.Items[0].Payload)
	}
	return n
}

// giveUp has nobody wait for those calls of which which is true. They are answered by
// err, but for those that just were.
func (s *session) giveUp(err error, which func(*inSession) bool) {
	var calls []*inSession
	var asks []*broker.Ask
	s.beginning.Lock() // or some would be given up before they are begun
	defer s.beginning.Unlock()
	s.mu.Lock()
	for _, c := range s.calls {
		if which(c) {
			calls, asks = append(calls, c), append(asks, &c.Ask)
		}
	}
	s.mu.Unlock()
	if len(asks) == 0 {
		return
	}
	s.server.c.Queues.Forget(asks)
	for _, c := range calls {
		c.fail(err)
	}
}

func (c *inSession) takes() bool { return c.Take.Max > 0 }

// cancel ends takes that are under way.
func (s *session) cancel(ids []uint64) {
	named := make(map[uint64]bool, len(ids))
	for _, id := range ids {
		named[id] = true
	}
	s.giveUp(status.Error(codes.Canceled, context.Canceled.Error()), func(c *inSession) bool { return c.takes() && named[c.id] })
}

// leave ends all calls when the stream is over: nothing begins any more, and what
// takes are given goes back.
func (s *session) leave() {
	s.end()
	s.giveUp(errStopping(), func(*inSession) bool { return true })
}

// answer sends answers as they come, until there are no more to come.
func (s *session) answer(stream grpc.BidiStreamingServer[anteroomv1.SessionRequest, anteroomv1.SessionResponse], closing <-chan struct{}) error {
	tick := time.NewTicker(sessionsTick)
	defer tick.Stop()
	ended, last, begun, used := s.ended, error(nil), uint64(0), time.Now()
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
		case <-s.ctx.Done(): // also of a caller who has said before that nothing more comes
			return s.ctx.Err()
		case <-closing:
			closing, over, last = nil, true, errStopping()
			s.end()
			s.giveUp(errStopping(), (*inSession).takes)
		case now := <-tick.C:
			s.giveUp(errStopping(), func(c *inSession) bool { return !c.until.IsZero() && now.After(c.until) })
			n, idle := s.idle()
			if n != begun || !idle {
				begun, used = n, now
			}
			over = over || now.Sub(used) >= sessionsPause
		}
		if over && s.end() {
			return last
		}
	}
}

// idle reports how many calls there were, and whether none is under way.
func (s *session) idle() (begun uint64, idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun, len(s.calls) == 0
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
			bytes += s.answers[n].size()
			n++
		}
		some := s.answers[:n:n]
		s.answers = s.answers[n:]
		if len(s.answers) == 0 {
			s.answers = nil
		}
		s.mu.Unlock()
		if n == 0 {
			return nil
		}
		r := &anteroomv1.SessionResponse{Answers: make([]*anteroomv1.SessionAnswer, n)}
		for i, c := range some {
			r.Answers[i] = c.said(s.server)
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

// said is the answer in the caller's words.
func (c *inSession) said(s *Server) *anteroomv1.SessionAnswer {
	a := &anteroomv1.SessionAnswer{Id: c.id}
	err, is := c.err, c.answer.Result
	if err == nil && is.Code != pqueue.OK && !c.takes() {
		err = s.verdict(is.Code)
	}
	var leases *anteroomv1.DeleteMinResponse
	if err == nil && c.takes() {
		leases, err = s.taken(c.Take.Queue, c.answer)
	}
	if err != nil {
		a.Answer = &anteroomv1.SessionAnswer_Failure{Failure: FailureOf(err)}
		return a
	}
	switch op := c.Call.Command.Op; {
	case c.takes():
		a.Answer = &anteroomv1.SessionAnswer_DeleteMin{DeleteMin: leases}
	case op == pqueue.OpInsert:
		a.Answer = &anteroomv1.SessionAnswer_Insert{Insert: placed(c.Call, c.answer)}
	case op == pqueue.OpAck:
		a.Answer = &anteroomv1.SessionAnswer_Ack{Ack: &anteroomv1.AckResponse{}}
	case op == pqueue.OpNack:
		a.Answer = &anteroomv1.SessionAnswer_Nack{Nack: &anteroomv1.NackResponse{State: stateOf(is.State)}}
	default:
		a.Answer = &anteroomv1.SessionAnswer_Extend{Extend: &anteroomv1.ExtendResponse{Until: moment(is.Until)}}
	}
	return a
}
