package live

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/client"
	"github.com/anteroom/anteroom/internal/overlay"
)

var sumsFile = flag.String("sums", "", "`file` for the figures of BenchmarkSumsOfQueues, as benchstat reads them")

// withoutSums are the edits by which a node neither makes nor checks the sums of what it
// keeps of its queues, and does not write down how far its log was acknowledged.
func withoutSums() overlay.Change {
	const sum, witness = "internal/replog/sum.go", "internal/replog/witness.go"
	return overlay.Change{Name: "without sums", Edits: []overlay.Edit{
		{File: sum, Old: "	return raft.Log{Data: commands, Extensions: appendSum(", New: "	if ON {\n		return raft.Log{Data: commands}\n	}\n	return raft.Log{Data: commands, Extensions: appendSum("},
		{File: sum, Old: "	if len(l.Extensions) == 0 {", New: "	if ON || len(l.Extensions) == 0 {"},
		{File: sum, Old: "	with, copies := make(", New: "	if ON {\n		return s.entries.StoreLogs(logs)\n	}\n	with, copies := make("},
		{File: sum, Old: "	rest, sum, ok := cutSum(l.Extensions, entrySummed)", New: "	if ON {\n		return nil\n	}\n	rest, sum, ok := cutSum(l.Extensions, entrySummed)"},
		{File: witness, Old: "	if w.loose || w.told != w.acked {", New: "	if !ON && (w.loose || w.told != w.acked) {"},
	}}
}

func TestSumsCanBeLeftOut(t *testing.T) {
	if _, err := overlay.Apply("../..", []overlay.Change{withoutSums()}); err != nil {
		t.Error(err)
	}
}

// What the sums of queues on disks cost: puts and takes with acknowledgements of 1 KB
// by 32 workers, at nodes that make and check them, in turns with nodes of the same
// program that do not. The processor's time is that of all nodes.
//
//	ANTEROOM_E2E=1 go test ./internal/live -run '^$' -bench SumsOfQueues -benchtime=10x -sums sums.txt
//	benchstat -col /sums sums.txt
func BenchmarkSumsOfQueues(b *testing.B) {
	dir := b.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		b.Fatal(err)
	}
	config, err := overlay.Write(root, dir, []overlay.Change{withoutSums()})
	if err != nil {
		b.Fatal(err)
	}
	both := filepath.Join(dir, "anteroom")
	if out, err := exec.Command("go", "build", "-overlay", config, "-o", both, "../../cmd/anteroom").CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	var figures strings.Builder
	for _, kind := range []struct {
		name, key    string
		nodes, items int
	}{{"durable", "durable: true", 1, 2000}, {"replicas=2", "replicas: 2", 3, 1000}} {
		b.Run(kind.name, func(b *testing.B) {
			var all []*summing
			for _, sums := range []string{"off", "on"} {
				c := newCluster(b, 10)
				c.binary, c.data, c.queues = both, true, "  - {name: bench, "+kind.key+"}\n"
				if sums == "off" {
					c.env = []string{overlay.Variable + "=" + withoutSums().Name}
				}
				c.run(kind.nodes)
				s := &summing{c: c, sums: sums}
				for i := range benchWorkers {
					s.workers = append(s.workers, ours{c.nodes[i%kind.nodes].client(b, client.WithPatience(30*time.Second)).Queue("bench")})
				}
				all = append(all, s)
				s.turn(kind.items / 4) // until all is warm, and a log founded
			}
			for i := 0; b.Loop(); i++ {
				for n := range all {
					s := all[(n+i)%len(all)] // each begins as often
					fmt.Fprintf(&figures, "BenchmarkSumsOfQueues/%s/sums=%s 1 %s\n", kind.name, s.sums, s.turn(kind.items))
				}
			}
		})
	}
	b.Logf("\n%s", figures.String())
	if *sumsFile != "" {
		if err := os.WriteFile(*sumsFile, []byte(figures.String()), 0o600); err != nil {
			b.Fatal(err)
		}
	}
}

// summing is a cluster that makes sums, or one that does not.
type summing struct {
	c       *cluster
	sums    string
	workers []hand
}

// turn puts n items and takes them again, and returns what that took.
func (s *summing) turn(n int) string {
	s.c.t.Helper()
	payload := bytes.Repeat([]byte("x"), benchPayload)
	text := ""
	for _, phase := range []struct {
		name string
		do   func(hand) error
	}{{"put", func(h hand) error { return h.put(payload) }}, {"take", taken1}} {
		before := s.c.processorTime()
		rate, err := share(s.workers, n, phase.do)
		if err != nil {
			s.c.t.Fatal(err)
		}
		used := s.c.processorTime() - before
		text += fmt.Sprintf(" %.1f cpu-µs/%s %.0f %ss/s", float64(used.Nanoseconds())/1000/float64(n), phase.name, rate, phase.name)
	}
	return strings.TrimSpace(text)
}

// processorTime is what all nodes have used.
func (c *cluster) processorTime() (sum time.Duration) {
	c.t.Helper()
	const tick = 10 * time.Millisecond
	for _, p := range c.nodes {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		if err != nil {
			c.t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		f := strings.Fields(rest)
		for _, at := range []int{11, 12} { // utime and stime
			n, err := strconv.Atoi(f[at])
			if err != nil {
				c.t.Fatal(err)
			}
			sum += time.Duration(n) * tick
		}
	}
	return sum
}
