package server

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const openFile = `
node: {gateway: "127.0.0.1:0", admin: "127.0.0.1:0", peer: "127.0.0.1:0", grpc: none, gossip: "127.0.0.1:0", expect: 1}
rooms:
  - {name: shop, routes: [{host: "*", path: /}], origin: "http://%s", total_active_users: 2000000, session_duration: 1h}
`

// site is a server with room on the site, and the site.
type site struct {
	*Server
	origin string // its address
}

func openSite(b *testing.B) *site {
	b.Helper()
	o := startOrigin(b, aPage())
	s := &site{Server: started(b, fmt.Sprintf(openFile, o)), origin: o}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if r, ok := s.Snapshot().Room("shop"); ok && r.Open && s.visit(b, "").Header().Get("Set-Cookie") != "" {
			return s
		} else if time.Now().After(deadline) {
			b.Fatal("the site is not open")
		}
	}
}

// visit has somebody come to the site.
func (s *site) visit(b *testing.B, cookie string) *httptest.ResponseRecorder {
	b.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "http://shop.example/", nil)
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	s.roomed(s.keyed(s.gateway)).ServeHTTP(w, r)
	return w
}

// pass is a cookie with a pass in it.
func (s *site) pass(b *testing.B) string {
	b.Helper()
	for _, line := range s.visit(b, "").Header()["Set-Cookie"] {
		if cookie, _, _ := strings.Cut(line, ";"); strings.HasPrefix(cookie, "anteroom_shop=") {
			return cookie
		}
	}
	b.Fatal("no pass")
	return ""
}

// navigation is the request of a browser when a person goes to the site.
func navigation(cookie string) []byte {
	return fmt.Appendf(nil, "GET /catalogue/shoes?size=42 HTTP/1.1\r\nHost: shop.example\r\nConnection: keep-alive\r\n"+
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36\r\n"+
		"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n"+
		"Upgrade-Insecure-Requests: 1\r\nSec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-User: ?1\r\nSec-Fetch-Dest: document\r\n"+
		"Accept-Encoding: gzip, deflate, br, zstd\r\nAccept-Language: nl,en;q=0.8\r\n%s\r\n", cookie)
}

// barely is httputil.ReverseProxy and nothing else, with a transport that has
// the settings of the gateway's; with buffers or, as by default, without.
func (s *site) barely(b *testing.B, buffers httputil.BufferPool) (addr string) {
	b.Helper()
	t := &http.Transport{
		MaxIdleConns: 2048, MaxIdleConnsPerHost: 512, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 5 * time.Second,
		ExpectContinueTimeout: time.Second, ResponseHeaderTimeout: time.Minute, DisableCompression: true, ForceAttemptHTTP2: true,
	}
	b.Cleanup(t.CloseIdleConnections)
	to := &url.URL{Scheme: "http", Host: s.origin}
	p := &httputil.ReverseProxy{Transport: t, BufferPool: buffers, ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
		r.SetXForwarded()
	}}
	return s.bare(b, p.ServeHTTP)
}

// pool is a BufferPool.
type pool struct{ sync.Pool }

func (p *pool) Get() []byte {
	if b, ok := p.Pool.Get().(*[32 << 10]byte); ok {
		return b[:]
	}
	return make([]byte, 32<<10)
}

func (p *pool) Put(b []byte) { p.Pool.Put((*[32 << 10]byte)(b)) }

// BenchmarkProxy has people walk about on the site over kept-alive connections
// of loopback (pass), or come there for the first time while there is room, which
// is to join and to be let in at once (first). Next to it the same requests go
// through a bare httputil.ReverseProxy of the same process to the same origin,
// and through one that has a BufferPool (pooled), as the gateway has. Client and
// origin are processes of their own, on the same processors.
//
//	go test ./internal/server -run '^$' -bench Proxy/ -benchtime=10x
//
// The figures are medians of turns of half a second: req/s, the ratio of it to
// bare's of the same round, the server's processor time for a request, and by how
// much that is more than bare's, in µs.
func BenchmarkProxy(b *testing.B) {
	kinds := map[string]func(b *testing.B, s *site) [][]byte{
		"pass": func(b *testing.B, s *site) (all [][]byte) {
			for range lanes {
				all = append(all, navigation("Cookie: site=1; "+s.pass(b)+"\r\n"))
			}
			return all
		},
		"first": func(*testing.B, *site) [][]byte { return [][]byte{navigation("")} },
	}
	for _, kind := range []string{"pass", "first"} {
		b.Run(kind, func(b *testing.B) {
			s := openSite(b)
			turn := strain{Requests: writeRequests(b, kinds[kind](b, s)), Conns: lanes, During: 500 * time.Millisecond}
			addresses := []string{s.barely(b, nil), s.barely(b, new(pool)), s.Addresses().Gateway}
			turns := map[string][]float64{}
			note := func(what string, v float64) { turns[what] = append(turns[what], v) }
			runtime.GC()
			for b.Loop() {
				var did [3]strained
				for i, a := range addresses {
					turn.Addr = a
					did[i] = turn.run(b)
				}
				bare, pooled, ours := did[0], did[1], did[2]
				note("req/s", ours.rate())
				note("cpu-µs", ours.perAnswer())
				note("bare-req/s", bare.rate())
				note("bare-cpu-µs", bare.perAnswer())
				note("bare-ratio", ours.rate()/bare.rate())
				note("bare-more-µs", ours.perAnswer()-bare.perAnswer())
				note("pooled-cpu-µs", pooled.perAnswer())
				note("pooled-ratio", ours.rate()/pooled.rate())
				note("pooled-more-µs", ours.perAnswer()-pooled.perAnswer())
			}
			if r, _ := s.Snapshot().Room("shop"); r == nil || r.Total > 0 {
				b.Fatalf("somebody waits: %+v", r)
			}
			b.ReportMetric(0, "ns/op")
			for what, v := range turns {
				b.ReportMetric(median(v), what)
			}
		})
	}
}
