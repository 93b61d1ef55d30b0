package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/peraddress"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// call is one request about one room.
type call struct {
	g       *Gateway
	w       http.ResponseWriter
	r       *http.Request
	room    *Room
	state   RoomState
	client  client
	from    source // of the ticket or pass that was opened
	method  string // of the visitor's request; r's own is that of a proxy which asks for one
	here    string // path and query that the visitor wanted
	linked  string // the ticket of the address, of a visitor who has a place
	read    bool   // nothing of the body is left to be read
	byProxy bool   // another proxy asks for leave, see apiAuth
	mute    bool   // and it shows the visitor no cookie of a refusal: a place would be lost

	site   http.Handler // in the place of the room's origin, see Before; nil: it is that
	before http.Header  // of the answer, as it was when the request came here; nil without site

	challenge string // the token that came with the join, or in the address
	retake    string // our own path to come back to with a token; empty: here

	position, ahead int // as the last Place has them
	seconds         Seconds
}

// ctx is the request's context.
func (c *call) ctx() context.Context { return c.r.Context() }

// do has the queue carry out q for this visitor, within the bounds of their address.
func (c *call) do(q ticket.Request) (ticket.Answer, error) {
	return c.g.c.Addresses.Do(c.ctx(), peraddress.Visitor{Addr: c.client.addr, Room: &c.state}, q, c.g.ask)
}

// standing is how a visitor of the site stands.
type standing struct {
	in       bool
	session  session       // when in
	answer   ticket.Answer // when not in; its State is Waiting or Called
	placed   bool          // there is an answer
	rejoined bool          // the answer is about a new place, the old one was given up
	cookie   *http.Cookie  // for the browser to keep; nil: what it has is good
	renewed  bool          // what it has is good for now; the cookie is the same visit's, for longer

	cookies   []*http.Cookie // of other rooms that the request may be for as well
	several   bool           // there are such
	preflight bool           // it is one, and the origin answers it
}

// stand finds out how the visitor stands: by the pass or the ticket that came
// along, or else by joining, if that is wanted.
func (c *call) stand(join bool) (standing, error) {
	var rejoined bool
	held := c.room.held(c.r.Header, c.client)
	if p, ok := c.heldPass(held); ok {
		s, err := c.g.session(c.ctx(), c.state, p)
		if err == nil {
			st := standing{in: true, session: s}
			if s.pass != p && c.from == fromCookie {
				st.cookie, err = c.passCookie(s.pass)
				st.renewed = true
			}
			return st, err
		}
		if !over(err) {
			return standing{}, err
		}
	} else if t, err := c.g.c.Sealer.OpenTicket(c.room.Name, held); err == nil {
		if forAsset(c.r.Header) {
			return standing{}, nil // a picture neither keeps a place nor takes one up
		}
		a, err := c.come(t)
		if err == nil {
			return c.standing(a)
		}
		if !over(err) {
			return standing{}, err
		}
		rejoined = errors.Is(err, ticket.ErrExpired)
	}
	if !join {
		return standing{}, nil
	}
	a, err := c.join()
	if err != nil {
		return standing{}, err
	}
	if a.State != ticket.Admitted && (c.mute || forAsset(c.r.Header)) { // somebody was quicker
		_, err := c.do(ticket.Request{Op: ticket.Abandon, Room: c.room.Name, Ticket: a.Ticket})
		return standing{}, err
	}
	st, err := c.standing(a)
	st.rejoined = rejoined
	return st, err
}

// over reports that what the visitor has is worth nothing any more.
func over(err error) bool {
	return errors.Is(err, ticket.ErrExpired) || errors.Is(err, ticket.ErrUsed) || errors.Is(err, ticket.ErrPassExpired)
}

// heldPass opens the pass that a visitor of the site shows: in the cookie, or,
// for programs, as a bearer token, which may as well be the origin's own.
func (c *call) heldPass(held string) (ticket.Pass, bool) {
	if p, err := c.g.c.Sealer.OpenPass(c.room.Name, held); err == nil {
		c.from = fromCookie
		return p, true
	}
	if p, err := c.g.c.Sealer.OpenPass(c.room.Name, bearer(c.r.Header)); err == nil {
		c.from = fromBearer
		return p, true
	}
	return ticket.Pass{}, false
}

// join takes a new place.
func (c *call) join() (ticket.Answer, error) { return c.joinAs(ticket.Ticket{}) }

// joinAs joins with what the ticket is to say of its bearer.
func (c *call) joinAs(t ticket.Ticket) (ticket.Answer, error) {
	var id qpid.ItemID
	rand.Read(id[:]) // crypto/rand: it never fails
	settle, err := c.spend()
	if err != nil {
		return ticket.Answer{}, err
	}
	a, err := c.do(ticket.Request{Op: ticket.Join, Room: c.room.Name, ID: id, Ticket: t, Async: prefers(c.r.Header, "respond-async")})
	settle(err)
	return a, err
}

// prefers reports whether a client has a preference of RFC 7240: respond-async, for
// an answer at once rather than a better one later, or return=minimal, for one
// without the pass_jwt that would be signed for it.
func prefers(h http.Header, what string) bool {
	for _, line := range h["Prefer"] {
		for preference := range strings.SplitSeq(line, ",") {
			token, _, _ := strings.Cut(preference, ";")
			if strings.EqualFold(strings.TrimSpace(token), what) {
				return true
			}
		}
	}
	return false
}

// come checks a ticket in, and leaves the queue with it when it is called.
func (c *call) come(t ticket.Ticket) (ticket.Answer, error) {
	a, err := c.do(ticket.Request{Op: ticket.CheckIn, Room: c.room.Name, Ticket: t})
	if err != nil || a.State != ticket.Called {
		return a, err
	}
	in, err := c.do(ticket.Request{Op: ticket.Leave, Room: c.room.Name, Ticket: a.Ticket})
	switch {
	case err == nil:
		return in, nil
	case over(err):
		return in, err
	}
	return a, nil // not just now: the place is as it was
}

// standing is how somebody stands of whom the queue said a.
func (c *call) standing(a ticket.Answer) (st standing, err error) {
	if a.State == ticket.Admitted {
		st.in, st.session = true, c.g.sessions.confirm(a.Pass, c.g.c.Queue.Clock())
		st.cookie, err = c.passCookie(a.Pass)
		return st, err
	}
	st.answer, st.placed = a, true
	st.cookie, err = c.ticketCookie(a.Ticket)
	return st, err
}

func (c *call) passCookie(p ticket.Pass) (*http.Cookie, error) {
	s, err := c.g.sealPass(p)
	left := time.Duration(p.Expires-c.g.c.Queue.Clock()) * time.Microsecond
	return c.room.cookie(c.client, s, left), err
}

func (c *call) ticketCookie(t ticket.Ticket) (*http.Cookie, error) {
	s, err := c.g.sealTicket(t)
	return c.room.cookie(c.client, s, ticketAge), err
}

// setCookie sends a cookie, if there is one.
func (c *call) setCookie(k *http.Cookie) {
	if k != nil {
		http.SetCookie(c.w, k)
	}
}

// own returns the path of one of our own requests about the room.
func (c *call) own(op string) string {
	return c.g.c.Prefix + "/v1/rooms/" + url.PathEscape(c.room.Name) + "/" + op
}

// local returns target if it is a path on this host, / if not: nobody is sent
// elsewhere in our name.
func local(target string) string {
	_, err := url.Parse(target)
	if err != nil || !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//") {
		return "/"
	}
	for i := range len(target) {
		if c := target[i]; c <= ' ' || c >= 0x7f || c == '\\' { // browsers read \ as /, and drop some of the others
			return "/"
		}
	}
	return target
}
