package governor

import (
	"maps"
	"time"
)

const (
	windowMin = 2 * time.Second  // the shortest window
	windowMax = 30 * time.Second // one that has too few answers by then is over without a verdict
	settling  = time.Second      // after an overload: answers of before it come until then, and count for nothing
	silentMax = time.Minute      // a node that says nothing for so long is forgotten
)

// Watch sums up what the nodes say of one origin.
type Watch struct {
	began  time.Time // of the window
	window Figures
	nodes  map[string]said
}

type said struct {
	Figures
	at time.Time
}

// Hear takes in the figures of one life of a node. The first ones are what later ones
// are compared with: nobody knows how old they are.
func (w *Watch) Hear(node string, f Figures, now time.Time) {
	if w.nodes == nil {
		w.nodes = map[string]said{}
	}
	if old, ok := w.nodes[node]; ok && !now.Before(w.began) {
		w.window = w.window.Plus(f.Since(old.Figures))
	}
	w.nodes[node] = said{f, now}
}

// Close returns what a window has come to, if it is over, and begins the next.
func (w *Watch) Close(c Config, now time.Time) (j Judgement, over bool) {
	if w.began.IsZero() {
		w.began = now
	}
	age := now.Sub(w.began)
	if age < windowMin {
		return j, false
	}
	if j = c.Judge(w.window); j.Verdict == Unknown && age < windowMax {
		return j, false
	}
	w.began, w.window = now, Figures{}
	if j.Verdict == Overloaded {
		w.began = now.Add(settling)
	}
	maps.DeleteFunc(w.nodes, func(_ string, s said) bool { return now.Sub(s.at) > silentMax })
	return j, true
}
