package replog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/proto/auth"
	"github.com/anteroom/anteroom/qpid"
)

// member is a member of a group as fast as tests need it.
func member(name qpid.NodeID) Config {
	return Config{Node: name, Group: &Group{
		Self: eviction.Member{Name: name, Boot: 1}, Replicas: 2, Founders: 3, Policy: peers(),
		Pace: 50 * time.Millisecond, Election: 400 * time.Millisecond, ReplaceAfter: time.Hour,
	}}
}

// peers is how the members of a test know each other.
func peers() auth.Policy {
	p, err := auth.GossipKey([]byte("the key of a test"))
	if err != nil {
		panic(err)
	}
	return p
}

// mesh is a network in memory.
type mesh struct {
	t   testing.TB
	dir string

	mu     sync.Mutex
	nodes  map[qpid.NodeID]*node
	cut    map[qpid.NodeID]bool // nobody reaches them, nor they anybody
	conns  map[*crossing]struct{}
	states map[qpid.NodeID]*list
	// stores are the logs by directory, in memory, so that a busy disk elects nobody; nil: on disk.
	stores map[string]memory
}

// memory is a log that outlives its node, not its process.
type memory struct{ *raft.InmemStore }

func (memory) IsMonotonic() bool { return false }
func (memory) Close() error      { return nil }

// Get returns nothing for what is not there, as a disk does.
func (s memory) Get(key []byte) ([]byte, error) {
	v, _ := s.InmemStore.Get(key)
	return v, nil
}

// node is a log and the server in front of it.
type node struct {
	*running
	name     qpid.NodeID
	listener *bufconn.Listener
	server   *grpc.Server
}

// crossing is a connection between two nodes.
type crossing struct {
	net.Conn
	from, to qpid.NodeID
	m        *mesh
}

func (c *crossing) Close() error {
	c.m.mu.Lock()
	delete(c.m.conns, c)
	c.m.mu.Unlock()
	return c.Conn.Close()
}

func newMesh(t testing.TB) *mesh {
	m := &mesh{
		t: t, dir: t.TempDir(), nodes: map[qpid.NodeID]*node{}, cut: map[qpid.NodeID]bool{},
		conns: map[*crossing]struct{}{}, states: map[qpid.NodeID]*list{},
		stores: map[string]memory{},
	}
	t.Cleanup(func() {
		for _, name := range m.up() {
			m.stop(name)
		}
	})
	return m
}

// start starts a node that was not up. Its address is its name.
func (m *mesh) start(c Config) *node {
	m.t.Helper()
	name := c.Node
	c.Dir = filepath.Join(m.dir, string(name))
	c.Group.Dial = func(_ context.Context, address string) (net.Conn, error) { return m.dial(name, qpid.NodeID(address)) }
	if faults := c.through; m.stores != nil {
		store, ok := m.stores[c.Dir]
		if !ok {
			store = memory{raft.NewInmemStore()}
			m.stores[c.Dir] = store
		}
		c.through = func(disk entries) entries {
			_ = disk.Close()
			if faults != nil {
				return faults(store)
			}
			return store
		}
	}
	state := &list{}
	c.Machine = state
	r := start(m.t, c)
	n := &node{running: r, name: name, listener: bufconn.Listen(256 << 10), server: grpc.NewServer(grpc.Creds(c.Group.Policy.Server()))}
	n.Register(n.server)
	go func() { _ = n.server.Serve(n.listener) }()
	m.mu.Lock()
	m.nodes[name], m.states[name] = n, state
	m.mu.Unlock()
	return n
}

// stop stops a node in order.
func (m *mesh) stop(name qpid.NodeID) {
	m.mu.Lock()
	n := m.nodes[name]
	delete(m.nodes, name)
	m.mu.Unlock()
	_ = n.stop()
	n.server.Stop()
	_ = n.listener.Close()
}

func (m *mesh) up() []qpid.NodeID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.nodes))
}

// see tells all nodes which ones are alive: those that are up and not cut off.
func (m *mesh) see() {
	m.mu.Lock()
	all, alone := map[eviction.Member]string{}, map[qpid.NodeID]map[eviction.Member]string{}
	for name, n := range m.nodes {
		self := n.c.Group.Self
		if m.cut[name] {
			alone[name] = map[eviction.Member]string{self: string(name)}
			continue
		}
		all[self] = string(name)
	}
	nodes := maps.Clone(m.nodes)
	m.mu.Unlock()
	for name, n := range nodes {
		if only, ok := alone[name]; ok {
			n.SetMembers(only)
			continue
		}
		n.SetMembers(all)
	}
}

func (m *mesh) dial(from, to qpid.NodeID) (net.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.nodes[to]
	if n == nil || m.cut[from] || m.cut[to] {
		return nil, fmt.Errorf("no way from %s to %s", from, to)
	}
	c, err := n.listener.Dial()
	if err != nil {
		return nil, err
	}
	x := &crossing{Conn: c, from: from, to: to, m: m}
	m.conns[x] = struct{}{}
	return x, nil
}

// split cuts a node off, or joins it again.
func (m *mesh) split(name qpid.NodeID, off bool) {
	m.mu.Lock()
	m.cut[name] = off
	var broken []*crossing
	for c := range m.conns {
		if off && (c.from == name || c.to == name) {
			broken = append(broken, c)
		}
	}
	m.mu.Unlock()
	for _, c := range broken {
		_ = c.Close()
	}
}

// leader waits for a node, not among those excluded, that leads.
func (m *mesh) leader(except ...qpid.NodeID) *node {
	m.t.Helper()
	var leader *node
	until(m.t, "a node leads", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		for name, n := range m.nodes {
			if !slices.Contains(except, name) && n.state.leading() {
				leader = n
				return true
			}
		}
		return false
	})
	return leader
}

// put has a command acknowledged by whoever leads, and returns how often it may
// have been appended in vain before.
func (m *mesh) put(command string, except ...qpid.NodeID) (tries int) {
	m.t.Helper()
	end := time.Now().Add(patience)
	for {
		a := <-m.leader(except...).propose(command)
		if a.err == nil {
			return tries
		}
		if !errors.Is(a.err, ErrRefused) {
			tries++
		}
		if time.Now().After(end) {
			m.t.Fatalf("propose(%s) = %v", command, a.err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// voters waits until the group has these voters, and each of them knows it: raft
// has nobody's vote for a node that it does not know as a voter.
func (m *mesh) voters(want ...qpid.NodeID) {
	m.t.Helper()
	knows := func(n *node) bool {
		if n.late.err() != nil {
			return false
		}
		var got []qpid.NodeID
		for _, s := range n.raft.GetConfiguration().Configuration().Servers {
			if s.Suffrage == raft.Voter {
				got = append(got, nodeOf(s.ID))
			}
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	}
	until(m.t, fmt.Sprintf("the voters are %v", want), func() bool {
		if !knows(m.leader()) {
			return false
		}
		for _, name := range want {
			if n := m.node(name); n != nil && !knows(n) {
				return false
			}
		}
		return true
	})
}

// node returns a node that is up, or nil.
func (m *mesh) node(name qpid.NodeID) *node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nodes[name]
}

// three starts n1, n2 and n3 and waits until all of them vote.
func three(t testing.TB) *mesh {
	m := newMesh(t)
	for _, name := range []qpid.NodeID{"n1", "n2", "n3"} {
		m.start(member(name))
	}
	m.see()
	m.voters("n1", "n2", "n3")
	return m
}

// same waits until the members have applied the same commands, and returns them.
func (m *mesh) same() []string {
	m.t.Helper()
	var all []string
	until(m.t, "all have the same commands", func() bool {
		all = nil
		for i, name := range m.up() {
			texts := m.states[name].texts()
			if i == 0 {
				all = texts
			} else if !slices.Equal(all, texts) {
				return false
			}
		}
		return true
	})
	return all
}
