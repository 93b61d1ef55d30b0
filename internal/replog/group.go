package replog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/anteroom/anteroom/eviction"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/auth"
	"github.com/anteroom/anteroom/qpid"
)

const (
	asksMax   = 8 // nodes that are asked at the same time
	askWithin = 2 * time.Second
)

// Group is what a replicated log needs to know. The zero value of a number means
// its default.
type Group struct {
	Self eviction.Member
	// Replicas is on how many disks a command is before it is acknowledged: 2 or
	// more.
	Replicas int
	// Founders is how many nodes there must be for this one to found the group; 0:
	// it founds none.
	Founders int
	Policy   auth.Policy
	Dial     func(ctx context.Context, address string) (net.Conn, error) // nil: TCP

	ReplaceAfter time.Duration // a voter's node is dead for this long before another takes its place [1m]
	Pace         time.Duration // of looking after the group [1s]
	Election     time.Duration // without a word from the leader before another is elected; up to twice that [1s]
}

// complete checks g and fills in what is left out.
func (g *Group) complete(node qpid.NodeID) error {
	if g.Replicas < 2 || g.Self.Name != node {
		return fmt.Errorf("a group of %d replicas for %s at %s", g.Replicas, g.Self.Name, node)
	}
	g.ReplaceAfter = cmp.Or(g.ReplaceAfter, time.Minute)
	g.Pace = cmp.Or(g.Pace, time.Second)
	g.Election = cmp.Or(g.Election, time.Second)
	if g.Dial == nil {
		g.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		}
	}
	return nil
}

// votersMax is how many voters the group has when all are there, and votersMin
// how many it takes for a majority of R.
func (g *Group) votersMax() int { return 2*g.Replicas - 1 }
func (g *Group) votersMin() int { return 2*g.Replicas - 2 }

// serverOf names the voter that a node is with the directory it has.
func serverOf(node qpid.NodeID, disk string) raft.ServerID {
	return raft.ServerID(string(node) + "." + disk)
}

func nodeOf(id raft.ServerID) qpid.NodeID {
	return qpid.NodeID(id[:max(0, strings.LastIndexByte(string(id), '.'))])
}

// group is this node's part in a replicated log.
type group struct {
	l       *Log
	c       Group
	changed chan struct{} // a token: the members are others

	// These are there once the log is open.
	id    raft.ServerID
	layer *layer
	net   *raft.NetworkTransport

	mu      sync.Mutex
	members map[qpid.NodeID]place // all others that are alive
	conns   map[string]*grpc.ClientConn
	ended   bool
	attempt string // the group that this node tries to found
	waits   error  // why there is no group yet
	hint    hint
	strange map[qpid.NodeID]string // groups of others that are not ours, as far as they were logged

	// Of run's goroutine.
	seen   map[raft.ServerID]time.Time // when a server's node was last alive
	behind map[raft.ServerID]uint64    // what a member without a vote must have reached to get one

	rooms atomic.Pointer[rooms] // how much of that the leader knows
}

// rooms is how many voters have room, as their leader last heard.
type rooms struct {
	full, stuck []qpid.NodeID // less than their reserve; none for the last entry
	can         int           // voters that are there and write
	roomy       int           // of them, with more room than their reserve
}

// place is where a node is.
type place struct {
	member  eviction.Member
	address string
}

// hint is who leads, for a node that is not in the group.
type hint struct {
	leader qpid.NodeID
	term   uint64
}

func newGroup(l *Log, c Group) *group {
	return &group{
		l: l, c: c, changed: make(chan struct{}, 1),
		members: map[qpid.NodeID]place{}, conns: map[string]*grpc.ClientConn{}, strange: map[qpid.NodeID]string{},
		waits: errors.New("the queues' log is just starting"),
		seen:  map[raft.ServerID]time.Time{}, behind: map[raft.ServerID]uint64{},
	}
}

// transport returns raft's way to the others.
func (g *group) transport(conf *raft.Config) raft.Transport {
	g.id, g.layer = conf.LocalID, newLayer(g)
	conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = g.c.Election, g.c.Election, g.c.Election/2
	g.net = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: g.layer, MaxPool: poolMax, Timeout: raftTimeout, Logger: conf.Logger,
	})
	return transport{g.net}
}

// Register offers what other nodes call on s. A durable log has nothing to offer.
func (l *Log) Register(s grpc.ServiceRegistrar) {
	if l.group != nil {
		peerv1.RegisterReplicationServer(s, service{g: l.group})
	}
}

// SetMembers says who is alive, and at which address each can be reached. The
// node itself may be among them.
func (l *Log) SetMembers(members map[eviction.Member]string) {
	g := l.group
	if g == nil {
		return
	}
	alive, used := map[qpid.NodeID]place{}, map[string]bool{}
	for m, address := range members {
		if m.Name != g.c.Self.Name && m.Boot >= alive[m.Name].member.Boot {
			alive[m.Name] = place{m, address}
		}
	}
	for _, p := range alive {
		used[p.address] = true
	}
	g.mu.Lock()
	g.members = alive
	maps.DeleteFunc(g.conns, func(address string, c *grpc.ClientConn) bool {
		if !used[address] {
			_ = c.Close()
		}
		return !used[address]
	})
	maps.DeleteFunc(g.strange, func(n qpid.NodeID, _ string) bool { return alive[n].address == "" })
	g.mu.Unlock()
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// others returns all members but this one, by name.
func (g *group) others() []place {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.SortedFunc(maps.Values(g.members), func(a, b place) int { return cmp.Compare(a.member.Name, b.member.Name) })
}

// connection returns the way to a member.
func (g *group) connection(node qpid.NodeID) (*grpc.ClientConn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, ok := g.members[node]
	if !ok || g.ended {
		return nil, fmt.Errorf("%s is not among the members", node)
	}
	if c := g.conns[p.address]; c != nil {
		return c, nil
	}
	c, err := grpc.NewClient("passthrough:///"+p.address,
		grpc.WithTransportCredentials(g.c.Policy.Client()), grpc.WithContextDialer(g.c.Dial),
		grpc.WithDisableServiceConfig(), grpc.WithNoProxy(), grpc.WithIdleTimeout(0))
	if err != nil {
		return nil, err
	}
	g.conns[p.address] = c
	return c, nil
}

// close ends all that goes to other nodes and comes from them.
func (g *group) close() error {
	err := g.net.Close()
	g.hangUp()
	return err
}

// hangUp calls no other node any more.
func (g *group) hangUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	for _, c := range g.conns {
		_ = c.Close()
	}
	clear(g.conns)
}

// run looks after the group until ctx is done.
func (g *group) run(ctx context.Context) {
	pace := time.NewTicker(g.c.Pace)
	defer pace.Stop()
	for {
		switch {
		case g.l.owner.papers().Group == "":
			err := g.found(ctx)
			g.mu.Lock()
			g.waits = err
			g.mu.Unlock()
		case g.l.raft.State() == raft.Leader:
			g.tend(ctx)
		default:
			g.rooms.Store(nil)
			g.begin()
			clear(g.seen)
			clear(g.behind)
		}
		g.seek(ctx)
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		case <-g.changed:
		}
	}
}

// leader returns who leads, as far as this node knows.
func (g *group) leader() (qpid.NodeID, bool) {
	if g.l.late.err() == nil {
		if _, id := g.l.raft.LeaderWithID(); id != "" {
			return nodeOf(id), true
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hint.leader, g.hint.leader != ""
}

// ready returns why no command would be taken, or nil.
func (g *group) ready() error {
	if _, ok := g.leader(); ok {
		if g.l.raft.State() == raft.Leader {
			return g.enough()
		}
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.l.owner.papers().Group == "" {
		return cmp.Or(g.waits, errors.New("this node waits for the leader of the queues' log to add it"))
	}
	n := voters(g.l.raft.GetConfiguration().Configuration())
	return fmt.Errorf("the queues' log has no leader: %d of its %d nodes must reach each other", n/2+1, n)
}

// room returns for what there is room on as many disks as a command must be on.
func (g *group) room() (Room, error) {
	r := g.rooms.Load()
	if r == nil || !g.l.leading() {
		return g.l.ownRoom()
	}
	switch {
	case len(r.stuck) > 0 && r.can < g.c.Replicas:
		return RoomForNone, fmt.Errorf("%w: %d of %d nodes can write, and replicas: %d; full: %v", ErrFull, r.can, g.c.votersMax(), g.c.Replicas, r.stuck)
	case len(r.full) > 0 && r.roomy < g.c.Replicas:
		return RoomToRemove, fmt.Errorf("%w: %d of %d nodes have room, and replicas: %d; nearly full: %v", ErrFull, r.roomy, g.c.votersMax(), g.c.Replicas, r.full)
	}
	return RoomForAll, nil
}

// hearRoom takes in how much room there is, as the leader. Who does not answer just now
// is taken to be as it should.
func (g *group) hearRoom(servers []raft.Server, replies map[qpid.NodeID]reply) {
	r := &rooms{}
	for _, s := range servers {
		node := nodeOf(s.ID)
		answer, alive := replies[node]
		if s.Suffrage != raft.Voter || !alive && s.ID != g.id {
			continue
		}
		full, stuck := answer.GetFull(), answer.GetStuck()
		if s.ID == g.id {
			own, _ := g.l.ownRoom()
			full, stuck = own != RoomForAll, own == RoomForNone
		}
		if stuck {
			r.stuck = append(r.stuck, node)
		} else {
			r.can++
		}
		if full || stuck {
			r.full = append(r.full, node)
		} else {
			r.roomy++
		}
	}
	g.rooms.Store(r)
}

// enough returns an error unless a majority is as many disks as a command must be on.
func (g *group) enough() error {
	n := voters(g.l.raft.GetConfiguration().Configuration())
	if least := g.c.votersMin(); n < least {
		return fmt.Errorf("replicas: %d takes %d nodes that store, and there are %d so far", g.c.Replicas, least, n)
	}
	return nil
}

func voters(c raft.Configuration) int {
	n := 0
	for _, s := range c.Servers {
		if s.Suffrage == raft.Voter {
			n++
		}
	}
	return n
}

// check refuses who is no peer, and everybody until the log is open.
func (g *group) check(ctx context.Context) error {
	if err := g.c.Policy.Check(ctx); err != nil {
		return status.Error(codes.Unauthenticated, err.Error())
	}
	if err := g.l.late.err(); err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	return nil
}

// otherGroup says that a node has another group's log, once for each in the log.
func (g *group) otherGroup(node qpid.NodeID, theirs string) error {
	err := fmt.Errorf("%s has the queues' log of another group, %s; to have it join ours, stop it and move its directory of replicated queues away",
		node, theirs)
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, alive := g.members[node]; alive && g.strange[node] != theirs {
		g.strange[node] = theirs
		g.l.log.Error("queues: two groups", slog.String("ours", g.l.owner.papers().Group), slog.Any("err", err))
	}
	return err
}
