package server

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/internal/queueloop"
)

// Names of queues are chosen by programs, so there is a bound to what they make of
// the page.
func TestMetricsOfManyQueuesAreBounded(t *testing.T) {
	const n = 1500
	m := eviction.Member{Name: "a", Boot: 1}
	listed := queueOf(config.DefaultQueue())
	listed.Name = "zz/listed"
	l, err := queueloop.New(queueloop.Config{
		Clock:  func() broker.Time { return broker.Time{Boot: 1_000_000, Clock: 1_700_000_000_000_000} },
		Broker: broker.Config{Self: m, CreateOnUse: true, OnUse: queueOf(config.DefaultQueue()), Queues: []broker.Queue{listed}, QueuesMax: 2 * n},
	})
	if err != nil {
		t.Fatal(err)
	}
	l.SetView(broker.View{List: []eviction.Member{m}, Primary: true, At: 1_000_000})
	call := func(c pqueue.Command) {
		t.Helper()
		if a, err := l.Do(t.Context(), broker.Call{Command: c}); err != nil || a.Result.Code != pqueue.OK {
			t.Fatalf("%+v: %+v %v", c, a, err)
		}
	}
	put := func(i int) {
		t.Helper()
		call(pqueue.Command{Op: pqueue.OpInsert, Queue: fmt.Sprintf("tenant-%d", i), ID: "x", Payload: []byte("work")})
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(queueMetrics{&queues{loop: l}})
	page := func() string {
		w := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return w.Body.String()
	}
	for i := range 100 {
		put(i)
	}
	few := page()
	if strings.Contains(few, otherQueues) {
		t.Errorf("there are no others:\n%s", few)
	}
	for i := range n {
		put(i)
	}
	for i := range 3 {
		call(pqueue.Command{Op: pqueue.OpMode, Queue: fmt.Sprintf("tenant-%d", n-1-i), Mode: pqueue.ModeSetting{Mode: pqueue.Paused}})
	}
	many := page()
	if len(many) > len(few)+2000 {
		t.Errorf("%d bytes with %d queues, and %d with 100", len(many), n, len(few))
	}
	for _, want := range []string{
		`anteroom_queue_items{queue="_other",state="ready"} 1400`,
		`anteroom_queue_items{queue="tenant-99",state="ready"} 1`,
		`anteroom_queue_inserted_total{queue="_other"} 1400`,
		`anteroom_queue_root{queue="_other"} 1400`,
		`anteroom_queue_paused{queue="_other"} 3`,
		`anteroom_queue_draining{queue="_other"} 0`,
		`anteroom_queue_bytes{queue="zz/listed"} 0`,
		`anteroom_queue_known 1501`,
	} {
		if !strings.Contains(many, want+"\n") {
			t.Errorf("no %s in %d bytes", want, len(many))
		}
	}
	if want := `anteroom_queue_oldest_timestamp_seconds{queue="_other"} 1.7`; !strings.Contains(many, want) {
		t.Errorf("no %s… in %d bytes", want, len(many))
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
