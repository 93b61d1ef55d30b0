package notify_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/notify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hook is a webhook, and what came to it.
type hook struct {
	mu    sync.Mutex
	ids   []string
	by    []string // the nodes that sent
	last  *http.Request
	body  []byte
	down  bool
	tries int
}

func (h *hook) take(node string, r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tries++
	if h.down {
		return nil, errors.New("nobody there")
	}
	h.last = r
	h.body, _ = io.ReadAll(r.Body) // in memory
	h.ids, h.by = append(h.ids, r.Header.Get("webhook-id")), append(h.by, node)
	return &http.Response{StatusCode: http.StatusNoContent, Body: io.NopCloser(bytes.NewReader(nil))}, nil
}

func (h *hook) set(down bool) { h.mu.Lock(); defer h.mu.Unlock(); h.down = down }

// request is the last one that came.
func (h *hook) request() (http.Header, []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last.Header, h.body
}

func (h *hook) got() (ids, by []string, tries int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.ids), slices.Clone(h.by), h.tries
}

// cluster is the senders of some nodes that hear each other.
type cluster struct {
	t       *testing.T
	hook    *hook
	mu      sync.Mutex
	senders map[string]*notify.Sender
	stops   map[string]func()
	kept    map[string][]byte
}

var secret = bytes.Repeat([]byte{7}, 32)

func (c *cluster) start(names ...string) {
	c.t.Helper()
	for _, name := range names {
		c.mu.Lock()
		kept := c.kept[name]
		c.mu.Unlock()
		s, err := notify.New(notify.Config{
			Receivers: []notify.Receiver{{Name: "pager", URL: "https://example.com/hook", Secrets: [][]byte{secret, secret[1:]}, Rooms: []string{"shop"}}},
			Self:      name, Kept: kept, Logger: slog.New(slog.DiscardHandler),
			Members: func() (all []string) {
				c.mu.Lock()
				defer c.mu.Unlock()
				for n := range c.senders {
					all = append(all, n)
				}
				return all
			},
			Tell: func(event, receiver string, done bool) {
				c.mu.Lock()
				defer c.mu.Unlock()
				for n, o := range c.senders {
					if n != name {
						go o.Heard(name, event, receiver, done, time.Now())
					}
				}
			},
			Save: func(b []byte) error {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.kept[name] = b
				return nil
			},
			Do: func(r *http.Request) (*http.Response, error) { return c.hook.take(name, r) },
		})
		if err != nil {
			c.t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		over := make(chan struct{})
		go func() { defer close(over); s.Run(ctx) }()
		c.mu.Lock()
		c.senders[name], c.stops[name] = s, func() { cancel(); <-over }
		c.mu.Unlock()
	}
}

func (c *cluster) stop(names ...string) {
	for _, name := range names {
		c.mu.Lock()
		stop := c.stops[name]
		delete(c.senders, name)
		delete(c.stops, name)
		c.mu.Unlock()
		stop()
	}
}

// happens shows an event to the nodes that are named.
func (c *cluster) happens(id string, names ...string) {
	for _, name := range names {
		c.senders[name].Add(notify.Event{ID: id, Type: notify.OriginUnhealthy, Room: "shop", Text: "ill"}, time.Now())
	}
}

func inBubble(t *testing.T, test func(c *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, hook: &hook{}, senders: map[string]*notify.Sender{}, stops: map[string]func(){}, kept: map[string][]byte{}}
		c.start("a", "b", "c")
		test(c)
		for name := range c.senders {
			c.stop(name)
		}
	})
}

func TestOneNodeSendsEachNotificationOnce(t *testing.T) {
	inBubble(t, func(c *cluster) {
		var want []string
		for i := range 30 {
			want = append(want, notify.ID("x", fmt.Sprint(i)))
			c.happens(want[i], "a", "b", "c")
			c.happens(want[i], "a") // again
			time.Sleep(time.Second)
		}
		c.senders["a"].Add(notify.Event{ID: "other", Type: notify.RoomChanged, Room: "news"}, time.Now())
		time.Sleep(10 * time.Minute)
		ids, by, tries := c.hook.got()
		if !slices.Equal(ids, want) || tries != 30 {
			t.Errorf("%d came in %d tries, want 30: %v", len(ids), tries, ids)
		}
		for _, n := range []string{"a", "b", "c"} {
			if !slices.Contains(by, n) {
				t.Errorf("%s has sent none of them", n)
			}
		}
	})
}

// TestNoNotificationIsLostWithItsNode: whoever was to send it has gone, or has
// never seen what happened, or starts anew when all have gone.
func TestNoNotificationIsLostWithItsNode(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.hook.set(true)
		var want []string
		for i := range 20 {
			want = append(want, notify.ID("y", fmt.Sprint(i)))
			c.happens(want[i], "b", "c") // a has not seen it
		}
		time.Sleep(time.Minute)
		c.stop("b")
		c.hook.set(false)
		time.Sleep(20 * time.Minute)
		ids, _, _ := c.hook.got()
		slices.Sort(ids)
		slices.Sort(want)
		if !slices.Equal(slices.Compact(ids), want) {
			t.Errorf("%d of 20 came", len(ids))
		}
		c.hook.set(true)
		c.happens("late", "a", "c")
		time.Sleep(time.Minute)
		c.stop("a", "c")
		c.hook.set(false)
		c.start("c")
		time.Sleep(10 * time.Minute)
		if ids, _, _ := c.hook.got(); ids[len(ids)-1] != "late" {
			t.Error("what waited is lost with the restart")
		}
	})
}

func TestAFailedNotificationIsSentEverLater(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.stop("b", "c")
		c.hook.set(true)
		c.happens("x", "a")
		time.Sleep(time.Minute)
		_, _, first := c.hook.got()
		time.Sleep(time.Hour)
		_, _, all := c.hook.got()
		if first < 4 || first > 8 || all < 16 || all > 40 {
			t.Errorf("%d tries in a minute and %d in an hour", first, all)
		}
	})
}

func TestWhatWaitsIsBounded(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.stop("b", "c")
		c.hook.set(true)
		for i := range 1100 {
			c.happens(fmt.Sprint(i), "a")
		}
		time.Sleep(time.Second)
		c.hook.set(false)
		time.Sleep(10 * time.Minute)
		ids, _, _ := c.hook.got()
		if slices.Sort(ids); len(ids) != 1000 || slices.Contains(ids, "99") || !slices.Contains(ids, "1099") {
			t.Errorf("%d came, want the last 1000", len(ids))
		}
	})
}

func TestEachSecretSigns(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.happens("x", "a", "b", "c")
		time.Sleep(time.Second)
		h, body := c.hook.request()
		var want []string
		for _, s := range [][]byte{secret, secret[1:]} {
			m := hmac.New(sha256.New, s)
			_, _ = io.WriteString(m, h.Get("webhook-id")+"."+h.Get("webhook-timestamp")+"."+string(body)) // a hash
			want = append(want, "v1,"+base64.StdEncoding.EncodeToString(m.Sum(nil)))
		}
		if got := h.Get("webhook-signature"); got != strings.Join(want, " ") || h.Get("webhook-id") != "x" {
			t.Errorf("%q of %q, want %q", got, h.Get("webhook-id"), want)
		}
	})
}

func TestSecretsAreReadAsTheStandardHasThem(t *testing.T) {
	for text, ok := range map[string]bool{
		"whsec_" + base64.StdEncoding.EncodeToString(secret): true,
		base64.StdEncoding.EncodeToString(secret):            false,
		"whsec_c2hvcnQ=": false,
		"whsec_%%%":      false,
		"":               false,
	} {
		if _, err := notify.ParseSecret(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}
