package wire

import (
	"github.com/anteroom/anteroom/eviction"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
)

// Most of what a commit says of a thousand nodes is the same of many of them, or near
// to what it says of the one before.

// fromRuns shortens a list in which a number often stands several times in a row.
func fromRuns(in []uint64) (numbers []uint64, runs []uint32) {
	for _, x := range in {
		if n := len(numbers); n > 0 && numbers[n-1] == x {
			runs[n-1]++
			continue
		}
		numbers, runs = append(numbers, x), append(runs, 1)
	}
	return numbers, runs
}

func (r *reader) runs(numbers []uint64, runs []uint32) (out []uint64) {
	if len(numbers) != len(runs) {
		r.fail("%d runs of %d numbers", len(runs), len(numbers))
		return nil
	}
	for i, x := range numbers {
		if runs[i] == 0 || runs[i] > nodesMax || len(out)+int(runs[i]) > nodesMax {
			r.fail("numbers of more than %d nodes, or of none", nodesMax)
			return nil
		}
		for range runs[i] {
			out = append(out, x)
		}
	}
	return out
}

// fromDigest encodes each mark by how far it is from the one before.
func fromDigest(d *eviction.Digest) *peerv1.Digest {
	if d == nil {
		return nil
	}
	p := &peerv1.Digest{Length: int64(d.Length)}
	if len(d.Marks) == 0 {
		return p
	}
	p.Stamps, p.Ranks, p.Ties = make([]uint64, len(d.Marks)), make([]int64, len(d.Marks)), make([]uint32, len(d.Marks))
	var last eviction.Mark
	for i, m := range d.Marks {
		p.Stamps[i], p.Ranks[i], p.Ties[i] = m.Stamp-last.Stamp, int64(m.Rank-last.Rank), m.Tie
		last = m
	}
	return p
}

func (r *reader) digest(p *peerv1.Digest) *eviction.Digest {
	if p == nil {
		return nil
	}
	if len(p.GetStamps()) != len(p.GetRanks()) || len(p.GetStamps()) != len(p.GetTies()) {
		r.fail("digest of %d stamps, %d ranks and %d ties", len(p.GetStamps()), len(p.GetRanks()), len(p.GetTies()))
		return nil
	}
	d := &eviction.Digest{Length: r.number(p.GetLength())}
	ranks, ties := p.GetRanks(), p.GetTies()
	var last eviction.Mark
	d.Marks = list(r, "marks", p.GetStamps(), recordsMax, func(stamp uint64) eviction.Mark {
		last = eviction.Mark{Key: eviction.Key{Stamp: last.Stamp + stamp, Tie: ties[0]}, Rank: last.Rank + r.number(ranks[0])}
		ranks, ties = ranks[1:], ties[1:]
		return last
	})
	return d
}

// fromNets encodes by columns what there may be of every node: a record of each takes
// twice as much.
func fromNets(in []eviction.Net) *peerv1.Nets {
	if len(in) == 0 {
		return nil
	}
	p := &peerv1.Nets{}
	for _, n := range in {
		m := n.Account.Member
		p.Names, p.Boots = append(p.Names, string(m.Name)), append(p.Boots, m.Boot)
		p.Born, p.Slots = append(p.Born, n.Account.Born), append(p.Slots, int64(n.Slots))
	}
	return p
}

func (r *reader) nets(p *peerv1.Nets) []eviction.Net {
	boots, born, slots := p.GetBoots(), p.GetBorn(), p.GetSlots()
	if n := len(p.GetNames()); len(boots) != n || len(born) != n || len(slots) != n {
		r.fail("slots of %d accounts with %d, %d and %d numbers", n, len(boots), len(born), len(slots))
		return nil
	}
	i := -1
	return list(r, "accounts", p.GetNames(), recordsMax, func(name string) eviction.Net {
		i++
		return eviction.Net{Account: eviction.Account{Member: eviction.Member{Name: r.node(name), Boot: boots[i]}, Born: born[i]}, Slots: r.number(slots[i])}
	})
}

// fromBools says how many are false, then how many are true, and so on.
func fromBools(in []bool) (runs []uint32) {
	is := false
	for i, b := range in {
		switch {
		case i == 0 && b:
			runs, is = append(runs, 0, 1), true
		case i == 0 || b != is:
			runs, is = append(runs, 1), b
		default:
			runs[len(runs)-1]++
		}
	}
	return runs
}

func (r *reader) bools(runs []uint32) (out []bool) {
	for i, n := range runs {
		if n > nodesMax || len(out)+int(n) > nodesMax {
			r.fail("a list of more than %d nodes", nodesMax)
			return nil
		}
		for range n {
			out = append(out, i%2 == 1)
		}
	}
	return out
}
