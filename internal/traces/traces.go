// Package traces tells an OpenTelemetry collector what became of visitors, by OTLP over
// HTTP: one trace for each, from joining to the call and on to the admission.
//
// The id of a trace is that of the ticket, as in the admission log, and so all nodes
// agree on it, and on who is in a sample, without a word between them. There is no
// address, ticket or pass in a trace.
package traces

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/anteroom/anteroom/internal/history"
)

// Config is where traces go, and whose.
type Config struct {
	Endpoint string // URL of the receiver; without a path: /v1/traces there
	Percent  int    // of the visitors that have one
	Node     string
	Version  string
	Logger   *slog.Logger // nil: none
}

// calledMax bounds the people of whom it is known when they were called. Of more the
// trace does not say how long they took to come.
const calledMax = 1 << 16

// Traces makes spans of what happens to visitors at this node. The nil one does
// nothing. Safe for concurrent use; it never blocks: what the collector does not take
// in time is dropped.
type Traces struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	percent  uint64
	out      *exporter

	mu     sync.Mutex
	called map[trace.TraceID]int64 // Unix µs
}

// New returns traces that are sent to c.Endpoint until Close. Nothing is sent yet.
func New(c Config) (*Traces, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return nil, err
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	otlp, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(u.String()))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	of, err := resource.Merge(resource.NewSchemaless(
		attribute.String("service.name", "anteroom"), attribute.String("service.version", c.Version), attribute.String("service.instance.id", c.Node),
	), resource.Environment()) // which operators set by OTEL_RESOURCE_ATTRIBUTES
	if err != nil {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	out := newExporter(otlp, c.Logger)
	p := sdk.NewTracerProvider(sdk.WithBatcher(out), sdk.WithResource(of), sdk.WithSampler(sdk.AlwaysSample()), sdk.WithIDGenerator(ids{}))
	return &Traces{
		provider: p, tracer: p.Tracer("github.com/anteroom/anteroom"), percent: uint64(c.Percent), out: out, called: map[trace.TraceID]int64{},
	}, nil
}

// Metrics count what was sent.
func (t *Traces) Metrics() []prometheus.Collector { return t.out.metrics() }

// Close sends what is left, for as long as ctx lasts.
func (t *Traces) Close(ctx context.Context) {
	if t != nil {
		_ = t.provider.Shutdown(ctx) // what could not be sent was told by the exporter
	}
}

// Observe takes in a line of the admission log.
func (t *Traces) Observe(e history.Entry) {
	if t == nil {
		return
	}
	id, err := trace.TraceIDFromHex(e.Ticket)
	if err != nil || binary.BigEndian.Uint64(id[8:])%100 >= t.percent {
		return
	}
	joined := int64(e.Joined)
	switch e.Event {
	case history.Called:
		t.span(e.Room, id, "wait", joined, e.At, "called")
		t.remember(id, e.At)
	case history.Parked:
		t.came(e, id, "missed")
	case history.Admitted:
		t.came(e, id, "came")
		t.visit(e.Room, id, joined, e.At, "admitted")
	case history.Open:
		t.visit(e.Room, id, joined, e.At, "walked_in")
	case history.Dropped:
		t.came(e, id, "missed")
		t.visit(e.Room, id, joined, e.At, "gave_up")
	}
}

func (t *Traces) remember(id trace.TraceID, at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.called) < calledMax {
		t.called[id] = at
	}
}

// came ends the call of somebody who was called at this node.
func (t *Traces) came(e history.Entry, id trace.TraceID, outcome string) {
	t.mu.Lock()
	at, ok := t.called[id]
	delete(t.called, id)
	t.mu.Unlock()
	if ok {
		t.span(e.Room, id, "call", at, e.At, outcome)
	}
}

// visit is the root of a trace, which ends when somebody is in, or gives up.
func (t *Traces) visit(room string, id trace.TraceID, from, to int64, outcome string) {
	t.emit(context.WithValue(context.Background(), traceKey{}, id), room, "queue", from, to, outcome)
}

// span is a part of it, which may be told before it, and by another node.
func (t *Traces) span(room string, id trace.TraceID, name string, from, to int64, outcome string) {
	root := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: rootOf(id), TraceFlags: trace.FlagsSampled, Remote: true})
	t.emit(trace.ContextWithSpanContext(context.Background(), root), room, name, from, to, outcome)
}

func (t *Traces) emit(ctx context.Context, room, name string, from, to int64, outcome string) {
	_, s := t.tracer.Start(ctx, name, trace.WithTimestamp(time.UnixMicro(from)), trace.WithAttributes(
		attribute.String("anteroom.room", room), attribute.String("anteroom.outcome", outcome),
	))
	s.End(trace.WithTimestamp(time.UnixMicro(max(from, to)))) // clocks of two nodes may differ
}
