package gateway

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/anteroom/anteroom/internal/ticket"
)

// A browser that keeps no cookies can have its place in the address of the
// waiting page. It does not begin so by itself: an address is more easily shown
// to others than a cookie.
//
// For the same reason an address may be somebody else's, who made a link of it: a
// browser that took such a place for its own would wait, and go in, as somebody
// who can give the place up or go in with it first. So nothing that is only
// opened puts a ticket or a pass into a browser's cookie; a form that the person
// sends does (ownTake). Without a click the place in an address is shown alone to
// browsers that have been given a cookie to try and did not bring it back.
const (
	inAddress  = "ticket"  // the parameter with the ticket
	newTicket  = "new"     // instead of one: take a place
	entersSite = "enter"   // the parameter of somebody called, from a page that has no form for it
	triedIt    = "tried"   // that of an address to which a browser came with a cookie to try
	insteadOf  = "instead" // that of a form which gives up what the browser has for what is in the address
)

// trial names the cookie that shows whether a browser keeps any. A room's own
// cookie is never called so: cookieToken spells no dot before such letters.
const trial = ".tried"

// trialCookie is for the time of a visit. It needs no secret: it says that there
// are cookies, and nothing else.
func (c *call) trialCookie() *http.Cookie {
	k := c.room.cookie(c.client, "1", time.Hour)
	k.Name += trial
	if k.SameSite == http.SameSiteStrictMode {
		k.SameSite = http.SameSiteLaxMode // a link's first request is to bring it
	}
	return k
}

// keepsCookies reports whether the browser brought the cookie to try.
func (c *call) keepsCookies() bool {
	_, err := c.r.Cookie(c.room.cookieName(c.client) + trial)
	return err == nil
}

// fromElsewhere reports whether the browser says that no page of this host led
// here: a link on another site or in a message did, or the address was typed.
// Old browsers do not say, and none does on plain http.
func fromElsewhere(h http.Header) bool {
	site := h.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin"
}

// ownReturn is where the waiting page's refresh leads. A browser that brings
// no cookie here keeps none: sent on, it would take a new place each time.
func (c *call) ownReturn() error {
	if c.room.held(c.r.Header, c.client) != "" {
		return c.redirect(c.here)
	}
	v := c.view(PageCookies)
	v.KeepURL = c.addressed(newTicket)
	if s := c.r.URL.Query().Get(inAddress); s != "" && !fromElsewhere(c.r.Header) { // it tried to go in
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
		c.comeFor(c.wanted())
	}
	if m := c.forwardedMethod(); m != "" {
		c.method = m // a form is sent back, and not answered with a page
	}
	if c.room.Suspended {
		return c.redirect(c.here)
	}
	if s := q.Get(inAddress); s != "" {
		if c.room.held(c.r.Header, c.client) == "" {
			return c.comeByLink(s, q)
		}
		c.linked = s // what is in a cookie counts more
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

// taking is where a form goes that makes the ticket of an address the browser's
// own.
func (c *call) taking(s string) string {
	return c.own("take") + "?" + url.Values{"to": {c.here}, inAddress: {s}}.Encode()
}

// comeByLink answers a browser that has no place, and an address with one.
func (c *call) comeByLink(s string, q url.Values) error {
	keeps := fromElsewhere(c.r.Header) || c.keepsCookies()
	switch {
	case s == newTicket && keeps:
		return c.redirect(c.here) // a cookie does as well
	case s != newTicket && (keeps || q.Has(entersSite)):
		return c.askWhose(s)
	case !q.Has(triedIt):
		c.setCookie(c.trialCookie())
		return c.redirect(c.addressed(s) + "&" + triedIt + "=1")
	}
	c.setCookie(c.trialCookie()) // so that the next request tells
	return c.waitInAddress(s)
}

// askWhose shows the page that says that the address has a place in it, and asks
// whether the visitor wants that or one of their own.
func (c *call) askWhose(s string) error {
	if _, err := c.g.c.Sealer.OpenTicket(c.room.Name, s); err != nil {
		return c.redirect(c.here) // it is none, or none any more
	}
	v := c.view(PageLinked)
	v.TakeURL = c.taking(s)
	c.page(v, http.StatusOK)
	return nil
}

// ownTake has the browser keep the place of an address, as the person who sent
// the form wants it. A page of another site cannot send it, see allowed.
func (c *call) ownTake() error {
	q := c.r.URL.Query()
	s := q.Get(inAddress)
	t, err := c.g.c.Sealer.OpenTicket(c.room.Name, s)
	if err != nil {
		return c.redirect(c.here)
	}
	if c.room.held(c.r.Header, c.client) != "" && !q.Has(insteadOf) {
		return c.redirect(c.addressed(s)) // that page says that there is a place already
	}
	a, err := c.do(ticket.Request{Op: ticket.CheckIn, Room: c.room.Name, Ticket: t})
	if errors.Is(err, ticket.ErrExpired) || errors.Is(err, ticket.ErrUsed) {
		return c.redirect(c.here)
	}
	if err == nil && a.State != ticket.Admitted {
		s, err = c.g.sealTicket(a.Ticket)
	}
	if err != nil {
		c.refuse(err)
		return nil
	}
	return c.enterByAddress(a, s)
}

// otherPlace is where a form goes that gives up the visitor's own place for that
// of the address they came by; empty if that is the same, or none.
func (c *call) otherPlace(own ticket.Ticket) string {
	if c.linked == "" {
		return ""
	}
	if t, err := c.g.c.Sealer.OpenTicket(c.room.Name, c.linked); err != nil || t.ID == own.ID {
		return ""
	}
	return c.taking(c.linked) + "&" + insteadOf + "=1"
}

// waitInAddress is the waiting page of a place that is in its address. Nobody
// goes in from there: without a cookie that would be over with the next request,
// and the slot lost.
func (c *call) waitInAddress(s string) error {
	a, err := c.comeByAddress(s)
	if err != nil {
		c.refuse(err)
		return nil
	}
	if a.State == ticket.Admitted {
		if s == newTicket {
			return c.enterByAddress(a, s)
		}
		return c.askWhose(s)
	}
	next, err := c.g.sealTicket(a.Ticket)
	if err != nil {
		c.refuse(err)
		return nil
	}
	if s == newTicket {
		return c.redirect(c.addressed(next) + "&" + triedIt + "=1")
	}
	v := c.viewOf(standing{answer: a, placed: true})
	v.InAddress, v.StreamURL, v.CheckInURL, v.LeaveURL, v.AbandonURL = true, "", "", "", ""
	v.TransferURL, v.BookmarkURL, v.PushURL = "", "", ""
	v.RefreshURL = c.addressed(next)
	if v.Kind == PageCalled {
		v.HereURL, v.TakeURL = v.RefreshURL+"&"+entersSite+"=1", c.taking(next)
	}
	hurry(c.w, c.r)
	c.page(v, c.room.StatusCode)
	return nil
}

// comeByAddress checks in the ticket of an address, or takes a place if it says
// so or the one that it had is lost.
func (c *call) comeByAddress(s string) (ticket.Answer, error) {
	c.retake = c.addressed(newTicket)
	if s == newTicket {
		return c.join()
	}
	t, err := c.g.c.Sealer.OpenTicket(c.room.Name, s)
	if err != nil {
		return c.join()
	}
	a, err := c.do(ticket.Request{Op: ticket.CheckIn, Room: c.room.Name, Ticket: t})
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
