package membership

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/memberlist"
)

const (
	streamsMax = 64      // taken in at a time; each lasts up to 2 s
	fromOneMax = 32      // of them, from one address: several nodes may share it
	streamMax  = 4 << 20 // bytes of one; all there is to say about namesMax names is less than 1 MiB
)

var errLongStream = errors.New("a stream longer than all there is to say")

// streamLimiter bounds the streams that others may have open to this node, and
// what each may say: anyone who reaches the port may begin one, and memberlist
// reads all of it before it knows whether it was sealed with a key. One too many
// is closed at once; its owner tries again in the next round.
//
// It is deaf until listen is called, after memberlist has entered this life of the node
// in its table. If word of an earlier life came first, that would be entered, and told
// to others for good: memberlist v0.7.0 begins to listen before. Gossip that is lost
// comes again.
type streamLimiter struct {
	memberlist.Transport
	packets chan *memberlist.Packet
	streams chan net.Conn
	hears   atomic.Bool
	closing chan struct{}
	once    sync.Once
	done    sync.WaitGroup

	mu   sync.Mutex
	open int
	from map[netip.Addr]int
}

var _ memberlist.Transport = (*streamLimiter)(nil)

func limitStreams(t memberlist.Transport) *streamLimiter {
	l := &streamLimiter{
		Transport: t, packets: make(chan *memberlist.Packet), streams: make(chan net.Conn), closing: make(chan struct{}), from: make(map[netip.Addr]int),
	}
	l.done.Go(l.run)
	l.done.Go(l.pass)
	return l
}

// listen ends the deafness.
func (l *streamLimiter) listen() { l.hears.Store(true) }

func (l *streamLimiter) PacketCh() <-chan *memberlist.Packet { return l.packets }
func (l *streamLimiter) StreamCh() <-chan net.Conn           { return l.streams }

// Shutdown closes the transport while its streams are still taken off it: it
// waits until it has handed over the last one.
func (l *streamLimiter) Shutdown() error {
	err := l.Transport.Shutdown()
	l.once.Do(func() { close(l.closing) })
	l.done.Wait()
	return err
}

// pass hands packets on.
func (l *streamLimiter) pass() {
	for {
		select {
		case <-l.closing:
			return
		case p := <-l.Transport.PacketCh():
			if !l.hears.Load() {
				continue
			}
			select {
			case l.packets <- p:
			case <-l.closing:
				return
			}
		}
	}
}

func (l *streamLimiter) run() {
	for {
		select {
		case <-l.closing:
			return
		case c := <-l.Transport.StreamCh():
			if !l.hears.Load() {
				_ = c.Close() // its owner tries again
				continue
			}
			s := l.admit(c)
			if s == nil {
				_ = c.Close() // full, and it is their loss
				continue
			}
			select {
			case l.streams <- s:
			case <-l.closing:
				_ = s.Close() // nobody reads it any more
				return
			}
		}
	}
}

// admit gives c a place, nil if there is none.
func (l *streamLimiter) admit(c net.Conn) *stream {
	from := addrOf(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= streamsMax || from.IsValid() && l.from[from] >= fromOneMax {
		return nil
	}
	l.open++
	l.from[from]++
	return &stream{Conn: c, limiter: l, from: from, left: streamMax}
}

// addrOf is where c comes from; not valid if that is no address.
func addrOf(c net.Conn) netip.Addr {
	p, _ := netip.ParseAddrPort(c.RemoteAddr().String())
	return p.Addr().Unmap().WithZone("")
}

// stream is a connection that has a place until it is closed.
type stream struct {
	net.Conn
	limiter *streamLimiter
	from    netip.Addr
	left    int // bytes that it may still say; read by one goroutine at a time
	once    sync.Once
}

func (s *stream) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, errLongStream
	}
	n, err := s.Conn.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

func (s *stream) Close() error {
	s.once.Do(func() {
		l := s.limiter
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open--
		l.from[s.from]--
		if l.from[s.from] == 0 {
			delete(l.from, s.from)
		}
	})
	return s.Conn.Close()
}
