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

	mu    sync.Mutex
	apps  []*App // that have it, in the order in which they started
	rooms *App   // of apps, whose rooms the cluster was given
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

// take lets a have the node, beside the configuration before it.
func (n *node) take(a *App) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.apps) == 0 {
		n.rooms = a // it began with them
	} else if key := differs(n.apps[0].file.Config, a.file.Config); key != "" {
		return fmt.Errorf("anteroom: a reload cannot change %s, and nothing was changed; set it back, or restart Caddy", key)
	}
	n.apps = append(n.apps, a)
	n.log.to(a.log)
	return nil
}

// drop takes the node from a. Caddy stops the configuration before once all of the new
// one has started, and the new one if some part of it cannot: what is left then is in
// force, and only now its rooms are brought to the cluster.
func (n *node) drop(a *App) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.apps = slices.DeleteFunc(n.apps, func(o *App) bool { return o == a })
	if len(n.apps) == 0 {
		return
	}
	left := n.apps[len(n.apps)-1]
	n.log.to(left.log)
	if left == n.rooms {
		return
	}
	n.rooms = left
	s, c := n.running.Load(), left.file.Config
	if err := errors.Join(s.SetRooms(c.Rooms), s.SetQueues(context.Background(), c.Queues)); err != nil {
		left.log.Error("not all rooms and queues are as the configuration has them", "err", err)
	}
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
