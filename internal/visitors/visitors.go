// Package visitors sends people to a waiting room over HTTP: they join, check in
// when told to, come in when called, stay a while and leave. Each keeps its
// ticket, as a browser does, and goes to another gateway when one does not
// answer.
package visitors

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Config says who comes and when.
type Config struct {
	Gateways []string      // base URLs; each visitor begins at the next of them
	Prefix   string        // [/_anteroom]
	Room     string        //
	Users    int           //
	Over     time.Duration // they arrive evenly over this long; 0: at once
	Stay     time.Duration // on the site, give or take a half
	Seed     uint64        // of how long each stays
	Patience time.Duration // how long to go on without any answer [1m]
	// Transport is what they speak by, such as from addresses of their own [one of
	// the crowd's].
	Transport http.RoundTripper
	// Site, if set, has people look at a page of the site when they come in,
	// and post to another to leave it; else they end their sessions by the API.
	Site Site
}

// Site is paths on the gateways that belong to the site behind them.
type Site struct{ Look, Exit string }

// Crowd is people on their way. Its counts may be read while Run runs.
type Crowd struct {
	c      Config
	client *http.Client

	joined, waiting, onSite, done, lost, retries atomic.Int64

	mu    sync.Mutex
	first error // why the first of the lost was lost
}

// Counts is how many people are where.
type Counts struct {
	Joined  int64 `json:"joined"`  // have a place, or had one
	Waiting int64 `json:"waiting"` // in the queue
	OnSite  int64 `json:"on_site"`
	Done    int64 `json:"done"`    // were on the site and have left
	Lost    int64 `json:"lost"`    // were not let in, or sent away before they were done
	Retries int64 `json:"retries"` // requests that got no useful answer
}

// New returns a crowd that has not set out yet.
func New(c Config) *Crowd {
	if c.Prefix == "" {
		c.Prefix = "/_anteroom"
	}
	if c.Patience == 0 {
		c.Patience = time.Minute
	}
	if c.Transport == nil {
		c.Transport = &http.Transport{
			DialContext:         (&net.Dialer{Timeout: time.Second}).DialContext,
			MaxIdleConns:        1024,
			MaxIdleConnsPerHost: 256,
			MaxConnsPerHost:     256,
			IdleConnTimeout:     time.Minute,
		}
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // a page after a post is not asked for
	return &Crowd{c: c, client: &http.Client{Transport: c.Transport, Timeout: 5 * time.Second, CheckRedirect: stay}}
}

// Counts returns how many people are where just now.
func (c *Crowd) Counts() Counts {
	return Counts{
		Joined: c.joined.Load(), Waiting: c.waiting.Load(), OnSite: c.onSite.Load(), Done: c.done.Load(),
		Lost: c.lost.Load(), Retries: c.retries.Load(),
	}
}

// Run sends everyone and returns when the last has gone, or when ctx ends. The
// error says why the first of those who were never let in went home.
func (c *Crowd) Run(ctx context.Context) error {
	defer c.client.CloseIdleConnections()
	var all sync.WaitGroup
	for i := range c.c.Users {
		all.Go(func() {
			v := &visitor{crowd: c, gateway: i, rng: rand.New(rand.NewPCG(c.c.Seed, uint64(i)))}
			if !sleep(ctx, c.c.Over*time.Duration(i)/time.Duration(max(1, c.c.Users))) {
				return
			}
			if err := v.visit(ctx); err != nil && ctx.Err() == nil {
				c.lost.Add(1)
				c.mu.Lock()
				c.first = orElse(c.first, fmt.Errorf("visitor %d: %w", i, err))
				c.mu.Unlock()
			}
		})
	}
	all.Wait()
	return c.first
}

// orElse keeps the first error.
func orElse(first, err error) error {
	if first != nil {
		return first
	}
	return err
}

// sleep reports whether it was allowed to sleep for d.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// visitor is one person.
type visitor struct {
	crowd   *Crowd
	rng     *rand.Rand
	gateway int
	ticket  string
	joined  string // the time that the first answer gave
	pass    string
}

// place is what a visitor reads of an answer.
type place struct {
	State   string  `json:"state"`
	Ticket  string  `json:"ticket"`
	Pass    string  `json:"pass"`
	Code    string  `json:"code"` // of a problem
	Title   string  `json:"title"`
	Refresh float64 `json:"refresh_interval_seconds"`
	Joined  string  `json:"joined_at"`
	status  int
	retry   time.Duration
}

func (v *visitor) visit(ctx context.Context) error {
	p, err := v.ask(ctx, "join", nil)
	if err != nil {
		return err
	}
	c := v.crowd
	c.joined.Add(1)
	c.waiting.Add(1)
	v.joined = p.Joined
	for p.State != "admitted" {
		if p, err = v.next(ctx, p); err == nil && p.Joined != "" && p.Joined != v.joined {
			err = fmt.Errorf("joined at %s, and was told %s later", v.joined, p.Joined)
		}
		if err != nil {
			c.waiting.Add(-1)
			return err
		}
	}
	c.waiting.Add(-1)
	c.onSite.Add(1)
	v.pass = p.Pass
	err = v.stay(ctx)
	c.onSite.Add(-1)
	if err == nil {
		c.done.Add(1)
	}
	return err
}

// click is how often a visitor looks at another page of the site.
const click = 2 * time.Second

// stay looks around the site for a while and leaves it.
func (v *visitor) stay(ctx context.Context) error {
	c := v.crowd
	stay := c.c.Stay/2 + time.Duration(v.rng.Int64N(int64(c.c.Stay)+1))
	for c.c.Site.Look != "" {
		if err := v.browse(ctx, http.MethodGet, c.c.Site.Look); err != nil {
			return err
		}
		if stay <= click {
			break
		}
		sleep(ctx, click)
		stay -= click
	}
	sleep(ctx, stay)
	if c.c.Site.Exit != "" {
		return v.browse(ctx, http.MethodPost, c.c.Site.Exit)
	}
	_, err := v.ask(ctx, "end", map[string]string{"pass": v.pass})
	return err
}

// browse asks for a page of the site, at one gateway after the other.
func (v *visitor) browse(ctx context.Context, method, path string) error {
	deadline := time.Now().Add(v.crowd.c.Patience)
	for unanswered := false; ; {
		status, err := v.page(ctx, method, path)
		switch {
		case err == nil && status < 400:
			return nil
		case err == nil && status == http.StatusTooManyRequests && unanswered && path == v.crowd.c.Site.Exit:
			return nil // a gateway died with the answer to an exit that was carried out
		case err == nil && status == http.StatusTooManyRequests:
			return fmt.Errorf("%w: the pass is good no longer at %s", errGone, path)
		case err == nil:
			err = fmt.Errorf("status %d", status)
		default:
			unanswered = true
		}
		v.crowd.retries.Add(1)
		v.gateway++
		if time.Now().After(deadline) {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		if !sleep(ctx, 200*time.Millisecond) {
			return ctx.Err()
		}
	}
}

func (v *visitor) page(ctx context.Context, method, path string) (int, error) {
	c := &v.crowd.c
	q, err := http.NewRequestWithContext(ctx, method, c.Gateways[v.gateway%len(c.Gateways)]+path, nil)
	if err != nil {
		return 0, err
	}
	cookie := "anteroom_" + c.Room
	if q.URL.Scheme == "https" {
		cookie = "__Host-" + cookie
	}
	q.AddCookie(&http.Cookie{Name: cookie, Value: v.pass})
	a, err := v.crowd.client.Do(q)
	if err != nil {
		return 0, err
	}
	for _, renewed := range a.Cookies() {
		if renewed.Name == cookie && renewed.Value != "" {
			v.pass = renewed.Value
		}
	}
	_, err = io.Copy(io.Discard, io.LimitReader(a.Body, 1<<20))
	return a.StatusCode, errors.Join(err, a.Body.Close())
}

// next does what the last answer says: wait and check in, or come in.
func (v *visitor) next(ctx context.Context, p place) (place, error) {
	if p.Ticket != "" {
		v.ticket = p.Ticket
	}
	path := "leave"
	if p.State != "called" {
		path = "checkin"
		if !sleep(ctx, time.Duration(p.Refresh*float64(time.Second))) {
			return p, ctx.Err()
		}
	}
	return v.ask(ctx, path, map[string]string{"ticket": v.ticket})
}

// errGone is an answer after which there is nothing left to try.
var errGone = errors.New("turned away")

// ask goes on asking, at one gateway after the other, until there is an answer
// that means something or the visitor's patience is at its end.
func (v *visitor) ask(ctx context.Context, path string, body map[string]string) (place, error) {
	deadline := time.Now().Add(v.crowd.c.Patience)
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		p, err := v.post(ctx, path, body)
		switch {
		case err == nil && p.status < 300:
			return p, nil
		case err == nil && p.Code == "not_called_yet": // the call was withdrawn
			return place{State: "waiting", Refresh: 1}, nil
		case err == nil && !again(p.status) && path == "end": // it has ended already
			return p, nil
		case err == nil && !again(p.status):
			return p, fmt.Errorf("%w: %s: %d %s", errGone, path, p.status, p.Code)
		case err == nil:
			err = fmt.Errorf("%d %s", p.status, p.Code)
		}
		v.crowd.retries.Add(1)
		v.gateway++ // another may do better
		if time.Now().After(deadline) {
			return p, fmt.Errorf("%s: %w", path, err)
		}
		if !sleep(ctx, max(p.retry, pause)) {
			return p, ctx.Err()
		}
	}
}

// again reports whether a request with such an answer is worth repeating.
func again(status int) bool {
	return status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests || status == http.StatusBadGateway
}

func (v *visitor) post(ctx context.Context, path string, body map[string]string) (p place, err error) {
	c := &v.crowd.c
	var b []byte
	if body != nil {
		b, _ = json.Marshal(body) // strings
	}
	url := c.Gateways[v.gateway%len(c.Gateways)] + c.Prefix + "/v1/rooms/" + c.Room + "/" + path
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(b))
	if err != nil {
		return p, err
	}
	q.Header.Set("Content-Type", "application/json")
	a, err := v.crowd.client.Do(q)
	if err != nil {
		return p, err
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(a.Body, 64<<10))
	if err != nil {
		return p, err
	}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &p); err != nil {
			return p, fmt.Errorf("answer to %s: %w", path, err)
		}
	}
	p.status = a.StatusCode
	if s, err := time.ParseDuration(a.Header.Get("Retry-After") + "s"); err == nil {
		p.retry = min(s, 5*time.Second)
	}
	return p, nil
}
