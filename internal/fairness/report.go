package fairness

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// Admission is one person let in. All times are Unix microseconds, or
// microseconds of simulated time.
type Admission struct {
	Joined     qpid.Weight // stamp and ticket id: the order of joining
	JoinedAt   int64       // when the visitor joined, by a clock of the visitor's
	Entitled   Order       // the order of entitlement; unused when Open
	EntitledAt int64       // when the ticket was entitled; CalledAt when Open
	CalledAt   int64       // when the visitor was told to come in
	Open       bool        // walked straight in, never queued
}

// Order is a place in the order of entitlement.
type Order struct {
	Epoch uint64      // number of the first epoch whose cut reached the ticket
	Key   qpid.Weight // what that epoch ordered tickets by
}

// Compare returns -1, 0 or +1 as o was entitled before, with or after p.
func (o Order) Compare(p Order) int {
	if c := cmp.Compare(o.Epoch, p.Epoch); c != 0 {
		return c
	}
	return o.Key.Compare(p.Key)
}

// Report is the fairness of one room or one run. Counts and times are of the
// people who queued, except where a field says otherwise.
type Report struct {
	N                int         `json:"n"`                  // people who queued and were let in
	OpenAdmissions   int         `json:"open_admissions"`    // people who walked straight in
	DiscordantPairs  int64       `json:"discordant_pairs"`   // entitled in the opposite order to joining
	KendallTau       float64     `json:"kendall_tau"`        // DiscordantPairs / (N(N-1)/2)
	KendallTauThesis float64     `json:"kendall_tau_thesis"` // the thesis's count, over everybody
	MaxOvertakenBy   int         `json:"max_overtaken_by"`   // most people who joined later and were entitled before someone
	MaxWait          float64     `json:"max_wait"`           // seconds from joining to the call
	Wait             Percentiles `json:"wait"`               // seconds from joining to the call
	CallDelay        Delay       `json:"call_delay"`         // seconds from entitlement to the call
	OpenInversions   int64       `json:"open_inversions"`    // pairs in which somebody walked in who joined after a person then not yet entitled
	OverLimitMax     int         `json:"over_limit_max"`     // most people beyond the limit at any instant
}

// Percentiles are in seconds, by nearest rank: p of the people waited no longer.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
}

// Delay is in seconds, by nearest rank.
type Delay struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Measure reports on admissions to one room, in any order, which it leaves
// alone. overLimitMax is what the caller observed. A wait or delay below zero,
// which the skew between two clocks can produce, counts as zero.
func Measure(admissions []Admission, overLimitMax int) Report {
	byJoin := joinOrder(admissions)
	queued := make([]int32, 0, len(admissions)) // indices, in order of joining
	for _, i := range byJoin {
		if !admissions[i].Open {
			queued = append(queued, i)
		}
	}
	waits := make([]int64, len(queued))
	delays := make([]int64, len(queued))
	for k, i := range queued {
		a := &admissions[i]
		waits[k] = max(0, a.CalledAt-a.JoinedAt)
		delays[k] = max(0, a.CalledAt-a.EntitledAt)
	}
	slices.Sort(waits)
	slices.Sort(delays)
	discordant, worst := overtaking(admissions, queued)
	return Report{
		N:                len(queued),
		OpenAdmissions:   len(admissions) - len(queued),
		DiscordantPairs:  discordant,
		KendallTau:       share(discordant, total(len(queued))),
		KendallTauThesis: countMilliseconds(admissions).KendallTauThesis(),
		MaxOvertakenBy:   worst,
		MaxWait:          percentile(waits, 100),
		Wait:             Percentiles{percentile(waits, 50), percentile(waits, 90), percentile(waits, 99)},
		CallDelay:        Delay{percentile(delays, 50), percentile(delays, 99), percentile(delays, 100)},
		OpenInversions:   openInversions(admissions, byJoin, len(queued)),
		OverLimitMax:     overLimitMax,
	}
}

// overtaking counts, for each of queued, those who joined later and were
// entitled before. The sum over all is the number of discordant pairs.
func overtaking(admissions []Admission, queued []int32) (discordant int64, worst int) {
	ranks := entitlementRanks(admissions, queued)
	entitled := newFenwick(len(queued)) // of those who joined after the group
	for end := len(queued); end > 0; {
		// Equal weights joined together: nobody of the group came later.
		start := end - 1
		for start > 0 && admissions[queued[start-1]].Joined == admissions[queued[end-1]].Joined {
			start--
		}
		for _, rank := range ranks[start:end] {
			by := entitled.below(rank)
			discordant += by
			worst = max(worst, int(by))
		}
		for _, rank := range ranks[start:end] {
			entitled.add(rank)
		}
		end = start
	}
	return discordant, worst
}

// openInversions counts the pairs of a queued person and a later one who was
// called through the open door before the first was entitled.
func openInversions(admissions []Admission, byJoin []int32, queued int) int64 {
	if queued == 0 || queued == len(admissions) {
		return 0
	}
	calls := make([]int64, 0, len(admissions)-queued) // of open admissions, ascending
	for i := range admissions {
		if admissions[i].Open {
			calls = append(calls, admissions[i].CalledAt)
		}
	}
	slices.Sort(calls)
	// rank of t is the number of calls before t: a call c < t has a smaller one.
	rank := func(t int64) int32 {
		r, _ := slices.BinarySearch(calls, t)
		return int32(r)
	}
	var inversions int64
	later := newFenwick(len(calls)) // open admissions that joined after the group
	for end := len(byJoin); end > 0; {
		start := end - 1
		for start > 0 && admissions[byJoin[start-1]].Joined == admissions[byJoin[end-1]].Joined {
			start--
		}
		for _, i := range byJoin[start:end] {
			if a := &admissions[i]; !a.Open {
				inversions += later.below(rank(a.EntitledAt))
			}
		}
		for _, i := range byJoin[start:end] {
			if a := &admissions[i]; a.Open {
				later.add(rank(a.CalledAt))
			}
		}
		end = start
	}
	return inversions
}

// countMilliseconds compares joining and entitlement as the thesis does: of
// everybody, by the millisecond.
func countMilliseconds(admissions []Admission) Pairs {
	joined := make([]int64, len(admissions))
	entitled := make([]int64, len(admissions))
	for i := range admissions {
		joined[i] = int64(admissions[i].Joined.Stamp / 1000)
		entitled[i] = admissions[i].EntitledAt / 1000
	}
	return CountPairs(joined, entitled)
}

// joinOrder is the indices of admissions in the order of joining.
func joinOrder(admissions []Admission) []int32 {
	type key struct {
		stamp uint64
		i     int32
	}
	// Sorting copies of the stamps is twice as fast as sorting indices: it reads
	// the admissions only to break ties.
	keys := make([]key, len(admissions))
	for i := range admissions {
		keys[i] = key{admissions[i].Joined.Stamp, int32(i)}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if a.stamp != b.stamp {
			return cmp.Compare(a.stamp, b.stamp)
		}
		x, y := &admissions[a.i].Joined.ID, &admissions[b.i].Joined.ID
		return bytes.Compare(x[:], y[:])
	})
	order := make([]int32, len(keys))
	for k := range keys {
		order[k] = keys[k].i
	}
	return order
}

// entitlementRanks is the rank in the order of entitlement of each of queued.
// Equal orders share a rank.
func entitlementRanks(admissions []Admission, queued []int32) []int32 {
	type key struct {
		epoch, stamp uint64
		k            int32
	}
	order := func(k int32) *Order { return &admissions[queued[k]].Entitled }
	keys := make([]key, len(queued))
	for k := range queued {
		o := order(int32(k))
		keys[k] = key{o.Epoch, o.Key.Stamp, int32(k)}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if a.epoch != b.epoch {
			return cmp.Compare(a.epoch, b.epoch)
		}
		if a.stamp != b.stamp {
			return cmp.Compare(a.stamp, b.stamp)
		}
		x, y := &order(a.k).Key.ID, &order(b.k).Key.ID
		return bytes.Compare(x[:], y[:])
	})
	ranks := make([]int32, len(queued))
	var rank int32
	for i := range keys {
		if i > 0 && *order(keys[i-1].k) != *order(keys[i].k) {
			rank++
		}
		ranks[keys[i].k] = rank
	}
	return ranks
}

// percentile is the smallest of sorted (microseconds) that percent of them do
// not exceed, in seconds; 0 of nothing.
func percentile(sorted []int64, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := (percent*len(sorted) + 99) / 100 // rounded up, in whole numbers
	return float64(sorted[max(rank, 1)-1]) / 1e6
}
