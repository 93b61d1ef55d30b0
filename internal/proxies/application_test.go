package proxies

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Jupyter stands for the applications of others: it has a log-in with a form, takes files,
// serves parts of them, and tells of what happens, and runs a terminal, by WebSockets.

const password = "correct horse"

// startJupyter starts one where a site is to be. It ends with the process namespace.
func startJupyter(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	const salt = "73616c74"
	sum := sha1.Sum([]byte(password + salt)) // as it takes them
	cmd := exec.Command(find(t, "jupyter-server"), "--allow-root", "--no-browser", "--ip=127.0.0.1", "--port=9000", "--ServerApp.root_dir="+dir,
		"--IdentityProvider.token=", "--PasswordIdentityProvider.hashed_password=sha1:"+salt+":"+hex.EncodeToString(sum[:]))
	cmd.Env = append(os.Environ(), "HOME="+dir, "SHELL=/bin/sh", "ENV=")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for enough := time.After(4 * patience); ; { // it is much Python
		if conn, err := net.Dial("tcp", "127.0.0.1:9000"); err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-look.C:
		case <-enough:
			t.Fatal("Jupyter does not listen")
		}
	}
}

var xsrf = regexp.MustCompile(`name="_xsrf" value="([^"]+)"`)

// usesJupyter does with it what people do.
func (b *browser) usesJupyter() {
	b.t.Helper()
	const form, script, film = "Content-Type: application/x-www-form-urlencoded", "Content-Type: application/json", "0123456789ab"
	status, page, err := b.try(http.MethodGet, "/login", nil)
	token := xsrf.FindStringSubmatch(page)
	if err != nil || token == nil {
		b.t.Fatalf("the log-in: %d %v %.300s", status, err, page)
	}
	xsrf := "X-XSRFToken: " + token[1]
	answers := func(want int, text, method, path string, body io.Reader, headers ...string) {
		b.t.Helper()
		if got, said, err := b.try(method, path, body, headers...); err != nil || got != want || !strings.Contains(said, text) {
			b.t.Errorf("%s %s: %d %.300q %v, want %d with %q", method, path, got, said, err, want, text)
		}
	}
	answers(403, "Forbidden", http.MethodGet, "/api/contents", nil)
	answers(401, "Invalid credentials", http.MethodPost, "/login", strings.NewReader("password=wrong&_xsrf="+token[1]), form)
	answers(200, `"identity"`, http.MethodPost, "/login?next=%2Fapi%2Fme", strings.NewReader("password="+strings.ReplaceAll(password, " ", "+")+"&_xsrf="+token[1]), form)

	_, events := b.upgrade("/api/events/subscribe")
	file := base64.StdEncoding.EncodeToString([]byte(film)) + strings.Repeat("AAAA", 50<<20/3)
	answers(201, `"film.bin"`, http.MethodPut, "/api/contents/film.bin", strings.NewReader(`{"type":"file","format":"base64","content":"`+file+`"}`), script, xsrf)
	b.reads(events, "contents_service")
	b.wants(206, film[5:8], http.MethodGet, "/files/film.bin", nil, "Range: bytes=5-7", "Referer: http://127.0.0.1/")

	_, said, _ := b.try(http.MethodPost, "/api/terminals", strings.NewReader("{}"), script, xsrf)
	var terminal struct{ Name string }
	if err := json.Unmarshal([]byte(said), &terminal); err != nil || terminal.Name == "" {
		b.t.Fatalf("a terminal: %v %.300s", err, said)
	}
	conn, lines := b.upgrade("/terminals/websocket/" + terminal.Name)
	const types = `["stdin","echo $((6*7))\r"]`
	if _, err := conn.Write(append([]byte{0x81, 0x80 | byte(len(types)), 0, 0, 0, 0}, types...)); err != nil { // masked, with nothing
		b.t.Fatal(err)
	}
	b.reads(lines, `42\r\n`)
}

// reads the frames of a WebSocket until one has the text.
func (b *browser) reads(from *bufio.Reader, text string) {
	b.t.Helper()
	var all strings.Builder
	for !strings.Contains(all.String(), text) {
		var head [2]byte
		_, err := io.ReadFull(from, head[:])
		size := uint64(head[1])
		if err == nil && size == 126 {
			var more uint16
			err = binary.Read(from, binary.BigEndian, &more)
			size = uint64(more)
		} else if err == nil && size == 127 {
			err = binary.Read(from, binary.BigEndian, &size)
		}
		if err == nil {
			_, err = io.CopyN(&all, from, int64(size))
		}
		if err != nil {
			b.t.Fatalf("a WebSocket ended with %v before %q: %.1000q", err, text, all.String())
		}
	}
}
