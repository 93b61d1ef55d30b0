package qpid

import "math/bits"

// fenwick holds a row of counts and answers sums of a prefix of the row, and
// which entry a prefix sum falls into, in a logarithm of the length.
//
// Entry i of the row is part of sums[i|(i+1)], and so on upwards: sums[i] is
// the sum of the entries from i&(i+1) to i.
type fenwick struct{ sums []int }

// newFenwick returns the structure over the row, which it takes over.
func newFenwick(row []int) fenwick {
	for i := range row {
		if up := i | (i + 1); up < len(row) {
			row[up] += row[i]
		}
	}
	return fenwick{sums: row}
}

// add adds d to entry i.
func (f fenwick) add(i, d int) {
	for ; i < len(f.sums); i |= i + 1 {
		f.sums[i] += d
	}
}

// prefix is the sum of the entries before i.
func (f fenwick) prefix(i int) int {
	sum := 0
	for i--; i >= 0; i = i&(i+1) - 1 {
		sum += f.sums[i]
	}
	return sum
}

// find returns the entry into which the k-th unit falls, counting from 0, and
// how many units of that entry come before it. k must be less than the sum of
// the row.
func (f fenwick) find(k int) (entry, rest int) {
	for step := 1 << bits.Len(uint(len(f.sums))) >> 1; step > 0; step >>= 1 {
		if next := entry + step; next <= len(f.sums) && f.sums[next-1] <= k {
			entry = next
			k -= f.sums[next-1]
		}
	}
	return entry, k
}
