package eviction

import (
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// Front is what a subtree knows of the lightest tickets waiting in it: all of
// them up to the gather's Want and UpTo if that is small, else certified samples.
//
// Invariant (exact): every waiting ticket no heavier than the last item is an
// item; Complete: there are no others at all.
type Front struct {
	Sampled  bool
	Complete bool
	Items    []Tagged // exact, by weight
	Samples  []Sample // by node, then weight
}

// Tagged is a weight and the list index of the node that holds it.
type Tagged struct {
	Weight qpid.Weight
	Index  int
}

// Sample certifies that Rank of the node's waiting tickets are no heavier than
// Weight. Last marks the node's heaviest sample; Whole, that it is also the
// heaviest ticket.
type Sample struct {
	Weight      qpid.Weight
	Rank        int
	Index       int
	Last, Whole bool
}

// front reports a node's own lightest of count weights, as many as are wanted, and
// with none beyond the first within unless it samples; at(i) is the one of rank i.
func front(c Config, index, want, count, within int, at func(int) qpid.Weight) Front {
	f := Front{Sampled: want > c.Exact, Complete: count <= want}
	reach := min(want, count)
	if !f.Sampled {
		reach, f.Complete = min(want, within), count <= min(want, within)
		f.Items = make([]Tagged, reach)
		for i := range f.Items {
			f.Items[i] = Tagged{at(i), index}
		}
		return f
	}
	n := min(c.Samples, reach)
	f.Samples = make([]Sample, n)
	for i := range n {
		rank := 1 + i*(reach-1)/max(1, n-1) // from the lightest on, so that a small k still reaches somebody
		last := i == n-1
		f.Samples[i] = Sample{at(rank - 1), rank, index, last, last && reach == count}
	}
	return f
}

// merge adds o, keeping what want asks for.
func (f *Front) merge(o Front, want int) {
	f.Samples = append(f.Samples, o.Samples...)
	f.Items = append(f.Items, o.Items...)
	f.Complete = f.Complete && o.Complete
	if len(o.Items) == 0 {
		return
	}
	slices.SortFunc(f.Items, func(a, b Tagged) int { return a.Weight.Compare(b.Weight) })
	if len(f.Items) > want {
		f.Items = f.Items[:want]
		f.Complete = false
	}
}

// choose returns the largest weight such that at most k waiting tickets are no
// heavier, as far as the front certifies it, and how many of each node's they
// are. everything is the weight that covers all that were counted, total of
// them. With !ok nobody may be called.
func (f *Front) choose(k, total, nodes int, everything qpid.Weight, queued func(int) int) (cut qpid.Weight, need []int, ok bool) {
	need = make([]int, nodes)
	switch {
	case k <= 0 || total == 0:
		return cut, need, false
	case total <= k:
		for i := range need {
			need[i] = queued(i)
		}
		return everything, need, true
	case f.Sampled:
		return f.chooseSampled(k, need)
	}
	n := min(k, len(f.Items))
	for _, t := range f.Items[:n] {
		need[t.Index]++
		cut, ok = t.Weight, true
	}
	return cut, need, ok
}

// count returns how many of each node's tickets are no heavier than w, or
// atMost where the front does not say.
func (f *Front) count(w qpid.Weight, atMost []int) []int {
	if f.Sampled {
		return atMost
	}
	need := make([]int, len(atMost))
	for _, t := range f.Items {
		if !w.Less(t.Weight) {
			need[t.Index]++
		}
	}
	return need
}

// chooseSampled sweeps the samples from the lightest up, with an upper bound
// of every node's rank at each: exact at its own sample, one less than its
// next sample's elsewhere.
func (f *Front) chooseSampled(k int, need []int) (cut qpid.Weight, _ []int, ok bool) {
	samples := slices.Clone(f.Samples)
	slices.SortFunc(samples, func(a, b Sample) int { return a.Weight.Compare(b.Weight) })
	next := make([][]int, len(need)) // index → ranks of the samples not yet swept, in order
	for _, s := range samples {
		next[s.Index] = append(next[s.Index], s.Rank)
	}
	bound, sum := make([]int, len(need)), 0
	for _, s := range samples {
		if len(next[s.Index]) > 0 && bound[s.Index] == 0 {
			bound[s.Index] = next[s.Index][0] - 1
		}
	}
	for _, b := range bound {
		sum += b
	}
	for _, s := range samples {
		at := sum - bound[s.Index] + s.Rank
		if at > k {
			break
		}
		cut, ok = s.Weight, true
		copy(need, bound)
		need[s.Index] = s.Rank
		next[s.Index] = next[s.Index][1:]
		switch {
		case len(next[s.Index]) > 0:
			sum, bound[s.Index] = at-s.Rank+next[s.Index][0]-1, next[s.Index][0]-1
		case s.Whole:
			sum, bound[s.Index] = at, s.Rank
		default:
			return cut, need, ok // beyond it the front certifies nothing
		}
	}
	return cut, need, ok
}
