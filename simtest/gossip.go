package simtest

import "github.com/anteroom/anteroom/eviction"

// gossip stands in for memberlist: every host hears of every change on its
// own, some time after it, unless it is undone before.
type gossip struct {
	places  int32
	pairs   []belief // observer*places + subject
	side    []int32  // hosts that gossip can reach one another share a number
	due     []bool   // an evView is on the agenda
	queue   []int32
	suspect []int16 // pairs: faults that make the observer think the subject dead
}

// belief is what one host thinks of another.
type belief struct {
	life int32 // that it believes alive; none
	want int32 // that it will believe at
	at   int64 // true time; 0: no change is due
}

func (g *gossip) init(places int) {
	g.places = int32(places)
	g.pairs = make([]belief, places*places)
	g.suspect = make([]int16, places*places)
	g.side = make([]int32, places)
	g.due = make([]bool, places)
	for i := range g.pairs {
		g.pairs[i] = belief{life: none, want: none}
	}
}

func (g *gossip) pair(observer, subject int32) *belief { return &g.pairs[observer*g.places+subject] }

// forget empties the memory of a host that starts.
func (g *gossip) forget(h int32) {
	for s := range g.places {
		*g.pair(h, s) = belief{life: none, want: none}
	}
	g.due[h] = false
}

// topology follows a change of who lives or of what connects them.
func (w *world) topology() {
	w.findSides()
	for o := range w.hosts {
		if !w.hosts[o].running() {
			continue
		}
		for s := range w.hosts {
			if s != o {
				w.notice(int32(o), int32(s))
			}
		}
	}
}

// findSides labels the connected components of hosts that run: gossip goes
// around a dead link, so only a host without any path is missed.
func (w *world) findSides() {
	g := &w.gossip
	for i := range g.side {
		g.side[i] = none
	}
	for start := range w.hosts {
		if g.side[start] != none || !w.hosts[start].running() {
			continue
		}
		g.queue = append(g.queue[:0], int32(start))
		g.side[start] = int32(start)
		for len(g.queue) > 0 {
			a := g.queue[len(g.queue)-1]
			g.queue = g.queue[:len(g.queue)-1]
			for b := range int32(len(w.hosts)) {
				if g.side[b] == none && w.hosts[b].running() && !w.wires.dead(a, b) && !w.wires.dead(b, a) {
					g.side[b] = int32(start)
					g.queue = append(g.queue, b)
				}
			}
		}
	}
}

// truth is what a perfect detector at o would say of s now.
func (w *world) truth(o, s int32) int32 {
	g := &w.gossip
	h := &w.hosts[s]
	if !h.running() || g.side[o] != g.side[s] || g.suspect[o*g.places+s] > 0 {
		return none
	}
	return h.life
}

// notice makes o learn about s in good time.
func (w *world) notice(o, s int32) {
	b := w.gossip.pair(o, s)
	truth := w.truth(o, s)
	switch {
	case truth == b.life:
		b.at = 0
		return
	case b.at != 0 && b.want == truth:
		return
	}
	b.want, b.at = truth, w.now+w.newsDelay(b.life, s)
	w.agenda.push(b.at, evBelief, o, s)
}

// newsDelay draws how long a change takes to be noticed.
func (w *world) newsDelay(believed, s int32) int64 {
	r := w.rngNet
	if believed == none || w.hosts[s].leaving { // it appears, or says so itself
		return 10_000 + r.Int64N(490_000)
	}
	if h := &w.hosts[s]; h.up() && h.life != believed && r.IntN(2) == 0 { // a quick restart is an update
		return 10_000 + r.Int64N(190_000)
	}
	return w.o.Faults.Detect.draw(r)
}

// believe changes o's mind about s.
func (w *world) believe(o, s int32, at int64) {
	h := &w.hosts[o]
	b := w.gossip.pair(o, s)
	if b.at != at {
		return // it was undone
	}
	b.at = 0
	if !h.running() {
		return // resume looks again
	}
	b.life = b.want
	w.note('b', uint64(o)<<32|uint64(s), uint64(b.life+1))
	w.viewSoon(h)
}

// viewSoon tells the host's node in 50 to 100 ms, with whatever else comes.
func (w *world) viewSoon(h *host) {
	if !w.gossip.due[h.index] {
		w.gossip.due[h.index] = true
		w.agenda.push(w.now+50_000+w.rngNet.Int64N(50_000), evView, h.index, 0)
	}
}

// tellView hands a node the view that its host believes in.
func (w *world) tellView(h *host) {
	w.gossip.due[h.index] = false
	if !h.up() {
		return
	}
	if h.paused > 0 {
		h.hold(event{kind: evView, a: h.index})
		return
	}
	peers := []eviction.Peer{w.lives[h.life].peer}
	for s := range w.hosts {
		if b := w.gossip.pair(h.index, int32(s)); b.life != none && int32(s) != h.index {
			peers = append(peers, w.lives[b.life].peer)
		}
	}
	v := eviction.NewView(peers)
	w.note('v', uint64(h.index), uint64(len(v)))
	if w.trace.print != nil {
		w.printf("%s sees %s", h.name, w.names(v))
	}
	h.view = v
	h.relays.See(h.clock.read(w.now).Boot, v)
	h.n.SetView(h.clock.read(w.now), v)
	w.drain(h)
}
