package live

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// command runs one to its end.
func (c *cluster) command(args ...string) (code int, stdout, stderr string) {
	c.t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(c.binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// inFront is a proxy on the node's machine, and tells it whom it asks for. The
// visitors are given by the addresses that it says they have.
func (p *process) inFront() (joins func(visitor string) int) {
	p.c.t.Helper()
	to, err := url.Parse(p.gateway())
	if err != nil {
		p.c.t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Header.Set("X-Forwarded-For", r.In.Header.Get("Visitor"))
	}})
	p.c.t.Cleanup(proxy.Close)
	return func(visitor string) int {
		p.c.t.Helper()
		q, err := http.NewRequest(http.MethodPost, proxy.URL+"/_anteroom/v1/rooms/shop/join", nil)
		if err != nil {
			p.c.t.Fatal(err)
		}
		q.Header.Set("Visitor", visitor)
		client := http.Client{Timeout: 5 * time.Second}
		a, err := client.Do(q)
		if err != nil {
			p.c.t.Fatal(err)
		}
		_ = a.Body.Close()
		return a.StatusCode
	}
}

// Attack 16. Behind a proxy that nobody listed one visitor takes place after
// place: no bound per address holds. The log, status and config check all say so,
// and nothing once it is listed, when the bound holds.
func TestAttackByAProxyThatIsNotListed(t *testing.T) {
	c := newCluster(t, 100)
	c.room = "    places_per_address: 3\n    queue_all: true\n"
	c.run(1)
	p := c.nodes[0]
	p.serves()
	for _, listed := range []bool{false, true} {
		if listed {
			p.kill()
			c.top, p.log = "trusted_proxies: [127.0.0.1]\n", &journal{}
			p.start(1)
			c.serving(1)
			p.serves()
		}
		told := map[string]func() bool{
			"config check": func() bool {
				code, _, said := c.command("config", "check", c.file(p.id+".yaml"))
				return code == 0 && strings.Contains(said, "warning: ") && strings.Contains(said, "trusted_proxies: empty, and node.gateway is "+p.at(0))
			},
			"status": func() bool {
				_, said, _ := c.command("status", "--admin", "http://"+p.at(1))
				return strings.Contains(said, "warning: visitors come by way of 127.0.0.1, a proxy that trusted_proxies does not list")
			},
			"the log": func() bool {
				return strings.Contains(p.log.String(), "visitors come by way of 127.0.0.1, a proxy that trusted_proxies does not list")
			},
		}
		for _, where := range []string{"status", "the log"} {
			if told[where]() {
				t.Errorf("listed %v: before there is a proxy %s warns of one", listed, where)
			}
		}
		joins, refused := p.inFront(), 0
		for range 10 {
			if joins("203.0.113.7") == http.StatusTooManyRequests {
				refused++
			}
		}
		if code := joins("203.0.113.8"); code != http.StatusCreated {
			t.Errorf("listed %v: somebody else's join: %d", listed, code)
		}
		if want := map[bool]int{true: 7}[listed]; refused != want {
			t.Errorf("listed %v: of ten joins of one visitor %d were refused, want %d", listed, refused, want)
		}
		for where, tells := range told {
			if tells() == listed {
				t.Errorf("listed %v: %s warns: %v", listed, where, !listed == tells())
			}
		}
		if n := strings.Count(p.log.String(), "visitors come by way of"); n > 1 {
			t.Errorf("the log says it %d times", n)
		}
		c.phase("listed %v: %d of ten joins of one visitor refused", listed, refused)
	}
}

// secrets gives a node files and keys of all kinds, and returns their names.
func (c *cluster) secrets() (files []string) {
	c.t.Helper()
	cert, key, _ := c.certificate("127.0.0.1")
	signing, members := c.file("signing.json"), c.file("cluster.key")
	for _, args := range [][]string{{"keys", "new", "--out", signing}, {"keys", "cluster", "--out", members}} {
		if code, _, said := c.command(args...); code != 0 {
			c.t.Fatalf("%v: %s", args, said)
		}
	}
	pair := "{cert: " + cert + ", key: " + key + "}"
	c.secret = "" // it is in the file
	c.security = "  signing_keys: " + signing + "\n  gossip_key_file: " + members + "\n" +
		"  admin_token: 0123456789abcdef0123456789abcdef\n  challenge_key: 0123456789abcdef0123456789abcdef\n" +
		"  tls: {gateway: " + pair + ", grpc: " + pair + ", peer: {ca: " + cert + ", cert: " + cert + ", key: " + key + "}}\n"
	c.data = true
	return []string{key, signing, members}
}

// Attack 17. Whoever has an account on the machine reads a node's secrets, and
// writes into its directory. config check and serve name the key of each, and
// what to run; of a directory in which everybody writes, no node makes use.
func TestAttackFilesThatOthersReadAndWrite(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it has no modes")
	}
	c := newCluster(t, 10)
	files := c.secrets()
	p := c.add()
	config, data := c.file(p.id+".yaml"), c.file(p.id)
	mode := func(file, dir os.FileMode) {
		t.Helper()
		for _, name := range append(files, config) {
			if err := os.Chmod(name, file); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(data, dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(config, []byte(p.config(1)), 0o600), os.Mkdir(data, 0o700)); err != nil {
		t.Fatal(err)
	}
	// begin starts the node, and returns what it said until it listened or ended.
	begin := func() string {
		t.Helper()
		p.log = &journal{}
		p.run("--config", config)
		c.await("end, or listening", 30*time.Second, func() bool { return !p.running() || strings.Contains(p.log.String(), "msg=listening") })
		return p.log.String()
	}
	keys := []string{
		"security.signing_keys", "security.gossip_key_file", "security.admin_token", "security.challenge_key",
		"security.tls.gateway.key", "security.tls.grpc.key", "security.tls.peer.key", "node.data",
	}
	for _, open := range []bool{false, true} {
		if mode(0o600, 0o700); open {
			mode(0o644, 0o770)
		}
		code, _, check := c.command("config", "check", config)
		for what, said := range map[string]string{"config check": check, "serve": begin()} {
			for _, key := range keys {
				if got := tells(said, key); got != open {
					t.Errorf("open to others %v: %s tells of %s: %v", open, what, key, got)
				}
			}
			if strings.Contains(said, "0123456789abcdef") {
				t.Errorf("%s prints a secret", what)
			}
		}
		if code != 0 || !p.running() {
			t.Errorf("open to others %v: config check exits with %d and says\n%s\nthe node runs: %v", open, code, check, p.running())
		}
		p.kill()
	}
	for _, everybodys := range []os.FileMode{0o777, 0o777 | os.ModeSticky} {
		mode(0o600, everybodys)
		code, _, check := c.command("config", "check", config)
		said := begin()
		if code != 1 || !tells(check, "node.data") {
			t.Errorf("%v: config check exits with %d: %s", everybodys, code, check)
		}
		if p.running() || p.cmd.ProcessState.ExitCode() != 1 || !tells(said, "node.data") || !strings.Contains(said, "chmod 700 "+data) {
			t.Errorf("%v: the node runs: %v; %s", everybodys, p.running(), said)
		}
		p.kill()
	}
	mode(0o600, 0o700)
	if err := os.Chmod(filepath.Join(data, "state.json"), 0o644); err != nil { // which the lives above left
		t.Fatal(err)
	}
	if code, _, check := c.command("config", "check", config); code != 0 || !tells(check, "node.data") || !strings.Contains(check, "state.json may be read") {
		t.Errorf("a record that others read: config check exits with %d: %s", code, check)
	}
}

// tells reports whether a line of what was said names a key and how its file may be
// used.
func tells(said, key string) bool {
	for line := range strings.Lines(said) {
		if strings.Contains(line, " "+key+": ") && strings.Contains(line, "(mode 0") && strings.Contains(line, "chmod ") {
			return true
		}
	}
	return false
}
