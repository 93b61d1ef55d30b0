package membership

import (
	"net"
	"sync"

	"github.com/hashicorp/memberlist"
)

const callersMax = 64 // streams taken in at a time; each lasts up to 2 s and may carry megabytes

// doorman bounds the streams that others may have open to this node. One too
// many is closed at once; its owner tries again in the next round.
type doorman struct {
	memberlist.Transport
	streams chan net.Conn
	closing chan struct{}
	once    sync.Once
	done    sync.WaitGroup
}

var _ memberlist.Transport = (*doorman)(nil)

func newDoorman(t memberlist.Transport) *doorman {
	d := &doorman{Transport: t, streams: make(chan net.Conn), closing: make(chan struct{})}
	d.done.Go(d.run)
	return d
}

func (d *doorman) StreamCh() <-chan net.Conn { return d.streams }

// Shutdown closes the transport while its streams are still taken off it: it
// waits until it has handed over the last one.
func (d *doorman) Shutdown() error {
	err := d.Transport.Shutdown()
	d.once.Do(func() { close(d.closing) })
	d.done.Wait()
	return err
}

func (d *doorman) run() {
	places := make(chan struct{}, callersMax)
	for {
		select {
		case <-d.closing:
			return
		case c := <-d.Transport.StreamCh():
			select {
			case places <- struct{}{}:
			default:
				_ = c.Close() // full, and it is their loss
				continue
			}
			g := &guest{Conn: c, gone: func() { <-places }}
			select {
			case d.streams <- g:
			case <-d.closing:
				_ = g.Close() // nobody reads it any more
				return
			}
		}
	}
}

// guest gives its place back when it is closed.
type guest struct {
	net.Conn
	once sync.Once
	gone func()
}

func (g *guest) Close() error {
	g.once.Do(g.gone)
	return g.Conn.Close()
}
