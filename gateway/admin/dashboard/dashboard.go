package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"time"
)

//go:embed assets page.html login.html
var files embed.FS

// Config is what the page needs.
type Config struct {
	Look      func() []byte     // what the node sees, as JSON; asked once a second while somebody listens
	Sentences map[string]string // what is said of each code of a reason
	Listeners int               // at most; 0: 16, half of the admin port's connections
}

// Visit is who looks at the page, and what the page itself says.
type Visit struct {
	Node    string
	Version string
	Who     string // by which name changes are written down; empty: nobody logs in here
	Operate bool   // may change rooms

	Profiles bool // /debug/pprof/ is there
}

// Dashboard serves the page.
type Dashboard struct {
	c       Config
	page    *template.Template // and that of the login
	style   template.CSS       // in the page: a phone on a slow network would wait for each file in turn
	modules []string           // that the page's script imports, and that are asked for at once
	policy  string
	feed    feed
}

// New returns a dashboard that nobody looks at yet.
func New(c Config) *Dashboard {
	if c.Listeners == 0 {
		c.Listeners = 16
	}
	d := &Dashboard{
		c: c, page: template.Must(template.ParseFS(files, "page.html", "login.html")), // part of the program
		feed: feed{look: c.Look, every: time.Second, max: c.Listeners},
	}
	for _, name := range []string{"uplot/uPlot.min.css", "style.css"} {
		b, _ := fs.ReadFile(files, "assets/"+name) // part of the program
		d.style += template.CSS(b)                 //nolint:gosec // as are these
	}
	scripts, _ := fs.Glob(files, "assets/*.js")
	for _, name := range scripts {
		d.modules = append(d.modules, path.Base(name))
	}
	sum := sha256.Sum256([]byte(d.style))
	d.policy = fmt.Sprintf(policy, base64.StdEncoding.EncodeToString(sum[:]))
	return d
}

// Close ends all streams.
func (d *Dashboard) Close() { d.feed.close() }

// policy lets the page load its own files, look as it does by the style of that sum, and
// ask its own node.
const policy = "default-src 'none'; script-src 'self'; style-src 'sha256-%s'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Page writes the page.
func (d *Dashboard) Page(w http.ResponseWriter, r *http.Request, v Visit) error {
	var b bytes.Buffer
	if err := d.page.ExecuteTemplate(&b, "page.html", struct {
		Visit
		Sentences map[string]string
		State     json.RawMessage // so that the first look is not at an empty page
		Style     template.CSS
		Modules   []string
	}{v, d.c.Sentences, d.c.Look(), d.style, d.modules}); err != nil {
		return fmt.Errorf("dashboard: %w", err)
	}
	d.document(w, r, http.StatusOK, b.Bytes())
	return nil
}

// Login writes the page that asks for a token, with what was wrong with the last.
func (d *Dashboard) Login(w http.ResponseWriter, r *http.Request, wrong string) error {
	var b bytes.Buffer
	if err := d.page.ExecuteTemplate(&b, "login.html", struct {
		Wrong string
		Style template.CSS
	}{wrong, d.style}); err != nil {
		return fmt.Errorf("login: %w", err)
	}
	d.document(w, r, http.StatusUnauthorized, b.Bytes())
	return nil
}

func (d *Dashboard) document(w http.ResponseWriter, r *http.Request, status int, b []byte) {
	w.Header().Set("Content-Security-Policy", d.policy)
	w.Header().Set("Referrer-Policy", "same-origin") // with none a form has no Origin
	write(w, r, status, "text/html; charset=utf-8", b)
}

// Asset writes one of the page's files; false: there is none of that name. A
// browser asks again each time that it opens the page: after an update the parts
// of two versions would not fit together.
func (d *Dashboard) Asset(w http.ResponseWriter, r *http.Request, name string) bool {
	b, err := fs.ReadFile(files, "assets/"+name) // a name with .. in it is not found
	if err != nil {
		return false
	}
	write(w, r, http.StatusOK, kindOf(name), b)
	return true
}

func kindOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	}
	return "text/plain; charset=utf-8"
}

func write(w http.ResponseWriter, r *http.Request, status int, kind string, b []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b) // a client that is gone cannot be told so
	}
}

// takenWithin is how long a page may take to take in one event.
const takenWithin = 10 * time.Second

// Stream sends what the node sees once a second, until the client goes, takes
// nothing in, or the dashboard is closed; false: as many listen as may.
func (d *Dashboard) Stream(w http.ResponseWriter, r *http.Request) bool {
	news, end, ok := d.feed.listen()
	if !ok {
		return false
	}
	defer end()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would collect events first
	h.Set("X-Content-Type-Options", "nosniff")
	if r.Method == http.MethodHead {
		return true
	}
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // the port's bound is for requests that end
	for {
		select {
		case <-r.Context().Done():
			return true
		case state, open := <-news:
			if !open {
				return true
			}
			_ = out.SetWriteDeadline(time.Now().Add(takenWithin)) // a test's writer has none
			if _, err := fmt.Fprintf(w, "data: %s\n\n", state); err != nil || out.Flush() != nil {
				return true
			}
		}
	}
}
