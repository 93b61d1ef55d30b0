package live

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// metric reads one of a node's figures; -1: it is not there.
func (p *process) metric(name string) float64 {
	a, err := p.look("/metrics", 5*time.Second)
	if err != nil {
		return -1
	}
	defer func() { _ = a.Body.Close() }()
	b, _ := io.ReadAll(a.Body)
	sum := -1.0
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == ' ' || rest[0] == '{') {
			f := strings.Fields(line)
			n, _ := strconv.ParseFloat(f[len(f)-1], 64)
			sum = max(sum, 0) + n
		}
	}
	return sum
}

// besiege holds n connections to an address and says something on each, and
// opens new ones for those that are closed, until it is told to end.
type besieger struct {
	opened atomic.Int64 // so far
	end    func()
}

func besiege(t *testing.T, dial func(context.Context, string, string) (net.Conn, error), address string, n int, say func(i int) string) *besieger {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	b := &besieger{end: func() { cancel(); all.Wait() }}
	dialing := make(chan struct{}, 16) // at a time: each takes a thread of the system
	for i := range n {
		all.Go(func() {
			for ctx.Err() == nil {
				dialing <- struct{}{}
				c, err := dial(ctx, "tcp", address)
				<-dialing
				if err == nil {
					b.opened.Add(1)
					stop := context.AfterFunc(ctx, func() { _ = c.Close() })
					_, _ = io.WriteString(c, say(i))
					_, _ = io.Copy(io.Discard, c) // until it is closed
					stop()
					_ = c.Close()
				}
				select {
				case <-time.After(200 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	t.Cleanup(b.end)
	return b
}

// visitorFrom is somebody who comes anew each time, by a connection of their own.
func visitorFrom(s *stranger, from netip.Addr) *http.Client {
	c := s.client(from)
	c.Transport.(*http.Transport).DisableKeepAlives, c.Timeout = true, 5*time.Second
	return c
}

// joins reports whether a visitor gets a place, or straight in.
func (p *process) joins(client *http.Client) error {
	a, err := client.Post(p.gateway()+"/_anteroom/v1/rooms/shop/join", "application/json", nil)
	if err != nil {
		return err
	}
	body, _ := io.ReadAll(a.Body)
	_ = a.Body.Close()
	if a.StatusCode != http.StatusCreated {
		return fmt.Errorf("a join: %s: %s", a.Status, body)
	}
	return nil
}

// place is somebody's who joins, once the node gives any.
func (p *process) place() (a answer) {
	p.c.t.Helper()
	p.c.await("place", 10*time.Second, func() bool { a = p.visit("join", nil); return a.Status == http.StatusCreated })
	return a
}

// Attack 4. Strangers hold 2,000 connections to one port after the other, silent
// ones and half handshakes, of a node that may have 1,024 files. Every other port
// answers meanwhile, the waves go on, and so does the port itself for somebody
// else.
func TestAFloodOfConnectionsStarvesNoPort(t *testing.T) {
	s := newStranger(t)
	c := newCluster(t, 10)
	c.files = 1024
	c.room = "    active_per_address: 0\n" // ten of one address may be in, and nobody in line
	c.open(s)
	c.run(2)
	p := c.nodes[0]
	half := func(i int) string { // nothing; a handshake, a request or a frame that does not go on
		return []string{"", "\x16\x03\x01\x02", "GET / HTTP/1.1\r\nHost: x\r\nX-A: ", "PRI * HTTP/2.0\r\n"}[i%4]
	}
	here := (&net.Dialer{Timeout: 5 * time.Second}).DialContext
	for _, port := range []struct {
		name string
		n    int // of ports
		dial func(context.Context, string, string) (net.Conn, error)
	}{
		{"peer", 2, s.dial(s.addr(7))},
		{"gateway", 0, s.dial(s.addr(7))},
		{"gossip", 3, s.dial(s.addr(7))},
		{"grpc", 4, here}, // which are on loopback: no address is bounded, and the port is
		{"admin", 1, here},
	} {
		flood := besiege(t, port.dial, p.at(port.n), 2000, half)
		c.await("flood of "+port.name, 20*time.Second, func() bool { return flood.opened.Load() > 2000 })
		honest, failed := visitorFrom(s, s.addr(9)), 0
		var last error
		const tries = 10
		for range tries {
			if err := p.joins(honest); err != nil {
				failed, last = failed+1, err
			}
		}
		if failed > 0 {
			t.Errorf("%s flooded: %d of %d visitors were not served: %v", port.name, failed, tries, last)
		}
		c.until(port.name+" flooded: the admin port answers, and both nodes are in a wave", 10*time.Second, func() bool {
			return p.metric("anteroom_members_in_wave") == 2 && p.cluster().Waiting == ""
		})
		if port.name != "gossip" {
			name := "anteroom_" + port.name + "_connections"
			// One asks anew until there is an answer: where the admin port is what is
			// flooded, a connection may have to make way before its request is there.
			c.await(name+" within its limit, and more than 500 evicted or refused", 10*time.Second, func() bool {
				open, most := p.metric(name), p.metric(name+"_limit")
				evicted, refused := p.metric(name+"_evicted_total"), p.metric(name+"_refused_total")
				return open >= 0 && open <= most && evicted >= 0 && refused >= 0 && evicted+refused >= 500
			})
		}
		flood.end()
	}
	c.serving(2)
	for _, p := range c.nodes {
		if log := p.log.String(); strings.Contains(log, "too many open files") {
			t.Errorf("%s ran out of files", p.id)
		}
	}
}

// Attack 11. One ticket opens 300 streams. Two are there at any time, the newest,
// and whoever else streams goes on.
func TestOneTicketHoldsTwoStreams(t *testing.T) {
	s := newStranger(t)
	c := newCluster(t, 1)
	c.open(s)
	c.run(1)
	p := c.nodes[0]
	p.place() // who is in
	attacker, honest := p.place(), p.place()
	stream := func(ticket string) string {
		return "GET /_anteroom/v1/rooms/shop/stream?ticket=" + ticket + " HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n"
	}
	other, err := s.dial(s.addr(9))(t.Context(), "tcp", p.at(0))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(other, stream(honest.Ticket))
	dial := s.dial(s.addr(7))
	var all []net.Conn
	for range 300 {
		conn, err := dial(t.Context(), "tcp", p.at(0))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, conn)
		_, _ = io.WriteString(conn, stream(attacker.Ticket))
	}
	var ended, open float64
	defer func() { c.phase("%v streams superseded, %v open", ended, open) }()
	c.until("streams of one ticket are superseded, and three are open", 10*time.Second, func() bool {
		ended, open = p.metric("anteroom_streams_superseded_total"), p.metric("anteroom_streams")
		return ended >= 290 && open == 3
	})
	_ = all[0].SetReadDeadline(time.Now().Add(5 * time.Second))
	if b, _ := io.ReadAll(all[0]); !strings.Contains(string(b), "retry: 60000\nevent: problem") || !strings.Contains(string(b), "stream_superseded") {
		t.Errorf("the first ended with %q", b)
	}
	for _, conn := range append(all, other) {
		_ = conn.Close()
	}
}

// Attack 12. Requests whose body does not come, from so many addresses that the
// bound for each does not stop them, in every state, to a node that may have 1,024
// files. Visitors from elsewhere get their places meanwhile.
func TestSlowBodiesKeepNobodyOut(t *testing.T) {
	s := newStranger(t)
	c := newCluster(t, 1)
	c.files = 1024
	c.open(s)
	c.run(1)
	p := c.nodes[0]
	inside := p.place()
	body := "Content-Type: application/json\r\nContent-Length: 4000\r\n\r\n{"
	heads := []string{
		"POST /_anteroom/v1/rooms/shop/join HTTP/1.1\r\nHost: shop\r\n",
		"POST /_anteroom/v1/rooms/shop/checkin HTTP/1.1\r\nHost: shop\r\n",
		"POST /buy HTTP/1.1\r\nHost: shop\r\n",                                                   // waits
		"POST /checkout HTTP/1.1\r\nHost: shop\r\nCookie: anteroom_shop=" + inside.Pass + "\r\n", // is in
	}
	var floods []*besieger
	for i := range 12 {
		floods = append(floods, besiege(t, s.dial(s.addr(20+i)), p.at(0), 100, func(i int) string { return heads[i%len(heads)] + body }))
	}
	c.await("flood of bodies", 20*time.Second, func() bool {
		opened := int64(0)
		for _, f := range floods {
			opened += f.opened.Load()
		}
		return opened >= 1200
	})
	honest := visitorFrom(s, s.addr(9))
	var slowest time.Duration
	for range 20 {
		began := time.Now()
		if err := p.joins(honest); err != nil {
			t.Errorf("a visitor during the flood: %v", err)
		}
		slowest = max(slowest, time.Since(began))
		time.Sleep(100 * time.Millisecond)
	}
	c.phase("20 visitors got a place, the slowest after %v; %v bodies and %v uploads crowded out", slowest,
		p.metric("anteroom_bodies_crowded_out_total"), p.metric("anteroom_uploads_crowded_out_total"))
	if n := p.metric("anteroom_bodies_arriving"); n > 46 {
		t.Errorf("%v bodies on their way at once", n)
	}
	for _, f := range floods {
		f.end()
	}
}

// Attack 13. A page whose name was made to point at the admin port, and a page of
// another site, with the browser of somebody on the node's machine.
func TestAForeignHostGetsNothingAtTheAdminPort(t *testing.T) {
	c := newCluster(t, 10)
	c.top = "admin_hosts: [node-1.internal]\n"
	c.run(1)
	p := c.nodes[0]
	for _, x := range []struct {
		method, path, host, origin string
		status                     int
		has                        string
	}{
		{"GET", "/v1/cluster", "evil.example:9090", "", 403, "host_refused"},
		{"GET", "/v1/rooms/shop", "127.0.0.1.evil.example", "", 403, "host_refused"},
		{"GET", "/metrics", "evil.example", "", 403, "host_refused"},
		{"GET", "/debug/pprof/heap", "evil.example", "", 403, "host_refused"},
		{"POST", "/v1/rooms/shop/hold", "evil.example", "http://evil.example", 403, "host_refused"},
		{"POST", "/v1/rooms/shop/hold", "", "http://evil.example", 403, "cross_origin"},
		{"GET", "/metrics", "", "", 200, "anteroom_members"}, // as Prometheus asks, by address
		{"GET", "/v1/cluster", "localhost:9090", "", 200, "node-1"},
		{"GET", "/v1/cluster", "node-1.internal:9090", "", 200, "node-1"},
		{"GET", "/healthz", "shop.example.com", "", 200, "ok"}, // as a balancer asks
		{"GET", "/debug/pprof/heap", "", "", 404, "--pprof"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), x.method, "http://"+p.at(1)+x.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Host = x.host; x.host == "" {
			r.Host = p.at(1)
		}
		if x.origin != "" {
			r.Header.Set("Origin", x.origin)
		}
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(a.Body)
		_ = a.Body.Close()
		if a.StatusCode != x.status || !strings.Contains(string(b), x.has) {
			t.Errorf("%s %s of %q from %q: %d %.200s, want %d and %s", x.method, x.path, r.Host, x.origin, a.StatusCode, b, x.status, x.has)
		}
	}
	if m := p.room().Mode; m != "normal" {
		t.Errorf("the room is %s", m)
	}
}
