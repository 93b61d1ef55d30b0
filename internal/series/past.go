package series

import "math"

// Lasting is how much longer than most visits last a history has to be for its visits to
// tell how long they last: of a crowd that has just come only the short visits are over.
const Lasting = 4

// Past is how long the visits to a room lasted since from, Unix seconds, at all nodes of
// which something is kept here: those that had these terms. It is empty where 95 % of them
// lasted for no fourth of the time from the first of them to now; enough is when they will
// have, if no more come, and 0 where there are none.
func (k *Kept) Past(room string, terms uint32, from, now int64) (all Hist, enough int64) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	first := int64(math.MaxInt64)
	add := func(r *Row) bool {
		if len(r.Visits) > 0 && r.Counts[Terms] == terms && r.At >= from {
			all.Merge(r.Visits)
			first = min(first, r.At)
		}
		return true
	}
	var u unpacker
	for _, rooms := range k.nodes {
		m := rooms[room]
		if m == nil {
			continue
		}
		for i := range m.hours {
			b := &m.hours[i]
			if b.start+hour <= from {
				continue
			}
			whole := true
			k.visit(&u, b, hour, func(r *Row) bool {
				whole = b.start >= from && (len(r.Visits) == 0 || r.Counts[Terms] != 0)
				return !whole || add(r)
			})
			if !whole {
				k.visit(&u, b, minute, add)
			}
		}
		for _, c := range m.open {
			_ = Decode(c.rows, c.start, minute, add) // what was damaged was left out when it was read
		}
	}
	if len(all) == 0 {
		return nil, 0
	}
	if enough = first + int64(math.Ceil(Lasting*all.Seconds(0.95))); now < enough {
		return nil, enough
	}
	return all, enough
}

// Each tells of each duration in the histogram, in ms, and how often it was there.
func (h Hist) Each(tell func(ms float64, n uint32)) {
	for _, b := range h {
		tell(middle(b.Index), b.N)
	}
}
