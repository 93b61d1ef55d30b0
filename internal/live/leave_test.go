package live

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	admissions "github.com/anteroom/anteroom/internal/history"
	"github.com/anteroom/anteroom/internal/store"
)

// All nodes are restarted in turn under a crowd, as docs/operating.md says. Nobody
// notices: calls go on, and in their order, whatever the sessions last. The order, the
// limit and that nobody is lost count on any machine; for how long nobody was called
// depends on it.
func TestARollingRestartUnderACrowd(t *testing.T) {
	for _, session := range []time.Duration{15 * time.Second, time.Minute} {
		t.Run(session.String(), func(t *testing.T) {
			c := newCluster(t, 60)
			c.data, c.session, c.refresh = true, session, 20*time.Second // as by default
			c.run(5)
			crowd, done := c.crowd(340, 5*time.Second, 2*time.Second, 5)
			c.until("a line", 10*time.Second, func() bool { return crowd.Counts().Waiting > 20 })
			metronome := c.metronome()
			began := time.Now()
			for _, p := range c.nodes {
				p.signal(syscall.SIGTERM)
				c.await("end of "+p.id, 20*time.Second, func() bool { return !p.running() })
				p.start(0)
				c.settled(5)
			}
			ended := time.Now()
			c.phase("all nodes have been restarted, in %.1f s; %d people wait", ended.Sub(began).Seconds(), crowd.Counts().Waiting)
			err := <-done
			longest, at := idle(c.events(), c.limit, began.UnixMicro(), ended.UnixMicro(), metronome.between)
			had := float64(metronome.between(began.UnixMicro(), ended.UnixMicro())) / float64(ended.Sub(began))
			c.phase("at most %v without a call while a slot was free, %.1f s after the first node was told to stop; the machine had %.0f %% of its time for us",
				longest, float64(at-began.UnixMicro())/1e6, 100*had)
			c.fair(crowd, err, 0)
			switch {
			case longest <= time.Second:
			case had < awake:
				c.phase("NOT JUDGED: nobody was called for %v though a slot was free, on a machine that is too busy for a bound of %v", longest, time.Second)
			default:
				t.Errorf("nobody was called for %v though a slot was free", longest)
			}
		})
	}
}

// The lease is made shorter, and then longer, under a crowd: each node is restarted with
// another file, and the next when it is back. Those with different ones go on side by
// side, the limit and the order hold, and nobody is lost.
func TestTheLeaseIsChangedNodeByNode(t *testing.T) {
	c := newCluster(t, 40)
	c.data, c.session, c.refresh, c.lease = true, 15*time.Second, 20*time.Second, 10*time.Second
	c.run(3)
	crowd, done := c.crowd(500, 5*time.Second, 2*time.Second, 7)
	c.until("a line", 10*time.Second, func() bool { return crowd.Counts().Waiting > 20 })
	for _, lease := range []time.Duration{6 * time.Second, 12 * time.Second} {
		c.lease = lease
		for _, p := range c.nodes {
			p.signal(syscall.SIGTERM)
			c.await("end of "+p.id, 20*time.Second, func() bool { return !p.running() })
			p.start(0)
			c.settled(3)
		}
		c.phase("all nodes have a lease of %v; %d people wait", lease, crowd.Counts().Waiting)
		c.until("leases of that length", 20*time.Second, func() bool {
			for _, p := range c.nodes {
				if left := p.cluster().Lease; left > lease.Seconds() || left < lease.Seconds()-2 {
					return false
				}
			}
			return true
		})
	}
	c.fair(crowd, <-done, 0)
}

// awake is which part of the time a machine has for a test that judges pauses of a
// second: on one that has less, waves miss their deadline, nodes that leave give up,
// and people are waited for, as they should be. Nobody is overtaken by that.
const awake = 0.9

// events are what all nodes have in their admission logs, in the order of time.
func (c *cluster) events() (all []admissions.Entry) {
	c.t.Helper()
	logs, _ := filepath.Glob(c.file("*.jsonl"))
	for _, name := range logs {
		f, err := os.Open(name)
		if err != nil {
			c.t.Fatal(err)
		}
		err = admissions.Read(f, func(e admissions.Entry) { all = append(all, e) })
		_ = f.Close() // it was only read
		if err != nil {
			c.t.Fatalf("%s: %v", name, err)
		}
	}
	slices.SortStableFunc(all, func(a, b admissions.Entry) int { return cmp.Compare(a.At, b.At) })
	return all
}

// metronome is a clock that stands still while the machine does: it goes on by a beat
// when a goroutine has slept that long and kept a record as a node does. A wave takes
// some steps of the same kind, so a machine whose disk or processors are busy with
// something else makes no longer pauses by this clock.
type metronome struct {
	mu    sync.Mutex
	beats []int64 // when, Unix microseconds
}

const beat = 20 * time.Millisecond

// metronome returns one that beats until the test ends.
func (c *cluster) metronome() *metronome {
	c.t.Helper()
	kept, err := store.Open(c.file("metronome"))
	if err != nil {
		c.t.Fatal(err)
	}
	m := &metronome{}
	stopped := make(chan struct{})
	c.t.Cleanup(func() { <-stopped })
	go func() {
		defer close(stopped)
		for c.t.Context().Err() == nil {
			time.Sleep(beat)
			if err := kept.Write("beat", []byte("beat\n")); err != nil {
				c.t.Errorf("metronome: %v", err)
				return
			}
			m.mu.Lock()
			m.beats = append(m.beats, time.Now().UnixMicro())
			m.mu.Unlock()
		}
	}()
	return m
}

// between is how long it was from one time to another.
func (m *metronome) between(from, to int64) (d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, _ := slices.BinarySearch(m.beats, from)
	for last := from; last < to; i++ {
		next := to
		if i < len(m.beats) {
			next = min(to, m.beats[i])
		}
		d += min(time.Duration(next-last)*time.Microsecond, 2*beat)
		last = next
	}
	return d
}

// idle is the longest time between from and to in which nobody was called though a
// slot was free, and when that began. After the last call nobody waited any more. By
// the nodes' logs: how late the people of a test come and go makes no difference.
func idle(all []admissions.Entry, limit int, from, to int64, between func(from, to int64) time.Duration) (longest time.Duration, at int64) {
	last := int64(0)
	for _, e := range all {
		if e.Event == admissions.Called {
			last = max(last, e.At)
		}
	}
	called, inside := make(map[string]bool), make(map[string]bool)
	since := from
	for _, e := range all {
		now := min(max(from, e.At), to, max(from, last))
		if len(called)+len(inside) >= limit {
			since = now
		}
		if d := between(since, now); d > longest {
			longest, at = d, since
		}
		switch e.Event {
		case admissions.Called:
			called[e.Ticket] = true
			since = now
		case admissions.Admitted, admissions.Open:
			inside[e.Ticket] = true
			delete(called, e.Ticket)
		case admissions.Given, admissions.TookOver: // a call was taken back; a visit goes on
			delete(called, e.Ticket)
		case admissions.Parked, admissions.Ended, admissions.Dropped:
			delete(called, e.Ticket)
			delete(inside, e.Ticket)
		}
	}
	return longest, at
}

// The measure of these tests, by logs made by hand.
func TestIdleIsTheTimeInWhichASlotWasFreeAndNobodyCalled(t *testing.T) {
	e := func(at int64, event, ticket string) admissions.Entry {
		return admissions.Entry{At: at, Event: event, Ticket: ticket}
	}
	for _, test := range []struct {
		name    string
		log     []admissions.Entry
		longest time.Duration
		at      int64
	}{
		{"all slots are used", []admissions.Entry{e(1, "open", "a"), e(2, "called", "b"), e(50, "admitted", "b"), e(70, "ended", "a"), e(75, "called", "c")}, 5, 70},
		{"a slot is free", []admissions.Entry{e(1, "open", "a"), e(12, "called", "b"), e(20, "ended", "a"), e(30, "ended", "b"), e(60, "called", "c")}, 40, 20},
		{"a visit goes on elsewhere", []admissions.Entry{e(1, "open", "a"), e(12, "called", "b"), e(20, "given", "a"), e(30, "admitted", "b"), e(60, "ended", "b"), e(61, "called", "c")}, 2, 10},
		{"a call is taken back", []admissions.Entry{e(1, "open", "a"), e(12, "called", "b"), e(20, "given", "b"), e(40, "called", "b")}, 20, 20},
		{"nobody waits any more", []admissions.Entry{e(1, "open", "a"), e(12, "called", "b"), e(20, "ended", "a"), e(90, "ended", "b")}, 2, 10},
		{"after the end", []admissions.Entry{e(1, "open", "a"), e(12, "called", "b"), e(90, "ended", "a"), e(150, "called", "c")}, 10, 90},
	} {
		longest, at := idle(test.log, 2, 10, 100, func(from, to int64) time.Duration { return time.Duration(to-from) * time.Microsecond })
		if longest != test.longest*time.Microsecond || at != test.at {
			t.Errorf("%s: %v from %d, want %d µs from %d", test.name, longest, at, test.longest, test.at)
		}
	}
}

// While the machine stands still the metronome does.
func TestTheMetronomeStandsStillWithTheMachine(t *testing.T) {
	b := beat.Microseconds()
	m := &metronome{beats: []int64{b, 2 * b, 50 * b, 51 * b}}
	for _, test := range []struct {
		from, to int64
		want     time.Duration
	}{{0, 2 * b, 2 * beat}, {b / 2, b + b/2, beat}, {2 * b, 50 * b, 2 * beat}, {3 * b, 4 * b, beat}, {b, 51 * b, 4 * beat}, {51 * b, 90 * b, 2 * beat}} {
		if got := m.between(test.from, test.to); got != test.want {
			t.Errorf("from %d to %d it is %v, want %v", test.from, test.to, got, test.want)
		}
	}
}
