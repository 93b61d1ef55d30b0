package server

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/anteroom/anteroom/internal/history"
)

func TestVisitorsAreCountedByWhatHappensToThem(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m := newVisitorMetrics(registry)
	const second = 1_000_000
	for _, e := range []history.Entry{
		{At: 5 * second, Event: history.Open, Joined: 5 * second},
		{At: 6 * second, Event: history.Entitled, Joined: 5 * second},
		{At: 95 * second, Event: history.Admitted, Joined: 5 * second},
		{At: 96 * second, Event: history.Admitted, Joined: 97 * second}, // the clock of the node where they joined is ahead
	} {
		e.Room = "shop"
		m.observe(e)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	if h := families[1].GetMetric()[0].GetHistogram(); len(h.GetPositiveDelta()) == 0 {
		t.Errorf("%v has no native buckets", h)
	}
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`anteroom_room_visitor_events_total{event="admitted",room="shop"} 2`,
		`anteroom_room_visitor_events_total{event="entitled",room="shop"} 1`,
		`anteroom_room_visitor_events_total{event="open",room="shop"} 1`,
		`anteroom_room_wait_seconds_bucket{room="shop",le="60"} 1`,
		`anteroom_room_wait_seconds_bucket{room="shop",le="120"} 2`,
		`anteroom_room_wait_seconds_sum{room="shop"} 90`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("no %s in\n%s", want, w.Body)
		}
	}
}
