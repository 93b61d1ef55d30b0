package caddy_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/anteroom/anteroom/internal/shop"
)

// person is somebody with a browser of their own.
type person struct {
	t   *testing.T
	ctx context.Context
}

// people starts a browser, and returns how to come by it with a profile of one's own.
func people(t *testing.T, more ...chromedp.ExecAllocatorOption) func() *person {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && program == "" {
			program = path
		}
	}
	if program == "" {
		t.Fatal("no chromium in the PATH: apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.WindowSize(1100, 900))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's sandbox refuses to run as root
	}
	options = append(options, more...)
	all, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	first, cancel := chromedp.NewContext(all)
	t.Cleanup(cancel)
	if err := chromedp.Do(first); err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	return func() *person {
		t.Helper()
		ctx, cancel := chromedp.NewContext(first, chromedp.WithNewBrowserContext())
		t.Cleanup(cancel)
		if err := chromedp.Do(ctx); err != nil {
			t.Fatalf("open a browser: %v", err)
		}
		return &person{t, ctx}
	}
}

func (p *person) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// sees waits until the page's visible text contains that.
func (p *person) sees(want string) {
	p.t.Helper()
	var text string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
		text, _ = chromedp.Run(ctx, chromedp.Evaluate[string]("location + '\\n' + document.body.innerText"))
		cancel()
		if strings.Contains(text, want) {
			return
		}
	}
	p.t.Fatalf("waited for %q in vain; the page says:\n%s", want, text)
}

func (p *person) press(selector string) {
	p.t.Helper()
	p.do("press "+selector, chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.querySelector(%q).click()", selector)))
}

// Somebody waits, Caddy's configuration is reloaded meanwhile with another limit and
// back, and in ways that are refused; they are called, go in, and buy something.
func browser(t *testing.T, program string) {
	both := two(t, program, "http", shop.New(shop.Config{}), 1)
	m, open := both[0], people(t)
	first := open()
	first.do("open the shop", chromedp.Navigate(m.url+"/tea/lapsang"))
	first.sees("campfire")
	first.press("form button")
	first.sees("Your basket")

	next := open()
	next.do("open the shop", chromedp.Navigate(both[1].url+"/tea/gyokuro"))
	next.sees("You are in line")

	// A reload that Caddy cannot carry out leaves the room as it was.
	wrong := replaced(t, m.text, map[string]string{"total_active_users 1\n": "total_active_users 3\n"}) + "\nhttp://203.0.113.1:1 {\n\tbind 203.0.113.1\n\trespond no\n}\n"
	if said, ok := m.reload(wrong); ok {
		t.Fatalf("it listens at an address that this machine does not have: %s", said)
	}
	m.until("the limit is what it was", func() bool { return m.limit() == 1 })
	if said, ok := m.reload(replaced(t, m.text, map[string]string{"\t\t\texpect 2\n": "\t\t\texpect 3\n"})); ok || !strings.Contains(said, "a reload cannot change node") || !strings.Contains(said, "restart Caddy") {
		t.Errorf("another expect: %v %s", ok, said)
	}
	if said, ok := m.reload(replaced(t, m.text, map[string]string{"total_active_users 1\n": "total_active_users many\n"})); ok || !strings.Contains(said, "rooms[0].total_active_users") {
		t.Errorf("a wrong limit: %v %s", ok, said)
	}
	if said, ok := m.reload(replaced(t, m.text, map[string]string{"session_duration 1m": "session_duration 2m"})); !ok {
		t.Errorf("another session: %s", said)
	}
	next.sees("You are in line")
	if got := m.get(both[1].url + "/"); got != http.StatusOK && got != http.StatusTooManyRequests {
		t.Errorf("%d", got)
	}

	first.press("form[action='/checkout'] button")
	first.sees("Thank you")
	next.sees("Gyokuro")
	next.sees("/tea/gyokuro")
	if strings.Contains(m.said.String(), "leaving: visits") {
		t.Error("it left the cluster over a reload")
	}

	// Who waits holds a stream, which must not hold up the end of Caddy.
	third := open()
	third.do("open the shop", chromedp.Navigate(both[1].url+"/tea/gyokuro"))
	third.sees("You are in line")
	both[1].until("the page has its stream", both[1].streams)
	both[1].stop()
	if d := both[1].logged("leaving: visits").Sub(both[1].logged("shutting down")); d > 5*time.Second { // it would be 10 s, where the servers are first
		t.Errorf("the node leaves %v after it should", d)
	}
	if said, ok := m.reload(replaced(t, m.text, map[string]string{"total_active_users 1\n": "total_active_users 3\n"})); !ok {
		t.Errorf("another limit: %s", said)
	}
	m.until("the limit is the new one", func() bool { return m.limit() == 3 })
}
