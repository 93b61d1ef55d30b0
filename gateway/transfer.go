package gateway

import (
	"crypto/rand"
	"encoding/base32"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// A place goes on to another device by a link, as a QR code and in a form that can
// be typed. It has no ticket in it: the home of the place knows what it stands for.
// To open it does nothing, so neither a preview of a message nor a scanner uses it
// up, and nobody finds out by opening whether it is good. The form on that page,
// which the person sends, takes the place over; who had it is told.

// linkCode spells the ids of links without the digits that look like letters.
func linkCode() *base32.Encoding { return base32.StdEncoding.WithPadding(base32.NoPadding) }

// Link is the answer to a transfer: a link by which another device takes the place
// over; or to a bookmark.
type Link struct {
	Room    string    `json:"room"`
	Ticket  string    `json:"ticket,omitempty"` // replaces the one sent
	Link    string    `json:"link"`
	QR      string    `json:"qr,omitempty"` // a picture with the link, as a data URL
	Expires time.Time `json:"expires_at,omitzero"`
}

func (c *call) apiTransfer() error {
	body, err := c.readBody()
	if err != nil {
		return err
	}
	t, err := c.ticket(body, "")
	if err != nil {
		return c.noPlace(err)
	}
	var id qpid.ItemID
	rand.Read(id[:]) // crypto/rand: it never fails
	a, err := c.do(ticket.Request{Op: ticket.Offer, Room: c.room.Name, Ticket: t, ID: id})
	if err != nil {
		return c.noPlace(err)
	}
	return c.tellLink(a, PageTransfer, Link{Link: c.transferLink(a.Link.ID), Expires: *moment(a.Link.Until)})
}

// transferLink is what goes into a link's address, with where the visitor wanted to go.
func (c *call) transferLink(id qpid.ItemID) string {
	link := c.client.origin() + c.g.c.Prefix + "/m/" + url.PathEscape(c.room.Name) + "/" + linkCode().EncodeToString(id[:ticket.LinkLen])
	if c.here != "/" {
		link += "?to=" + url.QueryEscape(c.here)
	}
	return link
}

// tellLink answers with a link to a place, as a page or as JSON.
func (c *call) tellLink(a ticket.Answer, kind PageKind, out Link) (err error) {
	if c.from == fromCookie {
		err = c.keep(a)
	} else {
		out.Ticket, err = c.g.sealTicket(a.Ticket)
	}
	if err != nil {
		return err
	}
	if kind == PageTransfer {
		out.QR = qrCode(out.Link)
	}
	if wantsPage(c.r.Header) {
		v := c.view(kind)
		v.LinkURL, v.QR, v.LinkUntil = out.Link, out.QR, out.Expires
		if left := out.Expires.Sub(v.LastUpdated); left > 0 { // where it took the place of the page that waits
			v.RefreshSeconds, v.RefreshURL = ceil(left, time.Second), c.here
		}
		c.page(v, http.StatusOK)
		return nil
	}
	out.Room = c.room.Name
	c.w.Header().Set("Cache-Control", "no-store")
	return writeJSON(c.w, c.r, http.StatusCreated, out)
}

// noPlace sends somebody who has no place to the page that says so.
func (c *call) noPlace(err error) error {
	switch {
	case !wantsPage(c.r.Header):
		return err
	case errorOf(err).Status == http.StatusUnauthorized || over(err):
		return c.redirect(c.here)
	}
	c.refuse(err)
	return nil
}

// ownMove is where a link leads. The place is where it was until the form is sent.
func (c *call) ownMove() error {
	v := c.view(PageTake)
	v.TakeURL = c.r.URL.RequestURI()
	c.page(v, http.StatusOK)
	return nil
}

// apiMove takes the place of a link over.
func (c *call) apiMove() error {
	id, ok := linkID(c.r.PathValue("code"))
	if !ok {
		return c.noLink(ticket.ErrLinkOver)
	}
	a, err := c.do(ticket.Request{Op: ticket.Take, Room: c.room.Name, ID: id})
	if err != nil {
		return c.noLink(err)
	}
	if !wantsPage(c.r.Header) {
		c.from = fromNowhere // tell everything
		return c.tell(http.StatusOK, a)
	}
	sealed := newTicket // of somebody who is in already, and keeps no cookies
	if a.State != ticket.Admitted {
		if sealed, err = c.g.sealTicket(a.Ticket); err != nil {
			return err
		}
	}
	return c.enterByAddress(a, sealed)
}

// linkID reads what a person may have typed.
func linkID(code string) (id qpid.ItemID, ok bool) {
	b, err := linkCode().DecodeString(strings.ToUpper(strings.ReplaceAll(code, "-", "")))
	return qpid.ItemID(append(b, make([]byte, len(id))...)), err == nil && len(b) == ticket.LinkLen
}

func (c *call) noLink(err error) error {
	if !wantsPage(c.r.Header) {
		return err
	}
	if errors.Is(err, ticket.ErrLinkOver) {
		c.page(c.view(PageLinkOver), http.StatusGone)
		return nil
	}
	c.refuse(err)
	return nil
}

// ownMoved says that the place is on another device now.
func (c *call) ownMoved() error {
	c.page(c.view(PageMoved), http.StatusOK)
	return nil
}

// apiBookmark gives a link with the ticket in it, which finds the place again when
// the browser has lost its cookies. Whoever opens it is asked, see askWhose.
func (c *call) apiBookmark() error {
	if !c.room.Bookmark {
		return &HTTPError{Status: 404, Code: "not_found", Title: "Nothing here", Detail: "The room gives no links to a place; it would with bookmark: true."}
	}
	body, err := c.readBody()
	if err != nil {
		return err
	}
	t, err := c.ticket(body, "")
	if err != nil {
		return c.noPlace(err)
	}
	a, err := c.do(ticket.Request{Op: ticket.CheckIn, Room: c.room.Name, Ticket: t})
	if err != nil {
		return c.noPlace(err)
	}
	if a.State == ticket.Admitted {
		return c.noPlace(ticket.ErrUsed)
	}
	s, err := c.g.sealTicket(a.Ticket)
	if err != nil {
		return err
	}
	return c.tellLink(a, PageBookmark, Link{Link: c.client.origin() + c.addressed(s)})
}
