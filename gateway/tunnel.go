package gateway

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/internal/ticket"
)

// A connection that was upgraded is a tunnel: bytes go both ways, and nobody looks
// at them. It lasts no longer than what let it through: the pass, or the room's
// being suspended, or the bypass rule. A tunnel has no cookie to renew, but what
// its visitor sends is activity like a request: it extends the visit where
// session_renewal lets requests do so. What the origin sends does not.

// tunnelsMax is how many tunnels of one visit may be open at a node. More get 429.
const tunnelsMax = 50

// tunnels are those of visits, so that they end with it.
type tunnels struct {
	mu   sync.Mutex
	open map[sessionKey][]*tunnel // bounded by the connections that visitors may have
}

// tunnel is one connection.
type tunnel struct {
	call  call // a copy, of what is asked again and again
	pass  ticket.Pass
	in    bool // it has a pass
	key   sessionKey
	sent  atomic.Bool // the visitor sent something since we looked
	close context.CancelFunc
}

// upgrade is the protocol that the visitor's connection shall change to, if the
// room allows it; empty: none.
func (c *call) upgrade(st standing) string {
	wanted := c.r.Header["Upgrade"]
	if len(wanted) != 1 || st.preflight || st.several {
		return ""
	}
	if slices.ContainsFunc(c.room.Upgrades, func(p string) bool { return strings.EqualFold(p, wanted[0]) }) {
		return wanted[0]
	}
	return ""
}

// tunnel readies one for a request that asks for an upgrade. Its context is done
// when the tunnel must end.
func (c *call) tunnel(st standing) (*tunnel, context.Context, error) {
	ctx, cancel := context.WithCancel(c.ctx())
	t := &tunnel{call: *c, pass: st.session.pass, in: st.in, close: cancel}
	if !st.in {
		return t, ctx, nil
	}
	t.key = keyOf(t.pass)
	of := &c.g.tunnels
	of.mu.Lock()
	defer of.mu.Unlock()
	if len(of.open[t.key]) >= tunnelsMax {
		cancel()
		return nil, nil, tooMany(10)
	}
	of.open[t.key] = append(of.open[t.key], t)
	return t, ctx, nil
}

// ended is called when it is over, whether the origin took it or not.
func (t *tunnel) ended() {
	t.close()
	if !t.in {
		return
	}
	of := &t.call.g.tunnels
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.open[t.key] = slices.DeleteFunc(of.open[t.key], func(o *tunnel) bool { return o == t }); len(of.open[t.key]) == 0 {
		delete(of.open, t.key)
	}
}

// end closes the tunnels of a visit that is over.
func (t *tunnels) end(p ticket.Pass) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range t.open[keyOf(p)] {
		o.close()
	}
}

// watch closes the tunnel when what let it through holds no more. It looks as
// often as requests of one visit make us ask its home.
func (t *tunnel) watch(ctx context.Context) {
	look := time.NewTicker(t.call.g.c.Bounds.Recheck)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if !t.holds(ctx) {
			t.close()
			return
		}
	}
}

// holds reports whether the visitor may go on.
func (t *tunnel) holds(ctx context.Context) bool {
	g := t.call.g
	room := g.rooms.Load().byName[t.call.room.Name]
	if room == nil || room.Origin == nil && t.call.site == nil {
		return false
	}
	c := t.call
	c.room = room
	if room.Suspended || c.rule(asked{c.r.Method, c.r.URL, c.client.addr}) {
		return true
	}
	st, known := g.c.Queue.Room(room.Name)
	if !known || !t.in {
		return known && t.in
	}
	if g.c.Queue.Clock() >= t.pass.Expires { // somebody else may have extended it
		t.pass = g.sessions.newest(t.pass)
	}
	s, err := g.visited(ctx, st, t.pass, t.sent.Swap(false))
	switch {
	case err == nil:
		t.pass = s.pass
		return true
	case over(err):
		return false
	}
	// Nobody can tell just now. The pass says how long it is good.
	return ctx.Err() == nil && g.c.Queue.Clock() < t.pass.Expires
}

// hijacked is the visitor's connection, which tells when something comes.
type hijacked struct {
	net.Conn
	sent *atomic.Bool
}

func (h hijacked) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	if n > 0 && !h.sent.Load() {
		h.sent.Store(true)
	}
	return n, err
}

// CloseWrite passes on that the origin's half is over.
func (h hijacked) CloseWrite() error {
	if w, ok := h.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}
