package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/brand"
	"github.com/anteroom/anteroom/internal/ticket"
)

// leaf is the logo of a tea house.
const leaf = `<svg xmlns="http://www.w3.org/2000/svg" width="44" height="44" viewBox="0 0 44 44"><path fill="#ffb300" d="M6 38C4 16 18 5 40 5c1 20-9 31-27 27l-4 7z"/><path fill="none" stroke="#8a5a00" stroke-width="2" d="M10 36C16 25 23 18 32 13"/></svg>`

// gallery is every state that the page can be in.
func gallery() map[string]func(*gateway.View) {
	kind := func(k gateway.PageKind) func(*gateway.View) {
		return func(v *gateway.View) { v.Kind = k }
	}
	return map[string]func(*gateway.View){
		"in line":      func(*gateway.View) {},
		"at the front": func(v *gateway.View) { v.Position, v.PeopleAhead, v.Wait.P50 = 1, 0, 20 },
		"far back": func(v *gateway.View) {
			v.Position, v.PeopleAhead, v.Queued, v.Wait.P50 = 123_456, 123_455, 130_000, 9000
			earlier := v.LastUpdated.Add(-30 * time.Hour)
			v.Messages = []gateway.Message{{Text: "Tickets for the evening are sold out.\nThere are some left for the afternoon."}, {At: &v.LastUpdated, Text: "The second door is open."}, {At: &earlier, Text: "We open at ten."}}
			v.Kept = 5 * time.Minute
		},
		"branded": func(v *gateway.View) {
			v.Brand = gateway.Brand{Title: "Leaf & Kettle", Accent: "#ffb300", Description: "The harvest sale, until Sunday.\nWhile you wait: [all teas and prices](https://example.com/teas)."}
			v.Messages = []gateway.Message{{Text: "Tickets for the evening are sold out."}}
			logo := brand.Picture{Type: "image/svg+xml", Bytes: []byte(leaf)}
			v.LogoURL, v.IconURL = logo.URL(), logo.URL()
		},
		"not counted yet": func(v *gateway.View) { v.Position, v.PeopleAhead, v.Wait = 0, 0, gateway.Estimate{} },
		"draw":            func(v *gateway.View) { v.Method, v.Position, v.PeopleAhead = "random", 0, 0 },
		"paused":          func(v *gateway.View) { v.Paused = ticket.PausedSplit },
		"held by hand":    func(v *gateway.View) { v.Paused = ticket.PausedHeld },
		"origin ill":      func(v *gateway.View) { v.Paused = ticket.PausedUnhealthy },
		"over its limit":  func(v *gateway.View) { v.Paused = ticket.PausedOverLimit },
		"held":            func(v *gateway.View) { v.HeldUntil = v.LastUpdated.Add(20 * time.Second) },
		"before the start": func(v *gateway.View) {
			v.StartsAt, v.Position, v.PeopleAhead, v.Wait = v.LastUpdated.Add(time.Hour), 0, 0, gateway.Estimate{}
		},
		"before a draw": func(v *gateway.View) {
			v.StartsAt, v.Position, v.PeopleAhead, v.Wait = v.LastUpdated.Add(26*time.Hour), 0, 0, gateway.Estimate{}
			v.Draw = &gateway.Draw{Commitment: strings.Repeat("9f86d081", 8), Ticket: strings.Repeat("00112233", 4)}
		},
		"given up": func(v *gateway.View) { v.Rejoined = true },
		"missed":   func(v *gateway.View) { v.Missed = true },
		"called":   kind(gateway.PageCalled),
		"full":     kind(gateway.PageFull),
		"closed":   kind(gateway.PageClosed),
		"cookies":  kind(gateway.PageCookies),
		"linked":   func(v *gateway.View) { v.Kind, v.RefreshSeconds, v.TakeURL = gateway.PageLinked, 0, "/unasked" },
		"link": func(v *gateway.View) {
			v.Kind, v.RefreshSeconds, v.LinkURL, v.LinkUntil = gateway.PageTransfer, 0, "https://tea.example.com/_anteroom/m/tea/ABCDEFGHJKLMNPQR", v.LastUpdated.Add(5*time.Minute)
			v.QR = brand.Picture{Type: "image/svg+xml", Bytes: []byte(leaf)}.URL()
		},
		"bookmark": func(v *gateway.View) {
			v.Kind, v.RefreshSeconds, v.LinkURL = gateway.PageBookmark, 0, "https://tea.example.com/?ticket="+strings.Repeat("abcdefghij", 16)
		},
		"link here":   func(v *gateway.View) { v.Kind, v.RefreshSeconds, v.TakeURL = gateway.PageTake, 0, "/unasked" },
		"link over":   func(v *gateway.View) { v.Kind, v.RefreshSeconds = gateway.PageLinkOver, 0 },
		"moved":       func(v *gateway.View) { v.Kind, v.RefreshSeconds = gateway.PageMoved, 0 },
		"other place": func(v *gateway.View) { v.TakeURL = "/unasked" },
		"in address":  func(v *gateway.View) { v.Kind, v.InAddress, v.TakeURL = gateway.PageCalled, true, "/unasked" },
		"busy":        kind(gateway.PageBusy),
		"unavailable": kind(gateway.PageUnavailable),
		"origin down": kind(gateway.PageOriginDown),
		"left":        func(v *gateway.View) { v.Kind, v.RefreshSeconds = gateway.PageLeft, 0 },
	}
}

// Every state, in each way that people look at it, is accessible, fits the
// screen and asks for nothing but itself.
func TestEveryStateInEveryBrowser(t *testing.T) {
	l := newLine(t, 0)
	states := gallery()
	l.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		change, ok := states[r.FormValue("state")]
		if !ok {
			t.Errorf("the page asked for %s %s", r.Method, r.URL)
			http.NotFound(w, r)
			return
		}
		now := time.Now()
		v := gateway.View{
			Kind: gateway.PageWaiting, Room: "Leaf & Kettle", Method: "fifo", RefreshSeconds: 600, LastUpdated: now, JoinedAt: now,
			Position: 42, PeopleAhead: 41, Queued: 1250, Wait: gateway.Estimate{Known: true, P25: 200, P50: 280, P75: 540},
			CheckInURL: "/unasked", AbandonURL: "/unasked", TransferURL: "/unasked", BookmarkURL: "/unasked", HereURL: "/unasked", RefreshURL: "/unasked",
		}
		change(&v)
		l.writePage(w, r, v)
	})
	looks := map[string][]chromedp.Action[chromedp.Void]{
		"light":     {},
		"dark":      {inDark()},
		"phone":     {onPhone()},
		"zoomed":    {zoomed()},
		"Dutch":     {inLanguage("nl-NL,nl,en"), onPhone(), inDark()},
		"no script": {withoutScripts()},
	}
	for look, options := range looks {
		t.Run(look, func(t *testing.T) {
			p := newPerson(t, options...)
			for state := range states {
				p.do("set the browser up", options...)
				p.open(l.URL + "/?state=" + url.QueryEscape(state))
				p.picture(state)
				p.isAccessible(state)
				wide, err := eval[bool](p, "document.documentElement.scrollWidth > innerWidth")
				if err != nil || wide {
					t.Errorf("%s: the page is wider than the window (%v)", state, err)
				}
			}
		})
	}
}
