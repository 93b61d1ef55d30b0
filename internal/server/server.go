// Package server puts a node together: the loop around the protocol, gossip,
// the links to the other nodes, the gateway and the admin port. It is what
// `anteroom serve` runs once and `anteroom demo` a few times.
package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/gateway/page"
	"github.com/anteroom/anteroom/internal/challenge"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/conns"
	"github.com/anteroom/anteroom/internal/history"
	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/notify"
	"github.com/anteroom/anteroom/internal/peraddress"
	"github.com/anteroom/anteroom/internal/seal"
	"github.com/anteroom/anteroom/internal/store"
	"github.com/anteroom/anteroom/internal/traces"
	"github.com/anteroom/anteroom/internal/webpush"
	"github.com/anteroom/anteroom/membership"
	"github.com/anteroom/anteroom/proto/auth"
	"github.com/anteroom/anteroom/proto/link"
	"github.com/anteroom/anteroom/proto/notice"
	"github.com/anteroom/anteroom/proto/waitingroom"
	"github.com/anteroom/anteroom/qpid"
)

// Options are what is not in a configuration file.
type Options struct {
	Version   string
	Logger    *slog.Logger
	Admission func(history.Entry)                                         // hears of every step of every visitor; must not block
	Clock     func() eviction.Time                                        // [this machine's clocks]
	Dial      func(ctx context.Context, address string) (net.Conn, error) // to the other nodes' peer ports [TCP]
	// Adopts lets the node take over the settings of the cluster that it joins;
	// see config.File.AdoptsCluster.
	Adopts bool
	// DefaultGRPC: node.grpc was not set, and where that port is taken the node
	// does without.
	DefaultGRPC bool
	// Inside: the visitors come by Before, and node.gateway is not opened.
	Inside bool
	// Profiles: the admin port shows the process's memory and time (pprof).
	Profiles bool
}

// Addresses are where a server listens, with the ports it got. What is empty is
// not open.
type Addresses struct{ Gateway, Admin, Peer, GRPC, Gossip string }

// Server is one node. It runs once.
type Server struct {
	c     config.Config
	o     Options
	log   *slog.Logger
	ready chan struct{}
	at    Addresses

	self      eviction.Peer
	store     *store.Store // nil: memory only
	settings  *clusterSettings
	keys      *keys
	loop      *loop.Loop
	auth      auth.Policy
	links     *link.Links
	members   *membership.Membership
	gateway   *gateway.Gateway
	addresses *peraddress.Table // what each address has of the rooms
	challenge *challenge.Table  // what a join takes
	public    *waitingroom.Server
	queues    *queues
	notices   *notice.Links // what nodes tell each other beside the waves
	origins   *origins      // behind the rooms
	outflow   *outflow      // of rooms that follow what those bear
	sender    *notify.Sender
	told      *conditions  // of which the sender is told
	share     conns.Shares // of the connections
	limits    limiters
	rooms     []eviction.Room // that the gateway has; of the goroutine that watches
	pages     *customPages
	metrics   *prometheus.Registry
	leaving   atomic.Bool
	// waitingSince is since when the node calls nobody; nil: it does.
	waitingSince atomic.Pointer[time.Time]
	// hasRooms: the gateway has any.
	hasRooms atomic.Bool
	past     *past // how the rooms were

	traces   *traces.Traces // nil: there are none
	book     *book
	visitors *visitorMetrics
	tellings *tellings // what people who wait were told
	samples  *samples
	audits   *audits
	edits    sync.Mutex      // held while a room is changed by way of this node
	settled  map[string]bool // rooms of which the node has the cluster's configuration; of the goroutine that watches
}

// New returns a server that has not started. The error lists everything that is
// wrong with the parts of c; what config.Load checks is taken for right.
func New(c config.Config, o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = loop.SystemClock()
	}
	metrics := prometheus.NewRegistry()
	return &Server{
		c: c, o: o, log: o.Logger.With("node", c.Node.ID), ready: make(chan struct{}), metrics: metrics,
		book: newBook(), visitors: newVisitorMetrics(metrics), tellings: newTellings(), samples: &samples{}, audits: &audits{log: o.Logger.With("node", c.Node.ID)}, settled: make(map[string]bool),
	}
}

// Ready is closed when the server listens.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Serving reports whether visitors can be sent here, as /readyz does.
func (s *Server) Serving() bool {
	select {
	case <-s.ready:
		return source{s}.ready() == reason{}
	default:
		return false
	}
}

// Addresses returns where it listens, once it is Ready.
func (s *Server) Addresses() Addresses { return s.at }

// HasKeys reports whether the node has signing keys, without which it gives nobody a place. It may be called at any time
// once the server is Ready.
func (s *Server) HasKeys() bool { return !s.keys.ring.Empty() }

// Snapshot returns the node's state, once the server is Ready.
func (s *Server) Snapshot() *loop.Snapshot { return s.loop.Snapshot() }

// build makes all parts of the node; nothing of it runs yet.
func (s *Server) build() error {
	now := time.Now().UnixMicro()
	s.self = eviction.Peer{Member: eviction.Member{Name: qpid.NodeID(s.c.Node.ID), Boot: uint64(now)}, Start: now}
	record, err := s.openStore()
	if err != nil {
		return err
	}
	if err := s.buildHistory(); err != nil {
		return err
	}
	if err := s.buildTraces(); err != nil {
		return err
	}
	if err := s.buildKeys(); err != nil {
		return err
	}
	if err := s.buildTerms(); err != nil {
		return err
	}
	rooms := make([]eviction.Room, len(s.c.Rooms))
	for i, r := range s.c.Rooms {
		rooms[i] = roomOf(r)
	}
	nc := node.Config{
		Self: s.self, Expect: s.c.Node.Expect, Joins: len(s.c.Node.Join) > 0, KeptKeys: !s.keys.ring.Empty(),
		Cluster: s.settings.now(), Rooms: rooms, Disk: s.store != nil, Persisted: record,
	}
	_, _ = rand.Read(nc.Secret[:]) // never fails
	lc := loop.Config{Node: nc, Clock: s.o.Clock, Links: links{s}, Logger: s.log, Log: s.admission, Told: s.toldWait}
	if s.store != nil {
		lc.Save = s.store.Save
		lc.Used = func(tickets []uint64) error { return s.store.AppendUsed(s.o.Clock().Wall, tickets) }
		if lc.Node.Used, err = s.usedTickets(); err != nil {
			return err
		}
		if lc.Node.Visits, lc.Visits, err = s.visitsKept(); err != nil {
			return err
		}
	}
	if s.loop, err = loop.New(lc); err != nil {
		return err
	}
	if s.auth, err = s.policy(); err != nil {
		return err
	}
	s.links = link.New(link.Config{
		Self: s.self.Member, Peer: peer{s}, Policy: s.auth, Logger: s.log, Dial: s.o.Dial,
		Wall: func() time.Time { return time.UnixMicro(s.o.Clock().Wall) },
	})
	if err := s.buildQueues(); err != nil {
		return err
	}
	s.notices = notice.New(notice.Config{Self: s.self.Member, Policy: s.auth, Heard: s.notice, Logger: s.log, Dial: s.o.Dial})
	s.buildOrigins()
	s.buildOutflow()
	if err := s.buildNotifications(); err != nil {
		return err
	}
	if err := s.buildConditions(); err != nil {
		return err
	}
	s.members, err = membership.New(membership.Config{
		Self: s.self, Bind: s.c.Node.Gossip, Advertise: s.c.Node.Advertise, PeerAddr: s.at.Peer, Version: release(s.o.Version), Join: s.c.Node.Join, Alone: s.alone(),
		Ask: s.ask, Silent: time.Duration(s.c.Cluster.ExcludeAfter),
		Keys: s.c.Security.GossipKeys(), Logger: s.log, OnView: s.onView,
	})
	if err != nil {
		return err
	}
	return s.buildGateway()
}

func (s *Server) buildTerms() error {
	s.settings = &clusterSettings{
		self: s.self.Name, disk: s.store, log: s.log, c: s.c.Eviction().WithDefaults(), standing: given, differ: map[eviction.Member]string{},
		wave: func() bool { return s.loop.Snapshot().Status.Installed != qpid.Epoch{} },
		take: func(c eviction.Config) error { return s.loop.Adopt(c) },
		then: func() { s.links.Renew() },
	}
	if s.o.Adopts {
		s.settings.adopts, s.settings.standing = true, byDefault
	}
	return s.settings.load()
}

func (s *Server) buildTraces() (err error) {
	c := s.c.Tracing
	if c.Endpoint == "" {
		return nil
	}
	s.traces, err = traces.New(traces.Config{Endpoint: c.Endpoint, Percent: c.SamplePercent, Node: s.c.Node.ID, Version: release(s.o.Version), Logger: s.log})
	if err == nil {
		s.metrics.MustRegister(s.traces.Metrics()...)
	}
	return err
}

func (s *Server) openStore() (*eviction.Record, error) {
	if s.c.Node.Data == "" {
		return nil, nil
	}
	var err error
	if s.store, err = store.Open(string(s.c.Node.Data)); err != nil {
		return nil, err
	}
	r, err := s.store.Load()
	if err == nil && r != nil && r.Member.Name != s.self.Name {
		return nil, fmt.Errorf("node.data: %s is of node %q, and this is %q; give each node a directory of its own, or move the file away if the node has a new name",
			s.store.Path("state.json"), r.Member.Name, s.self.Name)
	}
	return r, err
}

// usedTickets are those that earlier lives of this node had used.
func (s *Server) usedTickets() ([]eviction.UsedBatch, error) {
	kept, more, err := s.store.LoadUsed(s.o.Clock().Wall, node.UsedMax)
	if more {
		s.log.Warn("more tickets were used in a day than this node remembers; the oldest of them are good again", "remembered", node.UsedMax)
	}
	return kept, err
}

// visitsKept are those of earlier lives of this node, and what keeps those of this one.
func (s *Server) visitsKept() (*eviction.VisitsKept, func(*eviction.VisitsBatch) error, error) {
	v, kept, err := s.store.OpenVisits(s.self.Member)
	if errors.Is(err, store.ErrVisits) {
		s.log.Warn("who was on the site is not known any more, so their slots are waited for as those of a node without a disk", "err", err)
		err = nil
	}
	if err != nil {
		return nil, nil, err
	}
	return kept, v.Append, nil
}

// passTime is what keys are timed by once the node runs, so that a wall clock
// which jumps neither drops them nor holds new ones back.
func (s *Server) passTime() int64 {
	if s.loop == nil {
		return time.Now().UnixMicro()
	}
	return s.loop.PassTime()
}

func (s *Server) buildKeys() error {
	s.keys = &keys{
		ring: seal.New(seal.Config{Now: s.passTime, Keep: s.c.KeysKept()}), log: s.log,
		file: string(s.c.Security.SigningKeys), fixed: s.c.Security.SigningKeys != "", offer: func() { s.links.OfferKeys() },
	}
	if !s.keys.fixed && s.store != nil {
		s.keys.file = s.store.Path(keysOnDisk)
	}
	return s.keys.load()
}

func (s *Server) buildGateway() error {
	pages, err := page.New()
	if err != nil {
		return err
	}
	s.pages = newCustomPages(pages, s.log)
	s.pages.learn(s.c.Rooms)
	s.metrics.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "anteroom_requests_relayed_total",
			Help: "Requests of visitors that another node carried out because this one is left out of the waves, or does not reach the home of a place.",
		}, func() float64 { return float64(s.loop.Relayed()) }),
		shed("messages", "Messages of other nodes that were dropped because the node had too much to do.", func() uint64 { m, _ := s.loop.Shed(); return m }),
		shed("hints", "Check-ins of streams at other nodes that are not told of their call at once because there are too many of them.", func() uint64 { return s.loop.Unheard() }),
		shed("requests", "Requests of visitors that were turned away because the node had too much to do.", func() uint64 { _, r := s.loop.Shed(); return r }),
	)
	s.metrics.MustRegister(admin.NewCollector(source{s}), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.limit()
	s.addresses = peraddress.New(peraddress.Config{
		Clock: s.loop.PassTime, Proxies: s.c.Proxies(),
		Did: s.past.did,
	})
	s.metrics.MustRegister(s.addresses.Metrics()...)
	s.challenge = challenge.New(s.c.Security.ChallengeKey.Reveal(), s.loop.PassTime)
	s.metrics.MustRegister(s.challenge.Metrics()...)
	var status http.Handler
	if s.c.StatusPage {
		status = newStatusPage(s, func(room string) (gateway.Answers, bool) { return s.gateway.Answers(room) })
	}
	s.gateway, err = gateway.New(gateway.Config{
		StatusPage: status, Push: s.pushes(),
		Queue: s.queue(), Sealer: s.keys.ring, Pages: pages, Prefix: s.c.Prefix,
		Addresses: s.addresses, Challenges: s.challenge, TrustedProxies: s.c.Proxies(), CountryHeader: s.c.CountryHeader, Metrics: s.metrics, Logger: s.log, Bounds: s.bounds(),
	})
	if err == nil {
		s.followRooms()
	}
	return err
}

// pushes is nil where nobody is told by push services.
func (s *Server) pushes() *webpush.Sender {
	if s.c.Push.Contact == "" {
		return nil
	}
	sender := webpush.New(webpush.Config{
		Contact: s.c.Push.Contact, Hosts: s.c.Push.Hosts,
		Secrets: func() [][]byte { return s.keys.ring.Derive("web push") },
	})
	s.metrics.MustRegister(sender.Metrics()...)
	return sender
}

// shed counts what the loop has turned away.
func shed(what, help string, n func() uint64) prometheus.CounterFunc {
	o := prometheus.CounterOpts{Name: "anteroom_loop_shed_" + what + "_total", Help: help}
	return prometheus.NewCounterFunc(o, func() float64 { return float64(n()) })
}

// onView hands a view to the links and to the node.
func (s *Server) onView(v membership.View) {
	s.links.SetMembers(v.Addr)
	s.past.peers.only(v.Addr)
	s.queues.setMembers(v)
	s.notices.SetMembers(v.Addr)
	s.loop.SetView(v.Members)
}
