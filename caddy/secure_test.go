package caddy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/anteroom/anteroom/internal/shop"
	"github.com/anteroom/anteroom/internal/visitors"
)

// overHTTP2 speaks HTTP/2 to machines whose own authorities it trusts, and nothing else.
type overHTTP2 struct{ http.RoundTripper }

func (o overHTTP2) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := o.RoundTripper.RoundTrip(r)
	if err == nil && (a.ProtoMajor != 2 || a.TLS == nil) {
		_ = a.Body.Close()
		return nil, errors.New("answered by " + a.Proto)
	}
	return a, err
}

func trusting(t *testing.T, both [2]*machine) overHTTP2 {
	t.Helper()
	pool := x509.NewCertPool()
	for _, m := range both {
		b, err := os.ReadFile(m.authority)
		if err != nil || !pool.AppendCertsFromPEM(b) {
			t.Fatalf("%s: %v", m.authority, err)
		}
	}
	return overHTTP2{&http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
}

// guest is somebody with cookies, who speaks HTTP/2.
type guest struct {
	t      *testing.T
	client *http.Client
}

func (g *guest) ask(method, url string) *http.Response {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), method, url, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	for name, value := range map[string]string{"Accept": "text/html", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "same-origin"} {
		r.Header.Set(name, value)
	}
	a, err := g.client.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = a.Body.Close() })
	return a
}

// secureCrowd: the limit over HTTP/2, and what one visitor and the next get told.
func secureCrowd(t *testing.T, program string) {
	const limit, people = 10, 80
	site := &counted{in: map[string]bool{}, left: map[string]bool{}}
	both := two(t, program, "https", site, limit)
	transport := trusting(t, both)
	for _, m := range both {
		if a := (&guest{t, &http.Client{Transport: transport, Timeout: patience}}).ask(http.MethodGet, m.url+"/_anteroom/v1/rooms/shop/status"); a.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %v", m.url, a.StatusCode, a.Header)
		}
	}
	c := visitors.New(visitors.Config{
		Gateways: []string{both[0].url, both[1].url}, Room: "shop", Users: people, Over: time.Second, Stay: time.Second, Transport: transport,
		Site: visitors.Site{Look: "/", Exit: "/checkout"},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := c.Run(ctx); err != nil {
		t.Error(err)
	}
	n := c.Counts()
	site.mu.Lock()
	t.Logf("%d people by HTTP/2, %d on the site at once at most, limit %d: %+v", people, site.peak, limit, n)
	if n.Done != people || n.Lost != 0 || site.peak > limit || site.peak < limit/2 {
		t.Errorf("%+v; %d at once with a limit of %d", n, site.peak, limit)
	}
	site.mu.Unlock()

	var all []*guest
	arrive := func() *http.Response {
		jar, _ := cookiejar.New(nil) // never fails
		g := &guest{t, &http.Client{Jar: jar, Transport: transport, Timeout: patience}}
		all = append(all, g)
		return g.ask(http.MethodGet, both[len(all)%2].url+"/tea")
	}
	var a *http.Response
	for range limit + 1 {
		a = arrive()
	}
	page, _ := io.ReadAll(a.Body)
	set := a.Cookies()
	if !strings.Contains(string(page), "You are in line") || len(set) != 1 || set[0].Name != "__Host-anteroom_shop" || !set[0].Secure || !set[0].HttpOnly || set[0].Path != "/" || set[0].Domain != "" {
		t.Fatalf("who has to wait: %d %v %.200s", a.StatusCode, a.Header, page)
	}
	if a := all[0].ask(http.MethodGet, both[0].url+"/tea"); a.StatusCode != http.StatusOK { // the pass's cookie is kept, too
		t.Errorf("who is in: %d %v", a.StatusCode, a.Header)
	}

	// The stream goes on beside other requests of the same connection, and brings the call.
	next := all[len(all)-1]
	events := next.ask(http.MethodGet, both[len(all)%2].url+"/_anteroom/v1/rooms/shop/stream")
	if got := events.Header.Get("Content-Type"); events.StatusCode != http.StatusOK || got != "text/event-stream" {
		t.Fatalf("the stream: %d %v", events.StatusCode, events.Header)
	}
	lines := bufio.NewScanner(events.Body)
	heard := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("the stream ended, %v, before %s", lines.Err(), want)
	}
	heard(`"state":"waiting"`)
	if a := next.ask(http.MethodGet, both[len(all)%2].url+"/_anteroom/v1/rooms/shop/status"); a.StatusCode != http.StatusOK {
		t.Errorf("beside the stream: %d", a.StatusCode)
	}
	if a := all[0].ask(http.MethodPost, both[0].url+"/checkout"); a.StatusCode != http.StatusOK {
		t.Fatalf("the first leaves: %d", a.StatusCode)
	}
	heard(`"state":"called"`)
	if a := next.ask(http.MethodGet, both[len(all)%2].url+"/tea"); a.StatusCode != http.StatusOK || len(a.Cookies()) != 1 || !a.Cookies()[0].Secure || !strings.HasPrefix(a.Cookies()[0].Value, "I") {
		t.Errorf("the next is in: %d %v", a.StatusCode, a.Header)
	}
	site.mu.Lock()
	defer site.mu.Unlock()
	if site.peak > limit {
		t.Errorf("%d at once with a limit of %d", site.peak, limit)
	}
}

// secureBrowser: one is in, the next waits and is called, in a browser that speaks HTTP/2 and
// keeps cookies for HTTPS only.
func secureBrowser(t *testing.T, program string) {
	both := two(t, program, "https", shop.New(shop.Config{}), 1)
	open := people(t, chromedp.Flag("ignore-certificate-errors", true)) // nobody has told it of the authority
	first, next := open(), open()
	first.do("open the shop", chromedp.Navigate(both[0].url+"/tea/lapsang"))
	first.sees("campfire")
	first.press("form button")
	first.sees("Your basket")
	next.do("open the shop", chromedp.Navigate(both[1].url+"/tea/gyokuro"))
	next.sees("You are in line")
	both[1].until("the page has its stream", both[1].streams)
	for who, p := range map[string]*person{"the first": first, "the next": next} {
		by, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("performance.getEntriesByType('navigation')[0].nextHopProtocol"))
		if err != nil || by != "h2" {
			t.Errorf("%s came by %q %v", who, by, err)
		}
	}
	first.press("form[action='/checkout'] button")
	first.sees("Thank you")
	next.sees("Gyokuro")
	next.sees(fmt.Sprintf("%s/tea/gyokuro", both[1].url))
}
