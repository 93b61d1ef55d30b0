package simtest

import (
	"fmt"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// S26, census. No more slots exist than a census has, but of accounts that were void when it was
// taken: from the wave that carries it on, and not only when it has run out, D later.
func (w *world) checkCensus(m *eviction.Commit, rc *eviction.RoomCommit, r int) {
	c := &w.checker.rooms[r]
	if rc.Census == nil {
		if rc.Sure && c.census.on {
			w.reached.n[reachCensusOver]++
		}
		c.census.on = false
		return
	}
	if rc.Census.At == m.Epoch {
		w.reached.n[reachCensus]++
		c.census = censusCheck{at: m.Epoch, void: rc.Void}
	}
	c.census.on = true
	if rc.Census.At != c.census.at || m.Grade < eviction.Primary || rc.Shared || c.sides > 0 || w.isOld(m) {
		return
	}
	w.expire(c)
	exist, which := 0, ""
	void := func(a eviction.Account) bool { return covers(c.census.void, a) }
	for i := range c.accounts {
		if a := &c.accounts[i]; a.line == rc.Line && !void(a.Account) {
			if n := w.exposedBut(r, a, void); n > 0 {
				exist, which = exist+n, which+fmt.Sprintf(" %v %d", a.Account, n)
			}
		}
	}
	if exist > rc.Census.Slots {
		w.fail("S26", "room %s: %v has a census of %v with %d slots, and %d exist:%s: %s", c.name, m.Epoch, rc.Census.At, rc.Census.Slots, exist, which, w.ledgers(r))
	}
}

// censusCheck is the newest census that was taken of a room, and who was void by then.
type censusCheck struct {
	at   qpid.Epoch
	void []eviction.Void
	on   bool // the last commit carried it
}

// isOld reports whether a commit that was decided late has not heard of what others have made since.
func (w *world) isOld(m *eviction.Commit) bool {
	if m.Epoch != w.checker.newest {
		return true
	}
	for i := range w.hosts {
		if w.hosts[i].seen.status.Installed.Compare(m.Epoch) > 0 {
			return true
		}
	}
	return false
}
