package load_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/load"
)

const (
	tableUsers = 5000
	// tableFile is a room in which everybody queues and there is always room, as
	// in the thesis: a visit is a join, a check-in and a leave.
	tableFile = `
node: {join: [%s], expect: %d}
security: {gossip_key: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=}
rooms:
  - {name: shop, routes: [{host: "*", path: /}], total_active_users: 10000000, queue_all: true, session_duration: 1m}
`
)

// BenchmarkTable62 is table 6.2 of J. Koopmans' thesis: 5,000 visitors join,
// check in and leave the queue over HTTP, at 3, 8 and 16 nodes. Each node is a
// process of `anteroom serve`, and the visitors come from one of `anteroom load`,
// all on this machine. One op is the 5,000; there is one more before, to warm up.
//
//	go test ./internal/load -run '^$' -bench Table62 -benchtime=9x
//
// The figures are medians of the ops: visitors a second, and the ratio of that to
// 3 nodes'; processor time for a visitor, in µs, of all nodes together and of the
// generator; requests of a visitor, 3 unless somebody asks before the next wave. With
// --no-jwt visitors have no use for pass_jwt, and say so.
func BenchmarkTable62(b *testing.B) {
	binary, least := build(b), 0.0
	for _, at := range []struct {
		nodes int
		flags []string
	}{{3, nil}, {8, nil}, {16, nil}, {3, []string{"--no-jwt"}}} {
		nodes := at.nodes
		b.Run(strings.Join(append([]string{fmt.Sprintf("nodes=%d", nodes)}, at.flags...), ","), func(b *testing.B) {
			c := startNodes(b, binary, nodes, tableFile)
			c.flags = at.flags
			c.send(b)
			figures := map[string][]float64{}
			for b.Loop() {
				before := c.cpu(b)
				r := c.send(b)
				used, requests := c.cpu(b)-before, int64(0)
				for _, k := range r.Requests {
					requests += k.Count
				}
				for unit, v := range map[string]float64{
					"visitors/s": r.VisitorsPerSecond, "requests/visitor": float64(requests) / tableUsers,
					"nodes-cpu-µs": used.Seconds() * 1e6 / tableUsers, "load-cpu-µs": r.CPUSeconds * 1e6 / tableUsers,
				} {
					figures[unit] = append(figures[unit], v)
				}
			}
			b.ReportMetric(0, "ns/op")
			for unit, v := range figures {
				b.ReportMetric(median(v), unit)
			}
			rates := figures["visitors/s"] // in order by now
			b.ReportMetric(rates[0], "least/s")
			b.ReportMetric(rates[len(rates)-1], "most/s")
			if nodes == 3 && at.flags == nil {
				least = median(rates)
			}
			if least > 0 {
				b.ReportMetric(median(rates)/least, "of-3-nodes")
			}
		})
	}
}

func build(b *testing.B) (binary string) {
	b.Helper()
	binary = filepath.Join(b.TempDir(), "anteroom")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/anteroom").CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}

// nodes are processes that make a cluster.
type nodes struct {
	binary string
	urls   []string
	flags  []string // of the visitors, on top of the usual ones
	run    []*exec.Cmd
	logs   []*bytes.Buffer // to be read once they have ended
}

// startNodes returns when all of them serve. The configuration begins as tableFile does.
func startNodes(b *testing.B, binary string, n int, configuration string) *nodes {
	b.Helper()
	c, first := &nodes{binary: binary}, freePorts(b, 4*n)
	at := func(node, port int) string { return fmt.Sprintf("127.0.0.1:%d", first+4*node+port) }
	var gossip []string
	for i := range n {
		gossip = append(gossip, at(i, 3))
	}
	b.Cleanup(func() { c.stop(b) })
	file := filepath.Join(b.TempDir(), "anteroom.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, configuration, strings.Join(gossip, ", "), n), 0o600); err != nil {
		b.Fatal(err)
	}
	for i := range n {
		cmd := exec.Command(binary, "serve", "--config", file, "--id", fmt.Sprintf("node-%d", i+1),
			"--gateway", at(i, 0), "--admin", at(i, 1), "--peer", at(i, 2), "--gossip", at(i, 3), "--grpc", "none")
		log := &bytes.Buffer{}
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		c.run, c.logs, c.urls = append(c.run, cmd), append(c.logs, log), append(c.urls, "--url", "http://"+at(i, 0))
	}
	for i := range n {
		awaitReady(b, "http://"+at(i, 1)+"/readyz")
	}
	return c
}

// stop ends them together: each takes its time to hand over.
func (c *nodes) stop(b *testing.B) {
	b.Helper()
	for _, cmd := range c.run {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may be gone
	}
	for i, cmd := range c.run {
		if err := cmd.Wait(); err != nil || b.Failed() {
			b.Errorf("node-%d: %v\n%s", i+1, err, c.logs[i])
		}
	}
}

// freePorts returns the first of so many free ports in a row, below those from
// which systems take the ports of outgoing connections.
func freePorts(b *testing.B, n int) int {
	b.Helper()
	for range 100 {
		first := 10_000 + rand.IntN(20_000)
		free := true
		for i := 0; i < n && free; i++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+i))
			if free = err == nil; free {
				_ = l.Close()
			}
		}
		if free {
			return first
		}
	}
	b.Fatalf("no %d free ports in a row", n)
	return 0
}

func awaitReady(b *testing.B, url string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	for {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			b.Fatal(err)
		}
		if a, err := http.DefaultClient.Do(q); err == nil {
			_, _ = io.Copy(io.Discard, a.Body)
			_ = a.Body.Close()
			if a.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			b.Fatalf("%s does not answer", url)
		}
	}
}

// send has the visitors come.
func (c *nodes) send(b *testing.B) *load.Result {
	b.Helper()
	args := append([]string{
		"load", "--users", strconv.Itoa(tableUsers), "--join-async", "--check-in-every", "200ms", "--no-end", "--json",
	}, slices.Concat(c.flags, c.urls)...)
	out, err := exec.CommandContext(b.Context(), c.binary, args...).Output()
	if err != nil {
		b.Fatalf("anteroom load: %v", err)
	}
	r := &load.Result{}
	if err := json.Unmarshal(out, r); err != nil || r.Visitors.Done != tableUsers {
		b.Fatalf("%v; %+v", err, r.Visitors)
	}
	return r
}

// cpu is the processor time that the nodes have used.
func (c *nodes) cpu(b *testing.B) (used time.Duration) {
	b.Helper()
	for _, cmd := range c.run {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		if err != nil {
			b.Fatal(err)
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from the third on
		for _, ticks := range fields[11:13] {
			n, err := strconv.Atoi(ticks)
			if err != nil {
				b.Fatal(err)
			}
			used += time.Duration(n) * 10 * time.Millisecond // USER_HZ is 100 wherever Go runs
		}
	}
	return used
}
