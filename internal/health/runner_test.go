package health_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/health"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestARunnerAsksEveryInterval: in an hour of virtual time, and no more when the
// check is another node's.
func TestARunnerAsksEveryInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []health.Report
		up := true
		r := health.NewRunner(
			func(context.Context, *health.Check) health.Result {
				mu.Lock()
				defer mu.Unlock()
				if up {
					return health.Result{OK: true, Code: 200}
				}
				return health.Result{Reason: "TCP connection failed"}
			},
			func(r health.Report) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, r)
			})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		check := health.Check{Room: "shop", Name: "front", Interval: time.Minute, Up: 1, Down: 2}
		r.Set([]health.Check{check})
		count := func() int { mu.Lock(); defer mu.Unlock(); return len(told) }
		last := func() health.Report { mu.Lock(); defer mu.Unlock(); return told[len(told)-1] }

		time.Sleep(time.Second)
		if count() != 1 || last() != (health.Report{Room: "shop", Check: "front", Sum: check.Sum(), Status: health.Healthy, Reason: health.NoFailures, Code: 200}) {
			t.Fatalf("at first: %+v", told)
		}
		time.Sleep(time.Hour)
		if n := count(); n < 57 || n > 64 {
			t.Errorf("%d times in an hour, want about 61", n)
		}
		mu.Lock()
		up = false
		mu.Unlock()
		r.Set([]health.Check{check}) // as it is
		n := count()
		for count() == n {
			time.Sleep(time.Second)
		}
		if count() != n+1 || last().Status != health.Healthy || last().Reason != "TCP connection failed" {
			t.Errorf("after one failure: %+v", last())
		}
		for count() == n+1 {
			time.Sleep(time.Second)
		}
		if last().Status != health.Unhealthy {
			t.Errorf("after two: %+v", last())
		}
		r.Set(nil)
		time.Sleep(time.Second)
		n = count()
		time.Sleep(time.Hour)
		if count() != n {
			t.Errorf("asked %d times more when the check was another node's", count()-n)
		}
		cancel()
		<-done
	})
}
