package membership_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// wire is a network in memory. A packet that finds no room is dropped, so that
// a node which does not read holds nobody up.
type wire struct {
	mu    sync.Mutex
	ports map[string]*port
	cut   func(from, to string) bool // true: nothing gets through
	tap   func(packet []byte)        // sees all packets
	next  int
}

func newWire() *wire { return &wire{ports: make(map[string]*port)} }

// partition cuts the wire between addresses for which side differs; nil heals it.
func (w *wire) partition(side func(addr string) int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = nil
	if side != nil {
		w.cut = func(from, to string) bool { return side(from) != side(to) }
	}
}

// mute loses all that one node sends, and nothing that it is sent.
func (w *wire) mute(p *port) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = func(from, _ string) bool { return from == p.at.String() }
}

// open plugs a node in, at the given address or a new one.
func (w *wire) open(addr string) *port {
	w.mu.Lock()
	defer w.mu.Unlock()
	if addr == "" {
		w.next++
		addr = fmt.Sprintf("10.0.0.%d:7946", w.next)
	}
	p := &port{wire: w, at: netip.MustParseAddrPort(addr), packets: make(chan *memberlist.Packet, 512), streams: make(chan net.Conn, 16)}
	w.ports[addr] = p
	return p
}

// reach returns the port at an address, nil if there is no way from the other.
func (w *wire) reach(from *port, to string) *port {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ports[from.at.String()] != from || w.cut != nil && w.cut(from.at.String(), to) {
		return nil
	}
	if p := w.ports[to]; p != nil && !p.deaf {
		return p
	}
	return nil
}

// hears has a node hear what it is sent, or not.
func (w *wire) hears(p *port, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.deaf = !is
}

// kill unplugs a node, which does not notice.
func (w *wire) kill(p *port) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ports[p.at.String()] == p {
		delete(w.ports, p.at.String())
	}
}

// port is a node's end of the wire.
type port struct {
	wire    *wire
	at      netip.AddrPort
	packets chan *memberlist.Packet
	streams chan net.Conn
	deaf    bool // guarded by wire.mu
}

var _ memberlist.Transport = (*port)(nil)

func (p *port) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return p.at.Addr().AsSlice(), int(p.at.Port()), nil
}

func (p *port) WriteTo(b []byte, addr string) (time.Time, error) {
	now := time.Now()
	p.wire.mu.Lock()
	tap := p.wire.tap
	p.wire.mu.Unlock()
	if tap != nil {
		tap(append([]byte(nil), b...))
	}
	if to := p.wire.reach(p, addr); to != nil {
		select {
		case to.packets <- &memberlist.Packet{Buf: append([]byte(nil), b...), From: net.UDPAddrFromAddrPort(p.at), Timestamp: now}:
		default:
		}
	}
	return now, nil
}

func (p *port) PacketCh() <-chan *memberlist.Packet { return p.packets }

func (p *port) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	to := p.wire.reach(p, addr)
	if to == nil || p.wire.reach(to, p.at.String()) == nil { // a stream needs both ways
		<-time.After(timeout) // as if what was sent were lost
		return nil, errors.New("dial " + addr + ": timeout")
	}
	here, there := net.Pipe()
	select {
	case to.streams <- there:
		return here, nil
	default:
		return nil, errors.New("dial " + addr + ": refused")
	}
}

func (p *port) StreamCh() <-chan net.Conn { return p.streams }

func (p *port) Shutdown() error {
	p.wire.kill(p)
	return nil
}

var errBroken = errors.New("no cable")

// broken is a transport that does not come up.
type broken struct{ *port }

func (broken) FinalAdvertiseAddr(string, int) (net.IP, int, error) { return nil, 0, errBroken }

// stuck is a transport that does not come down before it is released.
type stuck struct {
	*port
	release <-chan struct{}
}

func (s stuck) Shutdown() error {
	<-s.release
	return s.port.Shutdown()
}
