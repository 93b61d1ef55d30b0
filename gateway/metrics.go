package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/internal/ticket"
)

// metrics counts what the gateway does. Labels have few values, none of which
// a visitor can choose.
type metrics struct {
	requests     *prometheus.CounterVec         // by op and code
	ok           [ticket.Ops]prometheus.Counter // of them by op, those that went well
	shed         prometheus.Counter
	superseded   prometheus.Counter
	originErrors *prometheus.CounterVec   // by room
	originTook   *prometheus.HistogramVec // by room and class of the answer
	bypassed     *prometheus.CounterVec   // by room
	brokenRules  *prometheus.CounterVec   // by room
	took         *prometheus.HistogramVec // by method, route and class of the answer
}

func newMetrics() *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "anteroom_queue_requests_total", Help: "Requests to the queue, by operation and outcome.",
		}, []string{"op", "code"}),
		shed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "anteroom_shed_total", Help: "Requests and streams refused because there were too many at once.",
		}),
		superseded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "anteroom_streams_superseded_total", Help: "Event streams ended because two newer ones of their ticket were opened.",
		}),
		originErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "anteroom_origin_errors_total", Help: "Requests that the origin did not answer.",
		}, []string{"room"}),
		originTook: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "anteroom_origin_request_duration_seconds",
			Help:    "How long the origin took until its answer began, by its class: 2xx, 3xx, 4xx, 5xx, 1xx (an upgrade), or none, where no answer came.",
			Buckets: durations(), NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160,
		}, []string{"room", "code"}),
		bypassed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "anteroom_bypassed_requests_total", Help: "Requests that met a bypass rule and went straight to the origin.",
		}, []string{"room"}),
		brokenRules: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "anteroom_bypass_rule_errors_total", Help: "Bypass rules that broke on a request, which counts as not met.",
		}, []string{"room"}),
		took: newServed(),
	}
	for op := range m.ok {
		m.ok[op] = m.requests.WithLabelValues(ticket.Op(op).String(), "ok")
	}
	return m
}

func (m *metrics) register(r prometheus.Registerer, g *Gateway) error {
	for _, c := range []prometheus.Collector{
		m.requests, m.shed, m.superseded, m.originErrors, m.originTook, m.bypassed, m.brokenRules, m.took,
		arrivingGauge("anteroom_bodies_arriving", "Requests that are answered by the node itself whose body is on its way.", &g.bodies),
		arrivingCounter("anteroom_bodies_crowded_out_total", "Of them broken off because there were too many, those of the busiest address first.", &g.bodies),
		arrivingGauge("anteroom_uploads_arriving", "Requests on their way to an origin whose body is on its way.", &g.uploads),
		arrivingCounter("anteroom_uploads_crowded_out_total", "Of them broken off because there were too many, those of the busiest address first.", &g.uploads),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "anteroom_push_subscriptions", Help: "Places whose call this node would tell by web push.",
		}, func() float64 { return float64(g.pushes.count()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "anteroom_streams", Help: "Event streams open.",
		}, func() float64 { return float64(g.streams.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "anteroom_queue_requests_in_flight", Help: "Requests to the queue that wait for their answer.",
		}, func() float64 { return float64(g.inFlight.Load()) }),
	} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

func arrivingGauge(name, help string, a *arriving) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(a.open()) })
}

func arrivingCounter(name, help string, a *arriving) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(a.evicted.Load()) })
}

// origin counts an answer of the origin behind a room; status 0: none came.
func (m *metrics) origin(room string, status int, took time.Duration) {
	m.originTook.WithLabelValues(room, classOf(status)).Observe(took.Seconds())
}

// durations are the buckets of http.client.request.duration and
// http.server.request.duration in OpenTelemetry's conventions, in seconds.
func durations() []float64 {
	return []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
}

// classOf is the class of an answer; status 0: there was none.
func classOf(status int) string {
	classes := [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}
	if i := status / 100; i < len(classes) {
		return classes[i]
	}
	return classes[0]
}

func (m *metrics) asked(op ticket.Op, err error) {
	if err == nil {
		m.ok[op].Inc()
		return
	}
	code := "canceled"
	if !errors.Is(err, context.Canceled) {
		code = errorOf(err).Code
	}
	m.requests.WithLabelValues(op.String(), code).Inc()
}
