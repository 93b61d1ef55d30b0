package auth

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// recordHandshake is the first byte of a TLS connection. HTTP/2 without TLS
// begins with another, the P of its preface.
const recordHandshake = 22

// What a caller without TLS may say, and how long it may stay. One call and its
// answer fit, however large the call: of its message a client sends 64 KiB before
// it hears anything.
const (
	strangerBytes  = 128 << 10
	strangerStay   = 5 * time.Second
	strangerListen = 500 * time.Millisecond // for the answer, when it has said enough
)

// sniffer speaks TLS to who begins with it and plain HTTP/2 to all others, who
// are strangers.
type sniffer struct {
	credentials.TransportCredentials
}

// ServerHandshake waits for the first byte. The deadline of c is the server's
// ConnectionTimeout.
func (s sniffer) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	first := make([]byte, 1)
	if _, err := c.Read(first); err != nil {
		return nil, nil, err
	}
	c = &begun{Conn: c, first: first}
	if first[0] == recordHandshake {
		return s.TransportCredentials.ServerHandshake(c)
	}
	return insecure.NewCredentials().ServerHandshake(newStranger(c))
}

func (s sniffer) Clone() credentials.TransportCredentials {
	return sniffer{s.TransportCredentials.Clone()}
}

// begun is a connection of which the first byte was read already.
type begun struct {
	net.Conn
	first []byte // not yet read again
}

func (c *begun) Read(p []byte) (int, error) {
	if len(c.first) > 0 && len(p) > 0 {
		n := copy(p, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// stranger is a connection of somebody who proves nothing: it ends soon.
type stranger struct {
	net.Conn
	left   int // bytes that it may still say; read by one goroutine at a time
	over   *time.Timer
	closed chan struct{}
	once   sync.Once
}

func newStranger(c net.Conn) *stranger {
	s := &stranger{Conn: c, left: strangerBytes, closed: make(chan struct{})}
	s.over = time.AfterFunc(strangerStay, func() { _ = s.end() })
	return s
}

// Read hears no more once enough was said. What was answered still goes out.
func (s *stranger) Read(p []byte) (int, error) {
	if s.left <= 0 {
		if s.over.Stop() {
			s.over.Reset(strangerListen)
		}
		<-s.closed
		return 0, io.EOF
	}
	n, err := s.Conn.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

func (s *stranger) Close() error {
	s.over.Stop()
	return s.end()
}

func (s *stranger) end() (err error) {
	s.once.Do(func() { close(s.closed); err = s.Conn.Close() })
	return err
}

// nobody are the credentials of a node that has no peers: it neither calls nor
// is called.
type nobody struct{}

func (nobody) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errAlone
}

func (nobody) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errAlone
}

func (nobody) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "none"}
}
func (nobody) Clone() credentials.TransportCredentials { return nobody{} }
func (nobody) OverrideServerName(string) error         { return nil }
