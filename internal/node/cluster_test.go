package node_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// epoch is when every test begins, by the wall clock and since boot.
const (
	wallStart = int64(1_700_000_000_000_000)
	bootStart = int64(3_600_000_000)
)

// cluster runs nodes in virtual time: messages arrive at once and in order,
// unless pass says otherwise. Nodes tick every step.
type cluster struct {
	t    testing.TB
	now  int64 // µs since the start of the test
	step int64
	node []*member
	// pass decides what becomes of a message: what it returns arrives.
	pass     func(m eviction.Message) []eviction.Message
	sent     map[string]int // messages by kind
	log      []node.Admission
	lenient  bool // a node may refuse a message
	inFlight []eviction.Message
	ids      uint64
}

// member is one node of the cluster.
type member struct {
	*node.Node
	cfg   node.Config
	up    bool
	wrong int64 // µs that its wall clock is ahead
	saved *eviction.Record
}

// newCluster founds nothing yet: the nodes have just started, expect each
// other and see each other.
func newCluster(t testing.TB, n int, rooms ...eviction.Room) *cluster {
	c := &cluster{t: t, step: 10_000, sent: map[string]int{}}
	for i := range n {
		c.add(node.Config{Expect: n, Joins: n > 1, Rooms: rooms}, string(rune('a'+i%26))+string(rune('0'+i/26)))
	}
	c.gossip()
	return c
}

// founded returns a cluster of n nodes that has been up for a while.
func founded(t testing.TB, n int, rooms ...eviction.Room) *cluster {
	c := newCluster(t, n, rooms...)
	c.run(2 * time.Second)
	last := c.node[0].Status().Installed
	c.until("wave", time.Second, func() bool { return c.node[0].Status().Installed != last })
	return c // no other is due for a moment, not even if somebody starts to wait
}

// add starts one more node.
func (c *cluster) add(cfg node.Config, name string) *member {
	c.t.Helper()
	cfg.Self = eviction.Peer{Member: eviction.Member{Name: qpid.NodeID(name), Boot: 1}, Start: wallStart + c.now + int64(len(c.node))}
	m := &member{cfg: cfg}
	c.node = append(c.node, m)
	c.start(m)
	return m
}

func (c *cluster) start(m *member) {
	c.t.Helper()
	n, err := node.New(m.cfg, c.at(m))
	if err != nil {
		c.t.Fatal(err)
	}
	m.Node, m.up = n, true
}

// restart starts m anew: another boot, nothing remembered but what was saved.
func (c *cluster) restart(m *member) {
	m.cfg.Self.Boot++
	m.cfg.Self.Start, m.cfg.Persisted = wallStart+c.now, m.saved
	c.start(m)
	c.gossip()
}

func (c *cluster) at(m *member) eviction.Time {
	return eviction.Time{Boot: bootStart + c.now, Wall: wallStart + c.now + m.wrong}
}

// gossip tells every node which of names are up; without names, all that are.
func (c *cluster) gossip(names ...qpid.NodeID) {
	var peers []eviction.Peer
	for _, m := range c.node {
		if m.up && (len(names) == 0 || slices.Contains(names, m.cfg.Self.Name)) {
			peers = append(peers, m.cfg.Self)
		}
	}
	for _, m := range c.node {
		if m.up && slices.Contains(peers, m.cfg.Self) {
			m.SetView(c.at(m), eviction.NewView(peers))
		}
	}
	c.deliver()
}

// split lets messages pass only within a side, and gossip notices.
func (c *cluster) split(sides ...[]qpid.NodeID) {
	side := func(name qpid.NodeID) int {
		return slices.IndexFunc(sides, func(s []qpid.NodeID) bool { return slices.Contains(s, name) })
	}
	c.pass = func(m eviction.Message) []eviction.Message {
		if side(m.From.Name) != side(m.To.Name) {
			return nil
		}
		return []eviction.Message{m}
	}
	for _, s := range sides {
		c.gossip(s...)
	}
}

// heal undoes a split.
func (c *cluster) heal() {
	c.pass = nil
	c.gossip()
}

// run lets time pass.
func (c *cluster) run(d time.Duration) {
	for end := c.now + d.Microseconds(); c.now < end; {
		c.now += c.step
		c.tick()
	}
}

func (c *cluster) tick() {
	for _, m := range c.node {
		if m.up {
			m.Tick(c.at(m))
		}
	}
	c.deliver()
}

// until lets time pass until done, at most for limit.
func (c *cluster) until(what string, limit time.Duration, done func() bool) {
	c.t.Helper()
	for end := c.now + limit.Microseconds(); !done(); c.now += c.step {
		if c.now > end {
			c.dump()
			c.t.Fatalf("after %v there is still no %s", limit, what)
		}
		c.tick()
	}
}

// deliver carries messages until there are none.
func (c *cluster) deliver() {
	for _, m := range c.node {
		c.collect(m)
	}
	for n := 0; len(c.inFlight) > 0; n++ {
		m := c.inFlight[0]
		if n > 1000*len(c.node)*len(c.node) {
			c.t.Fatalf("messages go round in circles: %v", c.sent)
		}
		c.inFlight = c.inFlight[1:]
		i := slices.IndexFunc(c.node, func(o *member) bool { return o.cfg.Self.Member == m.To })
		if i < 0 || !c.node[i].up {
			continue
		}
		to := c.node[i]
		if err := to.Step(c.at(to), m); err != nil && !c.lenient {
			c.t.Fatalf("%s from %v to %v: %v", m.Body.Kind(), m.From, m.To, err)
		}
		c.collect(to)
	}
}

// collect takes what a node has to send.
func (c *cluster) collect(from *member) {
	if !from.up {
		return
	}
	r := from.Ready(c.at(from))
	if r.Save != nil {
		from.saved = r.Save
	}
	c.log = append(c.log, r.Log...)
	for _, m := range r.Messages {
		c.sent[m.Body.Kind()]++
		if c.pass == nil {
			c.inFlight = append(c.inFlight, m)
		} else {
			c.inFlight = append(c.inFlight, c.pass(m)...)
		}
	}
}

// join brings a new visitor to m.
func (c *cluster) join(m *member, room string) node.Answer {
	c.t.Helper()
	c.ids++
	c.now += 1000 // else the ids decide who was first
	id := qpid.ItemID{14: byte(c.ids >> 8), 15: byte(c.ids), 0: byte(c.ids * 151)}
	a, err := m.Join(c.at(m), room, id, false)
	if err != nil {
		c.t.Fatal(err)
	}
	c.deliver()
	return a
}

// checkIn follows forwards like a gateway.
func (c *cluster) checkIn(m *member, t node.Ticket) (node.Answer, error) {
	return c.forward(m, func(m *member) (node.Answer, error) { return m.CheckIn(c.at(m), t) })
}

func (c *cluster) leave(m *member, t node.Ticket) (node.Answer, error) {
	return c.forward(m, func(m *member) (node.Answer, error) { return m.Leave(c.at(m), t) })
}

func (c *cluster) refresh(m *member, p node.Pass) (node.Answer, error) {
	return c.forward(m, func(m *member) (node.Answer, error) { return m.Refresh(c.at(m), p) })
}

func (c *cluster) visit(m *member, p node.Pass) (node.Answer, error) {
	return c.forward(m, func(m *member) (node.Answer, error) { return m.Visit(c.at(m), p) })
}

func (c *cluster) end(m *member, p node.Pass) {
	c.t.Helper()
	if _, err := c.forward(m, func(m *member) (node.Answer, error) { return m.End(c.at(m), p) }); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) forward(m *member, ask func(*member) (node.Answer, error)) (a node.Answer, err error) {
	for range 4 {
		a, err = ask(m)
		c.deliver()
		i := slices.IndexFunc(c.node, func(o *member) bool { return o.up && o.cfg.Self.Member == a.Forward })
		if err != nil || i < 0 {
			return a, err
		}
		m = c.node[i]
	}
	c.t.Fatalf("forwarded in a circle: %+v", a)
	return a, err
}

// admitted takes a new visitor of an open room in.
func (c *cluster) admitted(m *member, room string) node.Pass {
	c.t.Helper()
	a := c.join(m, room)
	if a.State != node.Admitted {
		c.t.Fatalf("join at %s: state %v, want admitted; %+v", m.cfg.Self.Name, a.State, c.room(m, room))
	}
	return a.Pass
}

// admitAll lets time pass until everyone has been let in and has left again.
func (c *cluster) admitAll(tickets []node.Ticket, limit time.Duration) {
	c.t.Helper()
	left := slices.Clone(tickets)
	c.until("admission of all", limit, func() bool {
		left = slices.DeleteFunc(left, func(t node.Ticket) bool {
			a, err := c.leave(c.node[0], t)
			if err != nil || a.State != node.Admitted {
				return false
			}
			c.end(c.node[0], a.Pass)
			return true
		})
		return len(left) == 0
	})
}

func (c *cluster) room(m *member, name string) node.RoomStatus {
	c.t.Helper()
	s, ok := m.Room(name, c.at(m))
	if !ok {
		c.t.Fatalf("%s has no room %q", m.cfg.Self.Name, name)
	}
	return s
}

// supply adds up what the nodes that are up own.
func (c *cluster) supply(room string) (owned, used int) {
	for _, m := range c.node {
		if s, ok := m.Room(room, c.at(m)); ok && m.up {
			owned, used = owned+s.Owned, used+s.Used
		}
	}
	return owned, used
}

// count returns how often the log has e.
func (c *cluster) count(e node.Event) int {
	n := 0
	for _, a := range c.log {
		if a.Event == e {
			n++
		}
	}
	return n
}

// entitlements returns who was entitled, in that order: by epoch, then key.
func (c *cluster) entitlements() (order []qpid.Weight) {
	var log []node.Admission
	for _, a := range c.log {
		if a.Event == node.Entitled {
			log = append(log, a)
		}
	}
	slices.SortStableFunc(log, func(a, b node.Admission) int { return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), a.Key.Compare(b.Key)) })
	for _, a := range log {
		order = append(order, a.Weight)
	}
	return order
}

func (c *cluster) dump() {
	for _, m := range c.node {
		c.t.Logf("%s up %v: %+v", m.cfg.Self.Name, m.up, m.Status())
		for _, name := range m.Rooms() {
			c.t.Logf("   %s: %+v", name, c.room(m, name))
		}
	}
}
