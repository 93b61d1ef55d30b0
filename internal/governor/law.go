package governor

// Config says what is asked of an origin.
type Config struct {
	Floor  int     // people for whom it is never too much; 0: a tenth of the limit
	Errors float64 // share of its answers that may fail
}

// Room is how a room is when a window is over.
type Room struct {
	Limit  int // as configured
	Bound  int // by the governor; 0: none
	Inside int // people on the site, or called and on the way
}

// Next returns the bound that follows from a verdict, 0 where the limit needs none:
//
//	overloaded: 9/10 of the people inside, or what it is if that is less
//	healthy:    a hundredth of the limit more, where nine tenths of it are used
//
// The result is at least the floor, and below the limit.
func (c Config) Next(r Room, v Verdict) int {
	if r.Limit <= 0 {
		return 0
	}
	bound := r.Limit
	if r.Bound > 0 {
		bound = min(bound, r.Bound)
	}
	switch {
	case v == Overloaded:
		bound = min(bound, r.Inside*9/10)
	case v == Healthy && 10*r.Inside >= 9*bound:
		bound += max(1, r.Limit/100)
	}
	if bound = max(bound, c.floor(r.Limit)); bound >= r.Limit {
		return 0
	}
	return bound
}

// floor is at least 1: a room without anybody would never again show what its origin bears.
func (c Config) floor(limit int) int {
	if c.Floor > 0 {
		return c.Floor
	}
	return max(1, (limit+9)/10)
}
