package client

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

const (
	sessionCalls = 256              // under way: a node reads no further
	frameMax     = 192 << 10        // bytes of calls; a node takes 256 KiB
	loneMin      = 64 << 10         // bytes of a call that goes by itself
	sessionIdle  = 10 * time.Second // without a call, and a session is closed
	sessionsOff  = time.Minute      // for which a node that knows none is not asked again

	fieldCalls = 1  // of a SessionRequest
	fieldID    = 1  // of a SessionCall
	callRoom   = 24 // bytes of a call in a frame, but for its text, at most
)

// errAlone is a session that has not carried a call, and cannot: make it by itself.
var errAlone = errors.New("client: no session for this call")

// session is a node as the one that answers many calls on one stream, if it does: what
// callers have to say gathers while a frame is written, and goes with the next. A call on
// a stream that breaks fails as one that was made alone does: ErrUnavailable, and
// whether it was carried out is not known.
type session struct {
	wire // for what no session carries

	mu   sync.Mutex // of all below
	open *stream    // nil: none
	off  time.Time  // until then the node has no sessions
}

// stream is one session from its first call to its end.
type stream struct {
	of     *session
	wake   chan struct{} // there is something to write
	done   chan struct{} // closed when it is over, after err is set
	cancel context.CancelFunc

	// All below are under of.mu.
	err       error
	next      uint64
	calls     map[uint64]chan *anteroomv1.SessionAnswer // one is nil when nobody waits any more
	out       []called
	cancelled []uint64
}

// called is a call that is to be written: a SessionCall's bytes, but for its id. Whoever
// makes it has put it into them, and may do as they like with what it was made of when they
// wait no more.
type called struct {
	id   uint64
	text []byte
}

// do has a session carry a call.
func (s *session) do(ctx context.Context, c *anteroomv1.SessionCall) (*anteroomv1.SessionAnswer, error) {
	if ctx.Err() != nil {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	text, err := proto.Marshal(c)
	if err != nil || len(text) >= loneMin {
		return nil, errAlone
	}
	answer := make(chan *anteroomv1.SessionAnswer, 1)
	st, id, ok := s.begin(text, answer)
	if !ok {
		return nil, errAlone
	}
	select {
	case a := <-answer:
		return a, failureOrNil(a)
	case <-ctx.Done():
		s.forsake(st, id, c.GetDeleteMin() != nil)
		err = status.FromContextError(ctx.Err()).Err()
	case <-st.done:
		err = st.err
	}
	select {
	case a := <-answer: // it came just before
		return a, failureOrNil(a)
	default:
		return nil, err
	}
}

func failureOrNil(a *anteroomv1.SessionAnswer) error {
	if f := a.GetFailure(); f != nil {
		return failureOf(f)
	}
	return nil
}

// begin has a call written; false: it is to be made alone.
func (s *session) begin(text []byte, answer chan *anteroomv1.SessionAnswer) (st *stream, id uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil && time.Now().Before(s.off) {
		return nil, 0, false
	}
	if s.open == nil {
		s.open = s.start()
	}
	st = s.open
	if len(st.calls) >= sessionCalls {
		return nil, 0, false
	}
	st.next++
	st.calls[st.next] = answer
	st.out = append(st.out, called{st.next, text})
	st.rouse()
	return st, st.next, true
}

// forsake leaves a call for which nobody waits any more; a take is cancelled.
func (s *session) forsake(st *stream, id uint64, take bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := st.calls[id]; !ok {
		return
	}
	if i := slices.IndexFunc(st.out, func(c called) bool { return c.id == id }); i >= 0 { // not written yet
		st.out = slices.Delete(st.out, i, i+1)
		delete(st.calls, id)
		return
	}
	st.calls[id] = nil // the node answers it all the same
	if take {
		st.cancelled = append(st.cancelled, id)
		st.rouse()
	}
}

func (st *stream) rouse() {
	select {
	case st.wake <- struct{}{}:
	default: // it is awake
	}
}

// start begins a session. Its goroutines end with it.
func (s *session) start() *stream {
	ctx, cancel := context.WithCancel(context.Background())
	st := &stream{
		of: s, cancel: cancel, wake: make(chan struct{}, 1), done: make(chan struct{}), calls: make(map[uint64]chan *anteroomv1.SessionAnswer),
	}
	go func() {
		g, err := s.wire.Session(ctx)
		if err != nil {
			st.end(err)
			return
		}
		go st.write(g)
		st.end(st.read(g))
	}()
	return st
}

// end is the end of a session, and of the calls that it has not answered.
func (st *stream) end(err error) {
	st.cancel()
	s := st.of
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case status.Code(err) == codes.Unimplemented: // so no call was carried out
		s.off = time.Now().Add(sessionsOff)
		err = errAlone
	case errors.Is(err, io.EOF):
		err = status.Error(codes.Unavailable, "the node has ended the session")
	}
	if s.open == st {
		s.open = nil
	}
	st.err = err
	close(st.done)
}

// read hands out answers until there are no more.
func (st *stream) read(g grpc.BidiStreamingClient[anteroomv1.SessionRequest, anteroomv1.SessionResponse]) error {
	for {
		r, err := g.Recv()
		if err != nil {
			return err
		}
		st.of.mu.Lock()
		st.hand(r.GetAnswers())
		st.of.mu.Unlock()
	}
}

// hand hands out answers.
func (st *stream) hand(answers []*anteroomv1.SessionAnswer) {
	for _, a := range answers {
		if c := st.calls[a.GetId()]; c != nil {
			c <- a // has room for one, and gets one
		}
		delete(st.calls, a.GetId())
	}
}

// write writes what has gathered, until the session is over or has been idle.
func (st *stream) write(g grpc.BidiStreamingClient[anteroomv1.SessionRequest, anteroomv1.SessionResponse]) {
	idle := time.NewTicker(sessionIdle)
	defer idle.Stop()
	last := uint64(0)
	for {
		select {
		case <-st.done:
			return
		case <-idle.C:
			if st.retire(last) {
				_ = g.CloseSend() // the other side ends it
				return
			}
			last = st.begun()
			continue
		case <-st.wake:
		}
		runtime.Gosched() // callers who are about to say something, too
		for {
			r := st.frame()
			if r == nil {
				break
			}
			if g.Send(r) != nil { // Recv says why
				return
			}
		}
	}
}

func (st *stream) begun() uint64 {
	st.of.mu.Lock()
	defer st.of.mu.Unlock()
	return st.next
}

// retire has the next call begin another session, if this has had none since last.
func (st *stream) retire(last uint64) bool {
	s := st.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(st.calls) > 0 || st.next != last {
		return false
	}
	if s.open == st {
		s.open = nil
	}
	return true
}

// frame is what there is to say, as much as a node takes at once; nil: nothing. Its calls
// are bytes already, which protobuf writes as they are.
func (st *stream) frame() *anteroomv1.SessionRequest {
	st.of.mu.Lock()
	defer st.of.mu.Unlock()
	n, bytes := 0, 0
	for n < len(st.out) {
		bytes += len(st.out[n].text) + callRoom
		if bytes > frameMax {
			bytes -= len(st.out[n].text) + callRoom
			break
		}
		n++
	}
	if n == 0 && len(st.cancelled) == 0 {
		return nil
	}
	r := &anteroomv1.SessionRequest{Cancelled: st.cancelled}
	text := make([]byte, 0, bytes)
	for _, c := range st.out[:n] {
		text = protowire.AppendTag(text, fieldCalls, protowire.BytesType)
		text = protowire.AppendVarint(text, uint64(protowire.SizeTag(fieldID)+protowire.SizeVarint(c.id)+len(c.text)))
		text = protowire.AppendTag(text, fieldID, protowire.VarintType)
		text = protowire.AppendVarint(text, c.id)
		text = append(text, c.text...)
	}
	r.ProtoReflect().SetUnknown(text)
	st.out, st.cancelled = st.out[n:], nil
	if len(st.out) == 0 {
		st.out = nil
	}
	return r
}

// Insert makes the call, in a session if it can.
func (s *session) Insert(ctx context.Context, r *anteroomv1.InsertRequest, o ...grpc.CallOption) (*anteroomv1.InsertResponse, error) {
	a, err := s.do(ctx, &anteroomv1.SessionCall{Call: &anteroomv1.SessionCall_Insert{Insert: r}})
	if errors.Is(err, errAlone) {
		return s.wire.Insert(ctx, r, o...)
	}
	return a.GetInsert(), err
}

// DeleteMin makes the call, in a session if it can.
func (s *session) DeleteMin(ctx context.Context, r *anteroomv1.DeleteMinRequest, o ...grpc.CallOption) (*anteroomv1.DeleteMinResponse, error) {
	if r.GetMaxItems() > 1 {
		return s.wire.DeleteMin(ctx, r, o...)
	}
	a, err := s.do(ctx, &anteroomv1.SessionCall{Call: &anteroomv1.SessionCall_DeleteMin{DeleteMin: r}})
	if errors.Is(err, errAlone) {
		return s.wire.DeleteMin(ctx, r, o...)
	}
	return a.GetDeleteMin(), err
}

// Ack makes the call, in a session if it can.
func (s *session) Ack(ctx context.Context, r *anteroomv1.AckRequest, o ...grpc.CallOption) (*anteroomv1.AckResponse, error) {
	a, err := s.do(ctx, &anteroomv1.SessionCall{Call: &anteroomv1.SessionCall_Ack{Ack: r}})
	if errors.Is(err, errAlone) {
		return s.wire.Ack(ctx, r, o...)
	}
	return a.GetAck(), err
}

// Nack makes the call, in a session if it can.
func (s *session) Nack(ctx context.Context, r *anteroomv1.NackRequest, o ...grpc.CallOption) (*anteroomv1.NackResponse, error) {
	a, err := s.do(ctx, &anteroomv1.SessionCall{Call: &anteroomv1.SessionCall_Nack{Nack: r}})
	if errors.Is(err, errAlone) {
		return s.wire.Nack(ctx, r, o...)
	}
	return a.GetNack(), err
}

// Extend makes the call, in a session if it can.
func (s *session) Extend(ctx context.Context, r *anteroomv1.ExtendRequest, o ...grpc.CallOption) (*anteroomv1.ExtendResponse, error) {
	a, err := s.do(ctx, &anteroomv1.SessionCall{Call: &anteroomv1.SessionCall_Extend{Extend: r}})
	if errors.Is(err, errAlone) {
		return s.wire.Extend(ctx, r, o...)
	}
	return a.GetExtend(), err
}
