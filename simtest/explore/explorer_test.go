package explore

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// explorer visits every state that a model can lead to, nearest first, so that
// the path to a broken promise is as short as any.
type explorer struct {
	m     *model
	cast  *cast
	seen  map[uint64]struct{}
	seed  maphash.Seed
	from  []step         // by state, in the order in which they were found
	notes map[string]int // what happened, and in how many transitions
	ends  int            // states in which nothing more can happen
}

// step is how a state was reached.
type step struct {
	state int32
	depth int32
	event event
}

// tally is what an exploration found.
type tally struct {
	states, transitions, depth, ends int
	lives, tries, repeats            int
	notes                            map[string]int
	whole                            bool  // everything was visited
	broken                           error // with the path that leads there
}

func (t tally) String() string {
	s := fmt.Sprintf("%d states, %d transitions, depth %d, %d ends; %d node states, %d node steps, %d repeated\n%v",
		t.states, t.transitions, t.depth, t.ends, t.lives, t.tries, t.repeats, t.notes)
	if !t.whole {
		s = "not all was visited: " + s
	}
	return s
}

func (w *world) note(what string) { w.notes[what]++ }

// begin is the world at the start of the schedule.
func (x *explorer) begin() *world {
	w := &world{explorer: x}
	w.cutNow = none
	for v := range w.visitors {
		w.visitors[v].answer, w.visitors[v].first = none, none
	}
	for h := range w.hosts {
		w.hosts[h].disk = none
	}
	x.m.prelude(w)
	w.follow()
	clear(x.notes)
	return w
}

// explore visits every state of the model, up to the first broken promise.
func explore(m *model) (tally, *cast) {
	x := &explorer{m: m, cast: newCast(m), seen: map[uint64]struct{}{}, seed: maphash.MakeSeed(), notes: map[string]int{}}
	w := x.begin()
	t := tally{notes: x.notes, whole: true}
	front := []*world{w}
	x.seen[w.key()] = struct{}{}
	x.from = append(x.from, step{state: none})
	at := 0
	var list []event
	for i := 0; i < len(front) && w.broken == nil && t.whole; i++ {
		at, w = i, front[i]
		front[i] = nil
		list = w.events(list[:0])
		if len(list) == 0 {
			x.ends++
			if m.demand.end != nil {
				w.fail(m.demand.end(w))
			}
		}
		for _, e := range list {
			t.transitions++
			next := w.copy()
			next.apply(e)
			k := next.key()
			if _, ok := x.seen[k]; ok && next.broken == nil {
				continue
			}
			x.seen[k] = struct{}{}
			x.from = append(x.from, step{int32(i), x.from[i].depth + 1, e})
			if next.broken != nil {
				at, w = len(x.from)-1, next
				break
			}
			front = append(front, next)
		}
		t.whole = m.demand.most == 0 || len(x.from) <= m.demand.most
	}
	t.states, t.ends, t.lives, t.tries, t.repeats = len(x.from), x.ends, len(x.cast.lives), len(x.cast.done), x.cast.repeats
	t.depth = int(x.from[len(x.from)-1].depth)
	if w.broken != nil {
		t.broken = fmt.Errorf("%w\n%s\n%s", w.broken, strings.Join(x.path(at, w), "\n"), w.describe())
	}
	return t, x.cast
}

// path tells how state i is reached, one line per event. It goes there again,
// and has to arrive where the exploration did.
func (x *explorer) path(i int, to *world) []string {
	var events []event
	for ; i > 0; i = int(x.from[i].state) {
		events = append(events, x.from[i].event)
	}
	slices.Reverse(events)
	w := x.begin()
	lines := make([]string, 0, len(events))
	for _, e := range events {
		lines = append(lines, w.name(e))
		w.apply(e)
	}
	if w.key() != to.key() {
		lines = append(lines, "(but this path leads elsewhere: the world is not a function of its events)")
	}
	return lines
}
