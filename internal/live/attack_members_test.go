package live

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/membership"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/auth"
)

// forger gossips from another machine, as whoever the test likes.
type forger struct {
	s       *stranger
	at      netip.AddrPort
	udp     net.PacketConn
	tcp     net.Listener
	packets chan *memberlist.Packet
	streams chan net.Conn
}

var _ memberlist.Transport = (*forger)(nil)

func newForger(s *stranger, at netip.AddrPort) *forger {
	f := &forger{
		s: s, at: at, udp: s.packets(at.Addr(), int(at.Port())), tcp: s.listen(at.Addr(), int(at.Port())),
		packets: make(chan *memberlist.Packet, 64), streams: make(chan net.Conn, 64),
	}
	go func() { // until the test closes its sockets
		for {
			b := make([]byte, 64<<10)
			n, from, err := f.udp.ReadFrom(b)
			if err != nil {
				return
			}
			select {
			case f.packets <- &memberlist.Packet{Buf: b[:n], From: from, Timestamp: time.Now()}:
			default:
			}
		}
	}()
	go func() {
		for {
			c, err := f.tcp.Accept()
			if err != nil {
				return
			}
			select {
			case f.streams <- c:
			default:
				_ = c.Close()
			}
		}
	}()
	return f
}

func (f *forger) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return f.at.Addr().AsSlice(), int(f.at.Port()), nil
}

func (f *forger) WriteTo(b []byte, to string) (time.Time, error) {
	at, err := netip.ParseAddrPort(to)
	if err == nil {
		_, err = f.udp.WriteTo(b, net.UDPAddrFromAddrPort(at))
	}
	return time.Now(), err
}

func (f *forger) DialTimeout(to string, within time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(f.s.t.Context(), within)
	defer cancel()
	return f.s.dial(f.at.Addr())(ctx, "tcp", to)
}

func (f *forger) PacketCh() <-chan *memberlist.Packet { return f.packets }
func (f *forger) StreamCh() <-chan net.Conn           { return f.streams }
func (f *forger) Shutdown() error                     { return nil }

// claim is what a forger says of itself: which life it is, and that its peer
// service is where it gossips.
type claim struct {
	memberlist.Delegate
	begun uint64
}

func (c claim) NodeMeta(int) []byte {
	b := binary.BigEndian.AppendUint64([]byte{1, membership.Protocol}, 7)
	b = binary.BigEndian.AppendUint64(b, c.begun)
	return append(append(b, byte(len(":7001"))), ":7001"...)
}

func (claim) NotifyMsg([]byte)                {}
func (claim) GetBroadcasts(int, int) [][]byte { return nil }
func (claim) LocalState(bool) []byte          { return nil }
func (claim) MergeRemoteState([]byte, bool)   {}

// forge gossips under a node's name to all nodes, until the test is over.
func (c *cluster) forge(f *forger, name string, begun uint64, key []byte) {
	c.t.Helper()
	conf := memberlist.DefaultLANConfig()
	conf.Name, conf.Transport, conf.Delegate, conf.LogOutput = name, f, claim{begun: begun}, io.Discard
	conf.ProbeInterval, conf.GossipInterval, conf.PushPullInterval = 200*time.Millisecond, 50*time.Millisecond, time.Second
	conf.SecretKey = key
	list, err := memberlist.Create(conf)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = list.Shutdown() })
	for _, p := range c.nodes {
		_, _ = list.Join([]string{p.gossip()}) // who has not the key is not heard
	}
}

// holds reports whether all nodes run, see each other and nobody else, and are
// the lives that they were.
func (c *cluster) holds(boots map[string]string) bool {
	for _, p := range c.nodes {
		s := p.cluster()
		if !p.running() || len(s.Members) != len(boots) {
			return false
		}
		for _, m := range s.Members {
			if boots[m.Name] != m.Boot {
				return false
			}
		}
	}
	return true
}

func boots(s admin.Cluster) map[string]string {
	all := map[string]string{}
	for _, m := range s.Members {
		all[m.Name] = m.Boot
	}
	return all
}

// Gossip that claims a node's name, as an earlier life or a later one, ends
// nobody and takes nobody out of a view: not without a key, nor with another one,
// nor with the right one, as a packet that was recorded has it. People go on
// being let in.
func TestForgedGossipEndsNobody(t *testing.T) {
	t.Parallel()
	s := newStranger(t)
	c := newCluster(t, 10)
	c.open(s)
	c.run(3)
	lives := boots(c.nodes[0].cluster())
	key, err := base64.StdEncoding.DecodeString(c.secret)
	if err != nil {
		t.Fatal(err)
	}
	crowd, done := c.crowd(40, 4*time.Second, time.Second, 7)
	port := 7900
	for what, key := range map[string][]byte{"no key": nil, "another key": bytes.Repeat([]byte{1}, 32), "the key": key} {
		for _, name := range []string{"node-1", "node-2"} {
			for _, begun := range []uint64{1, 1 << 60} {
				port++
				c.forge(newForger(s, netip.AddrPortFrom(s.addr(port%100+10), uint16(port))), name, begun, key)
			}
		}
		c.phase("forge gossip of node-1 and node-2 with %s", what)
	}
	c.stays("the three that there were", 8*time.Second, func() bool { return c.holds(lives) })
	if err := <-done; err != nil {
		t.Errorf("%d of 40 people were not let in: %v", crowd.Counts().Lost, err)
	}
	if !c.holds(lives) {
		t.Error("a node has ended, or somebody else is a member")
	}
	for _, p := range c.nodes[:2] {
		if log := p.log.String(); !strings.Contains(log, "another process uses this node's name") || !strings.Contains(log, s.addr(0).String()[:7]) {
			t.Errorf("%s does not log who uses its name:\n%s", p.id, log)
		}
	}
	if log := c.nodes[0].log.String(); strings.Contains(log, c.secret) {
		t.Error("the key is in the log")
	}
}

// A second process under the name of a node that answers is refused, and both
// say where the other is. When the first one is silent the second takes over.
func TestSecondProcessOfANameIsRefusedUntilTheFirstIsSilent(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 10)
	c.run(3)
	lives, first := boots(c.nodes[0].cluster()), c.nodes[1]
	second := &process{c: c, id: first.id, port: freePorts(t), log: &journal{}}
	t.Cleanup(func() {
		if second.kill(); t.Failed() {
			t.Logf("the second %s:\n%s", second.id, second.log)
		}
	})
	second.joinBare(c.nodes[0])
	c.phase("start another process as %s", first.id)
	c.await("end of the second one", 10*time.Second, func() bool { return !second.running() })
	if code := second.cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("it ended with exit code %d, want 1", code)
	}
	if log := second.log.String(); !strings.Contains(log, "the name is taken") || !strings.Contains(log, first.at(2)) || !strings.Contains(log, first.gossip()) {
		t.Errorf("it does not say who has the name (%s, %s):\n%s", first.at(2), first.gossip(), log)
	}
	if log := first.log.String(); !strings.Contains(log, "another process uses this node's name") || !strings.Contains(log, second.gossip()) {
		t.Errorf("the first one does not say who else uses its name (%s):\n%s", second.gossip(), log)
	}
	c.stays("the three that there were", 2*time.Second, func() bool { return c.holds(lives) })

	first.signal(syscall.SIGSTOP)
	second.joinBare(c.nodes[0])
	c.phase("stop the first one, start the second again")
	c.until("second one in the waves", 25*time.Second, func() bool {
		for _, m := range c.nodes[0].cluster().Members {
			if m.Name == first.id && m.Address == second.at(2) && m.InWave {
				return true
			}
		}
		return false
	})
	first.kill()
	second.enter("")
}

// Who runs a program on a node's machine and has no key gets nothing from its
// peer port: no signing keys, no messages, no answer to a visitor's request.
func TestLocalUserWithoutTheKeyGetsNoSigningKeys(t *testing.T) {
	c := newCluster(t, 10)
	c.run(2)
	cert, key, _ := c.certificate("127.0.0.1")
	own, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	lives := boots(c.nodes[0].cluster())
	member := func(name string) *peerv1.Member {
		m := &peerv1.Member{Name: name}
		if _, err := fmt.Sscan(lives[name], &m.Boot); err != nil {
			t.Fatal(err)
		}
		return m
	}
	to, from := member("node-1"), member("node-2") // as a member would say
	for what, with := range map[string]credentials.TransportCredentials{
		"nothing":                   insecure.NewCredentials(),
		"TLS without a certificate": credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}),
		"a key of its own":          credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{own}}), // which takes any answer
	} {
		conn, err := grpc.NewClient(c.nodes[0].at(2), grpc.WithTransportCredentials(with))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		client := peerv1.NewPeerClient(conn)
		if stream, err := client.Link(ctx); err == nil {
			_ = stream.Send(&peerv1.LinkRequest{Kind: &peerv1.LinkRequest_Hello{Hello: &peerv1.Hello{From: from, To: to}}})
			if r, err := stream.Recv(); err == nil {
				t.Errorf("%s: the node says %v", what, r)
			}
		}
		if r, err := client.Identify(ctx, &peerv1.IdentifyRequest{From: &peerv1.PeerInfo{Member: from, Start: 1}}); err == nil {
			t.Errorf("%s: the node says that it is %v", what, r)
		}
		q := &peerv1.ForwardRequest{To: to, Request: &peerv1.Request{Op: peerv1.Op_OP_JOIN, Room: "shop"}}
		if r, err := client.Forward(ctx, q); err == nil {
			t.Errorf("%s: a request is answered: %v", what, r)
		}
		cancel()
		_ = conn.Close()
	}
	if !c.holds(lives) {
		t.Error("the nodes are no longer those that there were")
	}
}

// Without a key a node is a cluster of one that opens nothing to other nodes, and
// it is told to join nobody.
func TestNodeWithoutAKeyOpensNothingToOthers(t *testing.T) {
	c := newCluster(t, 10)
	c.secret = ""
	c.add().join(1)
	c.serving(1)
	p := c.nodes[0]
	for _, port := range []int{2, 3} {
		if conn, err := net.Dial("tcp", p.at(port)); err == nil {
			_ = conn.Close()
			t.Errorf("%s is open", p.at(port))
		}
		udp, err := net.ListenPacket("udp", p.at(port))
		if err != nil {
			t.Errorf("%s: %v", p.at(port), err)
			continue
		}
		_ = udp.Close()
	}
	if log := p.log.String(); !strings.Contains(log, "node.peer: "+p.at(2)+" is not opened") || !strings.Contains(log, "node.gossip: "+p.at(3)+" is not opened") {
		t.Errorf("it does not warn of the ports that it was told to open:\n%s", log)
	}
	p.enter("")
	other := &process{c: c, id: "node-2", port: freePorts(t), log: &journal{}}
	other.joinBare(p)
	c.await("end of a node that is to join without a key", 5*time.Second, func() bool { return !other.running() })
	if log := other.log.String(); other.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(log, "anteroom keys cluster --out cluster.key") {
		t.Errorf("exit code %d:\n%s", other.cmd.ProcessState.ExitCode(), log)
	}
}

// settled waits until n nodes serve and some waves have gone over all of them, as
// an operator does between two restarts.
func (c *cluster) settled(n int) {
	c.t.Helper()
	first := uint64(0)
	c.await(fmt.Sprintf("waves of all %d nodes", n), 30*time.Second, func() bool {
		wave := c.nodes[0].cluster().Epoch
		if !c.inWaves(n) {
			return false
		}
		if first == 0 {
			first = wave
		}
		return wave >= first+3
	})
}

// The key of a cluster is exchanged for another one while people queue: each node
// in turn gets the new one, then has it first, then has it alone. No node is left
// out in between, and in the end the old key is worth nothing.
func TestClusterKeyIsExchangedUnderACrowd(t *testing.T) {
	c := newCluster(t, 10)
	before, after := newSecret(), newSecret()
	c.secret, c.data, c.session = "", true, 3*time.Second
	keys := func(p *process, lines ...string) {
		name := c.file(p.id + ".key")
		if err := os.WriteFile(name, []byte("# the cluster's\n"+strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c.security = "  gossip_key_file: " + name + "\n"
	}
	for range 3 {
		c.add()
	}
	for _, p := range c.nodes {
		keys(p, before)
		p.start(3)
	}
	c.serving(3)
	crowd, done := c.crowd(30, 15*time.Second, time.Second, 8)
	for _, list := range [][]string{{before, after}, {after, before}, {after}} {
		for _, p := range c.nodes {
			p.signal(syscall.SIGTERM)
			c.await("end of "+p.id, 10*time.Second, func() bool { return !p.running() })
			keys(p, list...)
			p.start(0)
			c.settled(3)
		}
		c.phase("all nodes have been restarted with %d keys", len(list))
	}
	err := <-done
	c.fair(crowd, err, 0)

	for secret, ok := range map[string]bool{before: false, after: true} {
		key, err := base64.StdEncoding.DecodeString(secret)
		if err != nil {
			t.Fatal(err)
		}
		policy, err := auth.GossipKey(key)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := grpc.NewClient(c.nodes[0].at(2), grpc.WithTransportCredentials(policy.Client()))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		q := &peerv1.IdentifyRequest{From: &peerv1.PeerInfo{Member: &peerv1.Member{Name: "x", Boot: 1}, Start: 1}}
		if r, err := peerv1.NewPeerClient(conn).Identify(ctx, q); (err == nil) != ok {
			t.Errorf("whoever has the new key is a member, the old one is not: %v, %v", r, err)
		}
		cancel()
		_ = conn.Close()
	}
	for _, p := range c.nodes {
		if log := p.log.String(); strings.Contains(log, before) || strings.Contains(log, after) || strings.Contains(log, "under another key") {
			t.Errorf("%s: a key is in the log, or two nodes did not know each other:\n%s", p.id, log)
		}
	}
}
