package dashboard_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/gateway/admin/dashboard"
)

// All that a browser loads fits in 150 kB before compression: a phone at a desk
// of an event has it in a second.
func TestThePageIsSmall(t *testing.T) {
	const most = 150_000
	sum := int64(0)
	err := filepath.WalkDir("assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "LICENSE" || filepath.Ext(name) == ".css" { // nobody loads the former, and the page has the latter in it
			return err
		}
		info, err := d.Info()
		sum += info.Size()
		return err
	})
	page := httptest.NewRecorder()
	if err := dashboard.New(dashboard.Config{Look: func() []byte { return []byte("{}") }}).Page(page, httptest.NewRequest("GET", "/", nil), dashboard.Visit{}); err != nil {
		t.Fatal(err)
	}
	if sum += int64(page.Body.Len()); err != nil || sum > most || sum < 1000 {
		t.Errorf("the page is of %d bytes, want at most %d (%v)", sum, most, err)
	}
	t.Logf("%d bytes", sum)
}

// Everything that the page and its scripts name is in the program, and nothing is
// from elsewhere.
func TestThePageNeedsNothingFromElsewhere(t *testing.T) {
	d := dashboard.New(dashboard.Config{Look: func() []byte { return []byte("{}") }})
	scripts, err := filepath.Glob("assets/*.js")
	if err != nil || len(scripts) == 0 {
		t.Fatal(err)
	}
	names := []string{"uplot/uPlot.iife.min.js"}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if _, from, ok := strings.Cut(line, `from "./`); ok && strings.HasPrefix(line, "import ") {
				name, _, _ := strings.Cut(from, `"`)
				names = append(names, name)
			}
		}
		if strings.Contains(string(text), "http:") || strings.Contains(string(text), "https:") {
			t.Errorf("%s names another site", path)
		}
	}
	for _, name := range names {
		w := httptest.NewRecorder()
		if !d.Asset(w, httptest.NewRequest("GET", "/", nil), name) || w.Body.Len() == 0 || strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
			t.Errorf("%s: %v", name, w.Header())
		}
	}
	w := httptest.NewRecorder()
	if err := d.Page(w, httptest.NewRequest("GET", "/", nil), dashboard.Visit{Node: "</script><b>"}); err != nil || strings.Contains(w.Body.String(), "<b>") {
		t.Errorf("%v %s", err, w.Body)
	}
	for _, word := range []string{" style=", " onclick="} {
		if strings.Contains(w.Body.String(), word) {
			t.Errorf("the page has%s in it, which its policy forbids", word)
		}
	}
	for _, name := range names[1:] {
		if !strings.Contains(w.Body.String(), `<link rel="modulepreload" href="/assets/`+name+`">`) {
			t.Errorf("%s is asked for only when another script has come", name)
		}
	}
	_, rest, _ := strings.Cut(w.Body.String(), "<style>")
	style, _, _ := strings.Cut(rest, "</style>")
	sum := sha256.Sum256([]byte(style)) // as it is sent: browsers drop a style of another sum
	want := "default-src 'none'; script-src 'self'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "';"
	if got := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(got, want) || strings.Contains(got, "unsafe") || len(style) < 1000 {
		t.Errorf("the policy is %s, want %s", got, want)
	}
}

// taken is a page that listens; what it got can be read at any time.
type taken struct {
	http.ResponseWriter
	text atomic.Pointer[string]
}

func (w *taken) Write(b []byte) (int, error) {
	s := *w.text.Load() + string(b)
	w.text.Store(&s)
	return len(b), nil
}

func (w *taken) Flush() {}

func listen(ctx context.Context, d *dashboard.Dashboard) (got *taken, ended <-chan bool) {
	w := &taken{ResponseWriter: httptest.NewRecorder()}
	w.text.Store(new(string))
	end := make(chan bool, 1)
	go func() { end <- d.Stream(w, httptest.NewRequestWithContext(ctx, "GET", "/v1/stream", nil)) }()
	return w, end
}

// However many look, the node is asked once a second, and not at all when nobody
// does; beyond the bound nobody may.
func TestOneLookASecondIsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		d := dashboard.New(dashboard.Config{Listeners: 3, Look: func() []byte { looks++; return []byte("{}") }})
		ctx, cancel := context.WithCancel(t.Context())
		var all []*taken
		var ends []<-chan bool
		for range 3 {
			w, ended := listen(ctx, d)
			all, ends = append(all, w), append(ends, ended)
		}
		synctest.Wait()
		if _, ended := listen(ctx, d); <-ended {
			t.Error("a fourth may listen where three may")
		}
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		if looks != 11 {
			t.Errorf("%d looks in ten seconds, want 11", looks)
		}
		for _, w := range all {
			if got := strings.Count(*w.text.Load(), "data: {}\n\n"); got != 11 {
				t.Errorf("a page got %d of 11", got)
			}
		}
		cancel()
		for _, ended := range ends {
			<-ended
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if looks > 12 {
			t.Errorf("%d looks, and nobody listened any more", looks)
		}
		w, ended := listen(t.Context(), d)
		synctest.Wait()
		if got := *w.text.Load(); got != "data: {}\n\n" {
			t.Errorf("who comes after that got %q", got)
		}
		d.Close()
		if !<-ended {
			t.Error("a stream that is closed was none")
		}
		if _, refused := listen(t.Context(), d); <-refused {
			t.Error("a closed dashboard is listened to")
		}
		time.Sleep(time.Second) // until it has noticed that nobody does
	})
}
