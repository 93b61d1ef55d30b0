package server

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/health"
)

// statusFor is how long a status page is good, at this node and in caches: a crowd
// that looks costs no more than one who does.
const statusFor = 2 * time.Second

//go:embed statuspage.html
var statusHTML string

// statusPage tells the public what is known of the origins, without a script. It
// says nothing of addresses, nodes and people, and how many these are.
type statusPage struct {
	s       *Server
	answers func(room string) (gateway.Answers, bool) // of an origin to visitors of this node
	page    *template.Template
	policy  string

	mu   sync.Mutex
	body []byte
	at   time.Time
}

func newStatusPage(s *Server, answers func(room string) (gateway.Answers, bool)) *statusPage {
	_, rest, _ := strings.Cut(statusHTML, "<style>")
	style, _, _ := strings.Cut(rest, "</style>")
	sum := sha256.Sum256([]byte(style))
	return &statusPage{
		s: s, answers: answers,
		page:   template.Must(template.New("status").Funcs(template.FuncMap{"utc": utcText, "stamp": stampText, "lasted": lastedText}).Parse(statusHTML)),
		policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
	}
}

func utcText(t time.Time) string   { return t.UTC().Format("2 January 15:04:05 UTC") }
func stampText(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// lastedText is a time in the two largest of its units.
func lastedText(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h " + strconv.Itoa(int(d.Minutes())%60) + " min"
	}
	return strconv.Itoa(int(d.Hours())/24) + " days"
}

// ServeHTTP answers GET and HEAD.
func (p *statusPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := p.fresh(time.Now())
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "public, max-age="+strconv.Itoa(int(statusFor.Seconds())))
	h.Set("Content-Security-Policy", p.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

// fresh is the page, as of a moment ago.
func (p *statusPage) fresh(now time.Time) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.body != nil && now.Sub(p.at) < statusFor {
		return p.body
	}
	var b bytes.Buffer
	if err := p.page.Execute(&b, p.view(now)); err != nil {
		panic("server: the status page: " + err.Error()) // of our own template and values
	}
	p.body, p.at = b.Bytes(), now
	return p.body
}

// statusView is what the page shows.
type statusView struct {
	At    time.Time
	Rooms []statusRoom
	Ill   int // rooms
	Fails int // rooms whose visitors' requests fail, though the checks may say otherwise
}

type statusRoom struct {
	Title  string
	Status string // healthy, unhealthy or unknown
	Holds  bool
	Got    string // what visitors got; empty: too little to tell
	Checks []statusCheck
	Past   []statusTurn // of all checks, the newest first
}

type statusCheck struct {
	Name, Status, Reason string
	Code                 int
	Since                time.Time
}

type statusTurn struct {
	statusCheck
	Lasted time.Duration // 0: to this moment
}

func (p *statusPage) view(now time.Time) statusView {
	v := statusView{At: now.UTC()}
	snapshot := p.s.loop.Snapshot()
	for i := range snapshot.Rooms {
		r := snapshot.Rooms[i].Now
		c, err := configOf(r)
		checks := checksOf(c)
		if err != nil || r.Mode == eviction.Deleted || len(checks) == 0 {
			continue
		}
		is := healthOf(r)
		room := statusRoom{Title: cmp.Or(c.Title, c.Name), Status: cmp.Or(string(is.status()), "unknown"), Holds: is.Holds}
		for _, check := range checks {
			room.add(check.Name, is.Checks)
		}
		room.sort()
		if v.Rooms = append(v.Rooms, room); room.Status == string(health.Unhealthy) {
			v.Ill++
		}
		if a, ok := p.answers(c.Name); ok {
			v.Rooms[len(v.Rooms)-1].Got = gotText(&a)
			if manyFail(&a) {
				v.Fails++
			}
		}
	}
	return v
}

// add adds a check, and what was thought by it before.
func (r *statusRoom) add(name string, verdicts []health.Verdict) {
	for _, v := range verdicts {
		if v.Check != name {
			continue
		}
		end := time.UnixMicro(v.Since).UTC()
		now := statusCheck{name, string(v.Status), v.Reason, v.Code, end}
		r.Checks = append(r.Checks, now)
		r.Past = append(r.Past, statusTurn{statusCheck: now})
		for i := len(v.Past) - 1; i >= 0; i-- {
			began := time.UnixMicro(v.Past[i].Since).UTC()
			r.Past = append(r.Past, statusTurn{statusCheck{name, string(v.Past[i].Status), v.Past[i].Reason, v.Past[i].Code, began}, end.Sub(began)})
			end = began
		}
		return
	}
	r.Checks = append(r.Checks, statusCheck{Name: name, Status: "unknown"})
}

func (r *statusRoom) sort() {
	slices.SortStableFunc(r.Past, func(a, b statusTurn) int { return b.Since.Compare(a.Since) })
}

// answersMin is how many requests there must have been until anything is told of them: of
// fewer a share means little, and one of them may be known to be somebody's.
const answersMin = 100

// manyFail reports whether so many requests fail that the page does not say that all is well.
func manyFail(a *gateway.Answers) bool { return a.Count >= answersMin && 10*a.Failed >= a.Count }

// gotText is what visitors got, as coarse as the public needs it: whether it is the site, or
// they themselves. How many they were is nobody's business.
func gotText(a *gateway.Answers) string {
	if a.Count < answersMin {
		return ""
	}
	failed := "fewer than 1 in 100 requests"
	switch n := 100 * float64(a.Failed) / float64(a.Count); {
	case n >= 95:
		failed = "nearly all requests"
	case n >= 9.5:
		failed = "about " + strconv.Itoa(int(math.Round(n/10))) + " in 10 requests"
	case n >= 1:
		failed = "about " + strconv.Itoa(int(math.Round(n))) + " in 100 requests"
	}
	return "In the last minutes " + failed + " failed, and 95 in 100 had an answer " + withinText(a.P95) + "."
}

// withinText rounds up a time: 1, 2 or 5 of tenths of a second, seconds or tens of them.
func withinText(d time.Duration) string {
	for ten := 100 * time.Millisecond; ten <= 10*time.Second; ten *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if d <= n*ten {
				return "within " + strconv.FormatFloat((n*ten).Seconds(), 'f', -1, 64) + " s"
			}
		}
	}
	return "after more than 50 s"
}
