package replog

import (
	"context"
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
	for range 20 {
		report, err := Verify(c.Dir)
		if err != nil || report.Damage != nil || !report.Running || report.Node != "n1" {
			t.Fatalf("Verify = %+v, %v", report, err)
		}
	}
	stop()
	writing.Wait()
	first, err := r.disk.FirstIndex()
	if err != nil {
		t.Fatal(err)
	}
	last, err := r.disk.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	report, err := Verify(c.Dir)
	if err != nil || report.First != first || report.Last != last || report.Snapshot == 0 {
		t.Fatalf("Verify = %+v, %v; entries %d to %d", report, err, first, last)
	}
	segments := segmentsOf(t, c.Dir)
	altered(t, segments[len(segments)/2], func(b []byte) []byte { b[9000] ^= 1; return b })
	report, err = Verify(c.Dir)
	if err != nil || report.Damage == nil || report.Damage.File != segments[len(segments)/2] {
		t.Errorf("Verify after damage = %+v, %v", report, err)
	}
}
