package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", "", "`directory` for pictures of what the browser tests see; empty: none")

// patience is how long a person waits for something to appear. Nothing that
// works takes nearly as long.
const patience = 30 * time.Second

// browser is shared by all tests; each person has a profile of their own in it.
var browser struct {
	once   sync.Once
	ctx    context.Context
	cancel func()
	err    error
}

func TestMain(m *testing.M) {
	flag.Parse()
	status := m.Run()
	if browser.cancel != nil {
		browser.cancel()
	}
	if program.dir != "" {
		_ = os.RemoveAll(program.dir) // a leftover in the temporary directory
	}
	os.Exit(status)
}

func needBrowser(t *testing.T) context.Context {
	t.Helper()
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("NOT RUN: a browser test; set ANTEROOM_E2E=1 (needs chromium, and npm ci --prefix internal/e2e)")
	}
	if testing.Short() {
		t.Skip("NOT RUN: a browser test, and this is a short run")
	}
	browser.once.Do(func() {
		path, err := findChromium()
		if err != nil {
			browser.err = err
			return
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1100, 900))
		if os.Geteuid() == 0 {
			options = append(options, chromedp.NoSandbox) // Chromium's sandbox refuses to run as root
		}
		ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, cancel := chromedp.NewContext(ctx)
		browser.ctx, browser.cancel = ctx, func() { cancel(); stop() }
		browser.err = chromedp.Do(ctx)
	})
	if browser.err != nil {
		t.Fatalf("start the browser: %v", browser.err)
	}
	return browser.ctx
}

func findChromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no chromium in the PATH: apt-get install chromium")
}

// person is somebody at one tab of a browser.
type person struct {
	t       *testing.T
	profile context.Context // the browser, with its cookies
	ctx     context.Context // the tab
}

// newPerson comes with a clean browser, set up as the options say.
func newPerson(t *testing.T, options ...chromedp.Action[chromedp.Void]) *person {
	t.Helper()
	profile, cancel := chromedp.NewContext(needBrowser(t), chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	if err := chromedp.Do(profile); err != nil {
		t.Fatalf("open a browser: %v", err)
	}
	return (&person{t: t, profile: profile}).newTab(options...)
}

// newTab opens another tab of the same browser.
func (p *person) newTab(options ...chromedp.Action[chromedp.Void]) *person {
	p.t.Helper()
	ctx, cancel := chromedp.NewContext(p.profile)
	p.t.Cleanup(cancel)
	tab := &person{p.t, p.profile, ctx}
	if err := chromedp.Do(ctx); err != nil { // before any timeout: the tab would end with it
		p.t.Fatalf("open a tab: %v", err)
	}
	tab.watch()
	tab.do("set the browser up", options...)
	return tab
}

// watch fails the test when a script breaks or the page is refused something.
func (p *person) watch() {
	p.t.Helper()
	messages := chromedp.Console(p.ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.IsException() || m.Source == "security" || strings.Contains(m.Text, "Content Security Policy") {
				p.t.Errorf("the page complains: %v", m)
			}
		}
	}()
}

func (p *person) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

func (p *person) open(url string) {
	p.t.Helper()
	p.do("open "+url, chromedp.Navigate(url))
}

// click waits until what is to be clicked on stands still, as a person does.
func (p *person) click(selector string) {
	p.t.Helper()
	p.until(selector+" to stand still", fmt.Sprintf(`(e => {
		const box = e.getBoundingClientRect(), at = [box.x + scrollX, box.y + scrollY].join(), still = e.dataset.stood === at;
		e.dataset.stood = at;
		return still;
	})(document.querySelector(%q))`, selector))
	p.do("click on "+selector, chromedp.Click(chromedp.CSS(selector)))
}

func (p *person) reload() {
	p.t.Helper()
	p.do("reload", chromedp.Reload())
}

// goBack may find the page as it was left, with nothing to load.
func (p *person) goBack() {
	p.t.Helper()
	p.do("go back", chromedp.Evaluate[chromedp.Void]("history.back()"))
}

// closeTab closes the tab as a person does, and leaves the browser open.
func (p *person) closeTab() {
	p.t.Helper()
	if err := chromedp.Cancel(p.ctx); err != nil && !errors.Is(err, context.Canceled) {
		p.t.Fatalf("close a tab: %v", err)
	}
}

// eval runs an expression in the page. In the middle of a navigation nobody answers.
func eval[T any](p *person, expression string) (T, error) {
	return evalWithin[T](p, 5*time.Second, expression)
}

// evalWithin is eval for what may take longer.
func evalWithin[T any](p *person, d time.Duration, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, d)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// until waits for an expression, or what it promises, to become true.
func (p *person) until(what, expression string) {
	p.t.Helper()
	var failed error
	if !within(patience, func() bool {
		yes, err := eval[bool](p, "(is => is instanceof Promise ? is.then(Boolean) : !!is)(("+expression+"))")
		failed = err
		return yes
	}) {
		p.picture("failed")
		text, _ := eval[string](p, "location + '\\n' + document.body.innerText")
		p.t.Fatalf("waited for %s in vain (%v); the page says:\n%s", what, failed, text)
	}
}

// within looks again and again whether something holds. A browser and a
// cluster have no end of work to wait for, so there is nothing better.
func within(d time.Duration, holds func() bool) bool {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	enough := time.After(d)
	for !holds() {
		select {
		case <-look.C:
		case <-enough:
			return false
		}
	}
	return true
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	if !within(patience, holds) {
		t.Fatalf("waited in vain until %s", what)
	}
}

// reads waits until an element shows exactly that text.
func (p *person) reads(selector, want string) {
	p.t.Helper()
	p.until(fmt.Sprintf("%s to read %q", selector, want), fmt.Sprintf("document.querySelector(%q)?.textContent === %q", selector, want))
}

// sees waits until the page's visible text contains that.
func (p *person) sees(want string) {
	p.t.Helper()
	p.until(fmt.Sprintf("%q to appear", want), fmt.Sprintf("document.body.innerText.includes(%q)", want))
}

// text waits until there is such an element: what stands before it on a page is seen while
// the rest is on its way.
func (p *person) text(selector string) (text string) {
	p.t.Helper()
	var err error
	if !within(patience, func() bool {
		text, err = eval[string](p, fmt.Sprintf("document.querySelector(%q).textContent", selector))
		return err == nil
	}) {
		p.t.Fatalf("read %s: %v", selector, err)
	}
	return text
}

// picture keeps what the person sees, if the flag asks for it.
func (p *person) picture(name string) {
	p.t.Helper()
	if *screenshots == "" {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		p.t.Errorf("picture %s: %v", name, err)
		return
	}
	file := filepath.Join(*screenshots, strings.ReplaceAll(p.t.Name()+"_"+name, "/", "_")+".png")
	if err := errors.Join(os.MkdirAll(*screenshots, 0o755), os.WriteFile(file, png, 0o644)); err != nil {
		p.t.Fatal(err)
	}
}

// The kinds of browser that people come with.

func inDark() chromedp.Action[chromedp.Void] {
	return media("prefers-color-scheme", "dark")
}

func media(name, value string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: name, Value: value}},
		})
		return err
	})
}

func onPhone() chromedp.Action[chromedp.Void] {
	return chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulatePortrait)
}

// zoomed is 200 % in a window 640 pixels wide: half the room for the page.
func zoomed() chromedp.Action[chromedp.Void] {
	return chromedp.EmulateViewport(320, 400, chromedp.EmulateScale(2))
}

func withoutScripts() chromedp.Action[chromedp.Void] { return scripts(false) }

// scripts turns them on or off for what is loaded from now on.
func scripts(on bool) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
		return err
	})
}

func inLanguage(accept string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		agent, err := chromedp.Evaluate[string]("navigator.userAgent")(ctx, t)
		if err != nil {
			return err
		}
		_, err = cdp.Call(ctx, t, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: agent, AcceptLanguage: accept})
		return err
	})
}
