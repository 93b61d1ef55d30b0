package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/anteroom/anteroom/internal/shop"
)

var asleep = flag.Duration("asleep", 0, "how long the phone sleeps in TestAPhoneSleeps; 0: it is not run")

// trio is three nodes, each a program of its own, in front of a shop for one person
// that keeps places for an hour. Settings are added to the file, and keys to the room.
type trio struct {
	port  int
	nodes []*exec.Cmd
	logs  [3]bytes.Buffer // to be read when the node is over
}

func newTrio(t *testing.T, settings, keys string) *trio {
	t.Helper()
	binary := build(t)
	origin := httptest.NewServer(shop.New(shop.Config{}))
	h := &trio{port: freePorts(t, 12)}
	dir := t.TempDir()
	file, secret := filepath.Join(dir, "anteroom.yaml"), filepath.Join(dir, "cluster.key")
	if out, err := exec.Command(binary, "keys", "cluster", "--out", secret).CombinedOutput(); err != nil {
		t.Fatalf("make a key: %v\n%s", err, out)
	}
	at := func(kind, n int) string { return "127.0.0.1:" + strconv.Itoa(h.port+3*kind+n) }
	if err := os.WriteFile(file, fmt.Appendf(nil, `
node: {expect: 3, join: [%q, %q, %q]}
security: {gossip_key_file: %q}
%s
rooms:
  - {name: shop, routes: [{host: "*", path: /}], origin: %q, total_active_users: 1, queue_all: true,
     session_duration: 3m, ticket_ttl: 1h, refresh_interval: 20s%s}
`, at(3, 0), at(3, 1), at(3, 2), secret, settings, origin.URL, keys), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			why, err := exec.Command(binary, "why", "--room", "shop", "--admin", "http://"+at(1, 0)).CombinedOutput()
			t.Logf("node-1 says why (%v):\n%s", err, why)
		}
		for n := range h.nodes {
			h.kill(n)
		}
		if t.Failed() {
			for n := range h.nodes {
				t.Logf("node-%d said:\n%s", n+1, h.logs[n].String())
			}
		}
		origin.Close()
	})
	for n := range h.logs {
		node := exec.Command(binary, "serve", "--config", file, "--id", "node-"+strconv.Itoa(n+1), "--grpc", "none",
			"--gateway", at(0, n), "--admin", at(1, n), "--peer", at(2, n), "--gossip", at(3, n))
		node.Stdout, node.Stderr = &h.logs[n], &h.logs[n]
		if err := node.Start(); err != nil {
			t.Fatal(err)
		}
		h.nodes = append(h.nodes, node)
	}
	for n := range h.nodes {
		answers(t, "http://"+at(1, n), nil)
	}
	return h
}

func (h *trio) url(n int) string { return "http://127.0.0.1:" + strconv.Itoa(h.port+n) }

// kill takes a node's power.
func (h *trio) kill(n int) {
	_ = h.nodes[n].Process.Kill()
	_ = h.nodes[n].Wait() // it was killed, says this
}

// balancer sends everybody to one node, until it is told of another.
func balancer(t *testing.T, to *atomic.Pointer[string]) (address string) {
	t.Helper()
	b := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			target, err := url.Parse(*to.Load())
			if err != nil {
				t.Error(err)
				return
			}
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
	})
	t.Cleanup(func() {
		b.CloseClientConnections()
		b.Close()
	})
	return b.URL
}

func lifecycle(s cdppage.SetWebLifecycleStateState) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cdppage.SetWebLifecycleState, cdppage.SetWebLifecycleStateParams{State: s})
		return err
	})
}

// stays has somebody who is in look around now and then.
func (g *guest) stays(d time.Duration) {
	g.t.Helper()
	look := time.NewTicker(20 * time.Second)
	defer look.Stop()
	for over := time.After(d); ; {
		select {
		case <-over:
			return
		case <-look.C:
			g.looksIn() // the shop, or a page: a busy node has not got to it
		}
	}
}

// A phone sleeps: its timers stand still and it has no network. Its turn comes
// meanwhile, others go in, and the node that keeps its place is killed. Its place is
// there when it wakes, before those who came after it.
//
//	ANTEROOM_E2E=1 go test ./internal/e2e -run TestAPhoneSleeps -asleep 30m -timeout 40m -v
//
// In simulated time simtest does the same.
func TestAPhoneSleeps(t *testing.T) {
	if *asleep == 0 {
		t.Skip("NOT RUN: it takes as long as it says: -asleep 30m")
	}
	const home, other = 1, 2
	h := newTrio(t, "", "")
	began := time.Now()
	story := func(what string) { t.Logf("%5.0f s  %s", time.Since(began).Seconds(), what) }
	inside := guests(t, h.url(0), 1, 0)[0]
	story("somebody is inside")

	var node atomic.Pointer[string]
	first, second := h.url(home), h.url(other)
	node.Store(&first)
	phone := newPerson(t, onPhone())
	phone.open(balancer(t, &node) + "/tea/gyokuro")
	phone.reads("#place", "1")
	next := guests(t, h.url(0), 0, 1)[0]
	last := guests(t, h.url(other), 0, 1)[0]
	phone.picture("before")

	phone.do("fall asleep", lifecycle(cdppage.SetWebLifecycleStateStateFrozen))
	phone.do("lose the network", online(false))
	slept := time.Now()
	story("the phone sleeps, the first in line")
	inside.stays(*asleep / 6)
	inside.goesOut()
	select { // the phone is called first, where nobody has heard yet that it is gone
	case <-next.in:
	case <-time.After(5 * time.Minute):
		t.Fatal("nobody goes in past a phone that sleeps")
	}
	story("the one behind it goes in")
	next.stays(*asleep/3 - time.Since(slept))
	h.kill(home)
	node.Store(&second)
	story("the node that keeps its place is killed")
	next.stays(*asleep - time.Since(slept))

	select {
	case <-last.in:
		t.Fatal("the one behind the phone went in while it slept, as it may: this shows nothing of the order")
	default:
	}
	before := phone.text("#updated")
	phone.do("find the network again", online(true))
	phone.do("wake up", lifecycle(cdppage.SetWebLifecycleStateStateActive))
	woke := time.Now()
	phone.until("news from another node, and the place in front", fmt.Sprintf(`!stand.hidden && updated.textContent !== %q && place.textContent === "1" && note.hidden`, before))
	story(fmt.Sprintf("the phone wakes after %v, and has its place %v later", woke.Sub(slept).Round(time.Second), time.Since(woke).Round(10*time.Millisecond)))
	phone.picture("after")
	next.goesOut()
	if !within(5*time.Minute, func() bool { in, _ := eval[bool](phone, `document.body.innerText.includes("Gyokuro")`); return in }) {
		phone.picture("failed")
		t.Fatal("the phone waits in vain")
	}
	story("the phone goes in")
	select {
	case <-last.in:
		t.Error("somebody who came after the phone went in before it")
	default:
	}
}
