package series

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"
)

// Hist is how often durations occurred, in the buckets of an HDR histogram with two
// significant digits and a unit of a millisecond: a bucket is at most 0.8 % wide.
// Only buckets with something in them are there, in ascending order.
type Hist []Bucket

// Bucket is one of them. The index is that of HdrHistogram's counts.
type Bucket struct {
	Index uint16
	N     uint32
}

const (
	subBits  = 8 // 256 sub-buckets: two significant digits
	half     = 1 << (subBits - 1)
	msMax    = 1<<31 - 1 // 24 days; what is longer counts as that long
	indexMax = (31-subBits)*half + 2*half - 1
)

func indexOf(ms int64) uint16 {
	v := uint64(min(max(0, ms), msMax))
	b := bits.Len64(v|(2*half-1)) - subBits
	return uint16(b*half + int(v>>b))
}

// middle is the duration in the middle of a bucket, ms.
func middle(i uint16) float64 {
	if i < 2*half {
		return float64(i)
	}
	b := int(i)/half - 1
	return float64((int(i)-b*half)<<b) + float64(int(1)<<b-1)/2
}

// Record adds one duration.
func (h *Hist) Record(ms int64) {
	i := indexOf(ms)
	at, found := slices.BinarySearchFunc(*h, i, func(b Bucket, i uint16) int { return int(b.Index) - int(i) })
	if !found {
		*h = slices.Insert(*h, at, Bucket{Index: i})
	}
	(*h)[at].N = plus((*h)[at].N, 1)
}

// plus does not run over.
func plus(a, b uint32) uint32 { return uint32(min(uint64(a)+uint64(b), math.MaxUint32)) }

// Merge adds what o has.
func (h *Hist) Merge(o Hist) {
	switch {
	case len(o) == 0:
		return
	case len(*h) == 0:
		*h = slices.Clip(o) // nobody changes it in place
		return
	}
	a := *h
	sum := make(Hist, 0, len(a)+len(o))
	for len(a) > 0 && len(o) > 0 {
		switch {
		case a[0].Index < o[0].Index:
			sum, a = append(sum, a[0]), a[1:]
		case a[0].Index > o[0].Index:
			sum, o = append(sum, o[0]), o[1:]
		default:
			sum = append(sum, Bucket{a[0].Index, plus(a[0].N, o[0].N)})
			a, o = a[1:], o[1:]
		}
	}
	*h = append(append(sum, a...), o...)
}

// Count is how many durations there are.
func (h Hist) Count() (n uint64) {
	for _, b := range h {
		n += uint64(b.N)
	}
	return n
}

// Seconds returns the duration that a share of all are no longer than, to 0.4 %;
// NaN: there are none.
func (h Hist) Seconds(share float64) float64 {
	rank := max(1, uint64(math.Ceil(share*float64(h.Count()))))
	for _, b := range h {
		if uint64(b.N) >= rank {
			return middle(b.Index) / 1000
		}
		rank -= uint64(b.N)
	}
	return math.NaN()
}

// append writes h as pairs of varints: the distance to the next bucket, and what is
// in it.
func (h Hist) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(h)))
	last := uint16(0)
	for _, e := range h {
		b = binary.AppendUvarint(b, uint64(e.Index-last))
		b = binary.AppendUvarint(b, uint64(e.N))
		last = e.Index
	}
	return b
}

// Bytes is how h is sent to another node.
func (h Hist) Bytes() []byte { return h.append(nil) }

// ParseHist reads what Bytes wrote.
func ParseHist(b []byte) (Hist, error) {
	r := reader{b: b}
	h := r.hist()
	if r.bad || len(r.b) > 0 {
		return nil, errHist
	}
	return h, nil
}

var errHist = errors.New("it is no histogram")

var errRow = errors.New("it is no row")

// reader takes varints off bytes. After an error it gives zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uvarint(most uint64) uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 && most >= 0x80 { // as most are
		v := uint64(r.b[0])
		r.b = r.b[1:]
		return v
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > most {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) hist() Hist {
	n := r.uvarint(min(indexMax+1, uint64(len(r.b)/2)+1))
	if n == 0 || r.bad {
		return nil
	}
	h := make(Hist, 0, n)
	at := uint64(0)
	for i := range n {
		step := r.uvarint(indexMax)
		at += step
		count := r.uvarint(math.MaxUint32)
		if r.bad || at > indexMax || count == 0 || i > 0 && step == 0 {
			r.bad = true
			return nil
		}
		h = append(h, Bucket{uint16(at), uint32(count)})
	}
	return h
}
