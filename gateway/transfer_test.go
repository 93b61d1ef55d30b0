package gateway_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/ticket"
)

// fromHere is what a browser sends with a form of this host.
func fromHere() []string {
	return append([]string{"Sec-Fetch-Site: same-origin"}, navigation[1:]...)
}

// pathOf is a link without its host.
func pathOf(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	return u.RequestURI()
}

// A place goes on by a link: opening it does nothing, whoever does; the form on the
// page that it opens takes the place over, once; the browser that had it is told, and
// has none.
func TestAPlaceGoesOnByALink(t *testing.T) {
	w := newWorld(t, withOrigin(t, site), shop())
	w.join()
	old, other := w.browser(), w.browser()
	mine := old.view("/list")
	if mine.TransferURL == "" || mine.BookmarkURL != "" {
		t.Fatalf("the waiting page: %+v", mine)
	}
	var v gateway.View
	r := old.send("POST", mine.TransferURL, "", fromHere()...)
	r.json(t, &v)
	if v.Kind != gateway.PageTransfer || !strings.HasPrefix(v.QR, "data:image/svg+xml;base64,") || v.LinkUntil.Sub(v.LastUpdated) != 5*time.Minute || v.HereURL != "/list" || v.RefreshSeconds != 300 {
		t.Fatalf("%+v", v)
	}
	if r.Header.Get("Content-Encoding") != "" || len(v.LinkURL) > len(w.url)+len("/_anteroom/m/shop/")+16+len("?to=%2Flist") {
		t.Errorf("%q, as %s", v.LinkURL, r.Header.Get("Content-Encoding"))
	}
	link := pathOf(t, v.LinkURL)
	for how, headers := range arrivals() { // a preview, a scanner, a stranger
		for range 3 {
			var asks gateway.View
			other.arrive(link, headers).json(t, &asks)
			if asks.Kind != gateway.PageTake || asks.TakeURL != link || len(other.jar) > 0 {
				t.Errorf("%s: %+v %v", how, asks, other.jar)
			}
		}
		other.send("HEAD", link, "", headers...)
	}
	if w.count(ticket.Take) != 0 {
		t.Errorf("%d were taken over by opening the link", w.count(ticket.Take))
	}
	if r := other.send("POST", link, "", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Accept: text/html"); r.StatusCode != 403 || len(other.jar) > 0 {
		t.Errorf("another site's form: %d %v", r.StatusCode, other.jar)
	}
	// As a person types it.
	middle := len("/_anteroom/m/shop/") + 4
	typed := strings.ToLower(link[:middle]) + "-" + link[middle:]
	r = other.send("POST", typed, "", fromHere()...)
	if there := other.arrive(r.Header.Get("Location"), fromHere()); r.StatusCode != 303 || there.StatusCode != 200 {
		t.Fatalf("%d, %d %s", r.StatusCode, there.StatusCode, there.body)
	}
	if got := other.view("/list"); !got.JoinedAt.Equal(mine.JoinedAt) || got.Position != mine.Position {
		t.Errorf("the place is not the one that went on: %+v", got)
	}
	third := w.browser()
	if r := third.send("POST", link, "", fromHere()...); r.StatusCode != 410 || len(third.jar) > 0 || !strings.Contains(r.body, string(gateway.PageLinkOver)) {
		t.Errorf("a second time: %d %v %s", r.StatusCode, third.jar, r.body)
	}
	if r := old.send("POST", "/_anteroom/v1/rooms/shop/checkin", "", "Accept: application/json"); r.StatusCode != 410 || r.code() != "place_moved" {
		t.Errorf("the script of the page of before: %d %s", r.StatusCode, r.body)
	}
	joins := w.count(ticket.Join)
	r = old.open("/list")
	moved := old.view(strings.TrimPrefix(r.Header.Get("Location"), w.url))
	if r.StatusCode != 303 || moved.Kind != gateway.PageMoved || moved.HereURL != "/list" || len(old.jar) > 0 || w.count(ticket.Join) != joins {
		t.Errorf("the browser of before: %d %+v %v, and %d joined", r.StatusCode, moved, old.jar, w.count(ticket.Join)-joins)
	}
	if again := old.view(moved.HereURL); again.Kind != gateway.PageWaiting || again.JoinedAt.Equal(mine.JoinedAt) {
		t.Errorf("and a place of its own again: %+v", again)
	}
}

// Programs have the same, and a link that is not one is no secret told.
func TestTransferForPrograms(t *testing.T) {
	w := newWorld(t, nil, shop())
	w.join()
	mine := w.join()
	r := w.api("transfer", with("ticket", mine.Ticket))
	var link struct {
		Room, Ticket, Link, QR string
		Expires                time.Time `json:"expires_at"`
	}
	if err := json.Unmarshal([]byte(r.body), &link); err != nil || r.StatusCode != 201 || link.Room != "shop" || link.Ticket == "" || link.Expires.IsZero() {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	to := pathOf(t, link.Link)
	for _, wrong := range []string{"AAAA", "ABCDEFGHJKLMNPQR", strings.Repeat("A", 2000), "%00", "ÄÄ"} {
		if r := w.send("POST", "/_anteroom/m/shop/"+wrong, "", "Accept: application/json"); r.StatusCode != 410 || r.code() != "transfer_over" {
			t.Errorf("%.20s: %d %s", wrong, r.StatusCode, r.body)
		}
	}
	if r := w.send("PUT", to, ""); r.StatusCode != 405 {
		t.Errorf("PUT: %d", r.StatusCode)
	}
	if r := w.send("POST", strings.Replace(to, "/shop/", "/nowhere/", 1), ""); r.code() != "room_unknown" {
		t.Errorf("of another room: %d %s", r.StatusCode, r.body)
	}
	var got gateway.Place
	w.send("POST", to, "", "Accept: application/json").json(t, &got)
	if got.Ticket == "" || !got.JoinedAt.Equal(mine.JoinedAt) {
		t.Errorf("%+v", got)
	}
	for op, want := range map[string]string{"checkin": "place_moved", "leave": "place_moved", "transfer": "place_moved", "abandon": "place_moved"} {
		for _, old := range []string{mine.Ticket, link.Ticket} {
			if r := w.api(op, with("ticket", old)); r.StatusCode != 410 || r.code() != want {
				t.Errorf("%s with the old ticket: %d %s", op, r.StatusCode, r.body)
			}
		}
	}
	if r := w.api("checkin", with("ticket", got.Ticket)); r.StatusCode != 200 {
		t.Errorf("the new ticket: %d %s", r.StatusCode, r.body)
	}
	if r := w.api("transfer", ""); r.StatusCode != 401 {
		t.Errorf("without a ticket: %d %s", r.StatusCode, r.body)
	}
	first := w.place(200, "checkin", with("ticket", got.Ticket))
	w.pass(6 * time.Minute)
	if r := w.api("transfer", with("ticket", first.Ticket)); r.StatusCode != 410 || r.code() != "ticket_expired" {
		t.Errorf("a place that was given up: %d %s", r.StatusCode, r.body)
	}
}

// An open stream hears of it at once, and is told where the place is.
func TestAStreamHearsThatThePlaceHasGoneOn(t *testing.T) {
	w := newWorld(t, nil, shop())
	w.join()
	mine := w.join()
	l := w.listen(t, "?ticket="+mine.Ticket)
	l.place()
	var link struct{ Link string }
	w.api("transfer", with("ticket", mine.Ticket)).json(t, &link)
	w.send("POST", pathOf(t, link.Link), "", "Accept: application/json")
	if kind, data := l.next(); kind != "problem" || !strings.Contains(data, `"code":"place_moved"`) {
		t.Errorf("%s %s", kind, data)
	}
}

// A bookmark has the ticket in it, so the page that it opens asks first; it is given
// only where the room says so, and is no good when the place has gone on.
func TestABookmarkFindsThePlaceAgain(t *testing.T) {
	bookmarks := func(c *gateway.Config) { c.Rooms[0].Bookmark = true }
	w := newWorld(t, withOrigin(t, site, bookmarks), shop())
	w.join()
	b := w.browser()
	mine := b.view("/list")
	var v gateway.View
	b.send("POST", mine.BookmarkURL, "", fromHere()...).json(t, &v)
	if v.Kind != gateway.PageBookmark || v.QR != "" || !v.LinkUntil.IsZero() {
		t.Fatalf("%+v", v)
	}
	lost := w.browser() // its cookies were cleared
	asks := lost.view(pathOf(t, v.LinkURL))
	if asks.Kind != gateway.PageLinked || len(lost.jar) > 0 {
		t.Fatalf("%+v %v", asks, lost.jar)
	}
	lost.arrive(lost.send("POST", asks.TakeURL, "", fromHere()...).Header.Get("Location"), fromHere())
	if got := lost.view("/list"); !got.JoinedAt.Equal(mine.JoinedAt) {
		t.Errorf("another place: %+v", got)
	}
	var link struct{ Link string }
	lost.send("POST", "/_anteroom/v1/rooms/shop/transfer", "", "Accept: application/json").json(t, &link)
	w.send("POST", pathOf(t, link.Link), "", "Accept: application/json")
	late := w.browser()
	if r := late.send("POST", asks.TakeURL, "", fromHere()...); !strings.Contains(r.Header.Get("Location"), "/moved") {
		t.Errorf("a bookmark of a place that has gone on: %d %v %s", r.StatusCode, r.Header, r.body)
	}
	closed := newWorld(t, nil, shop())
	closed.join()
	if r := closed.api("bookmark", with("ticket", closed.join().Ticket)); r.StatusCode != 404 {
		t.Errorf("without the room's key: %d %s", r.StatusCode, r.body)
	}
}
