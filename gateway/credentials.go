package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/internal/webpush"
)

// bodyMax bounds the body of a request to the API, in bytes.
const bodyMax = 4 << 10

// source is where a ticket or pass came from, and so where its successor goes.
type source uint8

const (
	fromNowhere source = iota
	fromBody
	fromBearer
	fromQuery
	fromCookie
)

// sealed is what a request brought, unopened.
type sealed struct {
	Ticket string `json:"ticket"`
	Pass   string `json:"pass"`

	Challenge string `json:"challenge"` // of a join

	Push *webpush.Subscription `json:"push"` // of a push; nil: no more
}

// readBody reads a request's JSON, or form, which may be left out.
func (c *call) readBody() (sealed, error) {
	g, r := c.g, c.r
	buf := g.buffers.Get().(*bytes.Buffer)
	defer g.buffers.Put(buf)
	buf.Reset()
	body := r.Body
	if r.ContentLength < 0 || r.ContentLength > bodyMax { // else net/http gives no more than was announced
		body = http.MaxBytesReader(c.w, r.Body, bodyMax)
	}
	var b *arrival
	if hasBody(r) {
		b = g.awaited(c.w, c.client.addr)
	}
	_, err := buf.ReadFrom(body)
	if b != nil {
		g.came(b)
	}
	c.read = true // else it broke off, or is too long and the connection ends
	if tooLarge := new(http.MaxBytesError); err != nil && errors.As(err, &tooLarge) {
		return sealed{}, invalid("The body is over 4 KiB.")
	}
	if err != nil {
		return sealed{}, invalid("The body broke off, or took too long.")
	}
	if s, ok := plainBody(buf.Bytes()); ok {
		return s, nil
	}
	return decodeBody(buf.Bytes(), r.Header.Get("Content-Type"))
}

func decodeBody(b []byte, contentType string) (s sealed, err error) {
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		return s, nil
	}
	if kind, _, _ := mime.ParseMediaType(contentType); kind == "application/x-www-form-urlencoded" && b[0] != '{' {
		form, err := url.ParseQuery(string(b))
		if err != nil {
			return s, invalid("The form cannot be read.")
		}
		return sealed{Ticket: form.Get("ticket"), Pass: form.Get("pass"), Challenge: form.Get("challenge")}, nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	switch err := d.Decode(&s); {
	case err != nil:
		return s, invalid(explain(err))
	case d.More():
		return s, invalid("There is more in the body than one JSON object.")
	}
	return s, nil
}

// explain says what is wrong with a body without repeating what is in it.
func explain(err error) string {
	wrong := new(json.UnmarshalTypeError)
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return "The field " + wrong.Field + " must be a string."
	case errors.As(err, &wrong):
		return `The body must be a JSON object such as {"ticket": "…"}.`
	case strings.HasPrefix(err.Error(), "json: unknown field"):
		return "The body has a field that is not known here; ticket, pass and, of a join, challenge and, of a push, push are."
	}
	return "The body is not JSON."
}

// bearer returns the token of an Authorization header, "" if there is none.
func bearer(h http.Header) string {
	kind, token, ok := strings.Cut(h.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(kind, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// ticket opens the ticket that came with the call: in the body, the query
// where that is allowed, the Authorization or X-Anteroom-Ticket header or the
// cookie, in this order.
func (c *call) ticket(body sealed, query string) (ticket.Ticket, error) {
	s, from := c.pick(body.Ticket, query)
	if from == fromNowhere {
		return ticket.Ticket{}, badTicket("No ticket came with the request: put it in the body, in an Authorization header or in the room's cookie.")
	}
	t, err := c.g.c.Sealer.OpenTicket(c.room.Name, s)
	if err != nil {
		return t, badTicket("It was not made by this cluster, or for another room, or it is damaged.")
	}
	c.from = from
	return t, nil
}

// pass opens the pass that came with the call, in the same order.
func (c *call) pass(body sealed) (ticket.Pass, error) {
	s, from := c.pick(body.Pass, "")
	if from == fromNowhere {
		return ticket.Pass{}, badPass("No pass came with the request: put it in the body, in an Authorization header or in the room's cookie.")
	}
	p, err := c.g.c.Sealer.OpenPass(c.room.Name, s)
	if err != nil {
		return p, badPass("It was not made by this cluster, or for another room, or it is damaged.")
	}
	c.from = from
	return p, nil
}

func (c *call) pick(body, query string) (string, source) {
	switch token := bearer(c.r.Header); {
	case body != "":
		return body, fromBody
	case query != "":
		return query, fromQuery
	case token != "":
		return token, fromBearer
	case c.r.Header.Get(ticketHeader) != "":
		return c.r.Header.Get(ticketHeader), fromBearer
	}
	if held := c.room.held(c.r.Header, c.client); held != "" {
		return held, fromCookie
	}
	return "", fromNowhere
}
