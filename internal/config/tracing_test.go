package config_test

import (
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/config"
)

func TestTracing(t *testing.T) {
	f := config.Parse("a.yaml", []byte("tracing: {endpoint: http://127.0.0.1:4318}\n"), config.Options{Host: "a"})
	if f.Err() != nil || f.Config.Tracing.SamplePercent != 100 {
		t.Errorf("%v, %+v", f.Err(), f.Config.Tracing)
	}
	for _, c := range []struct{ text, want string }{
		{"endpoint: 127.0.0.1:4318", `tracing.endpoint: "127.0.0.1:4318" is no address of a collector; give one that takes OTLP over HTTP, such as http://127.0.0.1:4318`},
		{"endpoint: grpc://127.0.0.1:4317", `tracing.endpoint: "grpc://127.0.0.1:4317" is no address`},
		{"endpoint: https://me:opensesame@c.example.com", `tracing.endpoint: "…@c.example.com" is no address of a collector; give one that takes OTLP over HTTP, such as http://127.0.0.1:4318, and what it asks for in OTEL_EXPORTER_OTLP_HEADERS`},
		{"sample_percent: 0", "tracing.sample_percent: 0; give of how many of 100 visitors there are traces, 1 to 100"},
		{"sample_percent: 101", "tracing.sample_percent: 101; give"},
	} {
		f := config.Parse("a.yaml", []byte("tracing: {"+c.text+"}\n"), config.Options{Host: "a"})
		if err := f.Err(); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "opensesame") {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}
