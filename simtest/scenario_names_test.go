package simtest

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// Who missed a commit does not know the wave that the next gather names. It asks for
// the list, and is in that wave all the same.
func TestScenarioWhoMissedACommitAsksForTheList(t *testing.T) {
	s := founded(t, short(3))
	lost, asked := 0, 0
	s.tap = func(f *flight) verdict {
		switch b := f.m.Body.(type) {
		case *eviction.Commit:
			if f.to == 2 && lost == 0 {
				lost++
				return lose
			}
		case *eviction.Gather:
			if f.to == 2 && lost == 1 && asked == 0 && b.List != nil {
				t.Error("the list went along before anybody asked")
			}
		case *eviction.Ask:
			asked++
		default:
		}
		return pass
	}
	s.until(2*time.Second, "a lost commit", func() bool { return lost == 1 })
	at := s.now
	s.until(2*time.Second, "a wave at the one that missed it", func() bool { return s.checker.installs[2] > at })
	if asked != 1 {
		t.Errorf("the list was asked for %d times", asked)
	}
	if took := time.Duration(s.now-at) * time.Microsecond; took > 400*time.Millisecond {
		t.Errorf("it was in no wave for %v", took)
	}
	s.run(time.Second)
	if asked != 1 {
		t.Errorf("the list was asked for %d times, with nothing lost", asked)
	}
}

// Voters that a wave has changed do not go by the name of those before: who has missed
// the change says what it has, and is told in full.
func TestScenarioWhoMissedAChangeOfVotersIsToldInFull(t *testing.T) {
	o := short(3)
	o.Faults.Adds = 1
	s := founded(t, o)
	s.addNode()
	changed, named, spelled := 0, 0, 0
	s.tap = func(f *flight) verdict {
		switch b := f.m.Body.(type) {
		case *eviction.Commit:
			switch {
			case b.Grade < eviction.Primary:
			case b.Voters.Version == 0:
				named++
			case f.to == 2 && !b.Carried:
				changed++
				return lose
			case f.to == 2:
				spelled++
			}
		default:
		}
		return pass
	}
	s.until(20*time.Second, "four voters everywhere", func() bool {
		for i := range s.hosts {
			if v := s.hosts[i].seen.status.Voters; len(v.Names) != 4 || v.Next != nil {
				return false
			}
		}
		return true
	})
	if changed == 0 || named == 0 || spelled == 0 {
		t.Errorf("%d changes were lost, %d commits left the voters out, %d told the one that had missed them; want some of each", changed, named, spelled)
	}
}
