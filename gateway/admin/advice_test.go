package admin_test

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway/admin"
)

// evening is half an hour in steps of a minute in which people wait, the site is full
// and nothing can be bettered.
func evening() (admin.Setup, admin.Figures) {
	f := admin.Figures{Room: "shop", Step: 60}
	for i := range 30 {
		f.Time, f.State = append(f.Time, int64(60*i)), append(f.State, "queueing")
		for c, v := range map[*admin.Column]float64{&f.OnSite: 95, &f.Called: 3, &f.Queued: 500, &f.Limit: 100, &f.Rate: 0, &f.Admissions: 30} {
			*c = append(*c, v)
		}
	}
	p50, p95, wait := 240.0, 590.0, 900.0
	f.Total = admin.Totals{
		Joins: 1400, Calls: 900, Admissions: 900, NoShows: 20, DropOuts: 100, EndsLeft: 800, EndsExpired: 50,
		Visit: admin.Shares{Count: 850, P50: &p50, P95: &p95}, Wait: admin.Shares{Count: 850, P50: &wait},
	}
	return admin.Setup{Session: 10 * time.Minute, Renewal: true, Claim: 2 * time.Minute}, f
}

func TestAdviceGoesByTheFigures(t *testing.T) {
	fill := func(c admin.Column, v float64) {
		for i := range c {
			c[i] = v
		}
	}
	visits := func(f *admin.Figures, p50, p95, left, expired float64) {
		f.Total.Visit.P50, f.Total.Visit.P95, f.Total.EndsLeft, f.Total.EndsExpired = &p50, &p95, left, expired
	}
	for _, x := range []struct {
		what string
		set  func(s *admin.Setup, f *admin.Figures)
		key  string // "": there is nothing to say
		has  []string
	}{
		{"all is well", func(*admin.Setup, *admin.Figures) {}, "", nil},
		{"short visits", func(_ *admin.Setup, f *admin.Figures) { visits(f, 120, 290, 800, 50) }, "session_duration", []string{"Half of the visits end in 2m and 95 % in 4m50s; sessions last 10m.", "with 5m it is free"}},
		{"short visits, few of them", func(_ *admin.Setup, f *admin.Figures) { visits(f, 120, 290, 800, 50); f.Total.Visit.Count = 99 }, "", nil},
		{"short visits, and nobody waited", func(_ *admin.Setup, f *admin.Figures) { visits(f, 120, 290, 800, 50); fill(f.Queued, 0) }, "", nil},
		{"short visits, and people waited for nine minutes", func(_ *admin.Setup, f *admin.Figures) { visits(f, 120, 290, 800, 50); fill(f.Queued[9:], 0) }, "", nil},
		{"short visits, while an operator held the room", func(_ *admin.Setup, f *admin.Figures) {
			visits(f, 120, 290, 800, 50)
			for i := range f.State {
				f.State[i] = "held"
			}
		}, "", nil},
		{"short visits, and no node was there", func(_ *admin.Setup, f *admin.Figures) {
			visits(f, 120, 290, 800, 50)
			fill(f.Queued, math.NaN())
		}, "", nil},
		{"visits that run out", func(_ *admin.Setup, f *admin.Figures) { visits(f, 660, 900, 100, 300) }, "session_duration", []string{"75 % of the visits ended because nothing was heard for session_duration, 10m", "there for some 1m, and their places were taken for 11m"}},
		{"cut off", func(s *admin.Setup, f *admin.Figures) { s.Renewal = false; visits(f, 600, 600, 100, 300) }, "session_duration", []string{"last for as long as they may, 10m", "session_renewal"}},
		{"the rate", func(_ *admin.Setup, f *admin.Figures) { fill(f.Rate, 60); fill(f.OnSite, 40) }, "new_users_per_minute", []string{"43 of 100 places", "(60)"}},
		{"the limit", func(_ *admin.Setup, f *admin.Figures) { fill(f.Rate, 100) }, "total_active_users", []string{"98 of 100 places", "30 a minute got in where new_users_per_minute allows 100"}},
		{"both", func(_ *admin.Setup, f *admin.Figures) { fill(f.Rate, 40) }, "", nil},
		{"no-shows", func(_ *admin.Setup, f *admin.Figures) { f.Total.NoShows = 180 }, "claim_window", []string{"20 % of the calls found nobody", "claim_window, 2m. With 1m they"}},
		{"no-shows, few calls", func(_ *admin.Setup, f *admin.Figures) { f.Total.NoShows, f.Total.Calls = 18, 90 }, "", nil},
		{"no-shows, with a short window", func(s *admin.Setup, f *admin.Figures) { f.Total.NoShows, s.Claim = 180, 30*time.Second }, "", nil},
		{"a half gives up", func(_ *admin.Setup, f *admin.Figures) { f.Total.DropOuts = 700 }, "ticket_ttl", []string{"50 % of those who queued gave up", "waited for up to 15m"}},
	} {
		s, f := evening()
		x.set(&s, &f)
		got := admin.Advise(s, &f)
		if x.key == "" {
			if len(got) > 0 {
				t.Errorf("%s: %+v, want nothing", x.what, got)
			}
			continue
		}
		if len(got) != 1 || got[0].Key != x.key {
			t.Errorf("%s: %+v, want one about %s", x.what, got, x.key)
			continue
		}
		for _, has := range x.has {
			if !strings.Contains(got[0].Text, has) {
				t.Errorf("%s: %q, want %q in it", x.what, got[0].Text, has)
			}
		}
	}
}

// The past is what a node tells of a long evening.
type past struct {
	archive
	evening admin.Figures
}

func (p *past) Figures(_ context.Context, _ string, q admin.Span) (admin.Figures, error) {
	p.asked = q
	return p.evening, nil
}

// Who asks why a room is slow is told what to change, if the last hour says it, and only
// then are all nodes asked for it.
func TestWhyHasAdviceWhereItIsAskedFor(t *testing.T) {
	_, f := evening()
	p50, p95 := 30.0, 90.0
	f.Total.Visit.P50, f.Total.Visit.P95 = &p50, &p95
	p := &past{evening: f}
	d := aDesk()
	d.keys = `{"session_duration":"10m","session_renewal":true,"claim_window":"2m"}`
	c := admin.Config{Source: aNode(), Operator: d, Historian: p}
	if w := ask(c, "GET", "/v1/rooms/shop/why", ""); w.Code != 200 || strings.Contains(w.Body.String(), "advice") || !p.asked.From.IsZero() {
		t.Errorf("not asked for: %d %s", w.Code, w.Body)
	}
	w := ask(c, "GET", "/v1/rooms/shop/why?advice=true", "")
	var why admin.Reason
	if err := json.Unmarshal(w.Body.Bytes(), &why); err != nil || len(why.Advice) != 1 || why.Advice[0].Key != "session_duration" || !strings.HasPrefix(why.Advice[0].Text, "Half of the visits end in 30s") {
		t.Errorf("%v: %s", err, w.Body)
	}
	if long := p.asked.To.Sub(p.asked.From); long != time.Hour {
		t.Errorf("it goes by %v, want an hour", long)
	}
}

// How long people had waited who get in now is told by room, and who did not say so.
func TestWaitsOfThoseWhoGetIn(t *testing.T) {
	c := admin.Config{Source: aNode(), Operator: aDesk(), Historian: &archive{}}
	const want = `{"seconds":60,"rooms":[{"room":"shop","count":23,"p50":38.2,"p75":41,"p95":null}],"missing":["b"]}`
	if w := ask(c, "GET", "/v1/waits", ""); w.Code != 200 || strings.TrimSpace(w.Body.String()) != want {
		t.Errorf("%d %s, want %s", w.Code, w.Body, want)
	}
	if w := ask(admin.Config{Source: aNode()}, "GET", "/v1/waits", ""); w.Code != 404 {
		t.Errorf("a node without a history answers %d", w.Code)
	}
}

// What the nodes have is told by name; what is missing is the rooms'.
func TestSlotsOfAllNodes(t *testing.T) {
	n := aNode()
	sooner := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	later := sooner.Add(time.Minute)
	n.rooms = append(n.rooms, admin.Room{Name: "news", SlotsMissing: 4, WholeAt: &sooner}, admin.Room{Name: "blog", SlotsMissing: 2, WholeAt: &later})
	c := admin.Config{Source: n, Operator: aDesk(), Historian: &archive{}}
	for path, want := range map[string]string{
		"/v1/slots":           `{"room":"","nodes":[{"node":"a","answers":true,"slots_owned":0,"slots_used":3,"slots_free":0,"queued":0,"called":0,"on_site":0,"parked":0,"kept_elsewhere":0,"kept":0},{"node":"b","answers":false,`,
		"/v1/slots?room=shop": `{"room":"shop","nodes":[{"node":"a","answers":true,"slots_owned":4,`,
		"/v1/slots?room=nope": `"code":"room_unknown"`,
	} {
		if w := ask(c, "GET", path, ""); !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %s, want %s", path, w.Body, want)
		}
	}
	for path, want := range map[string]string{
		"/v1/slots": `"slots_missing":6,"whole_at":"2026-11-21T09:01:00Z"}`, "/v1/slots?room=news": `"slots_missing":4,"whole_at":"2026-11-21T09:00:00Z"}`, "/v1/slots?room=shop": `"slots_missing":0}`,
	} {
		if w := ask(c, "GET", path, ""); !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %s, want %s", path, w.Body, want)
		}
	}
}
