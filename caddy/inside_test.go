package caddy_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/xcaddy"

	"github.com/anteroom/anteroom/internal/visitors"
)

// patience is how long a program, or a page, may take at most.
const patience = 30 * time.Second

// machine is a Caddy of our own make with the file that examples/ has.
type machine struct {
	t                  *testing.T
	program, file      string
	url, api, operator string // of visitors, of Caddy's operators, of the node's
	text               string // of the file
	authority          string // the file with the certificate of its own authority, once it has one
	run                *exec.Cmd
	ended              chan struct{} // closed when it is over
	said               *journal
}

// journal is what a program says. It may be read while that runs.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// wanted skips the test where no real programs are run.
func wanted(t *testing.T) {
	t.Helper()
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("NOT RUN: a test with real sockets and programs; set ANTEROOM_E2E=1 (needs chromium)")
	}
}

// xcaddyBuild makes a Caddy with the module as people do. The flags are those of this
// test, so that not all of Caddy is compiled twice.
func xcaddyBuild(t *testing.T) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var said journal
	log.SetOutput(&said)
	defer log.SetOutput(os.Stderr)
	program := filepath.Join(t.TempDir(), "caddy")
	b := xcaddy.Builder{
		CaddyVersion: caddyVersion(t),
		Plugins:      []xcaddy.Dependency{{PackagePath: "github.com/anteroom/anteroom/caddy", Version: "v0.0.0"}},
		Replacements: []xcaddy.Replace{
			xcaddy.NewReplace("github.com/anteroom/anteroom/caddy@v0.0.0", here),
			xcaddy.NewReplace("github.com/anteroom/anteroom@v0.0.0", filepath.Dir(here)),
		},
		BuildFlags: "-buildvcs=false",
	}
	ctx := t.Context()
	if end, limited := t.Deadline(); limited { // compiling it takes as long as the machine is busy
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-time.Minute))
		defer cancel()
	}
	if err := b.Build(ctx, program); err != nil {
		t.Fatalf("xcaddy: %v\n%s", err, said.String())
	}
	return program
}

// caddyVersion is the one that go.mod has.
func caddyVersion(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "github.com/caddyserver/caddy/v2").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// two are two Caddies that are one cluster, with a shop behind, which they serve by plain
// HTTP or, as the scheme may be, by HTTPS with certificates of their own.
func two(t *testing.T, program, scheme string, behind http.Handler, limit int) [2]*machine {
	t.Helper()
	origin := httptest.NewServer(behind)
	t.Cleanup(origin.Close)
	b, err := os.ReadFile(filepath.Join("..", "examples", "caddy-inside", "Caddyfile"))
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gossip := [2]string{free(t), free(t)}
	var both [2]*machine
	for i := range both {
		front, peer := free(t), free(t)
		m := &machine{t: t, program: program, url: scheme + "://" + front, api: free(t), operator: free(t), said: &journal{}}
		dir := t.TempDir()
		host, global, site := "127.0.0.1", "", ""
		if scheme == "https" {
			host, global, site = "localhost", "\tauto_https disable_redirects\n\tskip_install_trust\n", "\ttls internal\n"
			m.url = strings.Replace(m.url, "127.0.0.1", host, 1)
			m.authority = filepath.Join(dir, "pki", "authorities", "local", "root.crt")
		}
		m.text = replaced(t, string(b), map[string]string{
			"{\n\tanteroom {":                     "{\n\tadmin " + m.api + "\n\tstorage file_system " + dir + "\n" + global + "\tanteroom {",
			"id     caddy-1\n":                    "id caddy-" + strconv.Itoa(i+1) + "\n\t\t\tadmin " + m.operator + "\n\t\t\tgrpc none\n",
			"10.0.0.1:7946":                       gossip[i],
			"10.0.0.1:7947":                       peer,
			"10.0.0.2:7946":                       gossip[1-i],
			"/etc/caddy/anteroom.key":             key,
			"routes             shop.example.com": "routes " + host,
			"total_active_users 200":              "total_active_users " + strconv.Itoa(limit),
			"session_duration   5m":               "session_duration 1m",
			"\nshop.example.com {":                "\n" + m.url + " {\n" + site,
			"127.0.0.1:9000":                      strings.TrimPrefix(origin.URL, "http://"),
		})
		m.file = filepath.Join(dir, "Caddyfile")
		m.write(m.text)
		m.start()
		both[i] = m
	}
	for _, m := range both {
		m.until("it is ready", func() bool { return m.get("http://"+m.operator+"/readyz") == http.StatusOK })
	}
	return both
}

func (m *machine) write(text string) {
	m.t.Helper()
	if err := os.WriteFile(m.file, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) start() {
	m.t.Helper()
	m.run = exec.Command(m.program, "run", "--adapter", "caddyfile", "--config", m.file)
	m.run.Stdout, m.run.Stderr = m.said, m.said
	m.run.Env = append(os.Environ(), "HOME="+filepath.Dir(m.file))
	if err := m.run.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.ended = make(chan struct{})
	go func() { _ = m.run.Wait(); close(m.ended) }()
	m.t.Cleanup(func() {
		m.stop()
		if m.t.Failed() {
			m.t.Logf("%s\n%s", m.file, m.said.String())
		}
	})
}

func (m *machine) stop() {
	m.t.Helper()
	_ = m.run.Process.Signal(os.Interrupt)
	select {
	case <-m.ended:
	case <-time.After(patience):
		_ = m.run.Process.Kill()
		m.t.Errorf("it does not end")
	}
}

// streams reports whether an event stream is open.
func (m *machine) streams() bool {
	a, err := http.Get("http://" + m.operator + "/metrics")
	if err != nil {
		return false
	}
	defer a.Body.Close() //nolint:errcheck // nothing was written
	b, _ := io.ReadAll(a.Body)
	return bytes.Contains(b, []byte("\nanteroom_streams 1\n"))
}

// logged is when it said first what begins like this.
func (m *machine) logged(what string) time.Time {
	m.t.Helper()
	for line := range strings.Lines(m.said.String()) {
		var said struct {
			At  float64 `json:"ts"` // seconds
			Msg string  `json:"msg"`
		}
		if json.Unmarshal([]byte(line), &said) == nil && strings.HasPrefix(said.Msg, what) {
			return time.UnixMicro(int64(said.At * 1e6))
		}
	}
	m.t.Errorf("it does not say %q", what)
	return time.Time{}
}

// reload is what an operator types.
func (m *machine) reload(text string) (said string, ok bool) {
	m.t.Helper()
	m.write(text)
	out, err := exec.Command(m.program, "reload", "--address", m.api, "--adapter", "caddyfile", "--config", m.file, "--force").CombinedOutput()
	return string(out), err == nil
}

func (m *machine) get(url string) int {
	r, err := http.Get(url)
	if err != nil {
		return 0
	}
	_ = r.Body.Close()
	return r.StatusCode
}

// limit is how many the node says may be in the shop; 0: it does not.
func (m *machine) limit() int {
	a, err := http.Get("http://" + m.operator + "/v1/rooms/shop")
	if err != nil {
		return 0
	}
	defer a.Body.Close() //nolint:errcheck // nothing was written
	b, _ := io.ReadAll(a.Body)
	var room struct {
		TotalActiveUsers int `json:"total_active_users"`
	}
	_ = json.Unmarshal(b, &room)
	return room.TotalActiveUsers
}

func (m *machine) until(what string, holds func() bool) {
	m.t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			m.t.Fatalf("waited in vain until %s", what)
		}
	}
}

func replaced(t *testing.T, text string, words map[string]string) string {
	t.Helper()
	var pairs []string
	for was, is := range words {
		if !strings.Contains(text, was) {
			t.Fatalf("%q is not in the example any more", was)
		}
		pairs = append(pairs, was, is)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// free is an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it was for its address
	return l.Addr().String()
}

// A crowd comes to two Caddies that are one cluster, while one reloads its
// configuration again and again: never more people are in the shop than may be, and
// nobody loses a place. Then somebody comes with a browser.
func TestTheWaitingRoomInsideTwoCaddies(t *testing.T) {
	wanted(t)
	program := xcaddyBuild(t)
	t.Run("a crowd", func(t *testing.T) { crowd(t, program) })
	t.Run("a browser", func(t *testing.T) { browser(t, program) })
	t.Run("a crowd by HTTPS", func(t *testing.T) { secureCrowd(t, program) })
	t.Run("a browser by HTTPS", func(t *testing.T) { secureBrowser(t, program) })
}

// counted is a site that knows by their passes who is in. Who has left is not back when
// a request of before comes late, or again.
type counted struct {
	mu       sync.Mutex
	in, left map[string]bool
	peak     int
}

func (c *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who := subject(r.Header.Get("X-Anteroom-Pass"))
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case who == "":
		http.Error(w, "no pass", http.StatusForbidden)
	case r.URL.Path == "/checkout": // the slot is free with the answer, and not before
		delete(c.in, who)
		c.left[who] = true
		w.Header().Set("Anteroom-Command", "revoke")
	case !c.left[who]:
		c.in[who] = true
		c.peak = max(c.peak, len(c.in))
	}
}

// subject is whose pass a JWT is; empty: nobody's.
func subject(jwt string) string {
	_, rest, _ := strings.Cut(jwt, ".")
	payload, _, _ := strings.Cut(rest, ".")
	b, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return ""
	}
	var claims struct {
		Sub string `json:"sub"`
	}
	_ = json.Unmarshal(b, &claims)
	return claims.Sub
}

func crowd(t *testing.T, program string) {
	const limit, people = 20, 150
	site := &counted{in: map[string]bool{}, left: map[string]bool{}}
	both := two(t, program, "http", site, limit)
	c := visitors.New(visitors.Config{
		Gateways: []string{both[0].url, both[1].url}, Room: "shop", Users: people, Over: 2 * time.Second, Stay: time.Second,
		Site: visitors.Site{Look: "/", Exit: "/checkout"},
	})
	over := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	go func() { over <- c.Run(ctx) }()
	reloads := 0
	for running := true; running; {
		select {
		case err := <-over:
			if err != nil {
				t.Error(err)
			}
			running = false
		case <-time.After(500 * time.Millisecond):
			if said, ok := both[0].reload(both[0].text); !ok {
				t.Fatalf("reload: %s", said)
			}
			reloads++
		}
	}
	n := c.Counts()
	site.mu.Lock()
	defer site.mu.Unlock()
	t.Logf("%d people, %d on the site at once at most, limit %d, %d reloads: %+v", people, site.peak, limit, reloads, n)
	if n.Done != people || n.Lost != 0 || reloads < 2 {
		t.Errorf("%+v after %d reloads", n, reloads)
	}
	if site.peak > limit || site.peak < limit/2 || len(site.left) < people {
		t.Errorf("%d at once with a limit of %d, %d have left", site.peak, limit, len(site.left))
	}
	if said := both[0].said.String(); strings.Contains(said, "leaving: visits") {
		t.Error("it left the cluster over a reload")
	}
}
