package live

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	admissions "github.com/anteroom/anteroom/internal/history"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

// heardWithin is how long it may take, for 99 of 100, from the call at one node to the
// event of a stream at another.
const heardWithin = 300 * time.Millisecond

// listening is one visitor, by what the balancer and the nodes' logs say.
type listening struct {
	joined string
	at     string // the node of the stream
	heard  time.Time
}

// balancer sends each request to the next node, and streams through.
func balancer(t *testing.T, nodes []*process) *httptest.Server {
	t.Helper()
	var turn atomic.Uint64
	s := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			to := nodes[turn.Add(1)%uint64(len(nodes))]
			r.SetURL(&url.URL{Scheme: "http", Host: to.at(0)})
			r.Out.Header.Set("X-Node", to.id)
		},
		ModifyResponse: func(r *http.Response) error {
			r.Header.Set("X-Node", r.Request.Header.Get("X-Node"))
			return nil
		},
	})
	t.Cleanup(s.Close)
	return s
}

// A crowd behind a balancer that knows of no sessions: whoever joins at one node
// listens at another, by an event stream, or each tenth by a stream of gRPC. Whoever
// is called hears of it at once and goes in. Without hints they heard of it when they
// asked next, 2 s later as places move here, and up to refresh_interval where they do not.
func TestACallIsHeardWhereverItIsListenedFor(t *testing.T) {
	t.Parallel()
	const people = 300
	c := newCluster(t, 20)
	c.session, c.refresh, c.claim = 2*time.Minute, 20*time.Second, time.Minute
	c.run(3)
	front := balancer(t, c.nodes)
	var on []string // passes of those who are in at first
	for i := range c.limit {
		on = append(on, c.nodes[i%3].enter(""))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var ready, done sync.WaitGroup
	crowd := make([]listening, people)
	for i := range crowd {
		ready.Add(1)
		v := &crowd[i]
		listen := func(ticket string, joined func()) (string, error) { return v.events(ctx, front.URL, ticket, joined) }
		if i%10 == 0 {
			at := c.nodes[i/10%3]
			listen = func(ticket string, joined func()) (string, error) { return v.stream(ctx, at, ticket, joined) }
		}
		done.Go(func() {
			if err := v.visit(ctx, front.URL, listen, sync.OnceFunc(ready.Done)); err != nil {
				t.Error(err)
			}
		})
	}
	ready.Wait()
	c.phase("%d people listen", people)
	for _, pass := range on {
		c.nodes[0].visit("end", map[string]string{"pass": pass})
	}
	done.Wait()
	c.phase("everybody was called and has gone")
	c.heard(crowd)
}

// visit joins, listens until the call, goes in and leaves again.
func (v *listening) visit(ctx context.Context, front string, listen func(string, func()) (string, error), ready func()) error {
	defer ready()
	var a answer
	if err := post(ctx, front, "join", "", "", &a); err != nil {
		return err
	}
	v.joined = a.Joined
	ticket, err := listen(a.Ticket, ready)
	if err != nil {
		return err
	}
	if err := post(ctx, front, "leave", "ticket", ticket, &a); err != nil {
		return err
	}
	return post(ctx, front, "end", "pass", a.Pass, nil)
}

// post asks for something of one's own, by JSON.
func post(ctx context.Context, front, what, name, value string, into *answer) error {
	body := []byte("{}")
	if name != "" {
		body = fmt.Appendf(nil, "{%q: %q}", name, value)
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, front+"/_anteroom/v1/rooms/shop/"+what, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode >= 300 {
		return fmt.Errorf("%s: %s", what, r.Status)
	}
	if into == nil {
		return nil
	}
	*into = answer{}
	return json.NewDecoder(r.Body).Decode(into)
}

// events listens by an event stream until the call, and returns the ticket of then.
func (v *listening) events(ctx context.Context, front, ticket string, first func()) (string, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, front+"/_anteroom/v1/rooms/shop/stream?ticket="+ticket, nil)
	if err != nil {
		return "", err
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Body.Close() }()
	v.at = r.Header.Get("X-Node")
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var a answer
		if err := json.Unmarshal([]byte(data), &a); err != nil {
			return "", fmt.Errorf("%w: %s", err, data)
		}
		if first(); a.State == "called" {
			v.heard = time.Now()
			return a.Ticket, nil
		}
	}
	return "", fmt.Errorf("the stream at %s ends before the call: %s", v.at, r.Status)
}

// stream listens by gRPC.
func (v *listening) stream(ctx context.Context, at *process, ticket string, first func()) (string, error) {
	conn, err := grpc.NewClient(at.grpc(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	v.at = at.id
	places, err := anteroomv1.NewWaitingRoomClient(conn).Stream(ctx, &anteroomv1.StreamRequest{Room: "shop", Ticket: ticket})
	if err != nil {
		return "", err
	}
	for {
		r, err := places.Recv()
		if err != nil {
			return "", err
		}
		if first(); r.GetPlace().GetState() == anteroomv1.State_STATE_CALLED {
			v.heard = time.Now()
			return r.GetPlace().GetTicket(), nil
		}
	}
}

// heard compares when each was called, by the log of the node that has the place,
// with when they heard of it.
func (c *cluster) heard(crowd []listening) {
	c.t.Helper()
	type call struct {
		at   time.Time
		node string
	}
	calls := make(map[string]call)
	logs, _ := filepath.Glob(c.file("*.jsonl"))
	for _, name := range logs {
		f, err := os.Open(name)
		if err != nil {
			c.t.Fatal(err)
		}
		err = admissions.Read(f, func(e admissions.Entry) {
			if e.Event == admissions.Called {
				calls[time.UnixMicro(int64(e.Joined)).UTC().Format(time.RFC3339Nano)] = call{time.UnixMicro(e.At), e.Node}
			}
		})
		_ = f.Close()
		if err != nil {
			c.t.Fatal(err)
		}
	}
	var here, elsewhere []time.Duration
	for i := range crowd {
		v := &crowd[i]
		called, ok := calls[v.joined]
		switch {
		case !ok || v.heard.IsZero():
			c.t.Errorf("who joined at %s was not called, or did not hear of it", v.joined)
		case called.node == v.at:
			here = append(here, v.heard.Sub(called.at))
		default:
			elsewhere = append(elsewhere, v.heard.Sub(called.at))
		}
	}
	for _, group := range []struct {
		what string
		took []time.Duration
	}{{"the place is here", here}, {"the place is elsewhere", elsewhere}} {
		n := len(group.took)
		if n < len(crowd)/10 {
			c.t.Errorf("%s: of %d only", group.what, n)
			continue
		}
		slices.Sort(group.took)
		p99 := group.took[n*99/100]
		c.phase("%s, %d streams: from the call to the event p50 %v, p99 %v, most %v", group.what, n,
			group.took[n/2].Round(time.Millisecond), p99.Round(time.Millisecond), group.took[n-1].Round(time.Millisecond))
		if p99 > heardWithin {
			c.t.Errorf("%s: one in a hundred hears of the call after %v, want %v", group.what, p99, heardWithin)
		}
	}
}
