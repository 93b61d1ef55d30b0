package load_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/load"
)

// room is a waiting room at some gateways in memory. It calls people at waves,
// five a second, as a cluster does.
type room struct {
	limit    int
	backward bool          // calls who came last
	mute     bool          // says nothing of waves
	session  time.Duration // a pass is good this long [1m]
	answer   func(w http.ResponseWriter, q *http.Request) (done bool)

	mu     sync.Mutex
	n      int
	line   []*person // waiting, in the order of joining
	all    map[string]*person
	active int
	wave   int64
	most   int // people on the site at once
	asked  map[string]int
	gates  map[string]map[string]bool // tickets and passes by the gateway that saw them
}

type person struct {
	token, state string
	joined       time.Time
	wave         int64
}

func newRoom(limit int) *room {
	return &room{limit: limit, session: time.Minute, all: map[string]*person{}, asked: map[string]int{}, gates: map[string]map[string]bool{}}
}

// turn calls as many as there is room for, at most once a wave.
func (r *room) turn() {
	wave := time.Now().UnixMilli() / 200
	if wave == r.wave {
		return
	}
	r.wave = wave
	for r.active < r.limit && len(r.line) > 0 {
		i := 0
		if r.backward {
			i = len(r.line) - 1
		}
		p := r.line[i]
		r.line = slices.Delete(r.line, i, i+1)
		p.state, p.wave = "called", wave
		r.active++
	}
}

func (r *room) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if r.answer != nil && r.answer(w, q) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn()
	var body struct{ Ticket, Pass string }
	_ = json.NewDecoder(q.Body).Decode(&body)
	op := q.URL.Path[strings.LastIndexByte(q.URL.Path, '/')+1:]
	r.asked[op]++
	token := body.Ticket + body.Pass
	if c, err := q.Cookie("anteroom_shop"); err == nil {
		token = c.Value
	}
	p := r.all[strings.TrimPrefix(token, "p")]
	switch {
	case op == "status":
		fmt.Fprint(w, `{"room":"shop","status":"queueing"}`)
		return
	case op == "join":
		p = r.join()
		w.WriteHeader(http.StatusCreated)
	case p == nil:
		problem(w, http.StatusUnauthorized, "ticket_invalid")
		return
	case p.state == "gone" && op == "page":
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case p.state == "gone":
		problem(w, http.StatusGone, map[bool]string{true: "ticket_used", false: "pass_expired"}[body.Pass == ""])
		return
	case op == "leave" && p.state == "waiting":
		problem(w, http.StatusConflict, "not_called_yet")
		return
	}
	r.see(q.Host, p)
	if !r.change(w, op, p) {
		r.tell(w, p)
	}
}

// see notes which gateway was asked about p.
func (r *room) see(host string, p *person) {
	if r.gates[host] == nil {
		r.gates[host] = map[string]bool{}
	}
	r.gates[host][p.token] = true
}

func (r *room) join() *person {
	r.n++
	p := &person{token: fmt.Sprintf("t%d", r.n), state: "waiting", joined: time.Now().Add(time.Duration(r.n) * time.Microsecond)}
	r.all[p.token] = p
	if r.active < r.limit && len(r.line) == 0 {
		p.state = "admitted"
		r.active++
	} else {
		r.line = append(r.line, p)
	}
	return p
}

// change does op, and reports whether that was answered already.
func (r *room) change(w http.ResponseWriter, op string, p *person) bool {
	switch op {
	case "leave":
		p.state = "admitted"
	case "end", "abandon":
		if p.state != "waiting" {
			r.active--
		}
		r.line = slices.DeleteFunc(r.line, func(o *person) bool { return o == p })
		p.state = "gone"
		w.WriteHeader(http.StatusNoContent)
	case "page":
		http.SetCookie(w, &http.Cookie{Name: "anteroom_shop", Value: "p" + p.token})
		fmt.Fprint(w, strings.Repeat("a page ", 1000))
	}
	r.most = max(r.most, r.active)
	return op != "leave" && op != "join" && op != "checkin" && op != "refresh"
}

func (r *room) tell(w http.ResponseWriter, p *person) {
	a := map[string]any{
		"room": "shop", "state": p.state, "joined_at": p.joined.UTC(), "last_updated": time.Now().UTC(), "refresh_interval_seconds": 1,
		"cfWaitingRoom": map[string]any{"state": "other"},
	}
	if p.state == "admitted" {
		a["pass"], a["pass_expires_at"] = "p"+p.token, time.Now().Add(r.session).UTC()
	} else {
		a["ticket"] = p.token
	}
	if p.wave > 0 && !r.mute {
		a["called_in_wave"] = p.wave
	}
	_ = json.NewEncoder(w).Encode(a)
}

func problem(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"status":%d,"code":%q}`, status, code)
}

// pipes is a listener whose connections are in memory.
type pipes struct {
	conns chan net.Conn
	gone  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.gone:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.gone) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

var errNobody = errors.New("nobody listens there")

// street opens gateways to a room by these names, and returns how to get there.
func street(t *testing.T, r http.Handler, names ...string) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	doors := map[string]*pipes{}
	for _, name := range names {
		door := &pipes{conns: make(chan net.Conn), gone: make(chan struct{})}
		doors[name+":80"] = door
		s := &http.Server{Handler: r, IdleTimeout: 10 * time.Minute}
		go func() { _ = s.Serve(door) }() // ends with the test
		t.Cleanup(func() { _ = s.Close() })
	}
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		door := doors[address]
		if door == nil {
			return nil, &net.OpError{Op: "dial", Err: errNobody}
		}
		here, there := net.Pipe()
		select {
		case door.conns <- there:
			return here, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// send runs the visitors that change describes, one gateway unless it says
// otherwise.
func send(t *testing.T, ctx context.Context, r *room, change func(*load.Config)) *load.Result {
	t.Helper()
	c := load.Config{URLs: []string{"http://a"}, Room: "shop", Page: "/page", Connections: 4, Seed: 1, Arrivals: load.Arrivals{Drain: -1}}
	change(&c)
	if c.Dial == nil {
		var names []string
		for _, u := range c.URLs {
			names = append(names, strings.TrimPrefix(u, "http://"))
		}
		c.Dial = street(t, r, names...)
	}
	g, err := load.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Reach(ctx); err != nil {
		t.Fatal(err)
	}
	result := g.Run(ctx)
	// Whose join is not answered is not in line yet: one for each connection at most.
	if n, waiting := g.Waiting(), result.Visitors.Waiting; n > waiting || n < waiting-int64(c.Connections) {
		t.Errorf("%d are said to wait, and %d do", n, waiting)
	}
	return result
}
