package e2e

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// onSlowPhone is the preset "Slow 4G" of the browser's developer tools, and a
// processor that takes four times as long.
func onSlowPhone() chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if _, err := cdp.Call(ctx, t, network.Enable, network.EnableParams{}); err != nil {
			return err
		}
		if _, err := cdp.Call(ctx, t, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
			MatchedNetworkConditions: []*network.Conditions{{Latency: 562.5, DownloadThroughput: 180_000, UploadThroughput: 84_375}}, // ms, and bytes a second
		}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, t, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 4})
		return err
	})
}

// firstPaint is when the browser first showed something of the page, in milliseconds.
const firstPaint = `new Promise(done => new PerformanceObserver(seen => {
	const paint = seen.getEntriesByName("first-contentful-paint")[0]
	if (paint) done(paint.startTime)
}).observe({type: "paint", buffered: true}))`

// noise is a PNG that nothing makes smaller, of a side in pixels.
func noise(t *testing.T, side int) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, side, side))
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(m.Pix) // it never fails
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// branded starts one node whose room lets nobody in and has a name, and pictures of
// such sides.
func branded(t *testing.T, logo, favicon int) (url, admin string) {
	t.Helper()
	dir, port := t.TempDir(), freePorts(t, 2)
	for name, b := range map[string][]byte{"logo.png": noise(t, logo), "favicon.png": noise(t, favicon), "anteroom.yaml": fmt.Appendf(nil, `
node: {id: node-1, gateway: "127.0.0.1:%d", admin: "127.0.0.1:%d", grpc: none}
rooms:
  - {name: shop, routes: [{host: "*", path: /}], origin: "http://127.0.0.1:9", total_active_users: 0, title: Leaf & Kettle, logo: logo.png, favicon: favicon.png, bookmark: true}
`, port, port+1)} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ended := anteroom(t, "serve", "--config", filepath.Join(dir, "anteroom.yaml"))
	url, admin = "http://127.0.0.1:"+strconv.Itoa(port), "http://127.0.0.1:"+strconv.Itoa(port+1)
	answers(t, admin, ended)
	return url, admin
}

// wire is between browsers and a site, and notes what goes over it.
type wire struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string       // paths
	bytes map[string]int // of answers' bodies, by path
}

func newWire(t *testing.T, site string) *wire {
	t.Helper()
	target, err := url.Parse(site)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{bytes: make(map[string]int)}
	w.Server = httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			w.mu.Lock()
			defer w.mu.Unlock()
			w.asked = append(w.asked, r.In.URL.Path)
		},
		ModifyResponse: func(r *http.Response) error {
			path := r.Request.URL.Path
			if strings.HasSuffix(path, "/stream") {
				return nil // it has no end
			}
			b, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(b))
			w.mu.Lock()
			defer w.mu.Unlock()
			w.bytes[path] += len(b)
			return err
		},
	})
	t.Cleanup(func() {
		w.CloseClientConnections()
		w.Close()
	})
	return w
}

// requests are those of before the stream, which is what an open page listens to.
func (w *wire) requests() (before []string, streams bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, path := range w.asked {
		if strings.HasSuffix(path, "/stream") {
			return before, true
		}
		before = append(before, path)
	}
	return before, false
}

// What a phone on a slow network waits for: the page, and one picture at most. The
// time is told, and not judged: this machine may be busy.
func TestFirstLoadIsSmall(t *testing.T) {
	for name, c := range map[string]struct{ logo, favicon, requests int }{
		"large logo": {64, 8, 2},
		"small logo": {20, 8, 1},
	} {
		t.Run(name, func(t *testing.T) {
			site, _ := branded(t, c.logo, c.favicon)
			w := newWire(t, site)
			p := newPerson(t, onPhone(), onSlowPhone())
			p.open(w.URL + "/")
			p.sees("You are in line")
			paint, err := eval[float64](p, firstPaint)
			if err != nil {
				t.Fatal(err)
			}
			p.picture("first load")
			p.until("the logo to be there", "document.images[0].complete && document.images[0].naturalWidth > 0")
			eventually(t, "the page listens", func() bool { _, yes := w.requests(); return yes })
			asked, _ := w.requests()
			w.mu.Lock()
			defer w.mu.Unlock()
			t.Logf("%d requests, %d bytes for the page, first contentful paint after %v", len(asked), w.bytes["/"], time.Duration(paint*1e6).Round(time.Millisecond))
			if len(asked) != c.requests {
				t.Errorf("the first load asks for %q, want %d requests", asked, c.requests)
			}
			if icon, err := eval[string](p, `document.querySelector("link[rel=icon]").href`); err != nil || !strings.HasPrefix(icon, "data:image/png") { // which a browser without a window never loads
				t.Errorf("the tab's icon is one more request: %s (%v)", icon, err)
			}
			if c.requests == 2 && w.bytes["/"] > 8000 {
				t.Errorf("the page is %d bytes over the wire", w.bytes["/"])
			}
		})
	}
}

// What a phone on a slow network waits for until it shows something of the dashboard is
// the page alone: nothing else keeps it from being painted. The times are told, and not
// judged: this machine may be busy.
func TestTheDashboardIsSeenSoon(t *testing.T) {
	admin := adminOf(t, demo(t)) + "/"
	p := newPerson(t, onPhone(), onSlowPhone())
	p.open(admin)
	p.sees("All is well, nobody waits")
	paint, err := eval[float64](p, firstPaint)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := eval[float64](p, "performance.now()")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("first contentful paint after %v, the state of the rooms was there after at most %v",
		time.Duration(paint*1e6).Round(time.Millisecond), time.Duration(whole*1e6).Round(time.Millisecond))
	blocking, err := eval[string](p, `performance.getEntriesByType("resource").filter(r => r.renderBlockingStatus === "blocking").map(r => r.name).join(" ")`)
	if err != nil || blocking != "" {
		t.Errorf("the page waits for %s (%v)", blocking, err)
	}
}
