package live

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway/admin"
)

// bearing is a site that has so many workers, each of which answers ten requests a second.
// A request waits for one for up to a second, and is then refused.
type bearing struct {
	workers         chan struct{}
	served, refused atomic.Int64
}

const (
	answerTakes = 100 * time.Millisecond
	answerWaits = time.Second
)

func (s *bearing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	late := time.NewTimer(answerWaits)
	defer late.Stop()
	select {
	case s.workers <- struct{}{}:
	case <-late.C:
		s.refused.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case <-r.Context().Done():
		return
	}
	time.Sleep(answerTakes) // the work
	<-s.workers
	s.served.Add(1)
}

// clicks are what somebody who is inside does for ten seconds: a page a second, and out.
func (p *process) clicks(ctx context.Context, pass string, failed *atomic.Int64) {
	for range 10 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second/2 + rand.N(time.Second)):
		}
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, p.gateway()+"/", nil)
		if err != nil {
			return
		}
		q.AddCookie(&http.Cookie{Name: "anteroom_shop", Value: pass})
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			continue
		}
		_, _ = io.Copy(io.Discard, a.Body) // nothing is in it
		_ = a.Body.Close()
		if a.StatusCode >= http.StatusInternalServerError {
			failed.Add(1)
		}
	}
	p.visit("end", map[string]string{"pass": pass})
}

// comesAgain is somebody who stands in line, clicks, leaves and comes again.
func (p *process) comesAgain(ctx context.Context, failed *atomic.Int64) {
	for ctx.Err() == nil {
		a := p.visit("join", nil)
		for a.State != "admitted" && a.Ticket != "" && ctx.Err() == nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
			op := "checkin"
			if a.State == "called" {
				op = "leave"
			}
			a = p.visit(op, map[string]string{"ticket": a.Ticket})
		}
		if a.Pass != "" {
			p.clicks(ctx, a.Pass, failed)
		}
	}
}

// BenchmarkAnOriginThatBearsHalf has 200 people in front of a site that bears as many
// requests as 100 of them make, which is the limit, and then half of that. From 30 s
// after that on it measures for a minute how many of the answers were a 5xx, and how much
// of what the site bears was used; and how many were inside at most, from the beginning.
func BenchmarkAnOriginThatBearsHalf(b *testing.B) {
	for _, outflow := range []string{"fixed", "adaptive"} {
		b.Run("outflow="+outflow, func(b *testing.B) {
			for b.Loop() {
				bearsHalf(b, outflow)
			}
		})
	}
}

func bearsHalf(b *testing.B, outflow string) {
	const workers, limit = 10, 100
	c := newCluster(b, limit)
	site := &bearing{workers: make(chan struct{}, workers)}
	c.origin.Close()
	c.origin = httptest.NewServer(site)
	c.session = time.Minute
	c.room = "    governor: {floor: 10, latency: 500ms}\n    outflow: " + outflow + "\n"
	c.run(3)
	ctx, end := context.WithCancel(b.Context())
	var all sync.WaitGroup
	var failed atomic.Int64
	for i := range 2 * limit {
		all.Go(func() { c.nodes[i%3].comesAgain(ctx, &failed) })
	}
	time.Sleep(30 * time.Second) // this and what follows are what is measured
	for range workers / 2 {
		site.workers <- struct{}{} // gone for good
	}
	c.phase("half of the site is gone, after %d answers", site.served.Load())
	time.Sleep(30 * time.Second)
	served, bad, began := site.served.Load(), failed.Load(), time.Now()
	time.Sleep(time.Minute)
	served, bad = site.served.Load()-served, failed.Load()-bad
	bears := float64(workers/2) * float64(time.Since(began)) / float64(answerTakes)
	var past admin.Figures
	if err := c.nodes[0].ask("/v1/rooms/shop/history?from=-3m", &past); err != nil || past.Total.OnSiteMax > limit || past.Total.OnSiteMax < limit/2 {
		b.Errorf("%v people were inside at most, the limit is %d (%v)", past.Total.OnSiteMax, limit, err)
	}
	b.ReportMetric(100*float64(bad)/float64(served+bad), "%failed")
	b.ReportMetric(100*float64(served)/bears, "%used")
	b.ReportMetric(past.Total.OnSiteMax, "inside-at-most")
	b.ReportMetric(0, "ns/op") // says nothing
	end()
	all.Wait()
}
