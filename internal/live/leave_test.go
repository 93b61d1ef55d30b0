package live

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	admissions "github.com/anteroom/anteroom/internal/history"
)

// All nodes are restarted in turn under a crowd, as docs/operating.md says. Nobody
// notices: calls go on, and in their order, whatever the sessions last.
func TestARollingRestartUnderACrowd(t *testing.T) {
	for _, session := range []time.Duration{15 * time.Second, time.Minute} {
		t.Run(session.String(), func(t *testing.T) {
			c := newCluster(t, 20)
			c.data, c.session = true, session
			c.run(5)
			crowd, done := c.crowd(500, 20*time.Second, 2*time.Second, 5)
			c.until("a line", 10*time.Second, func() bool { return crowd.Counts().Waiting > 20 })
			began := time.Now()
			for _, p := range c.nodes {
				p.signal(syscall.SIGTERM)
				c.await("end of "+p.id, 10*time.Second, func() bool { return !p.running() })
				p.start(0)
				c.settled(5)
			}
			ended := time.Now()
			if waiting := crowd.Counts().Waiting; waiting == 0 {
				t.Fatal("nobody waited any more when the last node was back")
			}
			c.phase("all nodes have been restarted, in %.1f s", ended.Sub(began).Seconds())
			err := <-done
			c.fair(crowd, err, 0)
			if pause := c.pause(began, ended); pause > time.Second {
				t.Errorf("nobody was called for %v", pause)
			}
		})
	}
}

// pause is the longest time between two calls, and says so.
func (c *cluster) pause(began, ended time.Time) (longest time.Duration) {
	c.t.Helper()
	calls := []int64{began.UnixMicro(), ended.UnixMicro()}
	logs, _ := filepath.Glob(c.file("*.jsonl"))
	for _, name := range logs {
		f, err := os.Open(name)
		if err != nil {
			c.t.Fatal(err)
		}
		err = admissions.Read(f, func(e admissions.Entry) {
			if e.Event == admissions.Called && calls[0] < e.At && e.At < calls[1] {
				calls = append(calls, e.At)
			}
		})
		_ = f.Close() // it was only read
		if err != nil {
			c.t.Fatalf("%s: %v", name, err)
		}
	}
	slices.Sort(calls)
	at := 0
	for i := range calls[1:] {
		if d := time.Duration(calls[i+1]-calls[i]) * time.Microsecond; d > longest {
			longest, at = d, i
		}
	}
	c.phase("%d calls; the longest time without one: %v, %.1f s after the first node was told to stop", len(calls)-2, longest, float64(calls[at]-calls[0])/1e6)
	return longest
}
