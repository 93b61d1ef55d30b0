package gateway_test

import (
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
