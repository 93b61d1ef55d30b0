package gateway

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/internal/ticket"
)

// streamLine asks for a stream.
func streamLine(q full, version string) string {
	return "GET /_anteroom/v1/rooms/shop/stream?ticket=" + q.ticket() + " HTTP/" + version + "\r\nHost: x\r\n\r\n"
}

// events reads the first event of a stream, and leaves the rest.
func (c *caller) events() *bufio.Reader {
	c.t.Helper()
	r := c.answer()
	in := bufio.NewReader(r.Body)
	if line, err := in.ReadString('\n'); err != nil || !strings.HasPrefix(line, `data: {"room":"shop","state":"waiting"`) {
		c.t.Fatalf("%d %v: %q, %v", r.StatusCode, r.Header, line, err)
	}
	_, _ = in.ReadString('\n')
	return in
}

func TestAStreamWhoseClientHangsUpEndsAtOnce(t *testing.T) {
	street(t, nil, func(t *testing.T, g *Gateway, at pipes, q full) {
		conn, _ := at.dial(t.Context(), "", "")
		go func() { _, _ = io.WriteString(conn, streamLine(q, "1.1")) }()
		in := bufio.NewReader(conn)
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(r.Body).ReadString('\n'); err != nil || g.streams.Load() != 1 {
			t.Fatalf("%q, %v; %d streams", line, err, g.streams.Load())
		}
		synctest.Wait()
		_ = conn.Close()
		synctest.Wait()
		if n := g.streams.Load(); n != 0 {
			t.Errorf("%d streams of nobody", n)
		}
	})
}

// What ends a stream of the node's own accord is the end of a whole answer, and the
// server can wait for it.
func TestCloseEndsStreamsAsAWhole(t *testing.T) {
	street(t, nil, func(t *testing.T, g *Gateway, at pipes, q full) {
		in := at.call(t, streamLine(q, "1.1")).events()
		synctest.Wait()
		waited := make(chan struct{})
		go func() { g.Closed(t.Context()); close(waited) }()
		synctest.Wait()
		select {
		case <-waited:
			t.Error("it waits for no stream")
		default:
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		g.Closed(short) // returns
		g.Close()
		if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
			t.Errorf("%q, %v", rest, err)
		}
		<-waited
		if n := g.streams.Load(); n != 0 {
			t.Errorf("%d streams", n)
		}
	})
}

// faulty is a node in front of which something of ours goes wrong.
type faulty struct{ full }

func (faulty) Do(context.Context, ticket.Request) (ticket.Answer, error) { panic("a fault of ours") }

// A fault of ours ends the stream that it is in, and no other.
func TestAFaultEndsOneStreamAlone(t *testing.T) {
	street(t, nil, func(t *testing.T, g *Gateway, at pipes, q full) {
		in := at.call(t, streamLine(q, "1.1")).events()
		synctest.Wait()
		g.c.Queue = faulty{q}
		if _, err := io.ReadAll(in); err != nil {
			t.Errorf("%v, want the end of a whole answer", err)
		}
		synctest.Wait()
		if n := g.streams.Load(); n != 0 {
			t.Errorf("%d streams", n)
		}
		g.c.Queue = q
		at.call(t, streamLine(q, "1.1")).events()
	})
}

// A client that says more is not answered, and hears on; one of HTTP/1.0 knows no
// chunks; over HTTP/2 a stream is one of many.
func TestStreamsGoOnWhateverTheyComeBy(t *testing.T) {
	street(t, nil, func(t *testing.T, g *Gateway, at pipes, q full) {
		talks := at.call(t, streamLine(q, "1.1"))
		old := at.call(t, streamLine(q, "1.0"))
		streams := map[string]*bufio.Reader{"one that talks": talks.events(), "an old one": old.events()}
		talks.say(streamLine(q, "1.1"))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x/_anteroom/v1/rooms/shop/stream?ticket="+q.ticket(), nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := at.multiplexed(t).RoundTrip(r)
		if err != nil || a.ProtoMajor != 2 {
			t.Fatalf("%+v, %v", a, err)
		}
		streams["one over HTTP/2"] = bufio.NewReader(a.Body)
		for range 2 {
			line, err := streams["one over HTTP/2"].ReadString('\n')
			if err != nil {
				t.Fatalf("%q, %v", line, err)
			}
		}
		var all sync.WaitGroup
		for what, in := range streams {
			all.Go(func() {
				if said, err := io.ReadAll(in); string(said) != strings.Repeat(":\n\n", 3) || err != nil {
					t.Errorf("%s: %q, %v; want three heartbeats", what, said, err)
				}
			})
		}
		time.Sleep(3*g.c.Bounds.Heartbeat + time.Second)
		if n := g.streams.Load(); n != 3 {
			t.Errorf("%d streams", n)
		}
		g.Close()
		all.Wait()
	})
}

func TestAStreamIsMeasuredWhenItIsOver(t *testing.T) {
	street(t, nil, func(t *testing.T, g *Gateway, at pipes, q full) {
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(g.metrics.took)
		measured := func() (count uint64, sum float64) {
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				for _, m := range f.GetMetric() {
					count, sum = count+m.GetHistogram().GetSampleCount(), sum+m.GetHistogram().GetSampleSum()
				}
			}
			return count, sum
		}
		in := at.call(t, streamLine(q, "1.1")).events()
		go func() { _, _ = io.Copy(io.Discard, in) }()
		time.Sleep(time.Minute)
		if n, _ := measured(); n != 0 {
			t.Errorf("%d requests measured while the stream goes on", n)
		}
		g.Close()
		synctest.Wait()
		if n, s := measured(); n != 1 || s < 60 {
			t.Errorf("%d requests of %v s in all, want one of a minute", n, s)
		}
	})
}
