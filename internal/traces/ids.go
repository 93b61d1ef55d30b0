package traces

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"
)

// traceKey is under which a context carries the id of the trace to begin.
type traceKey struct{}

// ids gives a trace the id of its ticket, and its root one that follows from that.
type ids struct{}

// rootOf is the id of the span that all others of a trace are below.
func rootOf(id trace.TraceID) (s trace.SpanID) {
	copy(s[:], id[:])
	if !s.IsValid() {
		s[0] = 1
	}
	return s
}

// NewIDs is for a root.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, _ := ctx.Value(traceKey{}).(trace.TraceID)
	return id, rootOf(id)
}

// NewSpanID is for all other spans.
func (ids) NewSpanID(context.Context, trace.TraceID) (s trace.SpanID) {
	for !s.IsValid() {
		binary.BigEndian.PutUint64(s[:], rand.Uint64())
	}
	return s
}
