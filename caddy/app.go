// Package caddy is the waiting room inside Caddy: one process that ends TLS,
// serves the site and is a node of the cluster. It adds the global option
//
//	anteroom {
//		config /etc/anteroom/anteroom.yaml
//	}
//
// which makes Caddy a node, and the directive anteroom, which puts the waiting room
// before all that follows in a site. The node is the one of `anteroom serve`, from
// the same package; what differs is that visitors come by way of Caddy, and that
// the site is the next handler instead of an origin.
package caddy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/server"
)

func init() { //nolint:gochecknoinits // a module of Caddy registers itself when it is imported
	caddy.RegisterModule(new(App))
	caddy.RegisterModule(new(Handler))
	httpcaddyfile.RegisterGlobalOption(name, parseApp)
	httpcaddyfile.RegisterHandlerDirective(name, parseHandler)
	// Redirects need no place; what changes the address, asks for passwords or
	// serves the site is behind the room, which sees the address as it was written.
	httpcaddyfile.RegisterDirectiveOrder(name, httpcaddyfile.Before, "method")
}

const name = "anteroom"

// App makes Caddy a node of a cluster. A reload of Caddy's configuration goes on with
// the node that runs: nobody loses a place, and rooms that have changed are changed
// in the cluster, as by SIGHUP of `anteroom serve`. All else of the node takes a
// restart of Caddy, and a reload that changes it is refused.
type App struct {
	// The configuration file, as of `anteroom serve --config`.
	ConfigFile string `json:"config_file,omitempty"`

	// The same keys as in that file, in its stead.
	Config json.RawMessage `json:"config,omitempty"`

	file *config.File
	log  *slog.Logger
	node atomic.Pointer[node] // nil: not started
}

// CaddyModule tells Caddy what this is.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: name, New: func() caddy.Module { return new(App) }}
}

var errNoRooms = errors.New("anteroom: there are no rooms, and no cluster to learn them from; in Caddy's global options give anteroom { config FILE }, rooms, or node { join HOST:PORT }")

// Provision reads the configuration and checks it. Nothing is opened.
func (a *App) Provision(ctx caddy.Context) error {
	a.log = ctx.Slogger()
	host, _ := os.Hostname() // config says what to do if no name is left
	o := config.Options{Host: host, Environ: os.Environ()}
	switch {
	case a.ConfigFile != "" && a.Config != nil:
		return errors.New("anteroom: give config_file or config, not both: a file has all keys")
	case a.ConfigFile != "":
		a.file = config.Load(caddy.NewReplacer().ReplaceKnown(a.ConfigFile, ""), o)
	default:
		text, err := replaced(a.Config)
		if err != nil {
			return fmt.Errorf("anteroom: config: %w", err)
		}
		a.file = config.Text("anteroom", text, o)
	}
	for i, r := range a.file.Config.Rooms {
		if r.Outflow == config.Adaptive {
			a.file.Fault(fmt.Sprintf("rooms[%d].outflow", i), "adaptive goes by the answers of an origin, and inside Caddy the site is what follows; give fixed")
		}
	}
	if err := server.CheckPages(a.file).Err(); err != nil {
		return err
	}
	if c := a.file.Config; len(c.Rooms) == 0 && len(c.Node.Join) == 0 {
		return errNoRooms
	}
	events, err := ctx.App("events")
	if err != nil {
		return err
	}
	return events.(*caddyevents.App).On("stopping", a)
}

// Handle hears that Caddy stops a configuration. When the whole process does, the node
// must not wait for its turn: that may come after the HTTP servers', which wait for the
// event streams of all who wait, and those end with the node.
func (a *App) Handle(context.Context, caddy.Event) error {
	if n := a.node.Load(); n != nil && caddy.Exiting() {
		n.cancel()
	}
	return nil
}

// replaced is text with Caddy's global placeholders, such as {env.NAME}, in its
// strings replaced.
func replaced(text json.RawMessage) ([]byte, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var all any
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	r := caddy.NewReplacer()
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			return r.ReplaceKnown(v, "")
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for k := range v {
				v[k] = walk(v[k])
			}
		}
		return v
	}
	return json.MarshalIndent(walk(all), "", "  ")
}

// Start runs the node, or takes the one that runs already over from the configuration
// before.
func (a *App) Start() error {
	for _, w := range a.file.Warnings {
		a.log.Warn(w.Error())
	}
	id := a.file.Config.Node.ID
	v, _, err := nodes.LoadOrNew(id, func() (caddy.Destructor, error) { return begin(a) })
	if err != nil {
		return err
	}
	n := v.(*node)
	if err := n.take(a); err != nil {
		_, _ = nodes.Delete(id) // somebody else has it
		return err
	}
	a.node.Store(n)
	return nil
}

// Stop leaves the node to the configuration that comes after. If there is none it
// gives all that it has to the other nodes, and takes its leave.
func (a *App) Stop() error {
	n := a.node.Load()
	if n == nil {
		return nil
	}
	n.drop(a)
	_, err := nodes.Delete(a.file.Config.Node.ID)
	return err
}

// server is the node, nil as long as it does not listen.
func (a *App) server() *server.Server {
	n := a.node.Load()
	if n == nil {
		return nil
	}
	return n.running.Load()
}

var (
	_ caddy.App         = (*App)(nil)
	_ caddy.Provisioner = (*App)(nil)

	_ caddyevents.Handler = (*App)(nil)
)
