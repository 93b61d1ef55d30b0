package load_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/load"
	"github.com/anteroom/anteroom/internal/server"
	"github.com/anteroom/anteroom/internal/shop"
)

// Against the real thing: two nodes over real sockets, and the demo's shop.
func TestLoadGetsEverybodyThroughRealNodes(t *testing.T) {
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("NOT RUN: a test with real sockets; set ANTEROOM_E2E=1")
	}
	const limit, people = 20, 120
	counter := shop.New(shop.Config{Now: time.Now})
	origin := httptest.NewServer(counter)
	defer origin.Close()
	var urls []string
	join := ""
	for _, id := range []string{"a", "b"} {
		addresses := nodeOf(t, id, join, origin.URL)
		urls, join = append(urls, "http://"+addresses.Gateway), addresses.Gossip
	}
	g, err := load.New(load.Config{
		URLs: urls, Room: "shop", Limit: limit, Seed: 1, Connections: 2 * people,
		Arrivals: load.Arrivals{Users: people, Drain: -1},
		Manners:  load.Manners{Stay: 300 * time.Millisecond, Browse: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for g.Reach(t.Context()) != nil { // they have to find each other first
		<-every.C
	}
	r := g.Run(t.Context())
	v, f := r.Visitors, r.Report
	if v.Came != people || v.Done != people || len(r.Lost) != 0 {
		t.Fatalf("visitors %+v, lost %v, errors %v", v, r.Lost, r.Errors)
	}
	if s := counter.Stats(); s.Seen != people || r.HeldMost > limit || r.HeldMost < limit/2 || *f.OverLimitMax != 0 {
		t.Errorf("the shop saw %d people, want %d; they held %d passes at a time, the limit is %d", s.Seen, people, r.HeldMost, limit)
	}
	if f.N+f.OpenAdmissions != people || f.N < people/2 || r.Unordered != 0 || f.KendallTau == nil || *f.KendallTau != 0 {
		t.Errorf("%d without a wave, report %+v", r.Unordered, f)
	}
	if n := r.Requests["browse"].Count; n != 2*people {
		t.Errorf("%d pages, want %d", n, 2*people)
	}
}

// nodeOf runs a node for as long as the test.
func nodeOf(t *testing.T, id, join, origin string) server.Addresses {
	t.Helper()
	file := `
node: {gateway: "127.0.0.1:0", admin: "127.0.0.1:0", peer: "127.0.0.1:0", grpc: none, gossip: "127.0.0.1:0", expect: 2}
security: {gossip_key: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=}
rooms: [{name: shop, routes: [{host: "*", path: /}], total_active_users: 20, refresh_interval: 1s, origin: "` + origin + `"}]
`
	set := []config.Setting{}
	if join != "" {
		set = append(set, config.Setting{Key: "node.join", Value: join, From: "test"})
	}
	f := config.Parse("test", []byte(file), config.Options{Host: id, Set: set})
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder // of one goroutine at a time: slog's handlers lock
	s := server.New(f.Config, server.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-over; err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if t.Failed() {
			t.Logf("%s:\n%s", id, log.String())
		}
	})
	select {
	case <-s.Ready():
	case err := <-over:
		over <- nil
		t.Fatalf("%s: %v", id, err)
	}
	return s.Addresses()
}
