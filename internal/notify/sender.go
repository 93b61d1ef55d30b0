package notify

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/wneessen/go-mail"
)

const (
	pendingMax = 1000            // notifications of one receiver that wait; beyond, the oldest is dropped
	doneMax    = 10_000          // that are remembered, so that none is sent again
	grace      = 5 * time.Second // for each node that should send first
	atItFor    = 2 * retryMax    // a node that said that it is at it is believed this long
	retryMin   = 2 * time.Second
	retryMax   = 5 * time.Minute
	keepFor    = 24 * time.Hour // then a notification that nobody took is dropped
	sendWithin = 10 * time.Second
	answerMax  = 64 << 10 // bytes of an answer that are read
	lookEvery  = 100 * time.Millisecond
)

// Config is what a Sender needs.
type Config struct {
	Receivers []Receiver
	Self      string
	Members   func() []string                             // names of the nodes that are there
	Tell      func(event, receiver string, done bool)     // tells the others: done, or else at it
	Save      func(state []byte) error                    // keeps what waits; nil: nowhere
	Kept      []byte                                      // what an earlier life has saved
	Do        func(*http.Request) (*http.Response, error) // nil: over the network
	DialMail  mail.DialContextFunc                        // for mail without TLS from the start; nil: over the network
	Roots     *x509.CertPool                              // who vouches for mail servers; nil: the system's
	Logger    *slog.Logger
}

// Sender sends the notifications of one node.
type Sender struct {
	c       Config
	results *prometheus.CounterVec

	mu      sync.Mutex
	waiting map[string][]*item // by receiver, the oldest first
	done    []string           // keys, the oldest first
	changed bool               // since it was saved
	last    map[string]Outcome // by receiver
}

// item is a notification that waits.
type item struct {
	Event Event     `json:"event"`
	Since time.Time `json:"since"`
	Tries int       `json:"tries,omitempty"`

	next   time.Time // not before
	by     string    // the node that was at it last
	byTime time.Time
}

func keyOf(event, receiver string) string { return event + " " + receiver }

// New returns a sender that has what an earlier life has kept.
func New(c Config) (*Sender, error) {
	s := &Sender{
		c: c, waiting: map[string][]*item{}, last: map[string]Outcome{},
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "anteroom_notifications_total", Help: "Notifications of this node, by receiver and what became of them: delivered, failed (it is tried again) or dropped.",
		}, []string{"receiver", "result"}),
	}
	if c.Do == nil {
		client := &http.Client{
			Transport:     &http.Transport{MaxResponseHeaderBytes: answerMax, TLSHandshakeTimeout: sendWithin, IdleConnTimeout: time.Minute},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		s.c.Do = client.Do
	}
	if len(c.Kept) > 0 {
		if err := json.Unmarshal(c.Kept, &s.waiting); err != nil {
			return nil, fmt.Errorf("notifications that wait cannot be read: %w; remove the file", err)
		}
	}
	for name := range s.waiting {
		if s.receiver(name) == nil { // it is no longer in the configuration
			delete(s.waiting, name)
		}
	}
	return s, nil
}

// Metrics are what the sender counts.
func (s *Sender) Metrics() []prometheus.Collector { return []prometheus.Collector{s.results} }

func (s *Sender) receiver(name string) *Receiver {
	for i := range s.c.Receivers {
		if s.c.Receivers[i].Name == name {
			return &s.c.Receivers[i]
		}
	}
	return nil
}

// Add takes in an event; one that it knows already changes nothing.
func (s *Sender) Add(e Event, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.c.Receivers {
		r := &s.c.Receivers[i]
		known := func(o *item) bool { return o.Event.ID == e.ID }
		if !r.wants(&e) || slices.Contains(s.done, keyOf(e.ID, r.Name)) || slices.ContainsFunc(s.waiting[r.Name], known) {
			continue
		}
		if len(s.waiting[r.Name]) >= pendingMax {
			s.waiting[r.Name] = s.waiting[r.Name][1:]
			s.results.WithLabelValues(r.Name, "dropped").Inc()
			s.c.Logger.Warn("too many notifications wait, and the oldest is dropped", "receiver", r.Name)
		}
		s.waiting[r.Name] = append(s.waiting[r.Name], &item{Event: e, Since: now})
		s.changed = true
	}
}

// Heard takes in what another node says of a notification.
func (s *Sender) Heard(from, event, receiver string, done bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if done {
		s.finish(event, receiver)
		return
	}
	for _, it := range s.waiting[receiver] {
		if it.Event.ID == event {
			it.by, it.byTime = from, now
		}
	}
}

// finish forgets a notification, and that it is done remembers. The caller holds
// s.mu.
func (s *Sender) finish(event, receiver string) {
	key := keyOf(event, receiver)
	if s.receiver(receiver) == nil || slices.Contains(s.done, key) {
		return
	}
	s.done = append(s.done, key)
	if len(s.done) > doneMax {
		s.done = s.done[1:]
	}
	s.waiting[receiver] = slices.DeleteFunc(s.waiting[receiver], func(it *item) bool { return it.Event.ID == event })
	s.changed = true
}

// Run sends until ctx ends. What waits then is kept, if there is anywhere.
func (s *Sender) Run(ctx context.Context) {
	var all sync.WaitGroup
	for i := range s.c.Receivers {
		all.Go(func() { s.serve(ctx, &s.c.Receivers[i]) })
	}
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-every.C:
		}
		s.save()
	}
	all.Wait()
	s.save()
}

func (s *Sender) save() {
	s.mu.Lock()
	changed := s.changed
	s.changed = false
	text, _ := json.Marshal(s.waiting) // strings, times, and what was decoded from JSON
	s.mu.Unlock()
	if !changed || s.c.Save == nil {
		return
	}
	if err := s.c.Save(text); err != nil {
		s.c.Logger.Error("notifications that wait are not on disk", "err", err)
	}
}

// serve sends the notifications of one receiver, one after the other.
func (s *Sender) serve(ctx context.Context, r *Receiver) {
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		if it, ok := s.due(r, time.Now()); ok {
			s.try(ctx, r, it)
		}
	}
}

// due returns the first notification that this node should send now.
func (s *Sender) due(r *Receiver, now time.Time) (Event, bool) {
	members := s.c.Members()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range slices.Clone(s.waiting[r.Name]) {
		switch {
		case now.Sub(it.Since) > keepFor:
			s.finish(it.Event.ID, r.Name)
			s.results.WithLabelValues(r.Name, "dropped").Inc()
			s.c.Logger.Error("a notification could not be delivered for a day, and is dropped", "receiver", r.Name, "event", it.Event.ID, "type", it.Event.Type)
		case !now.Before(it.next) && s.mine(it, members, now):
			return it.Event, true
		}
	}
	return Event{}, false
}

// mine reports whether no node before this one sends the notification.
func (s *Sender) mine(it *item, members []string, now time.Time) bool {
	for i, node := range order(it.Event.ID, members) {
		switch {
		case node == s.c.Self:
			return true
		case it.by == node && now.Sub(it.byTime) < atItFor, now.Sub(it.Since) < time.Duration(i+1)*grace:
			return false
		}
	}
	return true // gossip does not know this node yet, and there is nobody else
}

// try sends one notification.
func (s *Sender) try(ctx context.Context, r *Receiver, e Event) {
	s.c.Tell(e.ID, r.Name, false)
	err := s.send(ctx, r, e)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteOf(r.Name, err)
	if err == nil {
		s.results.WithLabelValues(r.Name, "delivered").Inc()
		s.finish(e.ID, r.Name)
		s.c.Tell(e.ID, r.Name, true)
		return
	}
	if ctx.Err() != nil {
		return
	}
	s.results.WithLabelValues(r.Name, "failed").Inc()
	for _, it := range s.waiting[r.Name] {
		if it.Event.ID == e.ID {
			wait := min(retryMin<<min(it.Tries, 20), retryMax)
			it.next, it.Tries = time.Now().Add(wait/2+rand.N(wait/2)), it.Tries+1
			s.changed = true
		}
	}
	s.c.Logger.Warn("a notification was not delivered, and is sent again", "receiver", r.Name, "event", e.ID, "type", e.Type, "err", err)
}

// send sends e once. The error has nothing of the URL in it.
func (s *Sender) send(ctx context.Context, r *Receiver, e Event) error {
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	if r.Mail != nil {
		return s.sendMail(ctx, r, &e)
	}
	body, now := r.body(&e), time.Now()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("the URL cannot be used")
	}
	for name, value := range headers(r, e.ID, now, body) {
		q.Header.Set(name, value)
	}
	a, err := s.c.Do(q)
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	if err != nil {
		return err
	}
	defer func() { _ = a.Body.Close() }()                         // it was only read
	_, _ = io.Copy(io.Discard, io.LimitReader(a.Body, answerMax)) // so that the connection can be used again
	if a.StatusCode < 200 || a.StatusCode > 299 {
		return fmt.Errorf("the receiver answered %d", a.StatusCode)
	}
	return nil
}
