package notify

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// State is how a condition looks at one moment. Between is neither: a figure has
// left the range where the condition holds, and has not reached the one where it is
// over.
type State int

// The states.
const (
	Between State = iota
	On
	Off
)

// Holds is the state of what has no range between.
func Holds(is bool) State {
	if is {
		return On
	}
	return Off
}

// Reading is a condition as it looks now, and what is sent when it begins and ends.
type Reading struct {
	Key    string // names the condition in the whole cluster
	State  State
	After  time.Duration // until it is told that it holds, without a break
	Settle time.Duration // until it is told that it is over, without a break
	Begins Event         // without ID and time
	Ends   Event         // the same; without a type its end is not told
	Root   string        // is in the ID of the first event; later ones follow from the one before
	Mine   bool          // this node is the one that tells
}

// Told is what was told of a condition last.
type Told struct {
	Key string    `json:"key"`
	On  bool      `json:"on"`
	ID  string    `json:"id"` // of the event
	At  time.Time `json:"at"`
}

// News is what a node tells the others of a condition.
type News struct {
	Told  Told   `json:"told"`
	Event *Event `json:"event,omitempty"` // nil: it was told before
}

// conditionsMax bounds the conditions of which something was told; beyond, the
// oldest is forgotten.
const conditionsMax = 10_000

// Conditions remembers what was told of each condition, and tells when that is no
// longer so. All nodes look, one tells, and the others hear of it: whoever has to go
// on in its place knows as much. The ID of an event follows from that of the one
// before, so two nodes that tell the same of a condition give it the same ID.
type Conditions struct {
	mu    sync.Mutex
	told  map[string]Told
	since map[string]time.Time // when a condition began to be otherwise than was told
}

// NewConditions returns conditions of which so much was told.
func NewConditions(told []Told) *Conditions {
	c := &Conditions{told: map[string]Told{}, since: map[string]time.Time{}}
	for _, t := range told {
		c.told[t.Key] = t
	}
	return c
}

// Look takes in how all conditions look now, and returns what is to be told.
func (c *Conditions) Look(now time.Time, readings []Reading) (news []News) {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := make(map[string]time.Time, len(readings))
	for i := range readings {
		r := &readings[i]
		was := c.told[r.Key]
		began, pending := c.since[r.Key]
		switch {
		case was.On == (r.State == On) && r.State != Between:
			continue
		case !pending && r.State == Between:
			continue
		case !pending:
			began = now
		}
		since[r.Key] = began
		wait := r.After
		if was.On {
			wait = r.Settle
		}
		if r.Mine && r.State != Between && now.Sub(began) >= wait {
			delete(since, r.Key)
			news = append(news, c.turn(now, r, was))
		}
	}
	c.since = since
	return news
}

// turn tells the other of a condition than before. The caller holds c.mu.
func (c *Conditions) turn(now time.Time, r *Reading, was Told) News {
	e := r.Begins
	if was.On {
		e = r.Ends
	}
	e.ID = ID(r.Key, e.Type, cmp.Or(was.ID, r.Root))
	e.Time = now.UTC()
	n := News{Told: Told{Key: r.Key, On: !was.On, ID: e.ID, At: e.Time}}
	if e.Type != "" {
		n.Event = &e
	}
	c.keep(n.Told)
	return n
}

// Hear takes in what another node has told.
func (c *Conditions) Hear(t Told) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if was, ok := c.told[t.Key]; !ok || later(t, was) {
		delete(c.since, t.Key)
		c.keep(t)
	}
}

// later reports whether a was told after b. Of two at the same moment one counts,
// the same at all nodes.
func later(a, b Told) bool { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) > 0 }

func (c *Conditions) keep(t Told) {
	if _, known := c.told[t.Key]; !known && len(c.told) >= conditionsMax {
		oldest := t
		for _, o := range c.told {
			if later(oldest, o) {
				oldest = o
			}
		}
		delete(c.told, oldest.Key)
	}
	c.told[t.Key] = t
}

// Told is what was told of all conditions, by name.
func (c *Conditions) Told() []Told {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Told, 0, len(c.told))
	for _, t := range c.told {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b Told) int { return cmp.Compare(a.Key, b.Key) })
	return all
}
