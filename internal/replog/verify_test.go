package replog

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// A log that is written to, compacted and verified all the time is sound; damage
// to it is found beside it.
func TestVerifyOfARunningLog(t *testing.T) {
	t.Parallel()
	c, _ := onSmallDisk(durable(t.TempDir()))
	c.CompactBytes = 256 << 10
	r := start(t, c)
	until(t, "it leads", r.state.leading)
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if a := <-r.propose(big("", i)); a.err != nil {
				t.Errorf("propose = %v", a.err)
				return
			}
		}
	})
	until(t, "it is compacted", func() bool { last, err := r.shots.last(); return err == nil && last > 0 })
	for range 8 {
		report, err := Verify(c.Dir, "")
		if err != nil || report.Damage != nil || !report.Running || report.Node != "n1" {
			t.Fatalf("Verify = %+v, %v", report, err)
		}
	}
	stop()
	writing.Wait()
	var report Report
	until(t, "what is there", func() (same bool) { // it may be cut back meanwhile
		first, err := r.disk.FirstIndex()
		if err != nil {
			t.Fatal(err)
		}
		last, err := r.disk.LastIndex()
		if err != nil {
			t.Fatal(err)
		}
		if report, err = Verify(c.Dir, ""); err != nil || report.Snapshot == 0 {
			t.Fatalf("Verify = %+v, %v; entries %d to %d", report, err, first, last)
		}
		return report.First == first && report.Last == last
	})
	for i := range 10 { // a file that is cut away just then is missed by nobody
		for j := range 3 {
			if a := <-r.propose(big(fmt.Sprint("damaged", i, j), 0)); a.err != nil {
				t.Fatal(a.err)
			}
		}
		name := turned(t, c.Dir, fmt.Sprint("damaged", i, 1))
		var err error
		if report, err = Verify(c.Dir, ""); err != nil {
			t.Fatal(err)
		}
		if report.Damage != nil {
			if report.Damage.File != name {
				t.Errorf("damage in %s, want %s", report.Damage.File, name)
			}
			return
		}
	}
	t.Errorf("Verify after damage = %+v", report)
}

// turned turns a bit of what stands in one of the log's files, and returns its name.
func turned(t testing.TB, dir, what string) string {
	t.Helper()
	for _, name := range segmentsOf(t, dir) {
		b, err := os.ReadFile(name)
		at := bytes.Index(b, []byte(what))
		if err != nil || at < 0 {
			continue
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		defer func() { _ = f.Close() }()
		if _, err := f.WriteAt([]byte{b[at] ^ 1}, int64(at)); err != nil {
			t.Fatal(err)
		}
		return name
	}
	return ""
}
