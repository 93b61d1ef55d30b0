package health

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"
)

// Status is what is thought of an origin.
type Status string

// An origin of which nobody knows anything yet is Unknown.
const (
	Unknown   Status = ""
	Healthy   Status = "healthy"
	Unhealthy Status = "unhealthy"
)

// CheckersMax is how many nodes look at one origin.
const CheckersMax = 3

// Checkers returns the nodes that look at an origin by a check: those with the
// highest random weight, so that of all others nothing changes when one comes or
// goes.
func Checkers(id string, nodes []string) []string {
	weight := func(node string) uint64 {
		sum := sha256.Sum256([]byte(id + "\x00" + node))
		return binary.BigEndian.Uint64(sum[:])
	}
	chosen := slices.Clone(nodes)
	slices.SortFunc(chosen, func(a, b string) int { return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a, b)) })
	return chosen[:min(len(chosen), CheckersMax)]
}

// Trend is what one node makes of its results, one after the other.
type Trend struct {
	Status Status
	run    int  // results of late that were like the last
	good   bool // which was
}

// Add takes in a result. The status changes after up good ones in a row, or down
// bad ones.
func (t *Trend) Add(ok bool, up, down int) {
	if ok != t.good {
		t.run, t.good = 0, ok
	}
	t.run++
	switch {
	case ok && t.run >= up:
		t.Status = Healthy
	case !ok && t.run >= down:
		t.Status = Unhealthy
	}
}

// Report is what one node says of an origin.
type Report struct {
	Room, Check string
	Sum         uint64 // of the check
	Status      Status
	Reason      string // of the last failure; NoFailures while there is none
	Code        int
	Took        time.Duration
}

// Vote is the last report of one of the nodes that look at an origin, or none yet.
type Vote struct {
	Report
	Silent bool // for two intervals
}

// Decide returns what most of those that look and are not silent say. While no
// more than half of them agree it is what it was.
func Decide(was Status, votes []Vote) Status {
	count, all := map[Status]int{}, 0
	for _, v := range votes {
		if !v.Silent {
			count[v.Status]++
			all++
		}
	}
	for _, s := range []Status{Healthy, Unhealthy} {
		if 2*count[s] > all {
			return s
		}
	}
	return was
}

// Verdict is what the cluster thinks of an origin by one check. It travels with
// the room's configuration.
type Verdict struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	Since  int64  `json:"since"` // Unix microseconds, by the clock of the node that decided
	Reason string `json:"reason"`
	Code   int    `json:"code,omitempty"`
	Past   []Turn `json:"past,omitempty"` // the oldest first, at most PastMax
}

// Turn is what the cluster thought before.
type Turn struct {
	Status Status `json:"status"`
	Since  int64  `json:"since"` // Unix microseconds
	Reason string `json:"reason"`
	Code   int    `json:"code,omitempty"`
}

// PastMax bounds what is remembered of each check: it travels with the room.
const PastMax = 10

// Turned is what follows v: another status, for the reason that r gives.
func (v *Verdict) Turned(s Status, since int64, r *Report) Verdict {
	past := v.Past
	if v.Status != Unknown {
		past = append(slices.Clone(past), Turn{v.Status, v.Since, v.Reason, v.Code})
		past = past[max(0, len(past)-PastMax):]
	}
	return Verdict{Check: v.Check, Status: s, Since: since, Reason: r.Reason, Code: r.Code, Past: past}
}
