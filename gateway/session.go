package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// sessions remembers passes that their homes have just confirmed, so that
// requests of people on the site ask nobody and sign nothing.
type sessions struct {
	recheck int64 // µs
	mu      sync.Mutex
	seen    *lru[sessionKey, session]
}

// sessionKey names a session: renewed passes of one have the same.
type sessionKey struct {
	room string
	id   qpid.ItemID
	home eviction.Account
}

type session struct {
	pass    ticket.Pass // the newest
	jwt     string      // of pass; empty until an origin wants it
	checked int64       // pass time at which the home was asked last
	active  bool        // there was a request since
}

func keyOf(p ticket.Pass) sessionKey { return sessionKey{p.Room, p.ID, p.Home} }

func newSessions(most int, recheck time.Duration) *sessions {
	return &sessions{recheck: recheck.Microseconds(), seen: newLRU[sessionKey, session](max(1, most))}
}

// fresh returns the newest pass of p's session if the home confirmed it a
// moment ago. If not, the caller asks, as somebody who is active if the session
// says so; others who come meanwhile go by what is known.
func (s *sessions) fresh(p ticket.Pass, now int64, active bool) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.seen.at(keyOf(p))
	if v == nil || v.pass.Expires < p.Expires || now >= v.pass.Expires {
		return session{pass: p, active: active}, false
	}
	v.active = v.active || active
	if now-v.checked >= s.recheck {
		asked := *v
		v.checked, v.active = now, false
		return asked, false
	}
	return *v, true
}

// confirm remembers that p is good at time now, and returns the session.
func (s *sessions) confirm(p ticket.Pass, now int64) session {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.seen.at(keyOf(p))
	if v == nil || v.pass.Expires < p.Expires {
		s.seen.put(keyOf(p), session{pass: p})
		v = s.seen.at(keyOf(p))
	}
	v.checked = now
	return *v
}

func (s *sessions) signed(p ticket.Pass, jwt string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.seen.at(keyOf(p)); v != nil && v.pass == p {
		v.jwt = jwt
	}
}

func (s *sessions) forget(p ticket.Pass) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.remove(keyOf(p))
}

// newest returns the newest pass of p's session that is known here.
func (s *sessions) newest(p ticket.Pass) ticket.Pass {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.seen.at(keyOf(p)); v != nil && v.pass.Expires > p.Expires {
		return v.pass
	}
	return p
}

// session finds out whether p lets its bearer onto the site now, and returns
// the newest pass of its session, renewed when less than two thirds are left.
// While the queue is too busy to be asked, an unexpired pass is good.
func (g *Gateway) session(ctx context.Context, st RoomState, p ticket.Pass) (session, error) {
	if g.c.Queue.Clock() >= p.Expires {
		p = g.sessions.newest(p) // a tunnel may have extended it, which cannot set a cookie
	}
	return g.visited(ctx, st, p, true)
}

// visited is session for somebody who may just be there, and not active: that
// extends nothing.
func (g *Gateway) visited(ctx context.Context, st RoomState, p ticket.Pass, active bool) (session, error) {
	now := g.c.Queue.Clock()
	if now >= p.Expires {
		return session{}, ticket.ErrPassExpired
	}
	known, ok := g.sessions.fresh(p, now, active)
	if ok {
		return known, nil
	}
	op := ticket.Visit
	if known.active && !st.Room.NoRenewal && p.Expires-now < st.Room.Session.Microseconds()*2/3 {
		op = ticket.Refresh
	}
	a, err := g.do(ctx, ticket.Request{Op: op, Room: p.Room, Pass: p})
	switch {
	case errors.Is(err, ticket.ErrBusy):
		return known, nil
	case err != nil:
		g.sessions.forget(p)
		return session{}, err
	}
	return g.sessions.confirm(a.Pass, now), nil
}

// jwt returns the signed form of a session's pass for origins.
func (g *Gateway) jwt(s session) (string, error) {
	if s.jwt != "" {
		return s.jwt, nil
	}
	jwt, err := g.c.Sealer.JWT(s.pass, g.c.Issuer)
	if err != nil {
		return "", noKeys(err)
	}
	g.sessions.signed(s.pass, jwt)
	return jwt, nil
}

func (g *Gateway) sealTicket(t ticket.Ticket) (string, error) {
	s, err := g.c.Sealer.Ticket(t)
	return s, noKeys(err)
}

func (g *Gateway) sealPass(p ticket.Pass) (string, error) {
	s, err := g.c.Sealer.Pass(p)
	return s, noKeys(err)
}

// noKeys is what visitors see of a node that has no keys yet.
func noKeys(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ticket.ErrUnavailable, err)
}

// end gives a session's slot back. That it is over already is no error.
func (g *Gateway) end(ctx context.Context, p ticket.Pass) error {
	defer g.tunnels.end(p)
	defer g.sessions.forget(p)
	_, err := g.do(ctx, ticket.Request{Op: ticket.End, Room: p.Room, Pass: p})
	if errors.Is(err, ticket.ErrPassExpired) || errors.Is(err, ticket.ErrUsed) {
		return nil
	}
	return err
}
