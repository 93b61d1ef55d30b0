// Package admin is the operators' port of a node: health, metrics, the state of
// the cluster, profiles, and the rooms, which can be changed here for the whole
// cluster. docs/admin-api.md tells how.
package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/admin/dashboard"
	"github.com/anteroom/anteroom/internal/fairness"
)

// Source is the node that the port is about. It may be called from many
// goroutines at once.
type Source interface {
	// Cluster is what this node sees of its cluster.
	Cluster() Cluster
	// Rooms are the rooms by name.
	Rooms() []Room
	// Fairness is the live measure of a room; false: there is no such room.
	Fairness(room string) (fairness.Report, bool)
	// Health is what is known of the origins behind the rooms that have checks.
	Health() []RoomHealth
	// Ready says why the node cannot serve visitors just now; empty: it can.
	Ready() string
}

// Config is what the port needs.
type Config struct {
	Source    Source
	Operator  Operator            // nil: nothing can be changed here
	Historian Historian           // nil: there is no history but that of this node's last hour
	Token     string              // asked for as Authorization: Bearer, or by a form; empty, and no Bearer: nobody is asked
	Bearer    Bearers             // whose these are, beside Token; nil: nobody's
	Hosts     []string            // names that the port goes by beside localhost, in lower case; see named
	Profiles  bool                // /debug/pprof/ is there
	Metrics   prometheus.Gatherer // nil: no /metrics
	Logger    *slog.Logger        // nil: none
}

// Bearers says whose a token is, and what that one may: look, or do everything.
// The name is empty where it is nobody's.
type Bearers func(token string) (name string, view, operate bool)

// Port is what New returns.
type Port struct {
	http.Handler
	board *dashboard.Dashboard
}

// Close ends the streams of the dashboard, which would hold up a server that stops.
func (p *Port) Close() { p.board.Close() }

// New returns the port's handler. Only /healthz and /readyz are answered
// without the token, and by whatever name: balancers ask by the site's.
func New(c Config) *Port {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	a := &admin{c: c, wrong: wrongTokens{log: c.Logger}}
	a.board = dashboard.New(dashboard.Config{Look: a.look, Sentences: sentences()})
	inner := http.NewServeMux()
	get := func(path string, h http.HandlerFunc) {
		inner.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet && r.Method != http.MethodHead {
				w.Header().Set("Allow", "GET, HEAD")
				a.fail(w, r, http.StatusMethodNotAllowed, "method_not_allowed", "Use GET.")
				return
			}
			h(w, r)
		})
	}
	a.dashboard(get)
	get("/v1/cluster", func(w http.ResponseWriter, r *http.Request) { a.json(w, r, c.Source.Cluster()) })
	get("/v1/rooms", func(w http.ResponseWriter, r *http.Request) { a.json(w, r, RoomList{Rooms: rooms(c.Source)}) })
	get("/v1/health", func(w http.ResponseWriter, r *http.Request) { a.json(w, r, HealthList{Rooms: c.Source.Health()}) })
	get("/v1/openapi.yaml", func(w http.ResponseWriter, r *http.Request) { write(w, r, http.StatusOK, "application/yaml", openAPI) })
	if c.Operator != nil {
		a.edits(inner)
	} else {
		get("/v1/rooms/{room}", a.room)
	}
	get("/v1/rooms/{room}/fairness", a.fairness)
	get("/v1/rooms/{room}/why", a.why)
	if c.Historian != nil {
		get("/v1/slots", a.slots)
		get("/v1/waits", a.waits)
	}
	if c.Metrics != nil {
		get("/metrics", promhttp.HandlerFor(c.Metrics, promhttp.HandlerOpts{
			ErrorLog: slog.NewLogLogger(c.Logger.Handler(), slog.LevelWarn),
		}).ServeHTTP)
	}
	a.profiles(get)
	inner.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		a.fail(w, r, http.StatusNotFound, "not_found", "There is nothing at this path.")
	})
	outer := http.NewServeMux()
	outer.HandleFunc("/healthz", a.healthz)
	outer.HandleFunc("/readyz", a.readyz)
	outer.Handle("/assets/{name...}", a.named(http.HandlerFunc(a.asset))) // those of the login page, and no secret
	outer.Handle("/login", a.named(a.sameSite(http.HandlerFunc(a.login))))
	outer.Handle("/logout", a.named(a.sameSite(http.HandlerFunc(a.logout))))
	outer.Handle("/", a.named(a.guarded(a.sameSite(inner))))
	return &Port{outer, a.board}
}

type admin struct {
	c     Config
	board *dashboard.Dashboard

	logins logins
	wrong  wrongTokens
}

// profiles adds what pprof shows: memory and command line of the process, and
// as much of its time as somebody asks for.
func (a *admin) profiles(get func(path string, h http.HandlerFunc)) {
	if !a.c.Profiles {
		get("/debug/pprof/", func(w http.ResponseWriter, r *http.Request) {
			a.fail(w, r, http.StatusNotFound, "not_found", "Profiles are off. Start the node with anteroom serve --pprof.")
		})
		return
	}
	get("/debug/pprof/", pprof.Index)
	get("/debug/pprof/cmdline", pprof.Cmdline)
	get("/debug/pprof/profile", pprof.Profile)
	get("/debug/pprof/symbol", pprof.Symbol)
	get("/debug/pprof/trace", pprof.Trace)
}

// asks reports whether a token is needed at all.
func (a *admin) asks() bool { return a.c.Token != "" || a.c.Bearer != nil }

// guarded asks for a token, if there is one.
func (a *admin) guarded(h http.Handler) http.Handler {
	if !a.asks() {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		safe := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
		b, wait := a.who(r)
		switch {
		case wait:
			a.slowed(w, r)
		case b.name == "" && wantsPage(r):
			a.loginPage(w, r, "")
		case b.name == "":
			w.Header().Set("WWW-Authenticate", "Bearer")
			a.fail(w, r, http.StatusUnauthorized, "token_invalid", "Send security.admin_token as Authorization: Bearer, or one of security.tokens that may view or operate.")
		case b.operate, b.view && safe && !strings.HasPrefix(r.URL.Path, "/debug/"): // which shows what is in memory
			h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), bearerKey{}, b)))
		default:
			a.fail(w, r, http.StatusForbidden, "not_allowed", "The token "+b.name+" may not do this: it takes operate, or view to look, and rooms: [\"*\"].")
		}
	})
}

// bearerKey is under which a request carries who asks, once that is known.
type bearerKey struct{}

// proved reports whether a request shows a token that is somebody's. Where there
// is none nothing can be shown.
func (a *admin) proved(r *http.Request) bool {
	b, _ := a.who(r)
	return b.name != ""
}

// adminToken is the name of who shows security.admin_token.
const adminToken = "admin_token"

// who asks: by the token in the header, or by a login where there is none. True: that
// was not looked at, as too many wrong ones came from there.
func (a *admin) who(r *http.Request) (b bearer, wait bool) {
	if b, ok := r.Context().Value(bearerKey{}).(bearer); ok {
		return b, false
	}
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case !a.asks():
		return bearer{}, false
	case kind == "":
		return a.loggedIn(r), false
	case !strings.EqualFold(kind, "Bearer"):
		return bearer{}, false
	}
	return a.shown(r, strings.TrimSpace(token))
}

// shown is whose a token is, found in a time that does not depend on how much of
// it is right. True: that was not looked at.
func (a *admin) shown(r *http.Request, token string) (b bearer, wait bool) {
	now := time.Now()
	if a.wrong.spent(r, now) {
		return bearer{}, true
	}
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(a.c.Token))
	if subtle.ConstantTimeCompare(got[:], want[:]) == 1 && a.c.Token != "" {
		return bearer{adminToken, true, true}, false
	}
	if a.c.Bearer != nil {
		b.name, b.view, b.operate = a.c.Bearer(token)
	}
	if b.name == "" {
		a.wrong.add(r, now)
	}
	return b, false
}

// healthz says that the process answers.
func (a *admin) healthz(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok") }

// readyz says whether a load balancer should send visitors here.
func (a *admin) readyz(w http.ResponseWriter, _ *http.Request) {
	if why := a.c.Source.Ready(); why != "" {
		text(w, http.StatusServiceUnavailable, why)
		return
	}
	text(w, http.StatusOK, "ok")
}

func text(w http.ResponseWriter, status int, s string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(s + "\n"))
}

func rooms(s Source) []Room {
	if all := s.Rooms(); all != nil {
		return all
	}
	return []Room{} // an empty list, not null
}

func (a *admin) find(name string) (Room, bool) {
	for _, r := range a.c.Source.Rooms() {
		if r.Name == name {
			return r, true
		}
	}
	return Room{}, false
}

func (a *admin) fairness(w http.ResponseWriter, r *http.Request) {
	report, ok := a.c.Source.Fairness(r.PathValue("room"))
	if !ok {
		a.unknown(w, r)
		return
	}
	a.json(w, r, report)
}

func (a *admin) unknown(w http.ResponseWriter, r *http.Request) {
	a.fail(w, r, http.StatusNotFound, "room_unknown", "There is no such room.")
}

func (a *admin) json(w http.ResponseWriter, r *http.Request, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		a.c.Logger.Error("admin answer does not encode", "path", r.URL.Path, "error", err)
		a.fail(w, r, http.StatusInternalServerError, "internal", "Something went wrong here.")
		return
	}
	write(w, r, http.StatusOK, "application/json", b)
}

func (a *admin) fail(w http.ResponseWriter, r *http.Request, status int, code, detail string) {
	a.failWith(w, r, status, code, detail, nil)
}

func (a *admin) failWith(w http.ResponseWriter, r *http.Request, status int, code, detail string, errors []FieldError) {
	b, err := json.Marshal(problem{gateway.Problem{
		Type: "urn:anteroom:problem:" + code, Title: http.StatusText(status), Status: status, Detail: detail, Code: code,
	}, errors})
	if err != nil {
		panic("admin: a problem does not encode: " + err.Error()) // strings and a number
	}
	write(w, r, status, "application/problem+json", b)
}

func write(w http.ResponseWriter, r *http.Request, status int, kind string, b []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(b)+1))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(b, '\n'))
	}
}
