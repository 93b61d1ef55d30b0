package link_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/link"
	"github.com/anteroom/anteroom/proto/rpc"
	"github.com/anteroom/anteroom/qpid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wires are the network: in-memory listeners by address.
type wires struct {
	mu        sync.Mutex
	listeners map[string]*bufconn.Listener
	frozen    atomic.Bool // what is written gets lost, and nobody is told
}

func newWires() *wires { return &wires{listeners: map[string]*bufconn.Listener{}} }

func (w *wires) listen(address string) *bufconn.Listener {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := bufconn.Listen(1 << 20)
	w.listeners[address] = l
	return l
}

func (w *wires) dial(ctx context.Context, address string) (net.Conn, error) {
	w.mu.Lock()
	l := w.listeners[address]
	w.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("nobody listens at %s", address)
	}
	c, err := l.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{c, &w.frozen}, nil
}

type conn struct {
	net.Conn
	frozen *atomic.Bool
}

func (c *conn) Write(p []byte) (int, error) {
	if c.frozen.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// fake is the node behind the links.
type fake struct {
	mu      sync.Mutex
	got     []eviction.Message
	hints   []string
	ring    []byte // keys are letters, in order
	asked   int    // times that Keys was called with some
	terms   string // its settings
	adopts  bool   // takes over any others
	renew   func() // the links, once it has
	stuck   chan struct{}
	peer    eviction.Peer // who Identify says it is
	from    eviction.Peer // who asked, and where it gossips
	gossip  string
	settled bool
	answers func(context.Context, ticket.Request) (ticket.Answer, error)
}

func (f *fake) Deliver(m eviction.Message) {
	f.mu.Lock()
	stuck := f.stuck
	f.mu.Unlock()
	if stuck != nil {
		<-stuck
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got = append(f.got, m)
}

func (f *fake) Local(ctx context.Context, q ticket.Request) (ticket.Answer, error) {
	return f.answers(ctx, q)
}

func (f *fake) Relay(ctx context.Context, q ticket.Request) (ticket.Answer, error) {
	a, err := f.answers(ctx, q)
	a.Position = relayed
	return a, err
}

// relayed is the position in what a fake node answers to a Relay.
const relayed = 77

func (f *fake) Hint(room string, id qpid.ItemID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hints = append(f.hints, fmt.Sprintf("%s %x", room, id[:2]))
}

func (f *fake) Keys(offered []byte) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(offered) == 0 {
		return f.ring, nil
	}
	f.asked++
	if bytes.Contains(offered, []byte("bad")) {
		return f.ring, errors.New("these are no keys")
	}
	f.ring = append(slices.Clone(f.ring), offered...)
	slices.Sort(f.ring)
	f.ring = slices.Compact(f.ring)
	return f.ring, nil
}

func (f *fake) Settings() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []byte(f.terms)
}

func (f *fake) Identify(from eviction.Peer, gossip string) (eviction.Peer, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.from, f.gossip = from, gossip
	return f.peer, f.settled
}

func (f *fake) Agree(from eviction.Member, settings []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.terms == string(settings) {
		return nil
	}
	if f.adopts {
		f.adopts, f.terms = false, string(settings)
		f.renew()
		return nil
	}
	return fmt.Errorf("the lease is %s here and %s at %s", f.terms, settings, from.Name)
}

func (f *fake) keys() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return string(f.ring)
}

func (f *fake) messages() []eviction.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.got)
}

// rooms returns what the urgent messages that came said, in order.
func (f *fake) rooms() (rooms []string) {
	for _, m := range f.messages() {
		rooms = append(rooms, m.Body.(*eviction.Urgent).Room)
	}
	return rooms
}

// end is one node of the test's cluster.
type end struct {
	*link.Links
	*fake
	self    eviction.Member
	address string
	log     *bytes.Buffer // read it when the node has stopped
	frames  atomic.Int64  // that came
	stop    func()
}

func member(name string, boot uint64) eviction.Member {
	return eviction.Member{Name: qpid.NodeID(name), Boot: boot}
}

// start runs a node. It listens at its name.
func (w *wires) start(t testing.TB, self eviction.Member, change func(*link.Config)) *end {
	t.Helper()
	e := &end{fake: &fake{}, self: self, address: string(self.Name), log: &bytes.Buffer{}}
	c := link.Config{Self: self, Peer: e.fake, Dial: w.dial, Policy: gossipKey(t, 1), Logger: slog.New(slog.NewTextHandler(e.log, nil))}
	if change != nil {
		change(&c)
	}
	e.Links = link.New(c)
	e.renew = e.Renew
	server := rpc.NewPeers(rpc.PeersConfig{Policy: c.Policy, Links: e.Links, Options: []grpc.ServerOption{
		grpc.StreamInterceptor(e.count),
	}})
	listener := w.listen(e.address)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) })
	running.Go(func() {
		if err := e.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want Canceled", err)
		}
	})
	e.stop = sync.OnceFunc(func() {
		cancel()
		server.Stop()
		running.Wait()
	})
	t.Cleanup(e.stop)
	return e
}

// count counts the frames that come in.
func (e *end) count(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	return next(srv, &counted{s, &e.frames})
}

type counted struct {
	grpc.ServerStream
	frames *atomic.Int64
}

func (c *counted) RecvMsg(m any) error {
	err := c.ServerStream.RecvMsg(m)
	if r, ok := m.(*peerv1.LinkRequest); ok && r.GetFrame() != nil {
		c.frames.Add(1)
	}
	return err
}

// meet makes the ends members of one cluster.
func meet(ends ...*end) {
	members := map[eviction.Member]string{}
	for _, e := range ends {
		members[e.self] = e.address
	}
	for _, e := range ends {
		e.SetMembers(members)
	}
}

// urge sends b an urgent message about the room.
func (e *end) urge(to *end, room string) {
	e.Send(eviction.Message{From: e.self, To: to.self, Body: &eviction.Urgent{Room: room}})
}

// about returns what e knows of its link to another.
func (e *end) about(t testing.TB, m eviction.Member) link.Stats {
	t.Helper()
	for _, s := range e.Stats() {
		if s.Member == m {
			return s
		}
	}
	t.Fatalf("%v knows nothing of %v", e.self, m)
	return link.Stats{}
}

// soon sleeps for long enough that a link is up. Time is virtual.
func soon() { time.Sleep(100 * time.Millisecond) }
