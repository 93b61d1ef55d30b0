package eviction

// tokenLife is how long a dealt pacing token may be spent, in microseconds.
const tokenLife = 1_000_000

// bucket meters new users per minute at a coordinator. It never holds more
// than one second's worth (at least one token), and a new coordinator's is
// empty until every token dealt before has lapsed. Units: millionths of a
// token; µs.
type bucket struct {
	level int64
	at    int64
	from  int64 // boot time before which nothing is dealt
}

// fill adds what has accrued by now at perMinute × num / den and returns how
// many whole tokens there are.
func (b *bucket) fill(now int64, perMinute, num, den int) int {
	if now <= b.from || den <= 0 {
		b.at = now
		return 0
	}
	since := min(max(b.at, b.from), now)
	accrued := float64(now-since) * float64(perMinute) / 60 * float64(num) / float64(den)
	b.level = min(b.level+int64(accrued), max(1_000_000, int64(perMinute)*1_000_000/60))
	b.at = now
	return int(b.level / 1_000_000)
}

// take removes n tokens.
func (b *bucket) take(n int) { b.level -= int64(n) * 1_000_000 }

// restart empties the bucket of a coordinator that took over at now.
func (b *bucket) restart(now int64, deadline int64) {
	*b = bucket{at: now, from: now + tokenLife + deadline}
}
