package e2e

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A journey is told twice: in front of the line of this package, and of the
// program as people start it. Both have a shop for five.
func sites(t *testing.T, journey func(t *testing.T, url string)) {
	t.Run("line", func(t *testing.T) { journey(t, newLine(t, 5).URL) })
	t.Run("demo", func(t *testing.T) { journey(t, demo(t)) })
}

var program struct {
	once sync.Once
	dir  string
	err  error
}

// build builds the program, once, and returns where it is.
func build(t *testing.T) (file string) {
	t.Helper()
	needBrowser(t)
	program.once.Do(func() {
		if program.dir, program.err = os.MkdirTemp("", "anteroom-e2e"); program.err != nil {
			return
		}
		if out, err := exec.Command("go", "build", "-o", program.dir, "../../cmd/anteroom").CombinedOutput(); err != nil {
			program.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if program.err != nil {
		t.Fatalf("build the program: %v", program.err)
	}
	return filepath.Join(program.dir, "anteroom")
}

// anteroom is the program; what it says is shown if the test fails. It runs until
// the test is over; the channel has an error if it ends before.
func anteroom(t *testing.T, args ...string) (ended <-chan error) {
	t.Helper()
	binary := build(t)
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	failure, over := make(chan error, 1), make(chan struct{})
	go func() {
		failure <- cmd.Wait()
		close(over)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-over
		if t.Failed() {
			t.Logf("the program said:\n%s", said.String())
		}
	})
	return failure
}

// demo starts the program's demo and returns where its shop is.
func demo(t *testing.T) (url string) {
	t.Helper()
	const nodes = 3
	port := freePorts(t, 2*nodes)
	ended := anteroom(t, "demo", "--nodes", strconv.Itoa(nodes), "--limit", "5", "--visitors", "0",
		"--session", "2m", "--port", strconv.Itoa(port), "--admin-port", strconv.Itoa(port+nodes))
	url = "http://127.0.0.1:" + strconv.Itoa(port)
	answers(t, adminOf(t, url), ended)
	return url
}

// answers waits until the node with an admin port takes visitors.
func answers(t *testing.T, admin string, ended <-chan error) {
	t.Helper()
	eventually(t, "the program answers", func() bool {
		select {
		case err := <-ended:
			t.Fatalf("the program ended: %v", err)
		default:
		}
		resp, err := http.Get(admin + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// freePorts returns the first of n ports in a row that nobody listens on, and that
// the system gives to no connection of its own accord: those begin at 32768.
// Somebody else may take one before the program listens; then it says so.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	for range 100 {
		first := 10_000 + rand.IntN(10_000)
		free := 0
		for free < n {
			l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(first+free))
			if err != nil {
				break
			}
			_ = l.Close()
			free++
		}
		if free == n {
			return first
		}
	}
	t.Fatalf("there are no %d free ports in a row", n)
	return 0
}

// guest is one of the other people: a browser that nobody looks at.
type guest struct {
	t      *testing.T
	client *http.Client
	url    string
	in     chan struct{} // closed once in, for a guest who waits
}

// guests come one after the other: so many who get in, then so many who wait.
func guests(t *testing.T, url string, in, waiting int) []*guest {
	t.Helper()
	var all []*guest
	for i := range in + waiting {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		g := &guest{t, &http.Client{Jar: jar, Timeout: patience}, url, make(chan struct{})}
		if i < in {
			eventually(t, "a guest gets in", g.looksIn)
		} else {
			g.waits()
		}
		all = append(all, g)
	}
	return all
}

// waits takes a place, and keeps asking as a page does until in.
func (g *guest) waits() {
	g.t.Helper()
	if g.looksIn() {
		g.t.Fatal("a guest got into a shop that is full")
	}
	var asking sync.WaitGroup
	asking.Go(func() {
		again := time.NewTicker(300 * time.Millisecond)
		defer again.Stop()
		for !g.looksIn() {
			select {
			case <-g.t.Context().Done():
				return
			case <-again.C:
			}
		}
		close(g.in)
	})
	g.t.Cleanup(asking.Wait) // before the site closes
}

// comesIn is when a guest who waits gets in.
func (g *guest) comesIn() {
	g.t.Helper()
	select {
	case <-g.in:
	case <-time.After(patience):
		g.t.Fatal("a guest waits at the door in vain")
	}
}

// looksIn asks for the shop and reports whether it got in.
func (g *guest) looksIn() bool {
	return strings.Contains(g.send(http.MethodGet, "/", nil), "new harvest")
}

func (g *guest) goesOut() {
	g.t.Helper()
	if page := g.send(http.MethodPost, "/checkout", url.Values{}); !strings.Contains(page, "Thank you") {
		g.t.Fatalf("a guest cannot check out:\n%s", page)
	}
}

// send returns the page that it gets, or why it gets none.
func (g *guest) send(method, path string, form url.Values) string {
	r, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Accept", "text/html,*/*;q=0.8")
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	r.Header.Set("Sec-Fetch-Dest", "document")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := g.client.Do(r)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// notes has the page write down every place that it shows from now on.
const notes = `window.shown = [place.textContent],
	new MutationObserver(() => window.shown.push(place.textContent)).observe(place, {childList: true}), true`

func TestSomebodyWaitsAndGoesIn(t *testing.T) {
	sites(t, func(t *testing.T, url string) {
		others := guests(t, url, 5, 3)
		p := newPerson(t)
		p.open(url + "/")
		p.sees("You are in line")
		p.reads("#place", "4")
		p.isAccessible("in line")
		p.picture("in line")
		p.until("the page to note what it shows", notes)

		others[0].goesOut()
		others[5].comesIn()
		p.reads("#place", "3")
		p.until("the title to say so", `document.title.startsWith("3 ")`)
		p.until("the bar to move", `!bar.hidden && bar.value > 0.2`)
		others[1].goesOut()
		others[6].comesIn()
		p.reads("#place", "2")
		p.until("the same page all along, and a place that only fell", `window.shown?.join() === "4,3,2"`)

		p.reload()
		p.reads("#place", "2")
		p.until("the bar to stay where it was", `!bar.hidden && bar.value === 0.5`)

		second := p.newTab()
		second.open(url + "/tea/gyokuro")
		second.reads("#place", "2")

		others[2].goesOut()
		others[7].comesIn()
		p.reads("#place", "1")
		second.reads("#place", "1")
		p.picture("at the front")

		others[3].goesOut()
		p.sees("The new harvest is here")
		second.sees("Gyokuro")
		p.until("the address to be the shop's", `location.pathname === "/"`)
		p.picture("in the shop")

		p.click(`a[href="/tea/lapsang"]`)
		p.sees("campfire")
		p.click("form button")
		p.sees("Your basket")
		p.goBack()
		p.sees("campfire")
		p.goBack()
		p.sees("The new harvest is here")
		third := p.newTab()
		third.open(url + "/basket")
		third.sees("Lapsang Souchong")

		last := guests(t, url, 0, 1)[0]
		third.click("form button")
		third.sees("Thank you")
		last.comesIn()
		third.open(url + "/")
		third.reads("#place", "1")
	})
}

func TestSomebodyWaitsWithoutScripts(t *testing.T) {
	sites(t, func(t *testing.T, url string) {
		others := guests(t, url, 5, 1)
		p := newPerson(t, withoutScripts())
		p.open(url + "/tea/gyokuro")
		p.reads("#place", "2")
		p.sees("reloads itself")
		p.picture("in line")
		others[0].goesOut()
		others[5].comesIn()
		p.reads("#place", "1")
		others[1].goesOut()
		p.sees("Gyokuro")
		p.until("the address to be the tea's", `location.pathname === "/tea/gyokuro"`)
	})
}

func TestSomebodyStopsWaiting(t *testing.T) {
	sites(t, func(t *testing.T, url string) {
		guests(t, url, 5, 0)
		p := newPerson(t)
		p.open(url + "/")
		p.reads("#place", "1")
		next := newPerson(t)
		next.open(url + "/")
		next.reads("#place", "2")
		p.click("details:has(#leave) summary")
		p.picture("sure")
		p.isAccessible("sure")
		p.click("#leave button")
		p.until("half a minute to think again", `/^Your place is given up in 0:2\d\.$/.test(document.querySelector("#sure")?.textContent)`)
		p.picture("undo")
		p.isAccessible("undo")
		p.click("#stay")
		p.until("the line to be back", "document.activeElement === document.querySelector('details:has(#leave) summary') && !leave.parentNode.open")
		p.reads("#place", "1")
		p.click("details:has(#leave) summary")
		p.click("#leave button")
		p.until("half a minute to think again, again", `/^Your place is given up in 0:2\d\.$/.test(document.querySelector("#sure")?.textContent)`)
		p.until("half a minute to pass", "Date.now = (now => () => now() + 3e4)(Date.now)")
		p.sees("You have stopped waiting")
		p.isAccessible("left")
		next.reads("#place", "1")
		p.click("a.button")
		p.reads("#place", "2")
	})
}
