package proxies

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/server"
)

// insideOf names the recipe that a process follows which has the machine to itself, and
// siteOf what is behind: siteOfAllKinds, unless it is jupyter.
const (
	insideOf = "ANTEROOM_RECIPE"
	siteOf   = "ANTEROOM_RECIPE_SITE"
	jupyter  = "jupyter"
)

// The commands of a recipe are run as its README has them, on the configuration
// that the distribution installs, and every kind of request that a site has goes
// through what they set up.
func TestRecipesOnTheDistributionsDefaults(t *testing.T) {
	for _, name := range []string{"nginx", "caddy", "haproxy", "nginx jupyter", "caddy jupyter", "haproxy jupyter"} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			name, behind, _ := strings.Cut(name, " ")
			wanted(t)
			find(t, name)
			alone := []string{"unshare", "-n", "-m", "-p", "-f", "--kill-child", "--mount-proc"}
			if out, err := exec.Command(alone[0], append(alone[1:], "ip", "link", "set", "lo", "up")...).CombinedOutput(); err != nil {
				if os.Getenv("ANTEROOM_NO_SKIP") != "" {
					t.Fatalf("a network of its own: %v %s", err, out)
				}
				t.Skipf("NOT RUN: a network of its own (Linux, root, unshare and ip): %v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, alone[0], append(alone[1:], os.Args[0], "-test.run=^TestInside$", "-test.v")...)
			cmd.Env, cmd.WaitDelay = append(os.Environ(), insideOf+"="+name, siteOf+"="+behind), time.Second
			if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: TestInside")) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestInside is the part of the test above that has the machine to itself.
func TestInside(t *testing.T) {
	name := os.Getenv(insideOf)
	if name == "" {
		t.Skip("a part of TestRecipesOnTheDistributionsDefaults")
	}
	sh(t, "", "ip link set lo up")
	said := make(chan struct{})
	there, uses := func(text string) bool { return text == "the site" }, func(b *browser) { b.goesEverywhere(said) }
	if os.Getenv(siteOf) == jupyter {
		startJupyter(t)
		there, uses = func(text string) bool { return strings.Contains(text, "<title>Jupyter Server") }, (*browser).usesJupyter
	} else {
		l, err := net.Listen("tcp", "127.0.0.1:9000")
		if err != nil {
			t.Fatal(err)
		}
		site := &http.Server{Handler: siteOfAllKinds(said), ReadHeaderTimeout: patience}
		go func() { _ = site.Serve(l) }() // until it is closed
		defer func() { _ = site.Close() }()
	}
	f := config.Parse("anteroom.yaml", []byte(Example(t, "anteroom.yaml")), config.Options{Host: "node-1"})
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	end := run(t, ctx, server.New(f.Config, server.Options{}))
	defer func() { cancel(); end() }()

	follow(t, name)
	b := &browser{t: t, client: &http.Client{Timeout: patience}}
	b.client.Jar, _ = cookiejar.New(nil) // never fails
	var text string
	defer func() {
		if t.Failed() {
			t.Logf("at last: %.300s", text)
		}
	}()
	eventually(t, "the site answers, when the node lets people in", func() bool {
		var err error
		_, text, err = b.try(http.MethodGet, "/", nil)
		return err == nil && there(text)
	})
	uses(b)
}

// follow runs the commands of the recipe, on a copy of the distribution's files.
// What stands in for sudo and systemctl does what those do on a machine with an init.
func follow(t *testing.T, name string) {
	t.Helper()
	dir := t.TempDir()
	sh(t, "", "cp -a /etc/"+name+" "+dir+"/etc && mount --bind "+dir+"/etc /etc/"+name+" && mount -t tmpfs none /run && mount -t tmpfs none /var/log && mkdir -p /var/log/nginx /run/haproxy")
	start := map[string]string{
		"nginx": "nginx", "haproxy": "haproxy -D -f /etc/haproxy/haproxy.cfg",
		"caddy": "HOME=" + dir + " caddy start --config /etc/caddy/Caddyfile",
	}[name]
	for command, does := range map[string]string{"sudo": `exec "$@"`, "systemctl": start + " > " + dir + "/log 2>&1 < /dev/null"} {
		if err := os.WriteFile(filepath.Join(dir, command), []byte("#!/bin/sh\n"+does+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	commands := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(Example(t, name+"/README.md"))
	if commands == nil {
		t.Fatalf("examples/%s/README.md has no commands", name)
	}
	sh(t, filepath.Join("..", "..", "examples", name), "PATH="+dir+":$PATH:/usr/sbin\n"+commands[1])
}

func sh(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.Command("sh", "-e", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// siteOfAllKinds has a log-in, takes forms and files, serves parts of files, and
// speaks of what happens by events and by a WebSocket. It ends the events when said
// is closed.
func siteOfAllKinds(said <-chan struct{}) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the site") })
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "user", Value: r.FormValue("name"), Path: "/", HttpOnly: true})
		http.Redirect(w, r, "/account", http.StatusSeeOther)
	})
	mux.HandleFunc("GET /account", func(w http.ResponseWriter, r *http.Request) {
		if user, err := r.Cookie("user"); err == nil {
			_, _ = io.WriteString(w, "hello "+user.Value)
			return
		}
		http.Error(w, "log in", http.StatusUnauthorized)
	})
	mux.HandleFunc("POST /upload", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprintf(w, "%d bytes %v", n, err)
	})
	mux.HandleFunc("GET /film", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "film.bin", time.Time{}, strings.NewReader("0123456789"))
	})
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: first\n\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-said:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("GET /socket", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || !strings.EqualFold(r.Header.Get("Connection"), "upgrade") {
			http.Error(w, "no upgrade", http.StatusBadRequest)
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
		_ = rw.Flush()
		_, _ = io.Copy(conn, rw) // an echo
	})
	return mux
}

// browser asks the proxy, at the port where browsers ask.
type browser struct {
	t      *testing.T
	client *http.Client
}

func (b *browser) try(method, path string, body io.Reader, headers ...string) (status int, text string, err error) {
	r, err := http.NewRequestWithContext(b.t.Context(), method, "http://127.0.0.1"+path, body)
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Accept", "text/html")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	a, err := b.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = a.Body.Close() }()
	all, err := io.ReadAll(a.Body)
	return a.StatusCode, string(all), err
}

func (b *browser) wants(status int, text, method, path string, body io.Reader, headers ...string) {
	b.t.Helper()
	if got, said, err := b.try(method, path, body, headers...); err != nil || got != status || said != text {
		b.t.Errorf("%s %s: %d %.200q %v, want %d %q", method, path, got, said, err, status, text)
	}
}

// goesEverywhere makes every kind of request. It closes said when it has read the
// first event, which comes before the answer is over.
func (b *browser) goesEverywhere(said chan<- struct{}) {
	b.t.Helper()
	const form, much = "Content-Type: application/x-www-form-urlencoded", 50 << 20
	b.wants(200, "the site", http.MethodGet, "/", nil)
	b.wants(401, "log in\n", http.MethodGet, "/account", nil) // the site's own
	b.wants(200, "hello ada", http.MethodPost, "/login", strings.NewReader("name=ada"), form)
	b.wants(200, fmt.Sprintf("%d bytes <nil>", much), http.MethodPost, "/upload", io.LimitReader(zeros{}, much), "Content-Type: application/octet-stream")
	b.wants(206, "567", http.MethodGet, "/film", nil, "Range: bytes=5-7")
	b.hears(said)
	b.talks()
}

// zeros is a long file.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func (b *browser) hears(said chan<- struct{}) {
	b.t.Helper()
	defer close(said)
	a, err := b.client.Get("http://127.0.0.1/events")
	if err != nil {
		b.t.Errorf("events: %v", err)
		return
	}
	defer func() { _ = a.Body.Close() }()
	if line, err := bufio.NewReader(a.Body).ReadString('\n'); err != nil || line != "data: first\n" {
		b.t.Errorf("events: %d, %q %v, while the site goes on", a.StatusCode, line, err)
	}
}

func (b *browser) talks() {
	b.t.Helper()
	conn, read := b.upgrade("/socket")
	echo := make([]byte, 5)
	if _, err := io.WriteString(conn, "hello"); err != nil {
		b.t.Fatal(err)
	}
	if _, err := io.ReadFull(read, echo); err != nil || string(echo) != "hello" {
		b.t.Errorf("a WebSocket: %q %v", echo, err)
	}
}

// upgrade opens a WebSocket, which is closed at the end of the test.
func (b *browser) upgrade(path string) (net.Conn, *bufio.Reader) {
	b.t.Helper()
	conn, err := net.DialTimeout("tcp", "127.0.0.1:80", patience)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	r, _ := http.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil) // a good address
	for _, c := range b.client.Jar.Cookies(r.URL) {
		r.AddCookie(c)
	}
	for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
		r.Header.Set(name, value)
	}
	if err := r.Write(conn); err != nil {
		b.t.Fatal(err)
	}
	read := bufio.NewReader(conn)
	a, err := http.ReadResponse(read, r)
	if err != nil || a.StatusCode != http.StatusSwitchingProtocols {
		b.t.Fatalf("a WebSocket: %+v %v", a, err)
	}
	return conn, read
}
