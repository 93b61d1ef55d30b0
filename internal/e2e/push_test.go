package e2e

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/backgroundservice"
	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/anteroom/anteroom/internal/shop"
)

// pushService takes what is sent to a browser.
func pushService(t *testing.T) (service *httptest.Server, came <-chan http.Header) {
	t.Helper()
	headers := make(chan http.Header, 10)
	service = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(service.Close)
	return service, headers
}

// pushing starts one node with room for one person that tells by push, by way of a
// service.
func pushing(t *testing.T, service *httptest.Server) (url string) {
	t.Helper()
	origin := httptest.NewServer(shop.New(shop.Config{}))
	t.Cleanup(origin.Close)
	dir, port := t.TempDir(), freePorts(t, 2)
	file := fmt.Appendf(nil, `
node: {id: node-1, gateway: "127.0.0.1:%d", admin: "127.0.0.1:%d", grpc: none}
%s
rooms:
  - {name: shop, routes: [{host: "*", path: /}], origin: %q, total_active_users: 1, push: true}
`, port, port+1, tellingBy(t, service), origin.URL)
	if err := os.WriteFile(filepath.Join(dir, "anteroom.yaml"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := anteroom(t, "serve", "--config", filepath.Join(dir, "anteroom.yaml"))
	url = "http://127.0.0.1:" + strconv.Itoa(port)
	answers(t, "http://127.0.0.1:"+strconv.Itoa(port+1), ended)
	return url
}

// tellingBy is the setting of a node that tells by way of a service, whose certificate
// the nodes trust that are started from now on.
func tellingBy(t *testing.T, service *httptest.Server) string {
	t.Helper()
	roots := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: service.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", roots)
	return fmt.Sprintf(`push: {contact: "mailto:ops@example.com", hosts: [%q]}`, strings.TrimPrefix(service.URL, "https://"))
}

// lets gives the site leave to show notifications.
func lets(url string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		tab, err := cdp.Call(ctx, t, target.GetTargetInfo, target.GetTargetInfoParams{})
		if err != nil {
			return err
		}
		_, err = cdp.Call(ctx, t, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{
			BrowserContextID: tab.TargetInfo.BrowserContextID,
			Permission:       &cdpbrowser.PermissionDescriptor{Name: "notifications"}, Setting: cdpbrowser.PermissionSettingGranted, Origin: url,
		})
		return err
	})
}

// subscribes has the browser get its subscription from a service that this machine
// has: that of its maker is not reached from here.
func subscribes(service string) string {
	return fmt.Sprintf(`(async () => {
		const pair = await crypto.subtle.generateKey({name: "ECDH", namedCurve: "P-256"}, true, ["deriveBits"]);
		const text = b => btoa(String.fromCharCode(...new Uint8Array(b))).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
		const keys = {p256dh: text(await crypto.subtle.exportKey("raw", pair.publicKey)), auth: text(crypto.getRandomValues(new Uint8Array(16)))};
		PushManager.prototype.subscribe = async o => {
			window.subscribed = o;
			return {toJSON: () => ({endpoint: %q, expirationTime: null, keys})};
		};
		return true;
	})()`, service+"/browser")
}

// deliver has the browser take a message for the worker of a site, and returns the title
// of the notification under a tag that the worker shows for it. Who asks the browser for
// the notifications just then has it forget the one that it is about to show.
func (p *person) deliver(site, tag string) (title string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	err := chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		const kind = backgroundservice.ServiceNameNotifications
		shown := cdp.Events(ctx, t, backgroundservice.BackgroundServiceEventReceived)
		if _, err := cdp.Call(ctx, t, backgroundservice.StartObserving, backgroundservice.StartObservingParams{Service: kind}); err != nil {
			return err
		}
		if _, err := cdp.Call(ctx, t, backgroundservice.SetRecording, backgroundservice.SetRecordingParams{ShouldRecord: true, Service: kind}); err != nil {
			return err
		}
		if err := message(ctx, t, site); err != nil {
			return err
		}
		for e, err := range shown {
			if err != nil {
				return err
			}
			if e := e.BackgroundServiceEvent; e.EventName == "Notification displayed" && e.InstanceID == tag {
				for _, about := range e.EventMetadata {
					if about.Key == "Title" {
						title = about.Value
					}
				}
				return nil
			}
		}
		return errors.New("no notification")
	}))
	if err != nil {
		p.t.Fatalf("deliver a message: %v", err)
	}
	return title
}

// message sends one to the worker of a site.
func message(ctx context.Context, t *chromedp.Target, site string) error {
	updates := cdp.Events(ctx, t, serviceworker.WorkerRegistrationUpdated)
	if _, err := cdp.Call(ctx, t, serviceworker.Enable, cdp.Empty{}); err != nil {
		return err
	}
	for update, err := range updates {
		if err != nil {
			return err
		}
		for _, r := range update.Registrations {
			if strings.HasPrefix(r.ScopeURL, site) {
				_, err := cdp.Call(ctx, t, serviceworker.DeliverPushMessage, serviceworker.DeliverPushMessageParams{Origin: site, RegistrationID: r.RegistrationID, Data: "called"})
				return err
			}
		}
	}
	return fmt.Errorf("no worker of %s", site)
}

// Who asked for it is told by push though their page is gone, and finds their place.
func TestTheTurnIsToldWhileThePageIsClosed(t *testing.T) {
	needBrowser(t)
	service, came := pushService(t)
	site := pushing(t, service)
	inside := guests(t, site, 1, 0)[0]
	p := newPerson(t, lets(site))
	p.open(site + "/tea/gyokuro")
	p.reads("#place", "1")
	p.until("the browser to have a service", subscribes(service.URL))
	p.click("#bell")
	p.until("the place to be told of", `localStorage["anteroom/shop/push"] && subscribed.userVisibleOnly`)
	p.reads("#lead", "The site is full just now. You can close this page: your browser tells you when it is your turn.")
	p.until("the promise of less to be gone", `document.getElementById("kept").hidden`)
	p.picture("asked")
	p.click("#bell")
	p.reads("#lead", "The site is full just now. "+stay)
	p.click("#bell")
	p.until("the place to be told of again", `localStorage["anteroom/shop/push"]`)
	p.open("about:blank") // the page is closed
	inside.goesOut()
	select {
	case h := <-came:
		if h.Get("Content-Encoding") != "aes128gcm" || !strings.HasPrefix(h.Get("Authorization"), "vapid t=") {
			t.Errorf("what was sent: %v", h)
		}
	case <-time.After(patience):
		t.Fatal("nobody was told")
	}
	p.open(site + "/_anteroom/status") // no page that waits
	if title := p.deliver(site, "anteroom/shop"); title != "It is your turn" {
		t.Errorf("the notification says %q", title)
	}
	p.open(site + "/tea/gyokuro")
	p.sees("Gyokuro")
}

// The node that was to tell dies while the page is open: that says again that it has to
// stay open, asks the node that it is with now by itself, and says so once that has it.
func TestThePageFindsANodeThatTells(t *testing.T) {
	needBrowser(t)
	service, came := pushService(t)
	const home, other = 1, 2
	h := newTrio(t, tellingBy(t, service), ", push: true")
	inside := guests(t, h.url(0), 1, 0)[0]
	var node atomic.Pointer[string]
	first, second, none := h.url(home), h.url(other), "http://127.0.0.1:9"
	node.Store(&first)
	site := balancer(t, &node)
	p := newPerson(t, lets(site))
	p.open(site + "/tea/gyokuro")
	p.reads("#place", "1")
	p.until("the browser to have a service", subscribes(service.URL))
	p.click("#bell")
	const told = `lead.textContent.includes("You can close this page")`
	p.until("the place to be told of", told)
	h.kill(home)
	node.Store(&none)
	p.until("the page to say that it has to stay open", fmt.Sprintf(`lead.textContent.includes(%q)`, stay))
	node.Store(&second)
	p.until("another node to tell", told)
	p.until("that node to know", `fetch("/_anteroom/v1/rooms/shop/pushed").then(r => r.json()).then(r => r.pushed)`)
	p.picture("found")
	p.open("about:blank") // the page is closed
	inside.goesOut()
	select {
	case <-came:
	case <-time.After(2 * patience):
		t.Fatal("nobody was told")
	}
}
