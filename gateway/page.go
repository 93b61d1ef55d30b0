package gateway

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/anteroom/anteroom/internal/ticket"
)

// view begins a page of a kind.
func (c *call) view(kind PageKind) View {
	nonce := make([]byte, 16)
	rand.Read(nonce) // crypto/rand: it never fails
	return View{
		Kind: kind, Nonce: base64.RawURLEncoding.EncodeToString(nonce),
		AcceptLanguage: c.r.Header.Get("Accept-Language"), Language: c.room.Language,
		Room: c.room.Name, Message: c.room.Message, LastUpdated: time.UnixMicro(c.g.c.Queue.Clock()).UTC(), HereURL: c.here,
	}
}

// viewOf is the page of somebody who waits or is called.
func (c *call) viewOf(st standing) View {
	p := c.place(st.answer)
	v := c.view(PageWaiting)
	if st.answer.State == ticket.Called {
		v.Kind = PageCalled
	}
	v.RefreshSeconds, v.LastUpdated = p.RefreshIntervalSeconds, p.LastUpdated
	v.Method, v.Queued, v.JoinedAt, v.Paused, v.Rejoined = p.QueueingMethod, p.Queued, p.JoinedAt, p.Paused, st.rejoined
	if p.Position != nil {
		v.Position, v.PeopleAhead = *p.Position, *p.PeopleAhead
	}
	if s := p.EstimatedWaitSeconds; s != nil {
		v.Wait = Estimate{Known: true, P25: s.P25, P50: s.P50, P75: s.P75}
	}
	if p.HeldUntil != nil {
		v.HeldUntil = *p.HeldUntil
	}
	if p.StartsAt != nil {
		v.StartsAt = *p.StartsAt
	}
	to := "?to=" + url.QueryEscape(c.here)
	v.StreamURL, v.CheckInURL, v.AbandonURL, v.RefreshURL = c.own("stream"), c.own("checkin"), c.own("abandon")+to, c.own("return")+to
	return v
}

// page writes a page. Nothing may keep it: it is true for one person for a few
// seconds.
func (c *call) page(v View, status int) {
	var b bytes.Buffer
	if err := c.g.c.Pages.Page(&b, v); err != nil {
		c.g.fail(c.w, c.r, fmt.Errorf("write the %s page: %w", v.Kind, err))
		return
	}
	h := c.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", varies)
	h.Set("X-Robots-Tag", "noindex")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-"+v.Nonce+"'; style-src 'nonce-"+v.Nonce+
		"'; img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'")
	if v.RefreshSeconds > 0 {
		h.Set("Refresh", fmt.Sprintf("%d; url=%s", v.RefreshSeconds, v.RefreshURL))
		if status >= 400 {
			h.Set("Retry-After", strconv.Itoa(v.RefreshSeconds))
		}
	}
	c.w.WriteHeader(status)
	if c.r.Method != http.MethodHead {
		_, _ = c.w.Write(b.Bytes())
	}
}

// ownReturn is where the waiting page's refresh leads. A browser that brings
// no cookie here keeps none: sent on, it would take a new place each time.
func (c *call) ownReturn() error {
	if c.room.held(c.r.Header, c.client) == "" {
		c.page(c.view(PageCookies), http.StatusOK)
		return nil
	}
	return c.redirect(c.here)
}

// ownLeft says that the place is given up.
func (c *call) ownLeft() error {
	c.page(c.view(PageLeft), http.StatusOK)
	return nil
}

// ownPage is the waiting page for other proxies, which can refuse a request but
// not say why: they send the visitor here, with where they wanted to go.
func (c *call) ownPage() error {
	if c.r.URL.Query().Get("to") == "" {
		c.here = c.wanted()
	}
	if c.room.Suspended {
		return c.redirect(c.here)
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
