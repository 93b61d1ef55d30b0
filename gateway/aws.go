package gateway

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/ticket"
)

// AWS' Virtual Waiting Room is not kept up any more. Programs that were written
// for its public API go on working with a room that has aws_api: the room is
// their event, and what they think is a request's id is a sealed ticket, or the
// pass of who walked straight in.
//
// Their queue is a counter of people; ours is not. The number that somebody gets
// here is the time of joining, in Unix microseconds, and the number being served
// is the time up to which everybody's turn has come. So the first is up to the
// second when it is that visitor's turn, which is what such programs look at. A
// turn is not a slot yet: a token waits for that, for a moment. Who walked
// straight in has the number 1, which is always served.
//
// While they wait they ask for the number being served alone, which says nothing
// of whose asking it is. So they cannot be told from people who have gone, and
// nobody is taken for gone before ticket_ttl is over: see ticket.Ticket.Quiet.

// awsCall answers one of their requests.
type awsCall struct {
	*call
	request string // the id that came along
}

// awsAnswer is a status and the JSON that goes with it.
type awsAnswer struct {
	status int
	body   any
}

func (g *Gateway) awsPaths(mux *http.ServeMux) {
	for path, answer := range map[string]struct {
		method string
		h      func(awsCall) (awsAnswer, error)
	}{
		"assign_queue_num": {http.MethodPost, awsCall.assign},
		"queue_num":        {http.MethodGet, awsCall.number},
		"queue_pos_expiry": {http.MethodGet, awsCall.expiry},
		"serving_num":      {http.MethodGet, awsCall.serving},
		"waiting_num":      {http.MethodGet, awsCall.waiting},
		"generate_token":   {http.MethodPost, awsCall.token},
		"public_key":       {http.MethodGet, awsCall.publicKey},
	} {
		mux.HandleFunc(g.c.Prefix+"/aws/"+path, func(w http.ResponseWriter, r *http.Request) { g.aws(w, r, answer.method, answer.h) })
	}
}

// aws answers as theirs does, to scripts of any site: no cookie is looked at.
func (g *Gateway) aws(w http.ResponseWriter, r *http.Request, method string, h func(awsCall) (awsAnswer, error)) {
	head := w.Header()
	head.Set("Access-Control-Allow-Origin", "*")
	head.Set("Cache-Control", "no-store")
	if r.Method == http.MethodOptions {
		head.Set("Access-Control-Allow-Methods", method+", OPTIONS")
		head.Set("Access-Control-Allow-Headers", "Content-Type")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	a, err := awsAnswer{}, error(nil)
	if r.Method != method {
		head.Set("Allow", method+", OPTIONS")
		err = wrongMethod("Use " + method + ".")
	} else if c, ok := g.awsRoom(w, r); ok {
		a, err = h(c)
	} else {
		err = errAWSInvalid
	}
	if err != nil {
		a = g.awsRefusal(head, err)
	}
	if err := writeJSON(w, r, a.status, a.body); err != nil {
		g.fail(w, r, err)
	}
}

// Their words.
var (
	errAWSInvalid = errors.New("Invalid event or request ID")     //nolint:staticcheck // AWS spells it so
	errAWSWaits   = errors.New("Request ID not being served yet") //nolint:staticcheck // AWS spells it so
)

func (g *Gateway) awsRefusal(head http.Header, err error) awsAnswer {
	status, text := 0, ""
	switch e := errorOf(err); {
	case errors.Is(err, errAWSInvalid):
		status, text = http.StatusBadRequest, err.Error()
	case errors.Is(err, errAWSWaits):
		status, text = http.StatusAccepted, err.Error()
	case errors.Is(err, ticket.ErrExpired):
		status, text = http.StatusGone, "Queue position has expired"
	case errors.Is(err, ticket.ErrUsed), errors.Is(err, ticket.ErrPassExpired):
		status, text = http.StatusGone, "Token corresponding to request id has expired"
	default:
		if status, text = e.Status, e.Title; e.RetryAfter > 0 {
			head.Set("Retry-After", strconv.Itoa(e.RetryAfter))
		}
	}
	return awsAnswer{status, map[string]string{"error": text}}
}

// awsRoom reads which event a request is about, and whose it is.
func (g *Gateway) awsRoom(w http.ResponseWriter, r *http.Request) (awsCall, bool) {
	var q struct {
		Event   string `json:"event_id"`
		Request string `json:"request_id"`
	}
	if r.Method == http.MethodPost {
		arrival := g.awaited(w, g.client(r).addr)
		b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
		g.came(arrival)
		if err != nil || json.Unmarshal(b, &q) != nil {
			return awsCall{}, false
		}
	} else {
		g.rest(w, r)
		v := r.URL.Query()
		q.Event, q.Request = v.Get("event_id"), v.Get("request_id")
	}
	room := g.rooms.Load().byName[q.Event]
	if room == nil || !room.AWS {
		return awsCall{}, false
	}
	state, ok := g.c.Queue.Room(room.Name)
	return awsCall{&call{g: g, w: w, r: r, room: room, state: state, client: g.client(r), method: r.Method, here: "/"}, q.Request}, ok
}

// assign is a join.
func (c awsCall) assign() (awsAnswer, error) {
	a, err := c.joinAs(ticket.Ticket{Quiet: true}) // from the first nobody wonders about its silence
	if err != nil {
		return awsAnswer{}, err
	}
	var id string
	if a.State == ticket.Admitted {
		id, err = c.g.sealPass(a.Pass)
	} else if id, err = c.g.sealTicket(a.Ticket); err == nil && !a.Ticket.Quiet { // an older node does not know it by the join
		_, err = c.ask(a.Ticket)
	}
	return awsAnswer{http.StatusOK, map[string]string{"api_request_id": id}}, err
}

// ask checks a program's ticket in.
func (c awsCall) ask(t ticket.Ticket) (ticket.Answer, error) {
	t.Quiet = true
	return c.do(ticket.Request{Op: ticket.CheckIn, Room: c.room.Name, Ticket: t})
}

// stand finds out how the holder of the request's id stands, when they joined
// and which number they have. Asking is a sign of life.
func (c awsCall) stand() (a ticket.Answer, stamp, number uint64, err error) {
	if t, err := c.g.c.Sealer.OpenTicket(c.room.Name, c.request); err == nil {
		a, err := c.ask(t)
		return a, t.Stamp, t.Stamp, err
	}
	p, err := c.g.c.Sealer.OpenPass(c.room.Name, c.request)
	if err != nil {
		return ticket.Answer{}, 0, 0, errAWSInvalid
	}
	s, err := c.g.session(c.ctx(), c.state, p)
	return ticket.Answer{State: ticket.Admitted, Pass: s.pass}, p.Stamp, 1, err
}

func (c awsCall) number() (awsAnswer, error) {
	_, stamp, number, err := c.stand()
	return awsAnswer{http.StatusOK, struct {
		Number uint64 `json:"queue_number"`
		Entry  uint64 `json:"entry_time"` // Unix seconds
		Event  string `json:"event_id"`
		Status int    `json:"status"`
	}{number, stamp / 1e6, c.room.Name, 1}}, err
}

// expiry is until when a turn may be taken. One that is not comes again.
func (c awsCall) expiry() (awsAnswer, error) {
	a, _, _, err := c.stand()
	if err != nil {
		return awsAnswer{}, err
	}
	var left time.Duration
	switch a.State {
	case ticket.Called:
		left = c.state.Room.ToldClaim()
	case ticket.Admitted:
		left = time.Duration(a.Pass.Expires-c.g.c.Queue.Clock()) * time.Microsecond
	default:
		return awsAnswer{}, errAWSWaits
	}
	return awsAnswer{http.StatusOK, map[string]int{"expires_in": int(left / time.Second)}}, nil
}

// serving is the time of joining up to which everybody's turn has come. That is
// now where nobody waits, and where turns do not go by it: there only asking for
// a token tells.
func (c awsCall) serving() (awsAnswer, error) {
	n := c.state.Front
	if c.state.Open || n == 0 {
		n = uint64(c.g.c.Queue.Clock())
	}
	return awsAnswer{http.StatusOK, map[string]uint64{"serving_counter": n}}, nil
}

func (c awsCall) waiting() (awsAnswer, error) {
	return awsAnswer{http.StatusOK, map[string]int{"waiting_num": c.state.Queued}}, nil
}

// awsTokens are a pass in their words.
type awsTokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	ID      string `json:"id_token"`
	Type    string `json:"token_type"`
	Expires int    `json:"expires_in"`
}

// token leaves the queue. Asked again, it answers with the same session.
func (c awsCall) token() (awsAnswer, error) {
	a, stamp, _, err := c.stand()
	if err == nil && a.State == ticket.Waiting && stamp <= c.state.Front {
		a, err = c.await(a)
	}
	if err == nil && a.State == ticket.Called {
		a, err = c.do(ticket.Request{Op: ticket.Leave, Room: c.room.Name, Ticket: a.Ticket})
	}
	switch {
	case err != nil:
		return awsAnswer{}, err
	case a.State != ticket.Admitted: // or no lease just now; the call stands
		return awsAnswer{}, errAWSWaits
	}
	now := c.g.c.Queue.Clock()
	s := c.g.sessions.confirm(a.Pass, now)
	jwt, err := c.g.jwt(s)
	if err != nil {
		return awsAnswer{}, err
	}
	pass, err := c.g.sealPass(s.pass)
	return awsAnswer{http.StatusOK, awsTokens{jwt, pass, jwt, "Bearer", int((s.pass.Expires - now) / 1e6)}}, err
}

// How long a token waits for the slot of a turn that has come, and how often it
// looks for that: the home, which hears of it at once, may be another node.
const (
	awsSlotWithin = 3 * time.Second
	awsSlotEvery  = 100 * time.Millisecond
)

// await waits until somebody is called whose turn has come. Their slot may be on
// its way yet, from another node, for a wave or two.
func (c awsCall) await(a ticket.Answer) (ticket.Answer, error) {
	var err error
	over := time.NewTimer(awsSlotWithin)
	defer over.Stop()
	look := time.NewTicker(awsSlotEvery)
	defer look.Stop()
	for err == nil && a.State == ticket.Waiting {
		select {
		case <-look.C:
			a, err = c.ask(a.Ticket)
		case <-over.C:
			return a, nil
		case <-c.g.closing:
			return a, nil
		case <-c.ctx().Done():
			return a, c.ctx().Err()
		}
	}
	return a, err
}

// publicKey is the key that passes are signed with now. The others, of passes
// from before a rotation, are in the JWKS only.
func (c awsCall) publicKey() (awsAnswer, error) {
	jwt, err := c.g.c.Sealer.JWT(ticket.Pass{}, "") // nobody's, for no room: its header names the key
	if err != nil {
		return awsAnswer{}, noKeys(err)
	}
	head, _, _ := strings.Cut(jwt, ".")
	var named struct {
		ID string `json:"kid"`
	}
	var set struct {
		Keys []map[string]string `json:"keys"`
	}
	b, err := base64.RawURLEncoding.DecodeString(head)
	if err = errors.Join(err, json.Unmarshal(b, &named), json.Unmarshal(c.g.c.Sealer.JWKS(), &set)); err != nil {
		return awsAnswer{}, err
	}
	for _, k := range set.Keys {
		if k["kid"] == named.ID {
			return awsAnswer{http.StatusOK, k}, nil
		}
	}
	return awsAnswer{}, ticket.ErrUnavailable // it has just been replaced
}
