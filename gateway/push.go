package gateway

import (
	"context"
	_ "embed"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/anteroom/anteroom/internal/peraddress"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/internal/webpush"
	"github.com/anteroom/anteroom/qpid"
)

// A visitor who asks for it is told of the call by the push service of their
// browser, and need not keep the page open: the node that was asked checks in for
// them, as a page would, until the call, and tells them once. It does so for one
// home of the place. If that dies, or this node, the page that is open finds that the
// node it has come to knows nothing of it, and asks again there; where it is closed the
// place is one of somebody silent.
//
// What is sent says that a call has come, and of what or for whom it says nothing.

var (
	//go:embed push.js
	pushJS []byte
	//go:embed pushworker.js
	pushWorkerJS []byte
)

// pushMessage is what every message says; the browser has the words.
const pushMessage = "called"

// pushFor is how long a page that nobody looks at keeps a place by it.
const pushFor = ticketAge

// pushes are the places whose call is told.
type pushes struct {
	mu   sync.Mutex
	open map[pushKey]*push
}

type pushKey struct {
	room string
	id   qpid.ItemID
}

// push is one of them.
type push struct {
	g      *Gateway
	key    pushKey
	addr   netip.Addr // of the visitor
	sub    webpush.Subscription
	answer ticket.Answer // the last one
	end    context.CancelFunc
	closed func() // the address has one the less
}

func (p *pushes) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open)
}

// put takes n in, in the place of an older one of the same place. It reports whether
// there was room.
func (p *pushes) put(n *push, most int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.open[n.key]
	if old == nil && len(p.open) >= most {
		return false
	}
	if old != nil {
		old.end()
	}
	p.open[n.key] = n
	return true
}

// remove forgets n, unless another one is in its place.
func (p *pushes) remove(n *push) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[n.key] == n {
		delete(p.open, n.key)
	}
}

// has reports whether the call of a place is told.
func (p *pushes) has(k pushKey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open[k] != nil
}

// stop has a place told no more.
func (p *pushes) stop(k pushKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.open[k]; old != nil {
		old.end()
		delete(p.open, k)
	}
}

// pushing reports whether the room tells by push, and the node can.
func (c *call) pushing() bool { return c.room.Push && c.g.c.Push != nil }

func noPush() *HTTPError {
	return &HTTPError{Status: 404, Code: "not_found", Title: "Nothing here", Detail: "The room tells nobody by push; it would with push: true, and with push.contact in the configuration of the node."}
}

// apiPush has the call of a place told by push, or no more.
func (c *call) apiPush() error {
	if !c.pushing() {
		return noPush()
	}
	body, err := c.readBody()
	if err != nil {
		return err
	}
	t, err := c.ticket(body, "")
	if err != nil {
		return err
	}
	if body.Push != nil {
		if err := c.g.c.Push.Check(*body.Push); errors.Is(err, webpush.ErrKey) {
			return &HTTPError{Status: 409, Code: "push_key_unknown", Title: "The subscription is for another key", Detail: "It was made for a key that is none of this cluster, or none any more. Load push.js again and subscribe anew."}
		} else if err != nil {
			return invalid("The subscription is of no use: " + err.Error() + ".")
		}
	}
	a, err := c.do(ticket.Request{Op: ticket.CheckIn, Room: c.room.Name, Ticket: t})
	if err != nil {
		return err
	}
	if c.from == fromCookie {
		if err := c.keep(a); err != nil {
			return err
		}
	}
	switch {
	case body.Push == nil:
		c.g.pushes.stop(pushKey{c.room.Name, a.Ticket.ID})
	case a.State != ticket.Admitted:
		if err := c.push(*body.Push, a); err != nil {
			return err
		}
	}
	return c.tell(http.StatusOK, a)
}

// apiPushed says whether this node would tell the call of a place. It is no check-in.
func (c *call) apiPushed() error {
	if !c.pushing() {
		return noPush()
	}
	t, err := c.ticket(sealed{}, c.r.URL.Query().Get("ticket"))
	if err != nil {
		return err
	}
	c.w.Header()["Cache-Control"] = c.g.noStore
	return writeJSON(c.w, c.r, http.StatusOK, Pushed{c.g.pushes.has(pushKey{c.room.Name, t.ID})})
}

// Pushed is whether the node that was asked would tell the call of a place.
type Pushed struct {
	Pushed bool `json:"pushed"`
}

// push begins to look for the call of who got the answer a.
func (c *call) push(sub webpush.Subscription, a ticket.Answer) error {
	closed, err := c.g.c.Addresses.Stream(c.room.Name, c.client.addr)
	if err != nil {
		return err
	}
	ctx, end := context.WithTimeout(context.Background(), pushFor)
	p := &push{g: c.g, key: pushKey{c.room.Name, a.Ticket.ID}, addr: c.client.addr, sub: sub, answer: a, end: end, closed: closed}
	if !c.g.pushes.put(p, c.g.c.Bounds.Pushes) {
		end()
		closed()
		c.g.metrics.shed.Inc()
		return tooMany(60)
	}
	go p.run(ctx)
	return nil
}

// run ends with the place, when the call was told, or with the gateway.
func (p *push) run(ctx context.Context) {
	defer p.closed()
	defer p.g.pushes.remove(p)
	defer p.end()
	news, unwatch := p.g.c.Queue.Called(p.key.room, p.key.id)
	defer unwatch()
	if !p.ask(ctx) { // what happened before there was a watch
		return
	}
	for p.waits() {
		if news = p.pause(ctx, news, max(p.answer.Refresh, time.Second)); ctx.Err() != nil || !p.ask(ctx) {
			return
		}
	}
	if p.answer.State != ticket.Called {
		return
	}
	p.pause(ctx, nil, p.g.c.Bounds.PushAfter) // a page that is open goes in by itself
	if !p.ask(ctx) || p.answer.State != ticket.Called {
		return
	}
	state, ok := p.g.c.Queue.Room(p.key.room)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, state.Room.ToldClaim()-p.g.c.Bounds.PushAfter)
	defer cancel()
	if err := p.g.c.Push.Send(ctx, p.sub, []byte(pushMessage)); err != nil {
		p.g.c.Logger.LogAttrs(ctx, slog.LevelDebug, "somebody was not told of their call by push",
			slog.String("room", p.key.room), slog.String("error", err.Error()))
	}
}

// waits reports whether there is a call to be looked for.
func (p *push) waits() bool {
	room := p.g.rooms.Load().byName[p.key.room]
	return p.answer.State == ticket.Waiting && p.answer.Ticket.ID == p.key.id && room != nil && room.Push
}

// pause waits for news of the place, for at most d. It returns where to wait for the
// next: two streams that are newer end it, and then there is only the clock.
func (p *push) pause(ctx context.Context, news <-chan struct{}, d time.Duration) <-chan struct{} {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case _, open := <-news:
		if !open {
			return nil
		}
	case <-t.C:
	case <-p.g.closing:
		p.end()
	case <-ctx.Done():
	}
	return news
}

// ask checks the place in. It reports whether that is there, and where it was.
func (p *push) ask(ctx context.Context) bool {
	for {
		state, ok := p.g.c.Queue.Room(p.key.room)
		if !ok {
			return false
		}
		q := ticket.Request{Op: ticket.CheckIn, Room: p.key.room, Ticket: p.answer.Ticket}
		a, err := p.g.c.Addresses.Do(ctx, peraddress.Visitor{Addr: p.addr, Room: &state}, q, p.g.ask)
		switch {
		case err == nil:
			moved := a.Ticket.Home != p.answer.Ticket.Home
			p.answer = a
			return !moved
		case !errors.Is(err, ticket.ErrBusy) && !errors.Is(err, ticket.ErrUnavailable) || ctx.Err() != nil:
			return false
		}
		p.pause(ctx, nil, 2*time.Second)
	}
}

// ownPush is the script of the page, with the key by which browsers know this
// cluster.
func (c *call) ownPush() error {
	if !c.pushing() {
		return noPush()
	}
	key := c.g.c.Push.PublicKey()
	if key == "" {
		return noKeys(errors.New("gateway: no key for push"))
	}
	c.writeScript(append(append([]byte(nil), pushJS...), "("+strconv.Quote(key)+");\n"...))
	return nil
}

// ownPushWorker is the script that the browser runs when a message comes.
func (c *call) ownPushWorker() error {
	if !c.pushing() {
		return noPush()
	}
	c.writeScript(pushWorkerJS)
	return nil
}

func (c *call) writeScript(b []byte) {
	h := c.w.Header()
	h.Set("Content-Type", "text/javascript; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	h.Set("Content-Security-Policy", "default-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method != http.MethodHead {
		_, _ = c.w.Write(b)
	}
}
