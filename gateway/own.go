package gateway

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/anteroom/anteroom/internal/ticket"
)

// A browser that keeps no cookies can have its place in the address of the
// waiting page. It does not begin so by itself: an address is more easily shown
// to others than a cookie. The page that says that cookies are missing offers it.
const (
	inAddress  = "ticket" // the parameter with the ticket
	newTicket  = "new"    // instead of one: take a place
	entersSite = "enter"  // the parameter of somebody called who says that cookies work now
)

// ownReturn is where the waiting page's refresh leads. A browser that brings
// no cookie here keeps none: sent on, it would take a new place each time.
func (c *call) ownReturn() error {
	if c.room.held(c.r.Header, c.client) != "" {
		return c.redirect(c.here)
	}
	v := c.view(PageCookies)
	v.KeepURL = c.addressed(newTicket)
	if s := c.r.URL.Query().Get(inAddress); s != "" { // it tried to go in
		v.KeepURL, v.InAddress = c.addressed(s), true
	}
	c.page(v, http.StatusOK)
	return nil
}

// ownLeft says that the place is given up.
func (c *call) ownLeft() error {
	c.page(c.view(PageLeft), http.StatusOK)
	return nil
}

// ownPage is the waiting page for other proxies, which can refuse a request but
// not say why: they send the visitor here, with where they wanted to go.
func (c *call) ownPage() error {
	q := c.r.URL.Query()
	if q.Get("to") == "" {
		c.here = c.wanted()
	}
	if m := c.forwardedMethod(); m != "" {
		c.method = m // a form is sent back, and not answered with a page
	}
	if c.room.Suspended {
		return c.redirect(c.here)
	}
	if s := q.Get(inAddress); s != "" && c.room.held(c.r.Header, c.client) == "" { // what is in a cookie counts more
		return c.waitInAddress(s, q.Get(entersSite) != "")
	}
	st, err := c.stand(true)
	switch {
	case err != nil:
		c.refuse(err)
	case st.in:
		c.setCookie(st.cookie)
		return c.redirect(c.here)
	default:
		c.wait(st)
	}
	return nil
}

// addressed is the waiting page's address with a place in it.
func (c *call) addressed(s string) string {
	return c.own("page") + "?" + url.Values{"to": {c.here}, inAddress: {s}}.Encode()
}

// waitInAddress is the waiting page of a place that is in its address. Nobody
// goes in from there: without a cookie that would be over with the next request,
// and the slot lost.
func (c *call) waitInAddress(s string, enters bool) error {
	a, err := c.comeByAddress(s)
	if err != nil {
		c.refuse(err)
		return nil
	}
	if a.State == ticket.Admitted {
		return c.enterByAddress(a, s)
	}
	next, err := c.g.sealTicket(a.Ticket)
	if err != nil {
		c.refuse(err)
		return nil
	}
	if s == newTicket {
		return c.redirect(c.addressed(next))
	}
	if enters {
		return c.enterByAddress(a, next)
	}
	v := c.viewOf(standing{answer: a, placed: true})
	v.InAddress, v.StreamURL, v.CheckInURL, v.AbandonURL = true, "", "", ""
	v.RefreshURL = c.addressed(next)
	if v.Kind == PageCalled {
		v.HereURL = v.RefreshURL + "&" + entersSite + "=1"
	}
	hurry(c.w, c.r)
	c.page(v, c.room.StatusCode)
	return nil
}

// comeByAddress checks in the ticket of an address, or takes a place if it says
// so or the one that it had is lost.
func (c *call) comeByAddress(s string) (ticket.Answer, error) {
	if s == newTicket {
		return c.join()
	}
	t, err := c.g.c.Sealer.OpenTicket(c.room.Name, s)
	if err != nil {
		return c.join()
	}
	a, err := c.g.do(c.ctx(), ticket.Request{Op: ticket.CheckIn, Room: c.room.Name, Ticket: t})
	if errors.Is(err, ticket.ErrExpired) || errors.Is(err, ticket.ErrUsed) {
		return c.join()
	}
	return a, err
}

// enterByAddress hands the browser its place, or its pass, as a cookie, and
// sends it where it turns out whether it kept that.
func (c *call) enterByAddress(a ticket.Answer, s string) error {
	if err := c.keep(a); err != nil {
		c.refuse(err)
		return nil
	}
	return c.redirect(c.own("return") + "?" + url.Values{"to": {c.here}, inAddress: {s}}.Encode())
}
