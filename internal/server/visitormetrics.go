package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/internal/history"
)

// visitorMetrics counts for Prometheus what happens to visitors at this node, in the
// words of the admission log. What nodes count adds up. Rooms are the operator's, so
// the number of series is bounded by theirs.
type visitorMetrics struct {
	events *prometheus.CounterVec   // by room and event
	waits  *prometheus.HistogramVec // by room, seconds
	truths *prometheus.CounterVec   // by room: estimates of which the truth has come
	under  *prometheus.CounterVec   // of them, by room and quartile
}

func newVisitorMetrics(r prometheus.Registerer) *visitorMetrics {
	m := &visitorMetrics{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "anteroom_room_visitor_events_total",
			Help: "What happened to visitors at this node, by the words of the admission log: entitled, called, admitted (after waiting), open (walked straight in), ended, parked, dropped, …",
		}, []string{"room", "event"}),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "anteroom_room_wait_seconds",
			Help:    "How long the people who were admitted at this node after waiting had waited, since they joined.",
			Buckets: []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400},

			NativeHistogramBucketFactor: 1.1, // from a microsecond to a day no more than 300 buckets
		}, []string{"room"}),
		truths: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "anteroom_room_estimates_total",
			Help: "Estimated waits whose truth has come at this node: one of each person who was called, drawn from all that they were told.",
		}, []string{"room"}),
		under: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "anteroom_room_estimates_under_total",
			Help: "Estimated waits that were no shorter than the truth, by quartile. Of all of them p25 should be a quarter, p50 half and p75 three quarters.",
		}, []string{"room", "quartile"}),
	}
	r.MustRegister(m.events, m.waits, m.truths, m.under)
	return m
}

// cameTrue takes in under which quartiles of an estimate the truth was.
func (m *visitorMetrics) cameTrue(room string, under [3]bool) {
	m.truths.WithLabelValues(room).Inc()
	for i, quartile := range [...]string{"p25", "p50", "p75"} {
		c := m.under.WithLabelValues(room, quartile)
		if under[i] {
			c.Inc()
		}
	}
}

// observe takes in one line of the admission log. Safe for concurrent use.
func (m *visitorMetrics) observe(e history.Entry) {
	m.events.WithLabelValues(e.Room, e.Event).Inc()
	if e.Event == history.Admitted {
		waited := time.Duration(e.At-int64(e.Joined)) * time.Microsecond
		m.waits.WithLabelValues(e.Room).Observe(max(waited, 0).Seconds())
	}
}
