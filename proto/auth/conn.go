package auth

import (
	"context"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// recordHandshake is the first byte of a TLS connection. HTTP/2 without TLS
// begins with another, the P of its preface.
const recordHandshake = 22

// sniffer speaks TLS to who begins with it and plain HTTP/2 to all others.
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
	return insecure.NewCredentials().ServerHandshake(c)
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

// loopbackOnly are the credentials of a caller who has none, and so tells
// nothing to another machine.
type loopbackOnly struct {
	credentials.TransportCredentials
}

func (l loopbackOnly) ClientHandshake(ctx context.Context, name string, c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if err := onLoopback(c.RemoteAddr()); err != nil {
		return nil, nil, err
	}
	return l.TransportCredentials.ClientHandshake(ctx, name, c)
}

func (l loopbackOnly) Clone() credentials.TransportCredentials {
	return loopbackOnly{l.TransportCredentials.Clone()}
}
