package queueloop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/internal/queueloop"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// disk is a log that applies what it is given, in order, or refuses it.
type disk struct {
	mu      sync.Mutex
	machine queueloop.StateMachine
	full    atomic.Bool
	applied int
}

var errFull = errors.New("no room")

func (d *disk) Refused(err error) bool { return errors.Is(err, errFull) }
func (d *disk) Full(err error) bool    { return errors.Is(err, errFull) }

func (d *disk) Room() broker.Room {
	if d.full.Load() {
		return broker.RoomForNone
	}
	return broker.RoomForAll
}

func (d *disk) Propose(command []byte, _ bool, then func([]byte, error)) {
	if d.full.Load() {
		then(nil, errFull)
		return
	}
	d.mu.Lock()
	d.applied++
	results, err := d.machine.Apply([][]byte{command})
	d.mu.Unlock()
	if err != nil {
		then(nil, err)
		return
	}
	then(results[0], nil)
}

// links leads nowhere.
type links struct{}

func (links) Send(broker.Message) {}

// start runs a loop of one node, with a durable queue "kept".
func start(t *testing.T) (*queueloop.Loop, *disk) {
	t.Helper()
	m := eviction.Member{Name: "a", Boot: 1}
	q := broker.Queue{
		Limits: pqueue.Limits{ItemsMax: 10_000, BytesMax: 1 << 30, RememberMax: 10, Remember: 1 << 40, LeaseMax: 1 << 40}, Lease: 1 << 30, PayloadMax: 100,
	}
	kept := q
	kept.Name, kept.Kind = "kept", broker.Durable
	began := time.Now()
	l, err := queueloop.New(queueloop.Config{
		Links: links{}, Clock: func() broker.Time {
			return broker.Time{Boot: time.Since(began).Microseconds() + 1, Clock: time.Now().UnixMicro()}
		},
		Broker: broker.Config{Self: m, CreateOnUse: true, OnUse: q, Queues: []broker.Queue{kept}, Logs: []broker.Kind{broker.Durable}},
	})
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{machine: l.Machine(broker.Durable)}
	l.Attach(broker.Durable, d)
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- l.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-over; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	})
	l.Leads(broker.Durable, true)
	l.SetView(broker.View{List: []eviction.Member{m}, Primary: true, At: 1})
	return l, d
}

func insert(t *testing.T, l *queueloop.Loop, queue, id string) pqueue.Code {
	t.Helper()
	a, err := l.Do(t.Context(), broker.Call{Command: pqueue.Command{Op: pqueue.OpInsert, Queue: queue, ID: id}})
	if err != nil {
		t.Fatal(err)
	}
	return a.Result.Code
}

func TestADurableItemIsInTheLogBeforeTheAnswer(t *testing.T) {
	l, d := start(t)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if code := insert(t, l, "kept", fmt.Sprint(i)); code != pqueue.OK {
				t.Errorf("insert %d: %v", i, code)
			}
		})
	}
	all.Wait()
	a, err := l.Take(t.Context(), broker.Take{Queue: "kept", Max: 20, Wait: 5_000_000, Within: 10_000_000})
	if err != nil || len(a.Parts) != 20 {
		t.Fatalf("take: %+v %v", a, err)
	}
	d.mu.Lock()
	snapshot, applied := d.machine.Snapshot(), d.applied
	d.mu.Unlock()
	if applied < 41 { // a configuration, the inserts, the leases
		t.Errorf("%d commands in the log", applied)
	}
	again, _ := start(t)
	if err := again.Machine(broker.Durable).Restore(snapshot); err != nil {
		t.Fatal(err)
	}
	a, err = again.Do(t.Context(), broker.Call{Command: pqueue.Command{Op: pqueue.OpStats, Queue: "kept"}})
	if err != nil || a.Parts[0].Result.Stats[0].Leased != 20 {
		t.Errorf("restored: %+v %v", a, err)
	}
	if err := again.Machine(broker.Durable).Restore(snapshot[:20]); err == nil {
		t.Error("half a snapshot is restored")
	}
}

func TestALogThatTakesNothingStopsOnlyItsQueues(t *testing.T) {
	l, d := start(t)
	if code := insert(t, l, "kept", "a"); code != pqueue.OK {
		t.Fatal(code)
	}
	d.full.Store(true)
	if code := insert(t, l, "kept", "b"); code != pqueue.StorageFull {
		t.Errorf("with a full disk: %v", code)
	}
	a, err := l.Take(t.Context(), broker.Take{Queue: "kept", Max: 1, Within: 10_000_000})
	if err != nil || a.Result.Code != pqueue.StorageFull {
		t.Errorf("take with a full disk: %+v %v", a, err)
	}
	a, err = l.Do(t.Context(), broker.Call{Command: pqueue.Command{Op: pqueue.OpStats, Queue: "kept"}})
	if err != nil || len(a.Missing) > 0 || len(a.Parts) != 1 || a.Parts[0].Result.Stats[0].Ready != 1 {
		t.Errorf("what there is: %+v %v", a, err)
	}
	if code := insert(t, l, "memory", "b"); code != pqueue.OK {
		t.Errorf("in memory: %v", code)
	}
	d.full.Store(false)
	l.SetRoom(broker.Durable, broker.RoomToRemove)
	if code := insert(t, l, "kept", "b"); code != pqueue.StorageFull {
		t.Errorf("with a disk that is nearly full: %v", code)
	}
	if a, err = l.Take(t.Context(), broker.Take{Queue: "kept", Max: 1, Within: 10_000_000}); err != nil || len(a.Parts) != 1 {
		t.Errorf("take with a disk that is nearly full: %+v %v", a, err)
	}
	l.SetRoom(broker.Durable, broker.RoomForAll)
	if code := insert(t, l, "kept", "b"); code != pqueue.OK {
		t.Errorf("with room again: %v", code)
	}
	l.Leads(broker.Durable, false)
	if a, err = l.Take(t.Context(), broker.Take{Queue: "kept", Max: 1, Within: 10_000_000}); err != nil || a.Result.Code != pqueue.LogUnready {
		t.Errorf("take of what is not known: %+v %v", a, err)
	}
	a, err = l.Do(t.Context(), broker.Call{Command: pqueue.Command{Op: pqueue.OpStats, Queue: "kept"}})
	if err != nil || len(a.Missing) != 1 {
		t.Errorf("what is not known: %+v %v", a, err)
	}
	if code := insert(t, l, "kept", "c"); code != pqueue.Unavailable {
		t.Errorf("without a leader: %v", code)
	}
}

func TestWhatACallerDoesNotWaitForGoesBack(t *testing.T) {
	l, _ := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		_, err := l.Take(ctx, broker.Take{Queue: "q", Max: 1, Wait: 60_000_000, Within: 70_000_000})
		over <- err
	}()
	for l.Snapshot().Calls == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("take: %v", err)
	}
	if code := insert(t, l, "q", "a"); code != pqueue.OK {
		t.Fatal(code)
	}
	a, err := l.Take(t.Context(), broker.Take{Queue: "q", Max: 1, Wait: 5_000_000, Within: 10_000_000})
	if err != nil || len(a.Parts) != 1 || a.Parts[0].Result.Items[0].Attempts != 1 {
		t.Errorf("take: %+v %v", a, err)
	}
}

func TestASlowWatcherIsToldWhatItMissed(t *testing.T) {
	l, _ := start(t)
	w, done, code := l.Watch("q")
	if code != pqueue.OK {
		t.Fatal(code)
	}
	const n = 2000
	for i := range n {
		if code := insert(t, l, "q", fmt.Sprint(i)); code != pqueue.OK {
			t.Fatal(code)
		}
	}
	missed := w.Missed()
	if got := len(w.Events()); missed == 0 || uint64(got)+missed != n {
		t.Errorf("%d seen and %d missed of %d", got, missed, n)
	}
	done()
	if w.Missed() != 0 {
		t.Error("it is told twice")
	}
}

// What is begun together is in line in its order, and each is answered for itself; what
// is forgotten is not, and a take that is goes without an item.
func TestCallsThatAreBegunTogether(t *testing.T) {
	l, _ := start(t)
	answers := make(chan string, 9)
	say := func(what string) func(broker.Answer) {
		return func(a broker.Answer) {
			got := ""
			for _, p := range a.Parts {
				got += p.Result.Items[0].ID
			}
			answers <- fmt.Sprint(what, " ", a.Result.Code == pqueue.OK, " ", got)
		}
	}
	put := func(queue, id string) *broker.Ask {
		return &broker.Ask{Call: broker.Call{Command: pqueue.Command{Op: pqueue.OpInsert, Queue: queue, ID: id}}, Then: say("put " + id)}
	}
	take := func(what, queue string) *broker.Ask {
		return &broker.Ask{Take: broker.Take{Queue: queue, Max: 1, Wait: 60_000_000, Within: 60_000_000}, Then: say(what)}
	}
	first := take("first", "jobs")
	l.Begin([]*broker.Ask{first})
	l.Forget([]*broker.Ask{first})
	l.Begin([]*broker.Ask{put("jobs", "b"), put("", "c"), put("jobs", "a"), take("second", "jobs"), take("third", "jobs")})
	want := []string{"put b true ", "put c false ", "put a true ", "second true b", "third true a"}
	for range want {
		if got := <-answers; !slices.Contains(want, got) {
			t.Errorf("answered: %q, want one of %q", got, want)
		}
	}
	l.Forget([]*broker.Ask{first}) // again, and of no use
	select {
	case got := <-answers:
		t.Errorf("one more: %q", got)
	default:
	}
}

// Each turn of the clock wakes a processor: a node without queues looks seldom, and one
// whose first queue is used looks often from then on.
func TestTheClockTurnsSeldomWhereNothingIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns atomic.Int64
		m, began := eviction.Member{Name: "a", Boot: 1}, time.Now()
		l, err := queueloop.New(queueloop.Config{
			Links: links{}, Clock: func() broker.Time {
				turns.Add(1)
				return broker.Time{Boot: time.Since(began).Microseconds() + 1, Clock: time.Now().UnixMicro()}
			},
			Broker: broker.Config{Self: m, CreateOnUse: true, OnUse: broker.Queue{
				Limits: pqueue.Limits{ItemsMax: 10, BytesMax: 1 << 30, RememberMax: 10, Remember: 1 << 40, LeaseMax: 1 << 40}, Lease: 1 << 30, PayloadMax: 100,
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { _ = l.Run(ctx); close(over) }()
		during := func(d time.Duration) int64 {
			before := turns.Load()
			time.Sleep(d)
			synctest.Wait()
			return turns.Load() - before
		}
		if n := during(time.Second); n < 90 {
			t.Errorf("%d turns in the first second, before there is a round; want 100", n)
		}
		l.SetView(broker.View{List: []eviction.Member{m}, Primary: true, At: 1})
		during(time.Second)
		if n := during(time.Second); n < 4 || n > 6 {
			t.Errorf("%d turns a second with nothing to do, want 5", n)
		}
		if code := insert(t, l, "first", "1"); code != pqueue.OK {
			t.Fatal(code)
		}
		if n := during(time.Second); n < 90 {
			t.Errorf("%d turns a second with a queue, want 100", n)
		}
		stop()
		<-over
	})
}
