package live

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/anteroom/anteroom/gateway/admin"
)

// audience is a webhook and a mail server in one: it checks what it gets, and can be down.
type audience struct {
	down atomic.Bool

	mu    sync.Mutex
	tries []word // by webhook, also those that were refused
	mails []word
	wrong []string
}

// word is what came, and when.
type word struct {
	ID    string `json:"id"`
	Type  string `json:"type"`
	at    time.Time
	taken bool
}

const hookSecret = "0123456789abcdef0123456789abcdef"

func (o *audience) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m := hmac.New(sha256.New, []byte(hookSecret))
	_, _ = fmt.Fprintf(m, "%s.%s.%s", r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), body) // a hash
	got := word{at: time.Now(), taken: !o.down.Load()}
	err := json.Unmarshal(body, &got)
	o.mu.Lock()
	defer o.mu.Unlock()
	if sig := "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil)); err != nil || r.Header.Get("webhook-signature") != sig || r.Header.Get("webhook-id") != got.ID {
		o.wrong = append(o.wrong, string(body))
	}
	if o.tries = append(o.tries, got); !got.taken {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// NewSession is a connection of mail.
func (o *audience) NewSession(*smtp.Conn) (smtp.Session, error) { return mailSession{o}, nil }

type mailSession struct{ o *audience }

func (mailSession) Mail(string, *smtp.MailOptions) error { return nil }
func (mailSession) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (mailSession) Reset()                               {}
func (mailSession) Logout() error                        { return nil }

func (s mailSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	header := func(name string) string {
		_, rest, _ := strings.Cut(string(text), "\r\n"+name+": ")
		value, _, _ := strings.Cut(rest, "\r\n")
		return value
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(header("Message-ID"), "<"), "@")
	s.o.mu.Lock()
	defer s.o.mu.Unlock()
	s.o.mails = append(s.o.mails, word{ID: id, Type: header("X-Anteroom-Event"), at: time.Now(), taken: true})
	return err
}

// first is the first of that type that was taken.
func (o *audience) first(words *[]word, kind string) (word, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.IndexFunc(*words, func(w word) bool { return w.Type == kind && w.taken })
	if i < 0 {
		return word{}, false
	}
	return (*words)[i], true
}

// ids are those of all tries of a type, each once.
func (o *audience) ids(kind string) (ids []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range slices.Concat(o.tries, o.mails) {
		if w.Type == kind && !slices.Contains(ids, w.ID) {
			ids = append(ids, w.ID)
		}
	}
	return ids
}

// An origin is down and up again. The state knows it, and the page, a webhook, a
// mail and the status page, all within two intervals. The node that was telling of
// its return is killed: it is told all the same, under the ID of the tries before.
func TestAnOriginThatIsDownIsToldWhicheverNodeIsKilled(t *testing.T) {
	t.Parallel()
	const interval = 2 * time.Second
	c := newCluster(t, 20)
	var ill atomic.Bool
	looked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if ill.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(looked.Close)
	o := &audience{}
	hook := httptest.NewServer(o)
	t.Cleanup(hook.Close)
	post := smtp.NewServer(o)
	post.Domain = "localhost"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = post.Serve(l) }() // ends with Close
	t.Cleanup(func() { _ = post.Close() })

	c.room = fmt.Sprintf("    health_checks: [{name: front, address: 127.0.0.1, port: %d, path: /, interval: %v, timeout: 1s, retries: 0}]\n    on_unhealthy: hold\n",
		looked.Listener.Addr().(*net.TCPAddr).Port, interval)
	c.top = fmt.Sprintf("status_page: true\nnotifications:\n  - {name: pager, url: %q, secret: whsec_%s, events: [origin.unhealthy, origin.healthy]}\n"+
		"  - {name: people, url: \"smtp://%s\", from: room@example.com, to: [oncall@example.com], events: [origin.unhealthy, origin.healthy]}\n",
		hook.URL, base64.StdEncoding.EncodeToString([]byte(hookSecret)), l.Addr())
	c.run(3)
	state := func() admin.CheckHealth {
		var list admin.HealthList
		if err := c.up()[0].ask("/v1/health", &list); err != nil || len(list.Rooms) != 1 {
			return admin.CheckHealth{}
		}
		return list.Rooms[0].Checks[0]
	}
	c.until("a healthy origin", 20*time.Second, func() bool { return state().Status == "healthy" })

	ill.Store(true)
	began := time.Now()
	c.until("the state", 2*interval, func() bool { return state().Status == "unhealthy" })
	since := *state().Since
	c.until("the waiting page", 2*interval, func() bool {
		_, page := c.nodes[1].browse("")
		return strings.Contains(page, "does not answer as it should")
	})
	c.until("the webhook", 2*interval, func() bool { _, ok := o.first(&o.tries, "origin.unhealthy"); return ok })
	c.until("the mail", 2*interval, func() bool { _, ok := o.first(&o.mails, "origin.unhealthy"); return ok })
	c.until("the status page", 2*interval, func() bool {
		_, page := c.nodes[2].open(http.MethodGet, "/_anteroom/status", "")
		return strings.Contains(page, "In trouble") && strings.Contains(page, "Response code mismatch error, 503")
	})
	all := time.Since(began)
	called, _ := o.first(&o.tries, "origin.unhealthy")
	mailed, _ := o.first(&o.mails, "origin.unhealthy")
	c.phase("decided %v after the fall, webhook %v later, mail %v later, all known after %v", since.Sub(began), called.at.Sub(since), mailed.at.Sub(since), all)
	if all > 2*interval || called.at.Before(since) || mailed.at.Before(since) {
		t.Errorf("all of it took %v, more than two intervals, or was told before it was decided", all)
	}

	o.down.Store(true)
	ill.Store(false)
	var teller *process
	c.until("a try while the webhook is down", 20*time.Second, func() bool {
		i := slices.IndexFunc(c.nodes, func(p *process) bool { return strings.Contains(p.log.String(), "a notification was not delivered") })
		if i >= 0 {
			teller = c.nodes[i]
		}
		return i >= 0
	})
	c.phase("kill -9 %s, which was telling", teller.id)
	teller.kill()
	o.down.Store(false)
	c.until("the webhook by another node", 60*time.Second, func() bool { _, ok := o.first(&o.tries, "origin.healthy"); return ok })
	c.until("the mail", 60*time.Second, func() bool { _, ok := o.first(&o.mails, "origin.healthy"); return ok })
	for _, kind := range []string{"origin.unhealthy", "origin.healthy"} {
		if ids := o.ids(kind); len(ids) != 1 {
			t.Errorf("%s came under the ids %v, want one", kind, ids)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.wrong) > 0 {
		t.Errorf("not signed as they should be: %q", o.wrong)
	}
}
