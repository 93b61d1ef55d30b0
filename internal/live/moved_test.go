package live

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The home of a place is stopped for 5 s, and another node takes the place over.
// Whoever comes with the older ticket once it is back, to any node, as a program or
// by a stream with a cookie, finds that place and is not sent away.
func TestAnOlderTicketFindsItsPlaceAfterAPause(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	c.session = 2 * time.Minute
	c.run(3)
	_, home := c.coordinator()
	for range c.limit {
		home.enter("")
	}
	older := home.visit("join", nil)
	if older.State != "waiting" {
		t.Fatalf("join: %+v, want waiting", older)
	}
	check := func(p *process, ticket string) answer { return p.visit("checkin", map[string]string{"ticket": ticket}) }
	other := c.nodes[0]
	if other == home {
		other = c.nodes[1]
	}

	c.phase("stop %s for 5 s", home.id)
	home.signal(syscall.SIGSTOP)
	end := time.Now().Add(5 * time.Second)
	newer := older
	c.until("check-in elsewhere", 5*time.Second, func() bool {
		a := check(other, newer.Ticket)
		if a.Status == http.StatusOK {
			newer = a
		}
		return a.Status == http.StatusOK && a.Paused == "" && a.Joined == older.Joined
	})
	<-time.After(time.Until(end))
	home.signal(syscall.SIGCONT)
	c.phase("%s goes on", home.id)
	back := time.Now()
	c.until("answers to the older ticket", 20*time.Second, func() bool {
		found := 0
		for _, p := range c.nodes {
			switch a := check(p, older.Ticket); {
			case a.Status == http.StatusOK && a.State == "waiting" && a.Joined == older.Joined:
				found++
			case a.Status != http.StatusServiceUnavailable && a.Status != 0:
				t.Fatalf("%.1f s after it goes on %s answers the older ticket with %+v", time.Since(back).Seconds(), p.id, a)
			}
		}
		return found == len(c.nodes) && time.Since(back) > 4*time.Second && c.inWaves(3)
	})
	for _, p := range c.nodes {
		if a := p.stream(older.Ticket); a.Joined != older.Joined || a.State != "waiting" {
			t.Errorf("%s streams %+v to the cookie with the older ticket; it joined at %s", p.id, a, older.Joined)
		}
	}
}

// stream reads the first event of a stream by cookie.
func (p *process) stream(cookie string) (a answer) {
	p.c.t.Helper()
	q, err := http.NewRequestWithContext(p.c.t.Context(), http.MethodGet, p.gateway()+"/_anteroom/v1/rooms/shop/stream", nil)
	if err != nil {
		p.c.t.Fatal(err)
	}
	q.AddCookie(&http.Cookie{Name: "anteroom_shop", Value: cookie})
	client := http.Client{Timeout: 5 * time.Second}
	r, err := client.Do(q)
	if err != nil {
		p.c.t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(data), &a); err != nil {
				p.c.t.Fatalf("%v: %s", err, data)
			}
			return a
		}
	}
	p.c.t.Errorf("%s: the stream ends with %s before an event", p.id, r.Status)
	return a
}
