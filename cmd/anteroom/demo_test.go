package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// notes is an output that may be read while it is written.
type notes struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.String()
}

// freePorts finds n ports in a row that nobody listens on, and that the system
// gives to no connection of its own accord: those begin at 32768.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	for range 100 {
		first := 10_000 + rand.IntN(10_000)
		free := 0
		for free < n {
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(first+free))
			if err != nil {
				break
			}
			_ = l.Close()
			free++
		}
		if free == n {
			return first
		}
	}
	t.Fatal("no free ports")
	return 0
}

// Whoever follows a link as soon as it stands there sees the shop.
func TestDemoSaysWhereItIsOnceItsDoorsAreOpen(t *testing.T) {
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("NOT RUN: a test with real sockets; set ANTEROOM_E2E=1")
	}
	const nodes = 3
	port, adminPort := freePorts(t, nodes), freePorts(t, nodes)
	ctx, stop := context.WithCancel(t.Context())
	var out, errs notes
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"demo", "--nodes", strconv.Itoa(nodes), "--port", strconv.Itoa(port), "--admin-port", strconv.Itoa(adminPort)}, &out, &errs)
	}()
	for began := time.Now(); !strings.Contains(out.String(), "Open any shop URL"); time.Sleep(time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("nothing is open after 20 s: %s%s", out.String(), errs.String())
		}
	}
	for i := range nodes {
		url := "http://127.0.0.1:" + strconv.Itoa(port+i) + "/"
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		page, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK || !bytes.Contains(page, []byte("tea")) {
			t.Errorf("%s answers %s\n%.300s", url, answer.Status, page)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the demo ended with %v", err)
	}
}

// A port that nobody asked for gives way to one that is free, and that is said.
func TestDemoGoesOnToFreePorts(t *testing.T) {
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("NOT RUN: a test with real sockets; set ANTEROOM_E2E=1")
	}
	for _, at := range []string{"127.0.0.1:8081", "127.0.0.1:9090"} {
		if l, err := net.Listen("tcp", at); err == nil { // or somebody has it
			defer func() { _ = l.Close() }()
		}
	}
	stdout, stderr, code := execute(t, t.Context(), strings.Fields("demo --nodes 2 --visitors 2 --over 10ms --stay 10ms --exit")...)
	if code != 0 || strings.Contains(stdout, ":8081/") || strings.Contains(stdout, ":9090/") || !strings.Contains(stderr, "Of the ports from 8080 one is taken; the demo takes those from 80") ||
		!strings.Contains(stderr, "Of the ports from 9090 one is taken") {
		t.Errorf("exit code %d, output %q, errors %q", code, stdout, stderr)
	}
}

// A port that is taken is told, whichever node wants it, and nothing hangs or
// welcomes anybody.
func TestDemoWithATakenPortEnds(t *testing.T) {
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("NOT RUN: a test with real sockets; set ANTEROOM_E2E=1")
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port := taken.Addr().(*net.TCPAddr).Port
	for node := range 2 {
		args := fmt.Sprintf("demo --nodes 2 --port %d --admin-port %d", port-node, port+10)
		stdout, stderr, code := execute(t, t.Context(), strings.Fields(args)...)
		if code != 1 || stdout != "" || !strings.Contains(stderr, fmt.Sprintf("node.gateway: listen tcp 127.0.0.1:%d", port)) {
			t.Errorf("%s: exit code %d, output %q, errors %q", args, code, stdout, stderr)
		}
	}
}
