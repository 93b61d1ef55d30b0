package caddy

import (
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/anteroom/anteroom/internal/server"
)

// Handler is the waiting room before what follows in a site. The routes of the rooms
// say what part of the site waits; the rest of it is served as if there were none.
// Paths below the prefix, /_anteroom/, are the room's own.
//
// Placeholders, for logs and for the handlers that follow:
//
//	{http.anteroom.room}  the room that the address is in; empty: in none
//	{http.anteroom.state} admitted: with a pass; free: no pass is asked for; answered:
//	                      by the waiting room, such as with its page
type Handler struct {
	app *App
}

// CaddyModule tells Caddy what this is.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.anteroom", New: func() caddy.Module { return new(Handler) }}
}

// Provision finds the node.
func (h *Handler) Provision(ctx caddy.Context) error {
	app, err := ctx.App(name)
	if err != nil {
		return err
	}
	h.app = app.(*App)
	return nil
}

const (
	roomKey  = "http.anteroom.room"
	stateKey = "http.anteroom.state"
)

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	s := h.app.server()
	if s == nil {
		server.Unavailable(w, r)
		return nil
	}
	says, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return fmt.Errorf("anteroom: a request without Caddy's placeholders")
	}
	says.Set(roomKey, s.RoomAt(r.Host, r.URL))
	says.Set(stateKey, "answered")
	var err error
	s.Before(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		says.Set(stateKey, "free")
		if r.Header.Get("X-Anteroom-Pass") != "" {
			says.Set(stateKey, "admitted")
		}
		err = next.ServeHTTP(w, r)
	})).ServeHTTP(w, r)
	return err
}

func parseHandler(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	h.Next()
	if h.NextArg() || h.NextBlock(0) {
		return nil, h.Errf("anteroom in a site has no options, but a matcher; they are in anteroom of the global options, at the top of the Caddyfile")
	}
	return new(Handler), nil
}

var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
