package traces

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// tellEvery is how often the log has a line while the collector does not answer.
const tellEvery = time.Minute

// exporter counts what another one sends, and tells what goes wrong.
type exporter struct {
	sdk.SpanExporter
	log   *slog.Logger
	spans *prometheus.CounterVec // by result

	mu   sync.Mutex
	told time.Time
}

func newExporter(to sdk.SpanExporter, log *slog.Logger) *exporter {
	return &exporter{SpanExporter: to, log: log, spans: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "anteroom_trace_spans_total", Help: "Spans that were handed to the collector, by result: ok or failed.",
	}, []string{"result"})}
}

func (e *exporter) metrics() []prometheus.Collector { return []prometheus.Collector{e.spans} }

// ExportSpans sends some. It returns no error: nobody but the log could do anything
// with it.
func (e *exporter) ExportSpans(ctx context.Context, some []sdk.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, some)
	if err == nil {
		e.spans.WithLabelValues("ok").Add(float64(len(some)))
		return nil
	}
	e.spans.WithLabelValues("failed").Add(float64(len(some)))
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := time.Now(); now.Sub(e.told) >= tellEvery {
		e.told = now
		e.log.Warn("traces are lost: the collector of tracing.endpoint does not take them", "spans", len(some), "err", err)
	}
	return nil
}
