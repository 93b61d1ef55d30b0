package gateway

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
)

// ownPaths routes what is below our prefix.
func (g *Gateway) ownPaths() *http.ServeMux {
	mux := http.NewServeMux()
	room := g.c.Prefix + "/v1/rooms/{room}/"
	for op, h := range map[string]func(*call) error{
		"join": (*call).apiJoin, "checkin": (*call).apiCheckIn, "leave": (*call).apiLeave,
		"refresh": (*call).apiRefresh, "end": (*call).apiEnd, "abandon": (*call).apiAbandon,
		"take": (*call).ownTake, "transfer": (*call).apiTransfer, "bookmark": (*call).apiBookmark, "push": (*call).apiPush,
	} {
		answer := g.about(http.MethodPost, h)
		mux.HandleFunc(room+op, named(answer))
		g.ops[op] = roomOp{answer, room + op}
	}
	for op, h := range map[string]func(*call) error{
		"stream": (*call).apiStream, "status": (*call).apiStatus, "pushed": (*call).apiPushed,
		"page": (*call).ownPage, "return": (*call).ownReturn, "left": (*call).ownLeft, "moved": (*call).ownMoved,
		"logo": (*call).ownLogo, "favicon": (*call).ownIcon, "push.js": (*call).ownPush, "pushworker.js": (*call).ownPushWorker,
	} {
		answer := g.about(http.MethodGet, h)
		mux.HandleFunc(room+op, named(answer))
		g.ops[op] = roomOp{answer, room + op}
	}
	auth := g.about(anyMethod, (*call).apiAuth)
	mux.HandleFunc(room+ask, named(auth))
	mux.HandleFunc(room+ask+"/{path...}", named(auth))
	mux.HandleFunc(room+askOnly+"/{path...}", named(auth))
	g.ops[ask] = roomOp{auth, room + ask}
	short := g.c.Prefix + "/m/{room}/{code}" // to be typed
	mux.HandleFunc(short, named(g.about(http.MethodGet, (*call).ownMove)))
	mux.HandleFunc("POST "+short, named(g.about(http.MethodPost, (*call).apiMove)))
	mux.HandleFunc(g.c.Prefix+"/.well-known/jwks.json", g.jwks)
	if g.c.StatusPage != nil {
		mux.HandleFunc(g.c.Prefix+"/status", g.statusPage)
	}
	g.awsPaths(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		g.rest(w, r)
		g.fail(w, r, &HTTPError{Status: 404, Code: "not_found", Title: "Nothing here", Detail: "There is no such request below " + g.c.Prefix + "."})
	})
	return mux
}

// statusPage shows the public how the sites behind are.
func (g *Gateway) statusPage(w http.ResponseWriter, r *http.Request) {
	g.rest(w, r)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		g.fail(w, r, wrongMethod("Use GET."))
		return
	}
	g.c.StatusPage.ServeHTTP(w, r)
}

// roomHandler answers a request about the room of that name.
type roomHandler func(w http.ResponseWriter, r *http.Request, name string)

// roomOp is what answers, and its pattern in the mux.
type roomOp struct {
	answer roomHandler
	route  string
}

func named(h roomHandler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { h(w, r, r.PathValue("room")) }
}

// plain finds what answers a path in its plainest spelling, as nearly all are. It
// is what the mux finds, in a tenth of the time; of other paths it knows nothing.
func (g *Gateway) plain(u *url.URL, own string) (op roomOp, name string) {
	rest, ok := strings.CutPrefix(own, "/v1/rooms/")
	if !ok || u.RawPath != "" {
		return roomOp{}, ""
	}
	name, last, _ := strings.Cut(rest, "/")
	if name == "" || name == "." || name == ".." { // the mux tidies up
		return roomOp{}, ""
	}
	return g.ops[last], name
}

// anyMethod is for proxies that ask with the visitor's method.
const anyMethod = ""

// about makes a handler of what answers a request about a room.
func (g *Gateway) about(method string, h func(*call) error) roomHandler {
	return func(w http.ResponseWriter, r *http.Request, name string) {
		room := g.rooms.Load().byName[name]
		if err := g.allowed(w, r, method, room); err != nil {
			if room != nil {
				(&call{w: w, r: r, room: room}).share()
			}
			g.rest(w, r)
			g.fail(w, r, err)
			return
		}
		if method != http.MethodPost {
			g.rest(w, r) // nothing else reads it
		}
		c := g.calls.Get().(*call)
		defer func() { *c = call{}; g.calls.Put(c) }() // no answer goes on after its handler
		var ok bool
		if c.state, ok = g.c.Queue.Room(name); room == nil || !ok {
			g.rest(w, r)
			g.fail(w, r, ticket.ErrRoomUnknown)
			return
		}
		c.g, c.w, c.r, c.room, c.client, c.method, c.here = g, w, r, room, g.client(r), r.Method, "/"
		if r.URL.RawQuery != "" {
			q := r.URL.Query()
			c.comeFor(local(q.Get("to")))
			c.challenge = cmp.Or(c.challenge, q.Get(challengeParam))
		}
		if method != anyMethod {
			c.share()
		}
		if c.ownPreflight(method) {
			return
		}
		if err := h(c); err != nil {
			g.fail(w, r, err)
		}
		if method == http.MethodPost && !c.read {
			g.rest(w, r)
		}
	}
}

func (g *Gateway) allowed(w http.ResponseWriter, r *http.Request, method string, room *Room) error {
	switch {
	case method == anyMethod:
		return nil
	case room != nil && len(room.CORS.Origins) > 0 && (preflight(r.Method, r) || r.Method == method && room.CORS.trusts(r)):
		return nil
	case r.Method != method && (method != http.MethodGet || r.Method != http.MethodHead):
		allow := method
		if method == http.MethodGet {
			allow = "GET, HEAD"
		}
		w.Header().Set("Allow", allow)
		return wrongMethod("Use " + method + ".")
	case method == http.MethodPost && g.guard.Check(r) != nil:
		return &HTTPError{Status: 403, Code: "cross_origin", Title: "Another site's page may not do that"}
	}
	return nil
}

// apiJoin takes a place. A browser has one place per room: its tabs share it.
func (c *call) apiJoin() error {
	if body, err := c.readBody(); err != nil {
		return err
	} else if c.challenge = cmp.Or(body.Challenge, c.challenge); body.Ticket != "" || body.Pass != "" {
		return invalid("A join needs neither ticket nor pass.")
	}
	if fromPage(c.r) {
		if st, err := c.stand(false); err != nil || st.in || st.placed {
			return c.again(st, err)
		}
	}
	a, err := c.join()
	if err != nil {
		return err
	}
	if fromPage(c.r) {
		if err := c.keep(a); err != nil {
			return err
		}
	}
	c.from = fromNowhere // tell everything
	return c.tell(http.StatusCreated, a)
}

// again answers a join of a browser that has a place or a pass.
func (c *call) again(st standing, err error) error {
	if errors.Is(err, ticket.ErrHandedOn) {
		c.setCookie(c.room.cookie(c.client, "", 0)) // the next join is for a new place
	}
	if err != nil {
		return err
	}
	c.setCookie(st.cookie)
	a := st.answer
	if st.in {
		a = ticket.Answer{State: ticket.Admitted, Pass: st.session.pass}
	}
	c.from = fromCookie
	return c.tell(http.StatusOK, a)
}

func (c *call) apiCheckIn() error { return c.withTicket(ticket.CheckIn) }

func (c *call) apiLeave() error { return c.withTicket(ticket.Leave) }

func (c *call) withTicket(op ticket.Op) error {
	a, err := c.spendTicket(op)
	if err != nil {
		return err
	}
	if op == ticket.Leave && a.State == ticket.Called {
		return ticket.ErrUnavailable // no lease just now; the call stands
	}
	if c.from == fromCookie {
		if err := c.keep(a); err != nil {
			return err
		}
	}
	return c.tell(http.StatusOK, a)
}

// spendTicket does op with the ticket that came along.
func (c *call) spendTicket(op ticket.Op) (ticket.Answer, error) {
	body, err := c.readBody()
	if err != nil {
		return ticket.Answer{}, err
	}
	t, err := c.ticket(body, "")
	if err == nil {
		return c.do(ticket.Request{Op: op, Room: c.room.Name, Ticket: t})
	}
	// Another tab may have left the queue already: then the cookie is a pass,
	// and that is the answer.
	if held := c.room.held(c.r.Header, c.client); body.Ticket == "" && held != "" && op != ticket.Abandon {
		if p, bad := c.g.c.Sealer.OpenPass(c.room.Name, held); bad == nil {
			c.from = fromCookie
			s, err := c.g.session(c.ctx(), c.state, p)
			return ticket.Answer{State: ticket.Admitted, Pass: s.pass}, err
		}
	}
	return ticket.Answer{}, err
}

// renewed is the answer to a refresh.
type renewed struct {
	Room        string    `json:"room"`
	State       string    `json:"state"`
	Pass        string    `json:"pass,omitempty"`
	PassJWT     string    `json:"pass_jwt,omitempty"`
	PassExpires time.Time `json:"pass_expires_at"`
}

func (c *call) apiRefresh() error {
	body, err := c.readBody()
	if err != nil {
		return err
	}
	p, err := c.pass(body)
	if err != nil {
		return err
	}
	a, err := c.do(ticket.Request{Op: ticket.Refresh, Room: c.room.Name, Pass: p})
	if err != nil {
		return err
	}
	if c.from == fromCookie {
		if err := c.keep(a); err != nil {
			return err
		}
	}
	var sealed Place
	if err := c.sealed(&sealed, a); err != nil {
		return err
	}
	c.w.Header().Set("Cache-Control", "no-store")
	return writeJSON(c.w, c.r, http.StatusOK, renewed{
		Room: c.room.Name, State: ticket.Admitted.String(), Pass: sealed.Pass, PassJWT: sealed.PassJWT,
		PassExpires: *moment(a.Pass.Expires),
	})
}

func (c *call) apiEnd() error {
	body, err := c.readBody()
	if err != nil {
		return err
	}
	p, err := c.pass(body)
	if err != nil {
		return err
	}
	if err := c.g.end(c.ctx(), p); err != nil {
		return err
	}
	return c.gone()
}

// apiAbandon gives the place up. Of a place that was given up already nothing
// is left to give.
func (c *call) apiAbandon() error {
	_, err := c.spendTicket(ticket.Abandon)
	if wantsPage(c.r.Header) && (err == nil || errorOf(err).Status < 429) {
		c.setCookie(c.room.cookie(c.client, "", 0))
		return c.redirect(c.own("left") + "?to=" + url.QueryEscape(c.here))
	}
	if err != nil && !errors.Is(err, ticket.ErrExpired) {
		return err
	}
	return c.gone()
}

// gone answers that something is no more.
func (c *call) gone() error {
	if c.from == fromCookie {
		c.setCookie(c.room.cookie(c.client, "", 0))
	}
	c.w.Header().Set("Cache-Control", "no-store")
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// Status is what everybody may know of a room. The last five fields have
// Cloudflare's names.
type Status struct {
	Room                 string      `json:"room"`
	Status               string      `json:"status"` // not_queueing, queueing, event_prequeueing or suspended
	Queued               int         `json:"queued"`
	Active               int         `json:"active"`
	Called               int         `json:"called"`
	TotalActiveUsers     int         `json:"total_active_users"`
	AdmittedPerMinute    float64     `json:"admitted_per_minute"`
	EstimatedWaitSeconds *Seconds    `json:"estimated_wait_seconds"` // of somebody who joins now; null: not known
	QueueingMethod       string      `json:"queueing_method"`
	Paused               string      `json:"paused,omitempty"`
	PausedCode           string      `json:"paused_code,omitempty"`
	HeldUntil            *time.Time  `json:"held_until,omitempty"`
	StartsAt             *time.Time  `json:"starts_at,omitempty"`
	Why                  string      `json:"why,omitempty"` // where people wait, or would: what limits the flow
	WhyUntil             *time.Time  `json:"why_until,omitempty"`
	Draw                 *PublicDraw `json:"draw,omitempty"`
	LastUpdated          time.Time   `json:"last_updated"`
	CountedAt            *time.Time  `json:"counted_at,omitempty"` // as in Place

	EventID              string `json:"event_id"`
	EstimatedQueuedUsers int    `json:"estimated_queued_users"`
	EstimatedActiveUsers int    `json:"estimated_total_active_users"`
	MaxEstimatedMinutes  int    `json:"max_estimated_time_minutes"`
}

func (c *call) apiStatus() error {
	s, now := c.state, c.g.c.Queue.Clock()
	out := Status{
		Room: c.room.Name, Status: "not_queueing", Queued: s.Queued, Active: s.Active, Called: s.Called,
		TotalActiveUsers: s.Room.Target, AdmittedPerMinute: s.AdmittedPerMinute,
		EventID: s.Room.Event.Name, Draw: c.publicDraw(), QueueingMethod: s.Room.Method.String(), Paused: s.Paused.Text(), PausedCode: string(s.Paused), LastUpdated: time.UnixMicro(now).UTC(),
		EstimatedQueuedUsers: s.Queued, EstimatedActiveUsers: s.Active, MaxEstimatedMinutes: ceil(s.Wait.P75, time.Minute),
	}
	if s.Wait != (ticket.Wait{}) {
		out.EstimatedWaitSeconds = new(secondsOf(s.Wait))
	}
	if s.Counted > 0 {
		out.CountedAt = moment(s.Counted)
	}
	if s.HeldUntil > now {
		out.HeldUntil = moment(s.HeldUntil)
	}
	switch {
	case c.room.Suspended:
		out.Status = "suspended"
	case s.Room.Event.Start > now:
		out.Status, out.StartsAt = "event_prequeueing", moment(s.Room.Event.Start)
	case s.Room.Method != eviction.Passthrough && (s.Queued > 0 || !s.Open):
		out.Status = "queueing"
	}
	if out.Status == "queueing" || out.Status == "event_prequeueing" {
		out.Why, out.WhyUntil = why(&s, s.Paused, now)
	}
	c.w.Header().Set("Cache-Control", "no-store")
	return writeJSON(c.w, c.r, http.StatusOK, out)
}

func (g *Gateway) jwks(w http.ResponseWriter, r *http.Request) {
	g.rest(w, r)
	if err := g.allowed(w, r, http.MethodGet, nil); err != nil {
		g.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/jwk-set+json")
	w.Header().Set("Cache-Control", "public, max-age=60")
	_, _ = w.Write(g.c.Sealer.JWKS())
}

// redirect sends a browser on to a path of this host with GET.
func (c *call) redirect(to string) error {
	h := c.w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Location", to)
	c.w.WriteHeader(http.StatusSeeOther)
	return nil
}

// ours reports whether a header goes by one of our own names. Origins that
// make variables of headers take _ for -, so we do as well.
func ours(name string) bool {
	name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	return strings.HasPrefix(name, "x-anteroom-") || strings.HasPrefix(name, "anteroom-")
}
