package gateway_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/ticket"
)

func TestMetricsCountWhatTheQueueWasAsked(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	w := newWorld(t, func(c *gateway.Config) { c.Metrics = registry }, shop())
	w.join()
	w.join()
	w.breakWith(func(ticket.Request) error { return ticket.ErrQueueFull })
	w.api("join", "")
	page := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`anteroom_queue_requests_total{code="ok",op="join"} 2`,
		`anteroom_queue_requests_total{code="queue_full",op="join"} 1`,
		`anteroom_shed_total 0`,
		`anteroom_streams 0`,
	} {
		if !strings.Contains(page.Body.String(), want+"\n") {
			t.Errorf("no %s in\n%s", want, page.Body)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// TestTheOriginsAnswersAreMeasured by class, and those that did not come too.
func TestTheOriginsAnswersAreMeasured(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	w := newWorld(t, withOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ill":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/gone":
			panic(http.ErrAbortHandler)
		}
	}, func(c *gateway.Config) { c.Metrics = registry }), shop())
	b := w.browser()
	for _, path := range []string{"/", "/", "/ill", "/gone"} {
		b.send("GET", path, "")
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, f := range families {
		if f.GetName() != "anteroom_origin_request_duration_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			h := m.GetHistogram()
			if got[m.GetLabel()[0].GetValue()] = h.GetSampleCount(); len(h.GetBucket()) != 14 || len(h.GetPositiveSpan()) == 0 {
				t.Errorf("%d classic buckets, and native ones: %v", len(h.GetBucket()), h.GetPositiveSpan())
			}
		}
	}
	if want := map[string]uint64{"2xx": 2, "5xx": 1, "none": 1}; !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// TestRequestsOfVisitorsAreMeasured by route, whichever way that was found, and nothing
// that a stranger makes up becomes a label.
func TestRequestsOfVisitorsAreMeasured(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	w := newWorld(t, withOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/gone":
			panic(http.ErrAbortHandler)
		case "/early":
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusNotFound)
		}
	}, func(c *gateway.Config) { c.Metrics = registry }), shop())
	b := w.browser()
	for _, q := range [][2]string{
		{"GET", "/"},
		{"GET", "/deep/down?x=1"},
		{"MAKEUP", "/"},
		{"GET", "/gone"},
		{"GET", "/early"},
		{"GET", "/_anteroom/v1/rooms/shop/status"},
		{"GET", "/_anteroom//v1/rooms/shop/status"},
		{"GET", "/_anteroom/v1/rooms/nowhere/status"},
		{"GET", "/_anteroom/.well-known/jwks.json"},
		{"GET", "/_anteroom/made/up"},
	} {
		b.send(q[0], q[1], "")
	}
	w.join()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, f := range families {
		if f.GetName() != "http_server_request_duration_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			h := m.GetHistogram()
			l := m.GetLabel() // in the order of their names: method, status, route
			key := l[0].GetValue() + " " + l[2].GetValue() + " " + l[1].GetValue()
			if got[key] = h.GetSampleCount(); len(h.GetBucket()) != 14 || len(h.GetPositiveSpan()) == 0 {
				t.Errorf("%s: %d classic buckets, and native ones: %v", key, len(h.GetBucket()), h.GetPositiveSpan())
			}
		}
	}
	want := map[string]uint64{
		"POST /_anteroom/v1/rooms/{room}/join 2xx": 1, "GET / 2xx": 2, "_OTHER / 2xx": 1, "GET / 5xx": 1, "GET / 4xx": 1,
		"GET /_anteroom/v1/rooms/{room}/status 2xx": 2, "GET /_anteroom/v1/rooms/{room}/status 4xx": 1,
		"GET /_anteroom/.well-known/jwks.json 2xx": 1, "GET  4xx": 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
