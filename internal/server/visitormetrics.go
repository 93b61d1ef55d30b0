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
	}
	r.MustRegister(m.events, m.waits)
	return m
}

// observe takes in one line of the admission log. Safe for concurrent use.
func (m *visitorMetrics) observe(e history.Entry) {
	m.events.WithLabelValues(e.Room, e.Event).Inc()
	if e.Event == history.Admitted {
		waited := time.Duration(e.At-int64(e.Joined)) * time.Microsecond
		m.waits.WithLabelValues(e.Room).Observe(max(waited, 0).Seconds())
	}
}
