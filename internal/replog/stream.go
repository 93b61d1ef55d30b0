package replog

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
)

const (
	pieceMax    = 32 << 10 // bytes of a stream in one message
	streamsMax  = 64       // streams from other nodes: raft opens a handful for each
	raftTimeout = 10 * time.Second
	poolMax     = 2 // idle streams to one node
)

// layer carries raft's connections in gRPC streams. Raft gets one end of a pipe
// in memory, which has deadlines; the other end is pumped into the stream.
type layer struct {
	g      *group
	accept chan net.Conn
	closed chan struct{}

	mu    sync.Mutex
	open  map[net.Conn]struct{} // our ends
	ended bool
}

var _ raft.StreamLayer = (*layer)(nil)

func newLayer(g *group) *layer {
	return &layer{g: g, accept: make(chan net.Conn), closed: make(chan struct{}), open: map[net.Conn]struct{}{}}
}

// name is the address of a log: that of its server.
type name raft.ServerID

func (name) Network() string  { return "anteroom" }
func (n name) String() string { return string(n) }

func (y *layer) Addr() net.Addr { return name(y.g.id) }

func (y *layer) Accept() (net.Conn, error) {
	select {
	case c := <-y.accept:
		return c, nil
	case <-y.closed:
		return nil, net.ErrClosed
	}
}

// Close ends all connections.
func (y *layer) Close() error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if !y.ended {
		y.ended = true
		close(y.closed)
	}
	for c := range y.open {
		_ = c.Close()
	}
	return nil
}

// pipe makes a connection. No more than max are open at once.
func (y *layer) pipe(most int) (ours, rafts net.Conn, err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	switch {
	case y.ended:
		return nil, nil, status.Error(codes.Unavailable, "this node is stopping")
	case len(y.open) >= most:
		return nil, nil, status.Error(codes.ResourceExhausted, "too many streams of the queues' log")
	}
	ours, rafts = net.Pipe()
	y.open[ours] = struct{}{}
	return ours, rafts, nil
}

func (y *layer) forget(ours net.Conn) {
	_ = ours.Close()
	y.mu.Lock()
	defer y.mu.Unlock()
	delete(y.open, ours)
}

// Dial opens a connection to the log of another node.
func (y *layer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	to := raft.ServerID(address)
	conn, err := y.g.connection(nodeOf(to))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	impatience := time.AfterFunc(timeout, cancel)
	stream, err := peerv1.NewReplicationClient(conn).Replicate(ctx)
	if err == nil {
		err = y.greet(stream, to)
	}
	if !impatience.Stop() && err == nil {
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("%s: %w", nodeOf(to), err)
	}
	ours, rafts, err := y.pipe(2 * streamsMax) // theirs and ours together
	if err != nil {
		cancel()
		return nil, err
	}
	go func() {
		defer cancel()
		_ = outOf(ours, func(piece []byte) error { return stream.Send(&peerv1.ReplicateRequest{Data: piece}) })
	}()
	go func() {
		defer y.forget(ours)
		_ = into(ours, func() ([]byte, error) {
			r, err := stream.Recv()
			return r.GetData(), err
		})
	}()
	return rafts, nil
}

// greet says who calls whom, and waits for the answer.
func (y *layer) greet(stream peerv1.Replication_ReplicateClient, to raft.ServerID) error {
	hello := &peerv1.ReplicateHello{Group: y.g.l.owner.papers().Group, From: string(y.g.id), To: string(to)}
	if err := stream.Send(&peerv1.ReplicateRequest{Hello: hello}); err != nil {
		_, err = stream.Recv() // which knows why
		return err
	}
	_, err := stream.Recv()
	return err
}

// outOf sends what comes out of c, until there is no more.
func outOf(c net.Conn, send func([]byte) error) error {
	piece := make([]byte, pieceMax)
	for {
		n, err := c.Read(piece)
		if err != nil {
			return err
		}
		if err := send(piece[:n]); err != nil {
			return err
		}
	}
}

// into writes what is received into c, until there is no more.
func into(c net.Conn, receive func() ([]byte, error)) error {
	for {
		piece, err := receive()
		if err != nil {
			return err
		}
		if _, err := c.Write(piece); err != nil {
			return err
		}
	}
}

// service is what other nodes call.
type service struct {
	peerv1.UnimplementedReplicationServer
	g *group
}

// Replicate is a connection that another node opens.
func (s service) Replicate(stream peerv1.Replication_ReplicateServer) error {
	if err := s.g.check(stream.Context()); err != nil {
		return err
	}
	r, err := stream.Recv()
	if err != nil {
		return err
	}
	if err := s.g.admit(r.GetHello()); err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	y := s.g.layer
	ours, rafts, err := y.pipe(streamsMax)
	if err != nil {
		return err
	}
	defer y.forget(ours)
	if err := stream.Send(&peerv1.ReplicateResponse{}); err != nil {
		return err
	}
	select {
	case y.accept <- rafts:
	case <-y.closed:
		return status.Error(codes.Unavailable, "this node is stopping")
	case <-stream.Context().Done():
		return stream.Context().Err()
	}
	go func() { // it ends once this method has returned, at the latest
		defer ours.Close() //nolint:errcheck // a pipe has nothing to say
		_ = into(ours, func() ([]byte, error) {
			r, err := stream.Recv()
			return r.GetData(), err
		})
	}()
	_ = outOf(ours, func(piece []byte) error { return stream.Send(&peerv1.ReplicateResponse{Data: piece}) })
	return nil
}

var errStranger = errors.New("its stream is for another life of this node's directory")

// admit checks who opens a stream for whom, and joins this node to the group that
// the first one names: only its leader knows this directory's name.
func (g *group) admit(hello *peerv1.ReplicateHello) error {
	if hello.GetGroup() == "" || hello.GetTo() != string(g.id) {
		return errStranger
	}
	ours := g.l.owner.papers().Group
	if ours == "" {
		_, err := g.l.owner.decide(func(p *papers) bool {
			if p.Group == "" {
				p.Group = hello.GetGroup()
			}
			ours = p.Group
			return true
		})
		if err != nil {
			return err
		}
	}
	if ours != hello.GetGroup() {
		err := g.otherGroup(nodeOf(raft.ServerID(hello.GetFrom())), hello.GetGroup())
		return err
	}
	return nil
}
