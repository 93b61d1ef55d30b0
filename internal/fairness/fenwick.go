package fairness

// fenwick counts ranks. Rank r is at index r+1, so that index 0 ends each walk.
type fenwick []int32

func newFenwick(ranks int) fenwick { return make(fenwick, ranks+1) }

// add counts one more of rank.
func (f fenwick) add(rank int32) {
	for i := int(rank) + 1; i < len(f); i += i & -i {
		f[i]++
	}
}

// below is the number counted with a smaller rank.
func (f fenwick) below(rank int32) int64 {
	var n int64
	for i := int(rank); i > 0; i -= i & -i {
		n += int64(f[i])
	}
	return n
}
