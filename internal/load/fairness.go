package load

import (
	"cmp"
	"slices"

	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/qpid"
)

// Report is a fairness.Report as far as it can be measured from outside: it has
// the same keys, and null where it cannot. What is about order is null when no
// answer told a wave.
type Report struct {
	N                int                  `json:"n"`
	OpenAdmissions   int                  `json:"open_admissions"`
	DiscordantPairs  *int64               `json:"discordant_pairs"`
	KendallTau       *float64             `json:"kendall_tau"`
	KendallTauThesis *float64             `json:"kendall_tau_thesis"`
	MaxOvertakenBy   *int                 `json:"max_overtaken_by"`
	MaxWait          float64              `json:"max_wait"` // from when the visitor wanted to join until it heard of its call
	Wait             fairness.Percentiles `json:"wait"`
	CallDelay        *fairness.Delay      `json:"call_delay"`      // null: nobody outside sees when a turn comes
	OpenInversions   *int64               `json:"open_inversions"` // at most so many
	OverLimitMax     *int                 `json:"over_limit_max"`  // beyond Config.Limit; null without that
}

// measure reports on everyone who was let in. unordered is how many of them were
// called without a word of the wave: they are in the waits only.
func measure(calls []call, held, limit int) (r Report, unordered int) {
	all := make([]fairness.Admission, 0, len(calls))
	ordered := make([]fairness.Admission, 0, len(calls))
	slices.SortFunc(calls, func(a, b call) int { return cmp.Or(cmp.Compare(a.wave, b.wave), cmp.Compare(a.joined, b.joined)) })
	turns := entitlements(calls)
	for i := range calls {
		a := admission(&calls[i], turns[i])
		all = append(all, a)
		if a.Open || calls[i].hasWave {
			ordered = append(ordered, a)
		}
	}
	whole := fairness.Measure(all, 0)
	r = Report{
		N: whole.N, OpenAdmissions: whole.OpenAdmissions, MaxWait: whole.MaxWait, Wait: whole.Wait,
	}
	if unordered = len(all) - len(ordered); whole.N == 0 || unordered < whole.N {
		in := fairness.Measure(ordered, 0)
		r.DiscordantPairs, r.KendallTau, r.KendallTauThesis = &in.DiscordantPairs, &in.KendallTau, &in.KendallTauThesis
		r.MaxOvertakenBy, r.OpenInversions = &in.MaxOvertakenBy, &in.OpenInversions
	}
	if limit > 0 {
		r.OverLimitMax = new(max(0, held-limit))
	}
	return r, unordered
}

// entitlements is for each of calls, which are in the order of their waves, by
// when its turn had come, by the nodes' clocks. A wave is over before the next
// one: who was called in it had a turn before anybody heard of a later call. With
// many people that is close to when the wave was.
func entitlements(calls []call) []int64 {
	turns := make([]int64, len(calls))
	earliest := int64(0) // of the waves from here on; 0: nobody yet
	for end := len(calls); end > 0; {
		start := end - 1
		for start > 0 && calls[start-1].wave == calls[end-1].wave {
			start--
		}
		for _, c := range calls[start:end] {
			if c.hasWave && c.entitled > 0 && (earliest == 0 || c.entitled < earliest) {
				earliest = c.entitled
			}
		}
		for i := start; i < end; i++ {
			turns[i] = earliest
		}
		end = start
	}
	return turns
}

// admission is c as package fairness has it. Waits are by our clock alone, which
// may differ from the nodes'; what is compared with joining is by theirs.
func admission(c *call, turn int64) fairness.Admission {
	key := qpid.Weight{Stamp: uint64(max(0, c.joined))}
	if !c.queued {
		return fairness.Admission{Joined: key, JoinedAt: c.joined, EntitledAt: c.joined, CalledAt: c.joined, Open: true}
	}
	return fairness.Admission{
		Joined: key, JoinedAt: c.came, Entitled: fairness.Order{Epoch: c.wave, Key: key}, EntitledAt: turn, CalledAt: c.told,
	}
}

// heldMost is the most passes that were held at a time. Who gives one back at
// the moment at which another gets one does not hold it any more.
func heldMost(stays []stay) int {
	type change struct {
		at int64
		by int
	}
	changes := make([]change, 0, 2*len(stays))
	for _, s := range stays {
		if s.to > s.from {
			changes = append(changes, change{s.from, 1}, change{s.to, -1})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	held, most := 0, 0
	for _, c := range changes {
		held += c.by
		most = max(most, held)
	}
	return most
}
