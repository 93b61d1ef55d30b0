package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/internal/history"
	"github.com/anteroom/anteroom/internal/server"
	"github.com/anteroom/anteroom/internal/shop"
	"github.com/anteroom/anteroom/internal/visitors"
)

// demo is the main job on one machine: a cluster, a shop behind it, and people.
type demo struct {
	p               *program
	nodes, visitors int
	port, adminPort int
	grpcPort        int
	peerPort        int
	limit           int
	stay, over      time.Duration
	session         time.Duration
	asJSON, exit    bool
	log             logFlags
	servers         []*server.Server
	key             config.Secret // of the cluster, for as long as it runs
	shop            *shop.Shop
	shopURL         string
	mu              sync.Mutex
	book            *history.Book
}

const demoRoom = "shop"

func (p *program) demoCommand() *cobra.Command {
	d := &demo{p: p, log: logFlags{level: slog.LevelError}, book: history.NewBook(1_000_000)}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a cluster with a shop behind it on this machine",
		Long: `Run a cluster of real nodes in one process, joined over loopback with real gossip
and gRPC, with one waiting room in front of a small shop. Open a URL that it
prints in a browser; add --visitors to have people queue for it.`,
		Example: `  anteroom demo
  anteroom demo --visitors 300 --limit 50`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := d.check(); err != nil {
				return wrongUsage(err)
			}
			for name, port := range map[string]*int{"port": &d.port, "admin-port": &d.adminPort} {
				if !cmd.Flags().Changed(name) {
					d.moveOn(name, port)
				}
			}
			return d.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.IntVar(&d.nodes, "nodes", 3, "how many nodes")
	f.IntVar(&d.visitors, "visitors", 0, "how many simulated visitors come")
	f.IntVar(&d.port, "port", 8080, "the first node's port for visitors; the others have the next ones. Without the flag: the first from there that are free")
	f.IntVar(&d.adminPort, "admin-port", 9090, "the first node's port for operators; likewise")
	f.IntVar(&d.grpcPort, "grpc-port", 7002, "the first node's port for programs; the others have the next ones. One that is taken is replaced by another")
	f.IntVar(&d.peerPort, "peer-port", 0, "the first node's port for the other nodes, no longer for programs (--grpc-port); the others have the next ones. 0: any that is free")
	f.IntVar(&d.limit, "limit", 50, "how many people may be in the shop at once")
	f.DurationVar(&d.stay, "stay", 10*time.Second, "how long a simulated visitor stays in the shop, about")
	f.DurationVar(&d.over, "over", 10*time.Second, "the simulated visitors arrive over this long")
	f.DurationVar(&d.session, "session", 30*time.Second, "how long a pass is good without a click")
	f.BoolVar(&d.exit, "exit", false, "end when the simulated visitors have gone")
	f.BoolVar(&d.asJSON, "json", false, "print the closing report as one JSON object")
	d.log.add(cmd)
	cmd.AddCommand(p.demoShopCommand())
	return cmd
}

func (d *demo) check() error {
	for _, n := range []struct {
		name     string
		value    int
		min, max int
	}{
		{"nodes", d.nodes, 1, 64},
		{"visitors", d.visitors, 0, 100_000},
		{"limit", d.limit, 0, 1_000_000},
		{"port", d.port, 1, 65535 - d.nodes},
		{"admin-port", d.adminPort, 1, 65535 - d.nodes},
		{"grpc-port", d.grpcPort, 1, 65535 - d.nodes},
		{"peer-port", d.peerPort, 0, 65535 - d.nodes},
	} {
		if n.value < n.min || n.value > n.max {
			return fmt.Errorf("--%s %d; give a number from %d to %d", n.name, n.value, n.min, n.max)
		}
	}
	if apart := d.port - d.adminPort; apart < d.nodes && -apart < d.nodes {
		return fmt.Errorf("--port %d and --admin-port %d overlap; %s take %d ports from each", d.port, d.adminPort, nodesText(d.nodes), d.nodes)
	}
	if d.stay < 0 || d.over < 0 || d.session < time.Second {
		return errors.New("--stay and --over cannot be negative, and --session is at least 1s")
	}
	if d.exit && d.visitors == 0 {
		return errors.New("--exit without --visitors would end at once; give --visitors")
	}
	return nil
}

// moveOn goes on to the first ports that are free, where somebody did not ask for
// those that are taken.
func (d *demo) moveOn(flag string, port *int) {
	const far = 200 // of all that runs on a machine, somebody has not taken this many
	for first := *port; first < *port+far; first++ {
		taken := false
		for i := 0; i < d.nodes && !taken; i++ {
			taken = strings.HasSuffix(freeOr(first+i), ":0")
		}
		if taken {
			continue
		}
		if first != *port {
			fmt.Fprintf(d.p.stderr, "Of the ports from %d one is taken; the demo takes those from %d (--%s)\n", *port, first, flag)
		}
		*port = first
		return
	}
}

func (d *demo) run(ctx context.Context) error {
	all, running := errgroup.WithContext(ctx)
	running, stop := context.WithCancel(running)
	defer stop()
	if err := d.openShop(running, all); err != nil {
		return err
	}
	if err := d.startNodes(running, all); err != nil {
		stop()
		return errors.Join(err, all.Wait())
	}
	d.awaitDoors(running)
	if running.Err() == nil {
		d.welcome()
		all.Go(func() error {
			if d.visitors > 0 {
				d.crowd(running)
			}
			if d.exit {
				stop()
			}
			return nil
		})
	}
	err := all.Wait()
	return errors.Join(err, d.report())
}

// openShop starts the origin on a port of its own.
func (d *demo) openShop(ctx context.Context, all *errgroup.Group) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	d.shop, d.shopURL = shop.New(shop.Config{Now: d.p.now}), "http://"+l.Addr().String()
	all.Go(func() error { return serveShop(ctx, l, d.shop) })
	return nil
}

// doorsWithin is far more than nodes on one machine need to found a cluster.
const doorsWithin = 10 * time.Second

// awaitDoors waits until visitors can walk in at every node, so that whoever
// follows the first link sees the shop.
func (d *demo) awaitDoors(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, doorsWithin)
	defer cancel()
	often := time.NewTicker(20 * time.Millisecond)
	defer often.Stop()
	closed := func(s *server.Server) bool {
		room, ok := s.Snapshot().Room(demoRoom)
		return !ok || !room.MayAdmit || !room.Open && d.limit > 0 || !s.HasKeys()
	}
	for slices.ContainsFunc(d.servers, closed) {
		select {
		case <-ctx.Done():
			return
		case <-often.C:
		}
	}
}

// startNodes starts the first node, which the others join.
func (d *demo) startNodes(ctx context.Context, all *errgroup.Group) error {
	first := ""
	d.key = config.NewSecret(newClusterKey())
	for i := range d.nodes {
		c := d.config(i)
		if first != "" {
			c.Node.Join = []string{first}
		}
		s := server.New(c, server.Options{Version: thisVersion(), Logger: d.log.logger(d.p.stderr), Admission: d.admission})
		ended := make(chan struct{})
		all.Go(func() error { defer close(ended); return s.Run(ctx) })
		select {
		case <-s.Ready():
			d.servers = append(d.servers, s)
		case <-ended:
			<-ctx.Done() // with the error that all.Wait returns
			return nil
		}
		if first == "" {
			first = s.Addresses().Gossip
		}
	}
	return nil
}

func (d *demo) config(i int) config.Config {
	c := config.Default("")
	c.Node.ID = "node-" + strconv.Itoa(i+1)
	c.Node.Gateway = net.JoinHostPort("127.0.0.1", strconv.Itoa(d.port+i))
	c.Node.Admin = net.JoinHostPort("127.0.0.1", strconv.Itoa(d.adminPort+i))
	c.Node.GRPC, c.Node.Peer, c.Node.Gossip = freeOr(d.grpcPort+i), "127.0.0.1:0", "127.0.0.1:0"
	if d.peerPort > 0 {
		c.Node.Peer = freeOr(d.peerPort + i)
	}
	c.Node.Expect, c.Security.GossipKey = d.nodes, []config.Secret{d.key}
	c.Cluster.Lease = config.Duration(5 * time.Second) // short, so that a dead node's slots are back soon
	r := config.DefaultRoom()
	r.Name, r.Origin, r.Routes = demoRoom, d.shopURL, []config.Route{config.DefaultRoute()}
	r.TotalActiveUsers, r.SessionDuration = d.limit, config.Duration(d.session)
	r.RefreshInterval, r.ClaimWindow = config.Duration(5*time.Second), config.Duration(30*time.Second)
	c.Rooms = []config.Room{r}
	return c
}

// freeOr is an address with a port that is easy to guess, or with any that is
// free where somebody else has that.
func freeOr(port int) string {
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", at)
	if err != nil {
		return "127.0.0.1:0"
	}
	_ = l.Close() // nothing was accepted
	return at
}

func (d *demo) admission(e history.Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.book.Add(e)
}

func (d *demo) welcome() {
	out := d.p.stdout
	if d.asJSON {
		out = d.p.stderr
	}
	fmt.Fprintf(out, "A tea shop, %d at once, behind a waiting room of %s.\n\n", d.limit, nodesText(d.nodes))
	for i, s := range d.servers {
		a := s.Addresses()
		fmt.Fprintf(out, "  node-%-2d  shop http://%s/   admin http://%s/\n", i+1, a.Gateway, a.Admin)
	}
	fmt.Fprintf(out, "\nOpen any shop URL in a browser. Watch the line with: anteroom status --watch --admin http://%s\n", d.servers[0].Addresses().Admin)
	fmt.Fprintf(out, "Programs find the priority queues at %[1]s: anteroom queue put --node %[1]s --queue jobs 'hello'\n", d.servers[0].Addresses().GRPC)
	if d.visitors == 0 {
		fmt.Fprintln(out, "To see people queue, stop this with Ctrl-C and add --visitors 300.")
	} else {
		fmt.Fprintf(out, "%d visitors are on their way. Ctrl-C ends it with a report.\n", d.visitors)
	}
	fmt.Fprintln(out)
}

func nodesText(n int) string {
	if n == 1 {
		return "1 node"
	}
	return strconv.Itoa(n) + " nodes"
}

// crowd sends the visitors once the nodes have found each other, and tells how
// they fare.
func (d *demo) crowd(ctx context.Context) {
	gateways := make([]string, len(d.servers))
	for i, s := range d.servers {
		gateways[i] = "http://" + s.Addresses().Gateway
	}
	c := visitors.New(visitors.Config{
		Gateways: gateways, Room: demoRoom, Users: d.visitors, Over: d.over, Stay: d.stay, Seed: 1,
		Site: visitors.Site{Look: "/", Exit: "/checkout"},
	})
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	every := time.NewTicker(2 * time.Second)
	defer every.Stop()
	for {
		select {
		case err := <-done:
			n := c.Counts()
			if ctx.Err() == nil {
				fmt.Fprintf(d.p.stderr, "%d of %d visitors were in the shop and have left\n", n.Done, d.visitors)
			}
			if err != nil && ctx.Err() == nil {
				fmt.Fprintf(d.p.stderr, "%d were not let in; the first of them: %v\n", n.Lost, err)
			}
			return
		case <-every.C:
			n := c.Counts()
			fmt.Fprintf(d.p.stderr, "%4d waiting  %4d in the shop  %4d have left\n", n.Waiting, n.OnSite, n.Done)
		}
	}
}

// demoReport is the closing report as JSON.
type demoReport struct {
	Visitors int             `json:"visitors"` // who were in the shop
	Limit    int             `json:"limit"`
	Peak     int             `json:"peak"` // most people in the shop at once, as the shop counted passes
	Report   fairness.Report `json:"report"`
}

func (d *demo) report() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.shop.Stats()
	r := demoReport{Visitors: s.Seen, Limit: d.limit, Peak: s.Peak, Report: d.book.Report(demoRoom, max(0, s.Peak-d.limit))}
	if d.asJSON {
		d.p.printJSON(r)
		return nil
	}
	if s.Seen == 0 {
		return nil
	}
	fmt.Fprintf(d.p.stdout, "\nThe shop counted %d people, at most %d of them at once; the limit was %d.\n\n", s.Seen, s.Peak, d.limit)
	return d.p.printReport(demoRoom, r.Report)
}
