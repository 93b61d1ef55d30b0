package gateway

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// newServed is OpenTelemetry's http.server.request.duration. What a visitor can choose of
// it is bounded: methods are the known ones, routes are patterns, and of the status there
// is the class, so that a query for 5.. finds it.
func newServed() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "http_server_request_duration_seconds",
		Help: "How long requests of visitors took until their answer was over, by method, route and class of the status. Streams and upgraded connections last as long as their visitors stay.",

		Buckets: durations(), NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160,
	}, []string{"http_request_method", "http_route", "http_response_status_code"})
}

// measured is a ResponseWriter that remembers the status.
type measured struct {
	http.ResponseWriter
	began  time.Time
	route  string // the pattern that the path met; "/" of requests to a site, empty: none
	status int    // 0: nothing was written yet
	inside bool   // the server around us is in charge, see Before
	lasts  bool   // the answer goes on after its handler, and is measured when it is over
}

// Unwrap is for http.ResponseController.
func (m *measured) Unwrap() http.ResponseWriter { return m.ResponseWriter }

// WriteHeader notes the status, but those that announce another.
func (m *measured) WriteHeader(status int) {
	if m.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		m.status = status
	}
	m.ResponseWriter.WriteHeader(status)
}

func (m *measured) Write(b []byte) (int, error) {
	if m.status == 0 {
		m.status = http.StatusOK
	}
	return m.ResponseWriter.Write(b)
}

// Hijack is what http.ResponseController calls when a connection changes its protocol.
func (m *measured) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(m.ResponseWriter).Hijack()
	if err == nil && m.status == 0 {
		m.status = http.StatusSwitchingProtocols
	}
	return c, rw, err
}

// served takes in a request that is over.
func (m *metrics) served(method string, of *measured) {
	m.took.WithLabelValues(methodOf(method), of.route, classOf(of.status)).Observe(time.Since(of.began).Seconds())
}

// methodOf is a method as the conventions have it: a stranger can make up any.
func methodOf(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return method
	}
	return "_OTHER"
}

// routeOf is the path of a pattern; empty: it is the one for all that is not there.
func routeOf(pattern string) string {
	if _, path, ok := strings.Cut(pattern, " "); ok {
		pattern = path
	}
	if pattern == "/" {
		return ""
	}
	return pattern
}
