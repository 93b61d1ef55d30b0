package traces

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/anteroom/anteroom/internal/history"
)

// receiver is a collector that takes OTLP over HTTP, and writes down what came.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	spans []string
	of    []string // attributes of the resources
	wrong []string
}

func newReceiver(t *testing.T) *receiver {
	c := &receiver{}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *receiver) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, err := io.ReadAll(r.Body)
	var all collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(b, &all)
	}
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" {
		c.wrong = append(c.wrong, fmt.Sprintf("%s %s: %v", r.Method, r.URL, err))
		return
	}
	for _, of := range all.GetResourceSpans() {
		for _, a := range of.GetResource().GetAttributes() {
			c.of = append(c.of, a.GetKey()+"="+a.GetValue().GetStringValue())
		}
		for _, spans := range of.GetScopeSpans() {
			for _, s := range spans.GetSpans() {
				text := fmt.Sprintf("%s %s %x<%x %d-%d", s.GetName(), strings.TrimRight(hex.EncodeToString(s.GetTraceId()), "0"), s.GetSpanId()[:1], s.GetParentSpanId(), s.GetStartTimeUnixNano()/1e9, s.GetEndTimeUnixNano()/1e9)
				for _, a := range s.GetAttributes() {
					text += " " + strings.TrimPrefix(a.GetKey(), "anteroom.") + "=" + a.GetValue().GetStringValue()
				}
				if len(s.GetParentSpanId()) > 0 { // else it is the root, whose id follows from the ticket's
					text = strings.Replace(text, fmt.Sprintf("%x<", s.GetSpanId()[:1]), "?<", 1)
				}
				c.spans = append(c.spans, text)
			}
		}
	}
}

// line is one of the admission log, of the ticket with an id that begins so.
func line(event, id string, joined, at int64) history.Entry {
	return history.Entry{Event: event, Room: "shop", Node: "node-1", Ticket: id + strings.Repeat("0", 32-len(id)), Joined: uint64(joined * 1e6), At: at * 1e6}
}

// The whole way of those who came, did not come, gave up and walked in, told to a
// collector: who waited has one trace, of which the other spans are below the root.
func TestAVisitorIsATrace(t *testing.T) {
	c := newReceiver(t)
	traces, err := New(Config{Endpoint: c.URL, Percent: 100, Node: "node-1", Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []history.Entry{
		line(history.Called, "aa01", 100, 130), line(history.Admitted, "aa01", 100, 134),
		line(history.Open, "bb02", 140, 140), line(history.Ended, "bb02", 140, 150),
		line(history.Called, "cc03", 100, 160), line(history.Parked, "cc03", 100, 170), line(history.Dropped, "cc03", 100, 190),
		line(history.Parked, "dd04", 100, 110), // silent, and never called
	} {
		traces.Observe(e)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	traces.Close(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.spans)
	root := func(id string) string { return id + strings.Repeat("0", 12) }
	want := []string{
		"call aa01 ?<" + root("aa01") + " 130-134 room=shop outcome=came",
		"call cc03 ?<" + root("cc03") + " 160-170 room=shop outcome=missed",
		"queue aa01 aa< 100-134 room=shop outcome=admitted",
		"queue bb02 bb< 140-140 room=shop outcome=walked_in",
		"queue cc03 cc< 100-190 room=shop outcome=gave_up",
		"wait aa01 ?<" + root("aa01") + " 100-130 room=shop outcome=called",
		"wait cc03 ?<" + root("cc03") + " 100-160 room=shop outcome=called",
	}
	if diff := cmp.Diff(want, c.spans); diff != "" || len(c.wrong) > 0 {
		t.Errorf("(-want +got):\n%s%v", diff, c.wrong)
	}
	for _, a := range []string{"service.name=anteroom", "service.instance.id=node-1", "service.version=1.2.3"} {
		if !slices.Contains(c.of, a) {
			t.Errorf("no %s in %v", a, c.of)
		}
	}
	if n := testutil.ToFloat64(traces.out.spans.WithLabelValues("ok")); n != 7 {
		t.Errorf("%v spans are counted, want 7", n)
	}
}

// All nodes draw the same sample: it goes by the ticket.
func TestASampleGoesByTheTicket(t *testing.T) {
	c := newReceiver(t)
	for range 2 {
		traces, err := New(Config{Endpoint: c.URL + "/v1/traces", Percent: 25})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			traces.Observe(line(history.Open, fmt.Sprintf("ee%030x", i), 100, 100))
		}
		traces.Close(t.Context())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.spans)
	for i := 0; i+1 < len(c.spans); i += 2 {
		if c.spans[i] != c.spans[i+1] {
			t.Errorf("one node told %s, and the other %s", c.spans[i], c.spans[i+1])
		}
	}
	if len(c.spans) != 50 {
		t.Errorf("two nodes told %d spans, want 25 each", len(c.spans))
	}
}

// A collector that is not there costs one line of the log, and the spans.
func TestACollectorThatIsNotThere(t *testing.T) {
	c := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(c.Close)
	var log bytes.Buffer
	traces, err := New(Config{Endpoint: c.URL, Percent: 100, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		traces.Observe(line(history.Open, fmt.Sprintf("a%d", i), 100, 100))
		if err := traces.provider.ForceFlush(t.Context()); err != nil {
			t.Error(err)
		}
	}
	traces.Close(t.Context())
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "tracing.endpoint") {
		t.Errorf("the log says %s", got)
	}
	if n := testutil.ToFloat64(traces.out.spans.WithLabelValues("failed")); n != 3 {
		t.Errorf("%v spans are lost, want 3", n)
	}
}

// Without an endpoint a visitor costs nothing.
func TestWithoutTracesNothingIsAllocated(t *testing.T) {
	var off *Traces
	e := line(history.Called, "aa01", 100, 130)
	if n := testing.AllocsPerRun(100, func() { off.Observe(e) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	off.Close(t.Context())
}

func BenchmarkObserve(b *testing.B) {
	c := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	b.Cleanup(c.Close)
	on, err := New(Config{Endpoint: c.URL, Percent: 100})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { on.Close(context.Background()) })
	for name, traces := range map[string]*Traces{"off": nil, "on": on} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			e := line(history.Admitted, "aa01", 100, 130)
			for b.Loop() {
				traces.Observe(e)
			}
		})
	}
}
