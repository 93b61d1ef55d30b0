package config

import (
	"net/url"
	"strings"
)

// Tracing says where traces of visitors go.
type Tracing struct {
	Endpoint      string `json:"endpoint"`       // URL of an OTLP receiver; empty: there are none
	SamplePercent int    `json:"sample_percent"` // of the visitors that have one
}

// DefaultTracing returns that of an empty file: off.
func DefaultTracing() Tracing { return Tracing{SamplePercent: 100} }

func (f *File) checkTracing() {
	t := f.Config.Tracing
	if u, err := url.Parse(t.Endpoint); t.Endpoint != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		f.fault("tracing.endpoint", "%q is no address of a collector; give one that takes OTLP over HTTP, such as http://127.0.0.1:4318, and what it asks for in OTEL_EXPORTER_OTLP_HEADERS", withoutUser(t.Endpoint))
	}
	if p := t.SamplePercent; p < 1 || p > 100 {
		f.fault("tracing.sample_percent", "%d; give of how many of 100 visitors there are traces, 1 to 100", p)
	}
}

// withoutUser is an address without what may be a token, or a password, in it.
func withoutUser(text string) string {
	if _, at, ok := strings.Cut(text, "@"); ok {
		return "…@" + at
	}
	return text
}
