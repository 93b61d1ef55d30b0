package caddy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/server"
)

// nodes are those of this process, by their ids. They outlive a configuration.
var nodes = caddy.NewUsagePool() //nolint:gochecknoglobals // what Caddy keeps over a reload is kept so

// node is one that runs.
type node struct {
	log     *relay
	cancel  context.CancelFunc
	ended   chan struct{} // closed when it is over
	running atomic.Pointer[server.Server]

	mu   sync.Mutex
	apps []*App // whose configurations are in force, the last before the others
}

// again is how long a node that broke is over before it starts again.
const again = time.Second

// begin runs a node until Destruct. It returns when the node listens, or cannot.
func begin(a *App) (*node, error) {
	ctx, cancel := context.WithCancel(context.Background())
	n := &node{log: &relay{}, cancel: cancel, ended: make(chan struct{})}
	n.log.to(a.log)
	first := make(chan error, 1)
	go n.run(ctx, a.file, first)
	if err := <-first; err != nil {
		cancel()
		<-n.ended
		return nil, err
	}
	return n, nil
}

// run tells first whether the node got to listen. Later it starts again if it breaks.
func (n *node) run(ctx context.Context, f *config.File, first chan<- error) {
	defer close(n.ended)
	log := slog.New(n.log)
	for started := false; ; {
		s := server.New(f.Config, server.Options{
			Version: version(), Logger: log, Inside: true, Adopts: f.AdoptsCluster(), DefaultGRPC: f.DefaultGRPC(),
		})
		over := make(chan error, 1)
		go func() { over <- s.Run(ctx) }()
		var err error
		select {
		case <-s.Ready():
			n.running.Store(s)
			if !started {
				started = true
				first <- nil
			}
			err = <-over
		case err = <-over:
		}
		if !started {
			first <- errors.Join(err, ctx.Err())
			return
		}
		if ctx.Err() != nil {
			return
		}
		log.Error("the node broke, and starts again", "err", err)
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return
		}
	}
}

// Destruct is called when no configuration has the node any more.
func (n *node) Destruct() error {
	n.cancel()
	<-n.ended
	return nil
}

// take makes a's configuration the one in force.
func (n *node) take(a *App) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.apps) > 0 {
		if key := differs(n.apps[0].file.Config, a.file.Config); key != "" {
			return fmt.Errorf("anteroom: a reload cannot change %s, and nothing was changed; set it back, or restart Caddy", key)
		}
		if err := n.apply(a); err != nil {
			return err
		}
	}
	n.apps = append(n.apps, a)
	n.log.to(a.log)
	return nil
}

// drop takes a's configuration out of force. If that was the newest, because another
// part of Caddy could not start with it, the one before is brought back.
func (n *node) drop(a *App) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.Index(n.apps, a)
	newest := i == len(n.apps)-1
	n.apps = slices.Delete(n.apps, i, i+1)
	if !newest || len(n.apps) == 0 {
		return
	}
	back := n.apps[len(n.apps)-1]
	n.log.to(back.log)
	if err := n.apply(back); err != nil {
		back.log.Error("not all rooms were brought back", "err", err)
	}
}

// apply brings rooms and queues to the cluster.
func (n *node) apply(a *App) error {
	s, c := n.running.Load(), a.file.Config
	if err := errors.Join(s.SetRooms(c.Rooms), s.SetQueues(context.Background(), c.Queues)); err != nil {
		return fmt.Errorf("anteroom: %w", err)
	}
	return nil
}

// differs names what is not the same in two configurations, rooms and queues apart;
// empty: nothing.
func differs(a, b config.Config) string {
	a.Rooms, b.Rooms, a.Queues, b.Queues = nil, nil, nil, nil
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			return keyOf(x.Type().Field(i))
		}
	}
	return ""
}
