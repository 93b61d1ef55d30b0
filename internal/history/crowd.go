package history

import (
	"cmp"
	"math"
	"slices"
)

// Crowd is what became of people, as admission logs alone tell it. It is not safe for
// concurrent use.
type Crowd struct {
	room     string
	from, to int64 // Unix µs: what happens before or after does not count
	max      int
	people   map[string]*guest
}

// guest is one ticket.
type guest struct {
	entered int64 // Unix µs; 0: not yet, or before
	left    int64
	waited  bool
	dropped bool
	came    bool // joined within the span
	joined  int64
}

// NewCrowd counts people of a room between two times, and so many at most.
func NewCrowd(room string, from, to int64, people int) *Crowd {
	return &Crowd{room: room, from: from, to: to, max: people, people: make(map[string]*guest)}
}

// Add takes in a line of a log. Lines of several nodes may come in any order.
func (c *Crowd) Add(e Entry) {
	if e.Room != c.room {
		return
	}
	g := c.people[e.Ticket]
	if g == nil {
		if len(c.people) >= c.max {
			return
		}
		g = &guest{joined: int64(e.Joined), came: int64(e.Joined) >= c.from && int64(e.Joined) <= c.to}
		c.people[e.Ticket] = g
	}
	if e.At > c.to {
		return // somebody who came, and waits when the span is over
	}
	switch e.Event {
	case Admitted, Open, Through:
		if g.entered == 0 || e.At < g.entered {
			g.entered, g.waited = e.At, e.Event != Open
		}
	case Ended:
		g.left = max(g.left, e.At)
	case Dropped:
		g.dropped = true
	case Anew:
		g.came = false // the person waits on under another ticket
	}
}

// Counted is a Crowd, counted. Of people to whom nothing has happened yet but that they
// came no log knows. Times are in seconds, in ascending order.
type Counted struct {
	Came, GotIn, WalkedIn, GaveUp, MostAtOnce int
	Waits, Visits                             []float64
	First, Last                               int64 // Unix µs: of what was seen; 0: nothing
}

// Count counts. Whoever is on the site when the span begins and of whose entry the
// logs know counts towards the most at once.
func (c *Crowd) Count() (n Counted) {
	type change struct {
		at int64
		by int
	}
	var changes []change
	for _, g := range c.people {
		n.see(g.joined)
		if g.came {
			n.Came++
			if g.dropped && g.entered == 0 {
				n.GaveUp++
			}
		}
		if g.entered == 0 {
			continue
		}
		n.see(g.entered)
		changes = append(changes, change{max(g.entered, c.from), 1})
		if g.left > 0 {
			changes = append(changes, change{max(g.left, c.from), -1})
			if g.left >= c.from {
				n.see(g.left)
				n.Visits = append(n.Visits, float64(max(0, g.left-g.entered))/1e6)
			}
		}
		if g.entered < c.from {
			continue
		}
		n.GotIn++
		if !g.waited {
			n.WalkedIn++
			continue
		}
		n.Waits = append(n.Waits, float64(max(0, g.entered-g.joined))/1e6)
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now := 0
	for _, ch := range changes {
		now += ch.by
		n.MostAtOnce = max(n.MostAtOnce, now)
	}
	slices.Sort(n.Waits)
	slices.Sort(n.Visits)
	return n
}

func (n *Counted) see(at int64) {
	if n.First == 0 || at < n.First {
		n.First = at
	}
	n.Last = max(n.Last, at)
}

// Share is the time that a share of all are no longer than, by nearest rank; nil:
// there are none.
func Share(sorted []float64, share float64) *float64 {
	if len(sorted) == 0 {
		return nil
	}
	rank := int(math.Ceil(share * float64(len(sorted))))
	return &sorted[max(1, rank)-1]
}
