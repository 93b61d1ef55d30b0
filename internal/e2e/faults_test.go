package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/ticket"
)

// inLine has somebody wait in place n of a line of their own.
func inLine(t *testing.T, n int) (*line, *person) {
	t.Helper()
	l := newLine(t, 0)
	l.crowd(n - 1)
	p := newPerson(t)
	p.open(l.URL + "/")
	p.reads("#place", fmt.Sprint(n))
	p.until("to mark the page", "window.mark = true")
	return l, p
}

// stayed checks that the page was not loaded anew.
func (p *person) stayed() {
	p.t.Helper()
	p.until("the page to be the one that was opened", "window.mark")
}

func TestScriptStopsTheRefreshOfThePage(t *testing.T) {
	l, p := inLine(t, 9)
	loaded := l.count("page")
	for i := range 4 { // each takes longer than the header's two seconds
		l.letIn(1)
		p.reads("#place", fmt.Sprint(8-i))
		p.rests(time.Second)
	}
	p.stayed()
	if got := l.count("page"); got != loaded {
		t.Errorf("the page was loaded %d times more, want none", got-loaded)
	}
}

// rests lets a person do nothing for a while.
func (p *person) rests(d time.Duration) { <-time.After(d) }

func TestStreamThatBreaksIsReplacedByAsking(t *testing.T) {
	l, p := inLine(t, 9)
	asked := l.count("checkin")
	l.change(func() { l.streams = false }) // the node that held it is gone
	l.letIn(2)
	p.reads("#place", "7")
	l.letIn(2)
	p.reads("#place", "5")
	p.stayed()
	if got := l.count("checkin"); got <= asked {
		t.Error("nobody asked after the stream broke")
	}
}

func TestNetworkThatIsGoneIsSaidCalmly(t *testing.T) {
	l, p := inLine(t, 9)
	l.change(func() { l.dark = true })
	l.CloseClientConnections()
	p.sees("Your place is kept, and this page keeps trying.")
	p.reads("#place", "9")
	p.reads("#status", p.text("#note"))
	p.isAccessible("no network")
	p.picture("no network")
	l.change(func() { l.dark = false })
	l.letIn(3)
	p.reads("#place", "6")
	p.until("the note to go", "note.hidden")
	p.stayed()
}

func TestPauseIsExplained(t *testing.T) {
	l, p := inLine(t, 4)
	l.change(func() { l.paused = ticket.PausedSplit })
	p.reads("#note", "Nobody is being let in just now. Your place is kept. Some of our servers cannot reach each other.")
	p.reads("#status", p.text("#note"))
	p.reads("#wait", "Not known just now")
	p.picture("paused")
	l.change(func() { l.paused = "" })
	p.until("the note to go", "note.hidden")
	p.stayed()
}

// stay is what the page says to do.
const stay = "Keep this page open: it takes you in when it is your turn."

// The page says what people wait for, and not that a room is full which is not.
func TestThePageSaysWhy(t *testing.T) {
	l, p := inLine(t, 4)
	for why, want := range map[string]string{
		gateway.WhyFull:    "The site is full just now. " + stay,
		gateway.WhyRate:    "People go in one after another just now, so that the site keeps up. " + stay,
		gateway.WhyMissing: "Some of our servers do not answer just now, so fewer people can go in. " + stay,
		gateway.WhyCalling: stay,
	} {
		l.change(func() { l.why = why })
		p.reads("#lead", want)
		p.picture(why)
		p.isAccessible(why)
		p.stayed()
		still := newPerson(t, withoutScripts())
		still.open(l.URL + "/")
		still.reads("#lead", want)
	}
}

// Before the doors open the page counts down, in silence, by the server's clock.
func TestCountdownToTheStart(t *testing.T) {
	l := newLine(t, 0)
	l.change(func() { l.starts, l.draws = time.Now().Add(90*time.Second), true })
	p := newPerson(t)
	p.open(l.URL + "/")
	p.until("the countdown to be there", "!doors.hidden && timer.textContent.startsWith('00:01:')")
	p.until("no place to be spoken of", "place.parentNode.hidden && wait.parentNode.hidden && note.hidden")
	p.until("the start to be told", "opens.textContent.startsWith('The doors open at ') && opens.textContent === document.getElementById('status').textContent")
	p.until("to look for news that are read out", `window.read = 0, new MutationObserver(() => read++).observe(document.getElementById("status"), {childList: true, characterData: true, subtree: true}), true`)
	p.until("a timer that nobody reads out", "timer.getAttribute('role') === 'timer' && !timer.closest('[aria-live],[role=status],[role=alert],[role=log]')")
	p.isAccessible("countdown")
	p.picture("countdown")
	was := p.text("#timer")
	p.until("three seconds to pass", fmt.Sprintf("timer.textContent < %q && (window.ticks ??= new Set).add(timer.textContent).size > 3", was))
	p.until("nothing to have been read out", "read === 0")

	p.until("to set the clock of this browser an hour ahead", "Date.now = (now => () => now() + 36e5)(Date.now), true")
	l.change(func() { l.starts = time.Now().Add(3 * time.Second) })
	p.until("the clock not to matter", "!doors.hidden && timer.textContent.startsWith('00:00:0')")
	p.until("the doors to be open", "doors.hidden && lead.textContent.startsWith('The site is full just now')")
	l.letIn(0)
	p.reads("#place", "1")
	p.until("the place to be shown", "!place.parentNode.hidden")
}

// Who waits already when a draw is announced, or is over, gets the page about it.
func TestPageLoadsItselfForADraw(t *testing.T) {
	l, p := inLine(t, 4)
	p.until("nothing of a draw", "!document.getElementById('seed')")
	l.change(func() { l.starts, l.draws = time.Now().Add(time.Hour), true })
	p.until("what one can check", "!!document.getElementById('seed') && !doors.hidden")
	p.sees("Everyone who waits has the same chance")
	l.change(func() { l.starts, l.draws = time.Time{}, false })
	p.until("nothing of a draw again", "!document.getElementById('seed')")
	p.sees("First come, first served")
}

func TestScreenReaderIsNotTalkedOver(t *testing.T) {
	l, p := inLine(t, 9)
	for i := range 5 {
		l.letIn(1)
		p.reads("#place", fmt.Sprint(8-i))
	}
	if got := p.text("#status"); got != "" {
		t.Errorf("within seconds, the page announced %q", got)
	}
}

func TestOneTabAsksForAll(t *testing.T) {
	l, p := inLine(t, 9)
	tabs := []*person{p}
	for range 2 {
		tab := p.newTab()
		tab.open(l.URL + "/tea/rooibos")
		tab.reads("#place", "9")
		tabs = append(tabs, tab)
	}
	l.letIn(1)
	for _, tab := range tabs {
		tab.reads("#place", "8")
	}
	if got := l.streaming(); got != 1 {
		t.Errorf("three tabs hold %d streams, want 1", got)
	}
	tabs[0].closeTab()
	tabs = tabs[1:]
	l.letIn(1)
	for _, tab := range tabs {
		tab.reads("#place", "7")
	}
	eventually(t, "two tabs hold one stream", func() bool { return l.streaming() == 1 })
	l.change(func() { l.limit = 100 })
	for _, tab := range tabs {
		tab.sees("vanilla, apricot") // each goes where it was headed
	}
}

// A node that took the place over may know less about who is in front.
func TestPlaceNeverRises(t *testing.T) {
	l, p := inLine(t, 6)
	l.letIn(2)
	p.reads("#place", "4")
	bar, err := eval[float64](p, "bar.value")
	if err != nil {
		t.Fatal(err)
	}
	l.crowdInFront(10)
	l.change(func() { l.paused = ticket.PausedHeld })
	p.until("the news to arrive", "!note.hidden")
	p.reads("#place", "4")
	p.reload()
	p.until("the script to be done", "!bar.hidden")
	p.reads("#place", "4")
	p.until("the bar to be where it was", fmt.Sprintf("bar.value === %v", bar))
	l.letIn(11)
	p.reads("#place", "3")
}

func TestBackButtonFindsThePlaceAgain(t *testing.T) {
	l, p := inLine(t, 6)
	p.open(l.URL + "/?elsewhere")
	p.reads("#place", "6")
	l.letIn(1)
	p.goBack()
	p.reads("#place", "5")
	l.letIn(1)
	p.reads("#place", "4")
	if got := len(l.everyone()); got != 4 {
		t.Errorf("%d people wait, want 4: nobody twice", got)
	}
}

func TestSleepingTabWakesUp(t *testing.T) {
	l, p := inLine(t, 6)
	p.do("fall asleep", lifecycle(cdppage.SetWebLifecycleStateStateFrozen))
	l.change(func() { l.streams = false })
	l.letIn(3)
	p.rests(2 * time.Second)
	l.change(func() { l.streams = true })
	p.do("wake up", lifecycle(cdppage.SetWebLifecycleStateStateActive))
	p.reads("#place", "3")
	p.stayed()
}

// A place that is gone is nothing that the script explains: the server does.
func TestPlaceThatIsGivenUpIsTakenAnew(t *testing.T) {
	l, p := inLine(t, 3)
	l.change(func() { l.waiting = slices.Delete(l.waiting, 2, 3) })
	l.crowd(4)
	p.reads("#place", "7")
}

// What the script writes is what the server wrote.
func TestScriptAndServerSayTheSame(t *testing.T) {
	l := newLine(t, 0)
	l.crowd(1233)
	for _, lang := range []string{"en-US,en", "nl-NL,nl"} {
		p := newPerson(t, inLanguage(lang))
		p.open(l.URL + "/")
		p.until("the script to be done", "!bell.hidden")
		differs, err := eval[string](p, `fetch(location).then(r => r.text()).then(html => {
			const server = new DOMParser().parseFromString(html.replace(/<style[^]*<.style>/, ""), "text/html");
			return ["title", "lead", "place", "wait", "note"].map(id => [id, server.getElementById(id).textContent, document.getElementById(id).textContent])
				.concat([["tab", server.title, document.title], ["stand", server.getElementById("stand").className, stand.className]]).filter(([, a, b]) => a !== b).join("\n");
		})`)
		if err != nil || differs != "" {
			t.Errorf("%s: server and script differ (%v):\n%s", lang, err, differs)
		}
	}
}

// Messages come to a page that is open, to all of its tabs, and are read out; those
// of before stay, and without a script all of it is there as well.
func TestMessagesStandOnThePage(t *testing.T) {
	l, p := inLine(t, 4)
	p.until("nothing to read", "said.hidden && before.hidden")
	at := func(ago time.Duration) *time.Time { at := time.Now().Add(-ago); return &at }
	old, fresh := gateway.Message{At: at(48 * time.Hour), Text: "We open <soon>."}, gateway.Message{At: at(0), Text: "The harvest\nis in."}
	second := p.newTab()
	second.open(l.URL + "/tea/gyokuro")
	second.reads("#place", "4")
	l.change(func() { l.messages = []gateway.Message{old} })
	for _, tab := range []*person{p, second} {
		tab.until("the message, with its day", `!said.hidden && said.textContent.endsWith("We open <soon>.") && said.querySelector("time").textContent.includes(", 20") && before.hidden`)
	}
	p.reads("#status", "We open <soon>.")
	l.change(func() { l.messages = []gateway.Message{{Text: "Always."}, fresh, old} })
	for _, tab := range []*person{p, second} {
		tab.until("the newest, and the one of before", `said.children.length == 2 && said.textContent.includes("Always.") && said.lastChild.textContent.endsWith("The harvest\nis in.")
			&& !before.hidden && old.textContent.endsWith("We open <soon>.")`)
	}
	p.reads("#status", "The harvest\nis in.")
	p.click("#before summary")
	p.picture("messages")
	p.isAccessible("messages")
	p.reload()
	p.until("the same after a reload, and nothing read out", `said.children.length == 2 && !before.hidden && document.getElementById("status").textContent == ""`)
	still := newPerson(t, withoutScripts())
	still.open(l.URL + "/")
	still.until("the same without scripts", `said.children.length == 2 && said.textContent.includes(" UTC The harvest") && old.textContent.includes("We open <soon>.")`)
	l.change(func() { l.messages = nil })
	p.until("nothing left", "said.hidden && before.hidden")
}
