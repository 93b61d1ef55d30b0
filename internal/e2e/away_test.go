package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/ticket"
)

// online takes the network from a browser, and gives it back.
func online(yes bool) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		away := !yes
		if _, err := cdp.Call(ctx, t, network.Enable, network.EnableParams{}); err != nil {
			return err
		}
		if _, err := cdp.Call(ctx, t, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
			MatchedNetworkConditions: []*network.Conditions{{Offline: away, DownloadThroughput: -1, UploadThroughput: -1}},
		}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, t, network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: away, DownloadThroughput: -1, UploadThroughput: -1})
		return err
	})
}

// looking says to the page whether somebody looks at it: a browser without a
// screen shows all its tabs.
func (p *person) looking(yes bool) {
	p.t.Helper()
	hidden := "true"
	if yes {
		hidden = "false"
	}
	p.until("the page to know", `(Object.defineProperty(document, "hidden", {configurable: true, get: () => `+hidden+`}), document.dispatchEvent(new Event("visibilitychange")), true)`)
}

// A call that comes while there is no network is kept for when there is.
func TestTurnComesWhileTheNetworkIsAway(t *testing.T) {
	l, p := inLine(t, 3)
	l.change(func() { l.streams = false })
	p.until("to stop the page in the middle of a call", `(window.real = window.fetch, window.fetch = (url, o) => url.endsWith("leave") ? Promise.reject(new TypeError("no network")) : real(url, o), true)`)
	l.change(func() { l.limit = 100 })
	p.reads("h1", "It is your turn")
	p.sees("Your place is kept, and this page keeps trying.")
	p.do("lose the network", online(false))
	p.reads("#note", "You are offline. Your place is kept, and this page goes on when you are back.")
	p.reads("#status", p.text("#note"))
	p.stayed()
	p.isAccessible("offline")
	p.picture("offline")
	p.until("the network to be good for calls", "(window.fetch = real, true)")
	p.do("find the network again", online(true))
	p.sees("The new harvest is here")
}

// Who waits and is offline is told so, and goes on where they were.
func TestOfflineIsSaidAndOver(t *testing.T) {
	l, p := inLine(t, 5)
	p.do("lose the network", online(false))
	p.reads("#note", "You are offline. Your place is kept, and this page goes on when you are back.")
	p.reads("#place", "5")
	l.change(func() { l.streams = false })
	l.letIn(2)
	p.do("find the network again", online(true))
	p.reads("#place", "3")
	p.until("the note to go", "note.hidden")
	p.stayed()
}

// Where the room asks for it, nobody's visit begins unseen.
func TestWhoIsNotLookingGoesInByAButton(t *testing.T) {
	l := newLine(t, 0)
	l.confirm, l.claim = true, time.Minute
	l.crowd(2)
	p := newPerson(t)
	p.open(l.URL + "/")
	p.reads("#place", "3")
	p.looking(false)
	l.change(func() { l.limit = 100 })
	p.reads("h1", "It is your turn")
	p.until("the time that is left", `!document.getElementById("claim").hidden && /^0:5\d$/.test(left.textContent) && stand.hidden`)
	p.picture("called")
	p.isAccessible("called")
	if n := l.count("leave"); n != 0 {
		t.Errorf("a visit began unseen: %d passes were asked for", n)
	}
	l.change(func() { l.limit = 0 }) // the call is over
	p.reads("h1", "You are in line")
	p.until("the line to be back", `document.getElementById("claim").hidden && !stand.hidden`)
	l.change(func() { l.limit = 100 })
	p.reads("h1", "It is your turn")
	p.looking(true)
	p.do("press the button with the keyboard", chromedp.Evaluate[chromedp.Void](`enter.focus()`), chromedp.KeyEvent("\r"))
	p.sees("The new harvest is here")
}

// What has waited in a stream while the phone was asleep, such as a call that is
// long over, and an answer that was overtaken on its way are no news.
func TestWhatIsOldIsNoNews(t *testing.T) {
	l, p := inLine(t, 3)
	asked := l.count("checkin")
	l.change(func() { l.stale = 1 })
	eventually(t, "the page asks what is true", func() bool { return l.count("checkin") > asked })
	p.reads("h1", "You are in line")
	if n := l.count("leave"); n != 0 {
		t.Errorf("a call of a minute ago was gone by: %d passes were asked for", n)
	}

	p.until("to hold the next answer back", `(window.real = window.fetch, window.fetch = async (...a) => {
		const r = await real(...a);
		await new Promise(free => window.free = free);
		return r;
	}, window.ran = new Set(), new MutationObserver(() => ran.add(note.textContent)).observe(note, {childList: true}), true)`)
	p.until("to have heard nothing for a while", `(window.now ??= Date.now, Date.now = () => now() + 4e3, true)`)
	p.looking(true)
	p.until("the answer to be on its way", "(Date.now = now, window.free)")
	l.change(func() { l.paused = ticket.PausedHeld })
	p.reads("#note", "Nobody is being let in just now. Your place is kept. Whoever runs this site has stopped the line for now.")
	p.until("the answer to come", "(free(), true)")
	l.change(func() { l.messages = []gateway.Message{{Text: "Soon."}} })
	p.reads("#said", "Soon.")
	if said, err := eval[string](p, `[...ran].join("/")`); err != nil || said != p.text("#note") {
		t.Errorf("the note read %q meanwhile (%v)", said, err)
	}
}

// Who asked for it hears of their turn, and who is looking goes straight in.
func TestWhoAskedForItIsTold(t *testing.T) {
	l, p := inLine(t, 3)
	p.until("to note what is told", `(window.told = [], window.Notification = class { constructor(text) { told.push(text) } static requestPermission() { told.push("asked") } }, true)`)
	p.click("#bell")
	p.until("to be asked for leave", `told.join() === "asked"`)
	p.looking(false)
	p.until("to see the page out", `addEventListener("pagehide", () => sessionStorage.told = told), true`)
	l.change(func() { l.limit = 100 })
	p.sees("The new harvest is here")
	p.until("the turn to have been told", `sessionStorage.told === "asked,It is your turn"`)
}

// The page shows when it may be, by the clock of whoever looks.
func TestTimeOfTheTurn(t *testing.T) {
	_, p := inLine(t, 11) // the line says 30 s a person
	p.until("the time", `(() => {
		const at = 6e4 * Math.ceil((Date.now() + 3e5) / 6e4), say = t => "Your turn at about " + new Date(t).toLocaleTimeString("en-US", {timeStyle: "short"});
		return [at, at - 6e4].map(say).includes(document.getElementById("at").textContent);
	})()`)
}
