package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/page"
)

// onSmallPhone is the narrowest screen that people still have.
func onSmallPhone() chromedp.Action[chromedp.Void] {
	return chromedp.EmulateViewport(320, 568, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulatePortrait)
}

// messageEnds is whether the last letter of a message stands at its right, whatever
// the language of the page is; true without a message.
const messageEnds = `[...document.querySelectorAll("#said p")].every(p => {
	const text = p.lastChild, range = document.createRange(), right = at => (range.setStart(text, at), range.setEnd(text, at + 1), range.getBoundingClientRect().right)
	return right(text.length - 1) > right(text.length - 2)
})`

// No text of any language is too long for a small phone, and those that are
// written from the right stand there.
func TestEveryLanguageFitsASmallPhone(t *testing.T) {
	pages, err := page.New()
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]func(*gateway.View){
		"line": func(v *gateway.View) {
			v.Position, v.PeopleAhead, v.Kept = 123_456, 123_455, 5*time.Minute
			v.Messages = []gateway.Message{{At: &v.LastUpdated, Text: "Sold out."}, {At: &v.JoinedAt, Text: "2"}}
		},
		"draw": func(v *gateway.View) { v.Method, v.Position, v.PeopleAhead = "random", 0, 0 },
		"start": func(v *gateway.View) {
			v.StartsAt, v.Position, v.Wait = v.LastUpdated.Add(149*time.Hour), 0, gateway.Estimate{}
		},
		"held":    func(v *gateway.View) { v.HeldUntil = v.LastUpdated.Add(20 * time.Second) },
		"cookies": func(v *gateway.View) { v.Kind, v.KeepURL = gateway.PageCookies, "/unasked" },
		"linked":  func(v *gateway.View) { v.Kind, v.TakeURL = gateway.PageLinked, "/unasked" },
		"other":   func(v *gateway.View) { v.TakeURL = "/unasked" },
		"address": func(v *gateway.View) { v.InAddress, v.CheckInURL, v.AbandonURL = true, "", "" },
	}
	l := newLine(t, 0)
	l.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		change := states[r.FormValue("state")]
		if change == nil {
			http.NotFound(w, r)
			return
		}
		now := time.Now()
		v := gateway.View{
			Kind: gateway.PageWaiting, Room: "Leaf & Kettle", Method: "fifo", RefreshSeconds: 600, LastUpdated: now, JoinedAt: now,
			Position: 42, PeopleAhead: 41, Queued: 1250, Wait: gateway.Estimate{Known: true, P25: 4000, P50: 4100, P75: 9000},
			CheckInURL: "/unasked", AbandonURL: "/unasked", HereURL: "/unasked", RefreshURL: "/unasked",
		}
		change(&v)
		v.Language = r.FormValue("language")
		r.Header.Del("Accept-Language")
		l.writePage(w, r, v)
	})
	p := newPerson(t, onSmallPhone())
	for _, language := range pages.Languages() {
		for state := range states {
			p.open(l.URL + "/?state=" + state + "&language=" + language)
			p.picture(language + " " + state)
			ok, err := eval[bool](p, `document.documentElement.lang === "`+language+`" && document.documentElement.scrollWidth <= 320 &&
				[...document.querySelectorAll("main *")].every(e => e.classList.contains("unseen") || e.scrollWidth <= e.clientWidth + 1 || getComputedStyle(e).display === "inline")`)
			if err != nil || !ok {
				t.Errorf("%s, %s: something is wider than a small phone (%v)", language, state, err)
			}
			left, err := eval[bool](p, `getComputedStyle(document.querySelector("h1")).direction === "ltr"`)
			if rtl := language == "ar" || language == "he"; err != nil || left == rtl {
				t.Errorf("%s, %s: written from the left: %v (%v)", language, state, left, err)
			}
			if ends, err := eval[bool](p, messageEnds); err != nil || !ends {
				t.Errorf("%s, %s: an English message does not end with its full stop (%v)", language, state, err)
			}
		}
	}
}
