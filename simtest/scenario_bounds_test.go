package simtest

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// restartWith gives a node another lease and starts it again.
func (s *script) restartWith(i int, lease time.Duration) {
	s.hosts[i].file.Lease = lease
	s.reboot(i)
}

// actsBy waits until a node acts by that lease.
func (s *script) actsBy(i int, lease time.Duration) {
	s.t.Helper()
	s.until(20*time.Second, "the lease of its file", func() bool {
		h := &s.hosts[i]
		return h.up() && h.seen.status.Grade >= eviction.Primary && h.seen.status.Acts.Lease == lease.Microseconds()
	})
}

// A node is started again with a longer lease. The first commit in which everybody reads
// of it reaches only itself: it goes on by the shorter one, which a quorum reckons
// with. It acts by its own as of the wave after.
func TestScenarioALongerLeaseWaitsForTheOthers(t *testing.T) {
	const x, longer = 4, 8 * time.Second
	o := short(5)
	s := founded(t, o)
	alone := false
	s.tap = func(f *flight) verdict {
		if c, ok := f.m.Body.(*eviction.Commit); ok && c.Reckons.Lease == longer.Microseconds() && c.Acts.Lease < c.Reckons.Lease {
			if f.to != x {
				return lose
			}
			alone = true
		}
		return pass
	}
	s.restartWith(x, longer)
	s.until(10*time.Second, "the commit", func() bool { return alone && s.hosts[x].seen.status.Reckons.Lease == longer.Microseconds() })
	if got := micros(s.hosts[x].seen.status.Acts.Lease); got != s.o.Cluster.Lease {
		t.Errorf("it acts by %v when nobody else has heard of it, want %v", got, s.o.Cluster.Lease)
	}
	s.tap = nil
	s.actsBy(x, longer)
	if got := micros(s.hosts[0].seen.status.Acts.Lease); got != s.o.Cluster.Lease {
		t.Errorf("another acts by %v, which is not its own", got)
	}
	s.finish()
}

// lastPassOf has x, which acts by a longer lease than the others have in their files, stand
// still, and extend a pass when it wakes up just before its lease is over; meanwhile
// trouble comes. Its slots must not be made again before that pass has run out.
func (s *script) lastPassOf(x int, trouble func()) {
	s.t.Helper()
	b := s.visit(x)
	s.run(500 * time.Millisecond)
	h := &s.hosts[x]
	end := s.now + h.seen.rooms[0].LeaseUntil - h.clock.boot(s.now)
	s.tap = func(f *flight) verdict { // it hears nothing when it wakes up
		if f.from == int32(x) || f.to == int32(x) {
			return lose
		}
		return pass
	}
	s.stall(x, micros(end-s.now-100_000))
	trouble()
	s.run(micros(end - s.now - 50_000))
	before := b.pass.Expires
	b.must(x, opRefresh)
	if b.pass.Expires == before {
		s.t.Fatal("not extended")
	}
	s.arrive(1, 30)
	var others []int
	for i := range s.hosts {
		if i != x {
			others = append(others, i)
		}
	}
	s.until(time.Minute, "all the slots", func() bool { n, _ := s.ownedNow(others...); return n == 12 })
	if left := b.pass.Expires - s.clockOf(1); left > 0 {
		s.t.Errorf("the lost node's slots are made again %v before its last pass ends", micros(left))
	}
	s.run(time.Second)
}

// What nobody else has in its file is waited for all the same.
func TestScenarioALongerLeaseOfAnotherIsWaitedFor(t *testing.T) {
	const x, longer = 2, 8 * time.Second
	o := short(3)
	o.Load.Browse, o.Rooms[0].Session = Range{time.Hour, time.Hour}, 10*time.Second
	s := founded(t, o)
	s.restartWith(x, longer)
	s.actsBy(x, longer)
	s.lastPassOf(x, func() {})
}

// Also by those who are started again, from what they have on disk.
func TestScenarioALongerLeaseIsNotForgottenInARestart(t *testing.T) {
	const x, longer = 2, 8 * time.Second
	o := short(3)
	o.Load.Browse, o.Rooms[0].Session, o.Faults.Disk = Range{time.Hour, time.Hour}, 10*time.Second, true
	s := founded(t, o)
	s.restartWith(x, longer)
	s.actsBy(x, longer)
	s.lastPassOf(x, func() {
		s.run(200 * time.Millisecond)
		s.down(0)
		s.down(1)
		s.boot(0)
		s.boot(1)
	})
}

// And by a minority that was away when the lease was raised, as soon as it is in a quorum
// with somebody who was not.
func TestScenarioAMinorityThatNeverHeardOfALongerLease(t *testing.T) {
	const x, longer = 2, 8 * time.Second
	o := short(5)
	o.Load.Browse, o.Rooms[0].Session, o.Faults.Disk = Range{time.Hour, time.Hour}, 10*time.Second, true
	s := founded(t, o)
	s.split(hosts(0, 1, 2), hosts(3, 4))
	s.run(time.Second)
	s.restartWith(x, longer)
	s.actsBy(x, longer)
	s.lastPassOf(x, func() {
		s.down(0) // which decided it
		s.mend()
		s.run(3 * time.Second)
		s.boot(0)
	})
}

// The lease is raised node by node under a crowd, with a kill in the middle, and lowered
// again. A shorter one is acted by at once, and the longer one forgotten when nobody who
// had it can be there any more.
func TestScenarioALeaseIsRaisedAndLoweredNodeByNode(t *testing.T) {
	const longer = 6 * time.Second
	o := short(3)
	o.Load.Browse, o.Faults.Disk = Range{500 * time.Millisecond, time.Second}, true
	s := founded(t, o)
	s.arriveOver(none, 300, 30*time.Second)
	for i := range 3 {
		s.restartWith(i, longer)
		if i == 1 {
			s.run(time.Second)
			s.reboot(2)
		}
		s.run(4 * time.Second)
		s.actsBy(i, longer)
	}
	for i := range 3 {
		s.restartWith(i, o.Cluster.Lease)
		s.actsBy(i, o.Cluster.Lease)
		s.run(2 * time.Second)
	}
	s.until(2*time.Minute, "the longer lease to be forgotten", func() bool {
		for i := range s.hosts {
			if s.hosts[i].seen.status.Reckons.Lease != s.o.Cluster.Lease.Microseconds() {
				return false
			}
		}
		return true
	})
	s.finish()
}
