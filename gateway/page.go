package gateway

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/ticket"
)

// view begins a page of a kind.
func (c *call) view(kind PageKind) View {
	nonce := make([]byte, 16)
	rand.Read(nonce) // crypto/rand: it never fails
	logo := c.picture("logo", c.room.Logo)
	return View{
		Kind: kind, Nonce: base64.RawURLEncoding.EncodeToString(nonce),
		AcceptLanguage: c.r.Header.Get("Accept-Language"), Language: c.room.Language,
		Room: c.room.Name, Brand: c.room.Brand, LogoURL: logo, IconURL: cmp.Or(c.picture("favicon", c.room.Icon), logo), Message: c.room.Message, Messages: c.room.due(c.g.now()), LastUpdated: c.g.now(), HereURL: c.here,
		Method: c.state.Room.Method.String(),
	}
}

// withoutPlace has Cloudflare's templates say why there is no place to wait in.
func (v *View) withoutPlace() {
	v.Cloudflare = cloudflare{
		InWaitingRoom: true, WaitTimeFormatted: "unavailable", QueueIsFull: v.Kind == PageFull,
		LastUpdated: v.LastUpdated.Truncate(time.Second).Format(secondFormat), RefreshIntervalSeconds: v.RefreshSeconds, QueueingMethod: v.Method,
		IsFIFOQueue: v.Method == "fifo", IsRandomQueue: v.Method == "random",
		IsPassthroughQueue: v.Method == "passthrough", IsRejectQueue: v.Method == "reject",
		TimeUntilEventStartFormatted: "unavailable", TimeUntilEventEndFormatted: "unavailable",
	}
}

// viewOf is the page of somebody who waits or is called.
func (c *call) viewOf(st standing) View {
	p := c.place(st.answer)
	v := c.view(PageWaiting)
	if st.answer.State == ticket.Called {
		v.Kind = PageCalled
	}
	v.RefreshSeconds, v.LastUpdated, v.Cloudflare = p.RefreshIntervalSeconds, p.LastUpdated, p.Cloudflare
	v.Method, v.Queued, v.JoinedAt, v.Paused, v.Rejoined = p.QueueingMethod, p.Queued, p.JoinedAt, ticket.Pause(p.PausedCode), st.rejoined
	v.Missed, v.Why = p.Reason == MissedCalls, p.Why
	v.Kept = c.state.Room.TicketTTL
	v.Claim, v.Confirm = c.state.Room.ToldClaim(), c.room.ConfirmEntry
	if p.Position != nil {
		v.Position, v.PeopleAhead = *p.Position, *p.PeopleAhead
	}
	if s := p.EstimatedWaitSeconds; s != nil {
		v.Wait = Estimate{Known: true, P25: s.P25, P50: s.P50, P75: s.P75}
	}
	if p.CountedAt != nil {
		v.CountedAt = *p.CountedAt
	}
	if p.HeldUntil != nil {
		v.HeldUntil = *p.HeldUntil
	}
	if p.StartsAt != nil {
		v.StartsAt = *p.StartsAt
	}
	v.Draw, v.TakeURL = p.Draw, c.otherPlace(st.answer.Ticket)
	to := "?to=" + url.QueryEscape(c.here)
	v.StreamURL, v.CheckInURL, v.LeaveURL = c.own("stream"), c.own("checkin"), c.own("leave")
	v.TransferURL = c.own("transfer") + to
	if c.room.Bookmark {
		v.BookmarkURL = c.own("bookmark") + to
	}
	if c.pushing() {
		v.PushURL = c.own("push.js")
	}
	v.AbandonURL, v.RefreshURL = c.own("abandon")+to, c.own("return")+to
	return v
}

// page writes a page. Nothing may keep it: it is true for one person for a few
// seconds.
func (c *call) page(v View, status int) {
	if v.Cloudflare == (cloudflare{}) {
		v.withoutPlace()
	}
	b := new(bytes.Buffer)
	own := c.ownPageOf(v.Kind)
	if own != nil {
		if err := own.Page(b, v); err != nil { // better another page than none
			c.g.c.Logger.LogAttrs(c.ctx(), slog.LevelWarn, "a room's own page cannot be shown, visitors see the built-in one",
				slog.String("room", c.room.Name), slog.String("error", err.Error()))
			own = nil
			b.Reset()
		}
	}
	if own == nil {
		if err := c.g.c.Pages.Page(b, v); err != nil {
			c.g.fail(c.w, c.r, fmt.Errorf("write the %s page: %w", v.Kind, err))
			return
		}
	}
	b = c.compressed(&v, b)
	h := c.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", varies)
	h.Set("X-Robots-Tag", "noindex")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	switch { // the address has a ticket in it
	case v.TakeURL != "":
		h.Set("Referrer-Policy", "strict-origin") // no less: the form says by it that it is of this host
	case v.InAddress:
		h.Set("Referrer-Policy", "no-referrer")
	}
	h.Set("Content-Security-Policy", c.policy(v, own != nil))
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

// ownPageOf returns what writes the room's own page for visitors who wait, or
// have nothing to wait for; nil where the built-in page knows better.
func (c *call) ownPageOf(kind PageKind) Pager {
	if HasOwnPage(kind) {
		return c.room.Page
	}
	return nil
}

// HasOwnPage reports whether a room's own page is shown for a kind. The others
// are about what no template knows: cookies, a node or a site in trouble.
func HasOwnPage(kind PageKind) bool {
	switch kind {
	case PageWaiting, PageCalled, PageFull, PageClosed:
		return true
	default:
		return false
	}
}

// policy is the Content-Security-Policy of a page. What a room's own page loads
// and runs is the operator's to say; only who may show it in a frame is not.
func (c *call) policy(v View, own bool) string {
	frames := "frame-ancestors 'self'"
	if c.room.sameSite(c.room.secure(c.client.https)) == http.SameSiteNoneMode {
		frames = "frame-ancestors *" // what such a cookie is for
	}
	if own {
		return frames
	}
	forms := "form-action 'self'; "
	if v.TakeURL != "" {
		forms = "" // that one leads on to the site, which may send its visitors elsewhere
	}
	pictures := "data:"
	if strings.HasPrefix(v.LogoURL, "/") || strings.HasPrefix(v.IconURL, "/") {
		pictures = "data: 'self'"
	}
	workers := ""
	if v.PushURL != "" {
		workers = "worker-src 'self'; "
	}
	return "default-src 'none'; " + workers + "script-src 'nonce-" + v.Nonce + "'; style-src 'nonce-" + v.Nonce +
		"'; img-src " + pictures + "; connect-src 'self'; " + forms + "base-uri 'none'; " + frames
}
