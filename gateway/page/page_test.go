package page

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/brand"
	"github.com/anteroom/anteroom/internal/ticket"
)

// sizeMax bounds the waiting page, not compressed; a test of the gateway bounds what
// goes over the wire. In bytes.
const sizeMax = 20 << 10

func otherKinds() []gateway.PageKind {
	return []gateway.PageKind{
		gateway.PageFull, gateway.PageClosed, gateway.PageCookies, gateway.PageBusy, gateway.PageNetwork, gateway.PageUnavailable,
		gateway.PageOriginDown, gateway.PageLeft, gateway.PageLinked,
		gateway.PageTransfer, gateway.PageBookmark, gateway.PageTake, gateway.PageLinkOver, gateway.PageMoved,
	}
}

// waiting is someone in the middle of a line.
func waiting() gateway.View {
	at := time.Date(2026, 11, 21, 14, 3, 22, 0, time.UTC)
	return gateway.View{
		Kind: gateway.PageWaiting, Nonce: "bm9uY2U", Room: "shop", RefreshSeconds: 20, LastUpdated: at,
		Method: "fifo", Position: 1042, PeopleAhead: 1041, Queued: 2000,
		Wait: gateway.Estimate{Known: true, P25: 200, P50: 300, P75: 400}, JoinedAt: at.Add(-time.Minute),
		StreamURL: "/_anteroom/v1/rooms/shop/stream", CheckInURL: "/_anteroom/v1/rooms/shop/checkin",
		AbandonURL: "/_anteroom/v1/rooms/shop/abandon", RefreshURL: "/_anteroom/wait?to=%2Fcart%3Fa%3D1%26b%3D2", HereURL: "/cart?a=1&b=2",
	}
}

func newPages(t testing.TB) *Pages {
	t.Helper()
	p, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func render(t testing.TB, p *Pages, v gateway.View) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Page(&b, v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWaitingPageSaysWhereYouStand(t *testing.T) {
	html := render(t, newPages(t), waiting())
	for _, want := range []string{
		`<html lang="en" dir="ltr">`,
		`<title>1,042 · You are in line</title>`,
		`<dd id="place">1,042</dd>`,
		`<dl id="stand" class="known">`,
		`<dd id="wait">About 5 minutes</dd>`,
		`datetime="2026-11-21T14:03:22Z">2:03:22 PM UTC</time>`,
		`<p class="note" id="note" hidden></p>`,
		`role="status"`,
		`<form method="post" action="/_anteroom/v1/rooms/shop/abandon" id="leave">`,
		`<style nonce="bm9uY2U">`,
		`<script nonce="bm9uY2U">`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

func TestWaitingPageInDutch(t *testing.T) {
	v := waiting()
	v.AcceptLanguage, v.Paused = "nl-NL,nl;q=0.9", ticket.PausedSplit
	html := render(t, newPages(t), v)
	for _, want := range []string{
		`<html lang="nl" dir="ltr">`,
		`<title>1.042 · Je staat in de rij</title>`,
		`14:03:22 UTC`,
		`<p class="note" id="note">Er gaat nu even niemand naar binnen. Je houdt je plaats. Een deel van onze servers kan elkaar niet bereiken.</p>`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

func TestWaitingPageSaysWhyNobodyGoesIn(t *testing.T) {
	at := waiting().LastUpdated
	tests := []struct {
		name   string
		change func(*gateway.View)
		want   string
	}{
		{"a reason that has words", func(v *gateway.View) { v.Paused = ticket.PausedJoining }, "The waiting room is starting."},
		{"a reason of a newer node", func(v *gateway.View) { v.Paused = "lunch" }, `id="note">Nobody is being let in just now. Your place is kept.</p>`},
		{"a node without a cluster", func(v *gateway.View) { v.Paused = ticket.PausedFounding }, "kept. The waiting room is starting.</p>"},
		{"an operator's hold", func(v *gateway.View) { v.Paused = ticket.PausedHeld }, "kept. Whoever runs this site has stopped the line for now.</p>"},
		{"an unhealthy origin", func(v *gateway.View) { v.Paused = ticket.PausedUnhealthy }, "kept. The site does not answer as it should just now. The line moves on when it is well again."},
		{"a limit that was lowered", func(v *gateway.View) { v.Paused = ticket.PausedOverLimit }, "kept. There are more people on the site than it can take now."},
		{"somebody whose network is full", func(v *gateway.View) { v.Paused = ticket.PausedAddress }, `id="note">It is your turn, but as many people on your network`},
		{"a node that is not reached", func(v *gateway.View) { v.Paused = ticket.PausedUnreached }, `id="note">The waiting room does not answer just now.`},
		{"figures of before a split", func(v *gateway.View) { v.CountedAt = at.Add(-time.Minute) }, `<time id="updated" datetime="2026-11-21T14:02:22Z">2:02:22 PM UTC</time>`},
		{"after a restart", func(v *gateway.View) { v.HeldUntil = at.Add(22 * time.Second) }, "Nobody goes in before 2:03:44 PM UTC"},
		{"a restart that is over", func(v *gateway.View) { v.HeldUntil = at.Add(-time.Second) }, `id="note" hidden></p>`},
		{"before the doors open", func(v *gateway.View) { v.StartsAt = at.Add(time.Hour) }, "The doors open at 2026-11-21 15:03 UTC."},
		{"before the doors open, without places", func(v *gateway.View) { v.StartsAt, v.Position = at.Add(time.Hour), 0 }, `<div hidden><dt>Your place`},
		{"before a draw", func(v *gateway.View) { v.StartsAt, v.Draw = at.Add(time.Hour), &gateway.Draw{} }, `<p class="small">Everyone who waits has the same chance`},
		{"no estimate for a line that stands still", func(v *gateway.View) { v.Paused = "lunch" }, `<dd id="wait">Not known just now</dd>`},
		{"a place that was given up", func(v *gateway.View) { v.Rejoined = true }, "your earlier place went to the next person"},
		{"a place that missed its calls", func(v *gateway.View) { v.Missed = true }, "your turn more than once and nobody came in"},
		{"words for all who wait", func(v *gateway.View) { v.Messages = []gateway.Message{{Text: "Tickets left: 100 & counting"}} }, `<div class="message" id="said"><p>Tickets left: 100 &amp; counting</p></div>`},
		{"messages, the newest first", func(v *gateway.View) {
			earlier := at.Add(-time.Hour)
			v.Messages = []gateway.Message{{Text: "Always."}, {At: &at, Text: "New."}, {At: &earlier, Text: "Old."}}
		}, `<div class="message" id="said"><p>Always.</p><p><time>2026-11-21 14:03 UTC</time> New.</p></div>`},
		{"messages of before", func(v *gateway.View) {
			earlier := at.Add(-time.Hour)
			v.Messages = []gateway.Message{{At: &at, Text: "New."}, {At: &earlier, Text: "Old."}}
		}, `<details id="before"><summary>Earlier messages</summary><div id="old"><p><time>2026-11-21 13:03 UTC</time> Old.</p></div></details>`},
		{"no messages", func(*gateway.View) {}, `<div class="message" id="said" hidden></div>`},
		{"how long a place is kept", func(v *gateway.View) { v.Kept = 5*time.Minute + 59*time.Second }, `Away from this page, your place is kept for 5 minutes.`},
		{"how long, in hours", func(v *gateway.View) { v.Kept = time.Hour }, `your place is kept for 1 hour.`},
		{"a place that is not counted yet", func(v *gateway.View) { v.Position = 0 }, `<dd id="place" class="unknown">being counted</dd>`},
		{"a wait that nobody knows", func(v *gateway.View) { v.Wait = gateway.Estimate{} }, `<dd id="wait">Not known just now</dd>`},
		{"the very front", func(v *gateway.View) { v.Position, v.Wait.P50 = 1, 4 }, `<dd id="wait">Less than a minute</dd>`},
	}
	p := newPages(t)
	for _, tt := range tests {
		v := waiting()
		tt.change(&v)
		if html := render(t, p, v); !strings.Contains(html, tt.want) {
			t.Errorf("%s: the page lacks %q", tt.name, tt.want)
		}
	}
}

func TestDrawHasNoPlaces(t *testing.T) {
	v := waiting()
	v.Method, v.Position, v.PeopleAhead = "random", 0, 0
	html := render(t, newPages(t), v)
	for _, want := range []string{
		`<title>You are in the draw</title>`,
		`<div hidden><dt>Your place in line</dt>`,
		`<dt>People in the draw</dt><dd id="queued">2,000</dd>`,
		`Half wait less than 5 minutes, three in four less than 7 minutes`,
		`the same chance`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(html, "ahead of you") {
		t.Error("the page speaks of people ahead in a draw")
	}
}

// What a page has to say reaches the reader in every language, and none of it
// needs a script but the waiting page's upkeep.
func TestEveryPageInEveryLanguage(t *testing.T) {
	p := newPages(t)
	title := regexp.MustCompile(`<h1 id="title">[^<]+</h1>\s*<p id="lead">[^<]+</p>`)
	for _, lang := range p.Languages() {
		for _, kind := range append(otherKinds(), gateway.PageCalled, gateway.PageWaiting) {
			v := waiting()
			v.Kind, v.AcceptLanguage = kind, lang
			html := render(t, p, v)
			if !title.MatchString(html) || !strings.Contains(html, `<html lang="`+lang+`"`) {
				t.Errorf("%s, %s: no heading and text in that language", kind, lang)
			}
			if got, want := strings.Contains(html, "<script"), kind == gateway.PageWaiting; got != want {
				t.Errorf("%s, %s: has a script: %v, want %v", kind, lang, got, want)
			}
			if strings.Contains(html, "ZgotmplZ") {
				t.Errorf("%s, %s: the template filtered a value out", kind, lang)
			}
			if m := regexp.MustCompile(`(?:src|href|url|@import)\s*[=(]\s*"?(?:https?:)?//[^\s>]*`).FindString(html); m != "" {
				t.Errorf("%s, %s: needs something from elsewhere: %s", kind, lang, m)
			}
			if v.RefreshSeconds = 0; strings.Contains(render(t, p, v), "by itself") || strings.Contains(html, "http-equiv") {
				t.Errorf("%s, %s: reloads itself though it need not", kind, lang)
			}
		}
	}
}

func TestUnknownKindIsAnError(t *testing.T) {
	if err := newPages(t).Page(io.Discard, gateway.View{Kind: "party"}); err == nil {
		t.Error("Page of an unknown kind gave no error")
	}
}

// The operator's words and a visitor's address are not to be trusted.
func TestNothingBreaksOutOfThePage(t *testing.T) {
	const evil = `"'></script><script>alert(1)</script><!--{{.}}`
	v := waiting()
	v.Room, v.Messages, v.Paused, v.AcceptLanguage, v.Language = evil, []gateway.Message{{Text: evil}, {At: &v.LastUpdated, Text: evil}, {At: &v.LastUpdated, Text: evil}}, evil, evil, evil
	v.HereURL, v.RefreshURL, v.AbandonURL = "javascript:alert(1)//"+evil, "/"+evil, "javascript:alert(1)"
	p := newPages(t)
	for _, kind := range append(otherKinds(), gateway.PageCalled, gateway.PageWaiting) {
		v.Kind = kind
		html := render(t, p, v)
		if strings.Contains(html, "<script>") || strings.Contains(html, `="javascript:`) || strings.Contains(html, "<!--") {
			t.Errorf("%s: something broke out:\n%s", kind, html)
		}
	}
}

func TestWaitingPageIsSmall(t *testing.T) {
	p := newPages(t)
	for _, lang := range p.Languages() {
		v := waiting()
		v.AcceptLanguage = lang
		n := len(render(t, p, v))
		t.Logf("%s: %d bytes", lang, n)
		if n > sizeMax {
			t.Errorf("the waiting page in %s is %d bytes, want at most %d", lang, n, sizeMax)
		}
	}
}

func TestPagesAreWrittenAtOnce(t *testing.T) {
	p := newPages(t)
	want := render(t, p, waiting())
	var g sync.WaitGroup
	for range 8 {
		g.Go(func() {
			for range 20 {
				var b bytes.Buffer
				if err := p.Page(&b, waiting()); err != nil || b.String() != want {
					t.Errorf("Page from several goroutines: %v, same page: %v", err, b.String() == want)
				}
			}
		})
	}
	g.Wait()
}

func BenchmarkPage(b *testing.B) {
	p := newPages(b)
	for name, v := range map[string]gateway.View{"kind=waiting": waiting(), "kind=busy": {Kind: gateway.PageBusy, AcceptLanguage: "nl"}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Page(io.Discard, v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// An accent is readable on everything that page.css has behind it.
func TestAccentIsReadableOnThePage(t *testing.T) {
	light, dark := grounds()
	var want []string
	for _, c := range append(light, dark...) {
		want = append(want, c.String())
	}
	var got []string
	for _, name := range []string{"card", "ground", "note"} {
		for _, m := range regexp.MustCompile(`--`+name+`: #([0-9a-f]+);`).FindAllStringSubmatch(pageCSS, -1) {
			c, err := brand.ParseColor("#" + m[1])
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, c.String())
		}
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("behind the accent is %v, and it is made readable on %v", got, want)
	}
	v := waiting()
	v.Brand = gateway.Brand{Title: "Leaf & Kettle", Accent: "#ffcc00", Description: "Tea. See [prices](https://example.com/?a=1&b=<script>)."}
	html := render(t, newPages(t), v)
	for _, want := range []string{
		`:root{--accent:#856a00}@media (prefers-color-scheme:dark){:root{--accent:#ffcc00}}</style>`,
		`<p class="room">Leaf &amp; Kettle</p>`,
		`Tea. See <a href="https://example.com/?a=1&amp;b=%3cscript%3e" target="_blank" rel="noopener noreferrer">prices</a>.</p>`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %s\n%s", want, html[:200])
		}
	}
}
