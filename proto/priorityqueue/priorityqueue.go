// Package priorityqueue offers the queues of package broker to programs as the
// gRPC service anteroom.v1.PriorityQueue: it puts requests and answers into
// words. Nothing is decided here but how much one caller may ask for.
package priorityqueue

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
	"github.com/anteroom/anteroom/qpid"
)

// Queues are what the service offers.
type Queues interface {
	// Do carries out a call. An error is the context's: nobody knows whether the
	// call was carried out.
	Do(ctx context.Context, c broker.Call) (broker.Answer, error)
	// DoAll carries out calls, begun in their order. Those that are not answered
	// when the context ends are Unavailable.
	DoAll(ctx context.Context, c []broker.Call) []broker.Answer
	// Take carries out a deleteMin. If the context ends, what it was given goes
	// back.
	Take(ctx context.Context, t broker.Take) (broker.Answer, error)
	// Begin begins calls and takes together, in their order. Then of each is called once,
	// unless Forget comes first. It must be quick, and not use the queues.
	Begin(all []*broker.Ask)
	// Forget has nobody wait for answers any more. What a take was given goes back.
	Forget(all []*broker.Ask)
	// Watch begins to watch a queue; the function ends it. The code says why
	// there is no watch.
	Watch(queue string) (Watch, func(), pqueue.Code)
	// Settings are what a queue goes by at this node, and what it was told at run time.
	// Make has one made that this node does not know, if it may be.
	Settings(queue string, make bool) (q broker.Queue, s pqueue.Settings, ok bool)
	// Stays reports whether a queue that this node knows is there also when nothing has
	// been in it for long.
	Stays(queue string) bool
	// Clock is the time of the queues, in Unix microseconds.
	Clock() int64
}

// Watch brings what happens to a queue.
type Watch interface {
	// Events is closed when the node stops.
	Events() <-chan broker.Seen
	// Missed returns what there was no room for since it was last asked.
	Missed() uint64
}

// Config is what the service needs. The zero value of a number means its default.
type Config struct {
	Queues Queues
	Self   qpid.NodeID // at which ids that are made here are at home
	Logger *slog.Logger
	Check  func(broker.Queue) error // says what is wrong with settings; nil: nothing ever is
	Allow  Allow                    // of the calls of a session; nil: all are

	Answer  time.Duration // a call takes no longer [5s]
	WaitMax time.Duration // DeleteMin waits no longer [1m]
}

// Server is the service.
type Server struct {
	anteroomv1.UnimplementedPriorityQueueServer
	c       Config
	log     *slog.Logger
	closing chan struct{}
	close   sync.Once
}

// New returns the service. Register it with rpc.NewServer.
func New(c Config) *Server {
	c.Answer = cmp.Or(c.Answer, 5*time.Second)
	c.WaitMax = cmp.Or(c.WaitMax, time.Minute)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{c: c, log: c.Logger, closing: make(chan struct{})}
}

// Close ends all watches, which do not end by themselves, and all waiting.
func (s *Server) Close() { s.close.Do(func() { close(s.closing) }) }

const (
	idMax     = 256
	reasonMax = 1024
	itemsMax  = 1000
	idsMax    = 1000
	nameShown = 200 // bytes of a wrong name, in the error about it
)

var queueName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}(/[A-Za-z0-9][A-Za-z0-9._-]{0,62})?$`)

func checkQueue(name string) error {
	if !queueName.MatchString(name) {
		name = name[:min(len(name), nameShown)] // an error does not hold more than a header may
		return invalid("queue: %q is no name; give name or namespace/name, each of up to 63 letters, digits, dots, - and _", name)
	}
	return nil
}

// do carries out a call and turns a code that is not OK into an error.
func (s *Server) do(ctx context.Context, c broker.Call) (broker.Answer, error) {
	if err := checkQueue(c.Command.Queue); err != nil && (c.Command.Op != pqueue.OpStats || c.Command.Queue != "") {
		return broker.Answer{}, err
	}
	asked, cancel := context.WithTimeout(ctx, s.c.Answer)
	defer cancel()
	a, err := s.c.Queues.Do(asked, c)
	switch {
	case err != nil && ctx.Err() != nil:
		return a, s.statusOf(ctx.Err())
	case err != nil:
		return a, s.verdict(pqueue.Unavailable)
	case a.Result.Code != pqueue.OK:
		return a, s.verdict(a.Result.Code)
	}
	return a, nil
}

// named is a call on the item that id names, which may be a handle.
func named(op pqueue.Op, queue, id string) (broker.Call, error) {
	if id == "" || len(id) > idMax {
		return broker.Call{}, invalid("id: %d bytes; give the id or the handle of an item, %d bytes at most", len(id), idMax)
	}
	c := broker.Call{Command: pqueue.Command{Op: op, Queue: queue}}
	if h, err := broker.ParseHandle(id); err == nil {
		c.Handle = h
	} else {
		c.Command.ID = id
	}
	return c, nil
}

// leased is a call by the holder of a lease.
func leased(op pqueue.Op, queue, receipt string) (broker.Call, error) {
	h, lease, err := broker.ParseReceipt(receipt)
	if err != nil {
		return broker.Call{}, invalid("receipt: %v; give the one that came with the lease", err)
	}
	return broker.Call{Handle: h, Command: pqueue.Command{Op: op, Queue: queue, Lease: lease}}, nil
}

// newItem is what an Insert and one of an InsertBatch have in common.
type newItem interface {
	GetId() string
	GetKey() string
	GetPriority() uint32
	GetPayload() []byte
	GetNotBefore() *timestamppb.Timestamp
	GetTtl() *durationpb.Duration
}

// inserted is a call that puts an item into a queue.
func (s *Server) inserted(queue string, r newItem) (broker.Call, error) {
	c := pqueue.Command{Op: pqueue.OpInsert, Queue: queue, ID: r.GetId(), Priority: r.GetPriority(), Payload: r.GetPayload(), Key: r.GetKey()}
	if c.ID == "" {
		var id [16]byte
		_, _ = rand.Read(id[:]) // never fails
		c.ID = broker.MadeAt(s.c.Self, hex.EncodeToString(id[:]))
	}
	if len(c.ID) > idMax {
		return broker.Call{}, invalid("id: %d bytes; give %d at most", len(c.ID), idMax)
	}
	if _, err := broker.ParseHandle(c.ID); err == nil { // wherever an id is taken, a handle is
		return broker.Call{}, invalid("id: %q looks like a handle, and would be taken for that of another item; give another id", c.ID)
	}
	if err := s.checkKey(queue, c.Key); err != nil {
		return broker.Call{}, err
	}
	if t := r.GetNotBefore(); t != nil {
		if t.CheckValid() != nil {
			return broker.Call{}, invalid("not_before: no time")
		}
		c.NotBefore = max(0, t.AsTime().UnixMicro())
	}
	ttl, err := duration("ttl", r.GetTtl())
	if err != nil {
		return broker.Call{}, err
	}
	if ttl > 0 {
		c.Expires = s.c.Queues.Clock() + ttl
	}
	return broker.Call{Command: c}, nil
}

// checkKey says what is wrong with the key of a new item; nil: nothing.
func (s *Server) checkKey(queue, key string) error {
	if len(key) > pqueue.KeyMax {
		return invalid("key: %d bytes; give %d at most", len(key), pqueue.KeyMax)
	}
	if key == "" || checkQueue(queue) != nil {
		return nil
	}
	if is, _, ok := s.c.Queues.Settings(queue, false); !ok || !is.Limits.Exclusive && !is.FairKeys {
		return invalid("key: the queue has neither fair nor exclusive keys; give it some first (fair_keys, exclusive_keys, anteroom queue set --fair-keys true), or leave the key out")
	}
	return nil
}

// placed is the answer to a call that has put an item into a queue.
func placed(c broker.Call, a broker.Answer) *anteroomv1.InsertResponse {
	return &anteroomv1.InsertResponse{Id: c.Command.ID, Handle: a.Handle.String(), Existed: a.Result.Exists, State: stateOf(a.Result.State)}
}

// Insert puts an item into a queue.
func (s *Server) Insert(ctx context.Context, r *anteroomv1.InsertRequest) (*anteroomv1.InsertResponse, error) {
	c, err := s.inserted(r.GetQueue(), r)
	if err != nil {
		return nil, err
	}
	a, err := s.do(ctx, c)
	if err != nil {
		return nil, err
	}
	return placed(c, a), nil
}

// taking is the take that a DeleteMin asks for.
func (s *Server) taking(r *anteroomv1.DeleteMinRequest) (broker.Take, error) {
	if err := checkQueue(r.GetQueue()); err != nil {
		return broker.Take{}, err
	}
	lease, err := duration("lease", r.GetLease())
	if err != nil {
		return broker.Take{}, err
	}
	wait, err := duration("wait", r.GetWait())
	if err != nil {
		return broker.Take{}, err
	}
	if r.GetMaxItems() > itemsMax {
		return broker.Take{}, invalid("max_items: %d; give %d at most", r.GetMaxItems(), itemsMax)
	}
	wait = min(wait, s.c.WaitMax.Microseconds())
	return broker.Take{Queue: r.GetQueue(), Max: int(max(1, r.GetMaxItems())), For: lease, Wait: wait, Within: wait + s.c.Answer.Microseconds()}, nil
}

// taken is how a take went.
func (s *Server) taken(queue string, a broker.Answer) (*anteroomv1.DeleteMinResponse, error) {
	if a.Result.Code != pqueue.OK && a.Result.Code != pqueue.Empty {
		return nil, s.verdict(a.Result.Code)
	}
	return s.leases(queue, a), nil
}

// DeleteMin leases the first items of a queue.
func (s *Server) DeleteMin(ctx context.Context, r *anteroomv1.DeleteMinRequest) (*anteroomv1.DeleteMinResponse, error) {
	t, err := s.taking(r)
	if err != nil {
		return nil, err
	}
	asked, cancel := context.WithCancel(ctx)
	defer cancel()
	if t.Wait > 0 {
		go func() {
			select {
			case <-s.closing:
				cancel()
			case <-asked.Done():
			}
		}()
	}
	a, err := s.c.Queues.Take(asked, t)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, s.statusOf(ctx.Err())
	case err != nil:
		return nil, s.verdict(pqueue.Unavailable)
	default:
		return s.taken(r.GetQueue(), a)
	}
}

// Ack says that the work on an item is done.
func (s *Server) Ack(ctx context.Context, r *anteroomv1.AckRequest) (*anteroomv1.AckResponse, error) {
	c, err := leased(pqueue.OpAck, r.GetQueue(), r.GetReceipt())
	if err == nil {
		_, err = s.do(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	return &anteroomv1.AckResponse{}, nil
}

// nacked is a call that gives an item back.
func nacked(r *anteroomv1.NackRequest) (broker.Call, error) {
	c, err := leased(pqueue.OpNack, r.GetQueue(), r.GetReceipt())
	if err != nil {
		return c, err
	}
	if len(r.GetReason()) > reasonMax {
		return c, invalid("reason: %d bytes; give %d at most", len(r.GetReason()), reasonMax)
	}
	c.Command.Text = r.GetReason()
	c.Command.For, err = duration("delay", r.GetDelay())
	if r.GetDelay() != nil && c.Command.For == 0 {
		c.Command.For = -1 // at once, whatever the queue's backoff
	}
	return c, err
}

// Nack gives an item back.
func (s *Server) Nack(ctx context.Context, r *anteroomv1.NackRequest) (*anteroomv1.NackResponse, error) {
	c, err := nacked(r)
	if err != nil {
		return nil, err
	}
	a, err := s.do(ctx, c)
	if err != nil {
		return nil, err
	}
	return &anteroomv1.NackResponse{State: stateOf(a.Result.State)}, nil
}

// extended is a call that makes a lease last.
func extended(r *anteroomv1.ExtendRequest) (broker.Call, error) {
	c, err := leased(pqueue.OpExtend, r.GetQueue(), r.GetReceipt())
	if err == nil {
		c.Command.For, err = duration("lease", r.GetLease())
	}
	return c, err
}

// Extend makes a lease last.
func (s *Server) Extend(ctx context.Context, r *anteroomv1.ExtendRequest) (*anteroomv1.ExtendResponse, error) {
	c, err := extended(r)
	if err != nil {
		return nil, err
	}
	a, err := s.do(ctx, c)
	if err != nil {
		return nil, err
	}
	return &anteroomv1.ExtendResponse{Until: moment(a.Result.Until)}, nil
}

// Update changes an item.
func (s *Server) Update(ctx context.Context, r *anteroomv1.UpdateRequest) (*anteroomv1.UpdateResponse, error) {
	c, err := named(pqueue.OpUpdate, r.GetQueue(), r.GetId())
	if err != nil {
		return nil, err
	}
	if r.Payload != nil {
		c.Command.Payload, c.Command.Fields = r.GetPayload(), pqueue.FieldPayload
	}
	if t := r.GetNotBefore(); t != nil {
		if t.CheckValid() != nil {
			return nil, invalid("not_before: no time")
		}
		c.Command.NotBefore = max(0, t.AsTime().UnixMicro())
		c.Command.Fields |= pqueue.FieldNotBefore
	}
	c.Command.Priority = r.GetPriority()
	if r.Priority != nil && c.Command.Fields != 0 { // alone it is a command that nodes of before know
		c.Command.Fields |= pqueue.FieldPriority
	}
	a, err := s.do(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(a.Result.Items) != 1 {
		return nil, s.verdict(pqueue.Unavailable)
	}
	return &anteroomv1.UpdateResponse{Item: itemOf(r.GetQueue(), a.Handle, a.Result.Items[0])}, nil
}

// Cancel takes an item away.
func (s *Server) Cancel(ctx context.Context, r *anteroomv1.CancelRequest) (*anteroomv1.CancelResponse, error) {
	c, err := named(pqueue.OpCancel, r.GetQueue(), r.GetId())
	if err != nil {
		return nil, err
	}
	a, err := s.do(ctx, c)
	if err != nil {
		return nil, err
	}
	return &anteroomv1.CancelResponse{State: stateOf(a.Result.State)}, nil
}

// Position says how many ready items go before an item.
func (s *Server) Position(ctx context.Context, r *anteroomv1.PositionRequest) (*anteroomv1.PositionResponse, error) {
	c, err := named(pqueue.OpRank, r.GetQueue(), r.GetId())
	if err != nil {
		return nil, err
	}
	a, err := s.do(ctx, c)
	if err != nil {
		return nil, err
	}
	p := &anteroomv1.PositionResponse{Position: a.Result.N, State: stateOf(a.Result.State), Missing: missing(a)}
	if len(p.Missing) == 0 {
		p.Bound = new(uint64)
	}
	return p, nil
}
