package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/server"
)

const childFile = "ANTEROOM_TEST_CHILD" // names the file of a node that a child process is to run

// TestChild is no test: it is the node of TestFloodOfConnections, in a process
// of its own. It writes its addresses and runs until its input ends.
func TestChild(t *testing.T) {
	name := os.Getenv(childFile)
	if name == "" {
		t.Skip("only for TestFloodOfConnections")
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	f := config.Parse(name, b, config.Options{Host: "low", Set: []config.Setting{rigKey}})
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	s := server.New(f.Config, server.Options{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	ctx, end := context.WithCancel(context.Background())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); end() }()
	go func() {
		<-s.Ready()
		b, _ := json.Marshal(s.Addresses()) // strings
		fmt.Printf("\n%s\n", b)
	}()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// child starts a node that may have only so many files open, and joins r.
func (r *rig) child(files int) (at server.Addresses, data string, log *journal) {
	r.t.Helper()
	dir := r.t.TempDir()
	data, log = filepath.Join(dir, "data"), &journal{}
	text := strings.Replace(fmt.Sprintf(rigFile, r.origin.URL, r.limit), "node: {", fmt.Sprintf("node: {data: %q, join: [%q], ", data, r.nodes[0].Addresses().Gossip), 1)
	name := filepath.Join(dir, "low.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" -test.run='^TestChild$' -test.v`, files), os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), childFile+"="+name), log
	in, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	r.t.Cleanup(func() {
		_ = in.Close()
		for lines.Scan() {
			r.t.Log(lines.Text())
		}
		if err := cmd.Wait(); err != nil || r.t.Failed() {
			r.t.Errorf("the child: %v\n%s", err, log.String())
		}
	})
	for lines.Scan() {
		if json.Unmarshal(lines.Bytes(), &at) == nil && at.Gateway != "" {
			r.mu.Lock()
			r.peers[at.Peer] = &member{r: r, id: "low", wires: map[*wire]bool{}}
			r.mu.Unlock()
			return at, data, log
		}
	}
	r.t.Fatal("the child does not start")
	return at, data, log
}

// flood holds many connections until it is told to end, and opens them again
// when they are closed: some say nothing, some begin a request, some are idle
// after one.
func flood(t *testing.T, address string, n int) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for ctx.Err() == nil {
				c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
				if err == nil {
					stop := context.AfterFunc(ctx, func() { _ = c.Close() })
					_, _ = io.WriteString(c, []string{"", "GET / HTTP/1.1\r\nHost: x\r\nX-A: ", "GET /_anteroom/.well-known/jwks.json HTTP/1.1\r\nHost: x\r\n\r\n"}[i%3])
					_, _ = io.Copy(io.Discard, c)
					stop()
					_ = c.Close()
				}
				select {
				case <-time.After(50 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// Strangers hold more connections than a node may have files. It keeps its
// place in the cluster, saves, answers its operators, and lets visitors through
// meanwhile and afterwards.
func TestFloodOfConnections(t *testing.T) {
	r := newRig(t, 20)
	a := r.start(1, 0)
	r.serving()
	at, data, log := r.child(512)
	r.until("waves of both", 30*time.Second, func() bool { return a.sees(2, 2) })
	get := func(url string) (string, error) {
		c := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		p, err := c.Get(url)
		if err != nil {
			return "", err
		}
		defer func() { _ = p.Body.Close() }()
		b, err := io.ReadAll(p.Body)
		if p.StatusCode != 200 {
			err = fmt.Errorf("%s: %s", p.Status, b)
		}
		return string(b), err
	}
	end := flood(t, at.Gateway, 600)
	defer end()
	full := func() bool {
		m, err := get("http://" + at.Admin + "/metrics")
		return err == nil && strings.Contains(m, "anteroom_gateway_connections 144\n")
	}
	r.until("a full gateway port", 10*time.Second, full)
	began := time.Now()
	through := 0
	r.stays("the cluster goes on, and the operators are answered", 12*time.Second, func() bool {
		if _, err := get("http://" + at.Admin + "/readyz"); err != nil {
			t.Logf("readyz: %v", err)
			return false
		}
		if _, err := get("http://" + at.Gateway + "/_anteroom/v1/rooms/shop/status"); err == nil {
			through++
		}
		return a.sees(2, 2)
	})
	if through == 0 {
		t.Error("no visitor got through")
	}
	r.phase("%d visitors got through", through)
	end()
	r.until("a visitor in the shop afterwards", 5*time.Second, func() bool {
		_, err := get("http://" + at.Gateway + "/")
		return err == nil && r.shop.Stats().Peak > 0
	})
	s, err := os.Stat(filepath.Join(data, "state.json"))
	if err != nil || s.ModTime().Before(began) {
		t.Errorf("the state was not saved during the flood: %v, %v", s, err)
	}
	if strings.Contains(log.String(), "too many open files") {
		t.Error("the node ran out of files")
	}
}
