package estimate

// Lasted is that so many visits were over at that age.
type Lasted struct {
	Age int64 // µs
	N   float64
}

// How much visits of before count beside those that are seen: as much as four of them, or
// the one in ten that there is of fewer. It is hardly more than it takes to say anything
// (endsMin), so that a history that is wrong is soon overruled: where visits last for half
// or twice as long as before, ten were off by far more, and no better where they do not.
const (
	beforeMost  = 4
	beforeShare = 0.1
)

// Before has the estimate begin with how long visits to the room lasted before anything
// that was counted here: as the prior of a life table. It takes the place of what it was
// told of before; nil: of nothing.
func (v *Visits) Before(all []Lasted) {
	n := 0.0
	for _, l := range all {
		n += max(0, l.N)
	}
	if n*beforeShare < endsMin {
		v.visits.before = nil
		return
	}
	weight := min(beforeMost, n*beforeShare) / n
	before := new(life)
	for _, l := range all {
		b, share := bucketOf(l.Age), max(0, l.N)*weight
		before.ended[b] += share
		before.ages[b] += share * float64(max(0, l.Age))
	}
	reached := 0.0
	for b := buckets - 1; b >= 0; b-- {
		reached += before.ended[b]
		before.reached[b] = reached
	}
	v.visits.before = before
}
