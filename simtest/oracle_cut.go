package simtest

import (
	"cmp"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// waveOf is what the checker remembers of a wave: who was listed, and the era.
type waveOf struct {
	epoch qpid.Epoch
	done  bool // somebody has installed it
	era   int32
	hosts [hostsMax / 64]uint64 // set
	least qpid.Weight           // the lightest key that was entitled by its cut …
	most  qpid.Weight           // … and the heaviest; of clean tickets
	room  uint8

	keying int64 // of those keys
}

func (s *waveOf) lists(h int32) bool { return s.hosts[h/64]>>(h%64)&1 != 0 }

// era counts what has happened to any node, and changes of the coordinator:
// while it stands still, views are stable and nobody has forgotten anything.
func (w *world) era() int32 {
	n := w.checker.leads
	for i := range w.hosts {
		n += w.hosts[i].mishaps
	}
	return n
}

// gatheredUpTo notes the T of a wave.
func (c *checker) gatheredUpTo(num, t uint64) { c.newestT[num] = max(c.newestT[num], t) }

// gathered notes the beginning of a wave.
func (w *world) gathered(g *eviction.Gather, list []eviction.Member) {
	c := &w.checker
	n := len(c.gathers)
	if n > 0 && c.gathers[(c.gatherNext+n-1)%n].epoch == g.Epoch {
		return
	}
	if g.Lead.Member != c.gatherer {
		c.gatherer = g.Lead.Member
		c.leads++
	}
	s := waveOf{epoch: g.Epoch, era: w.era()}
	c.keepNames(g.Epoch, list)
	for _, m := range list {
		h := w.lives[w.lifeOf(m)].host
		s.hosts[h/64] |= 1 << (h % 64)
	}
	if n < 64 {
		c.gathers = append(c.gathers, s)
		return
	}
	c.gathers[c.gatherNext] = s
	c.gatherNext = (c.gatherNext + 1) % n
}

// entitled files a ticket under the wave whose cut reached it.
func (w *world) entitled(t *place, h *host) {
	c := &w.checker
	t.eraNow, t.turnAt = w.era(), h.index
	t.clean = !t.touched && t.home == h.index && t.allow == 0 && h.mishaps == t.base
	if !t.clean {
		return
	}
	s := waveOf{epoch: qpid.Epoch{Num: t.epoch}, era: t.eraNow} // a wave of one sends no gather
	s.hosts[h.index/64] |= 1 << (h.index % 64)
	if installed := h.n.Status().Installed; installed.Num != t.epoch && c.twoOf(t.epoch) {
		t.clean = false // a cut says the number of its wave, and not whose it is
		return
	} else if g := c.gatherOf(t.epoch, installed, h.index); g != nil {
		s = *g
	}
	s.room, s.least, s.most, s.keying = t.room, t.key, t.key, keyingOf(&w.o.Rooms[t.room], t)
	for i := len(c.waves) - 1; i >= 0 && i > len(c.waves)-100; i-- {
		if o := &c.waves[i]; o.epoch == s.epoch && o.era == s.era && o.room == s.room && o.hosts == s.hosts && o.keying == s.keying {
			o.add(t)
			return
		}
	}
	c.waves = append(c.waves, s)
}

// gatherOf finds the wave of an epoch that h was in: the one that it has just
// installed, or one that others have and whose cut came with a later gather.
func (c *checker) gatherOf(epoch uint64, installed qpid.Epoch, h int32) *waveOf {
	for i := len(c.gathers); i > 0; i-- { // the newest first: after a new founding numbers come again
		g := &c.gathers[(c.gatherNext+i-1)%len(c.gathers)]
		if installed.Num == epoch && g.epoch == installed || installed.Num != epoch && g.epoch.Num == epoch && g.lists(h) && g.done {
			return g
		}
	}
	return nil
}

// twoOf reports whether two coordinators have given that number to waves lately.
func (c *checker) twoOf(epoch uint64) bool {
	by := ""
	other := func(e qpid.Epoch) bool {
		if e.Num != epoch || by == string(e.Coordinator) {
			return false
		}
		was := by
		by = string(e.Coordinator)
		return was != ""
	}
	for i := range c.gathers {
		if c.gathers[i].done && other(c.gathers[i].epoch) {
			return true
		}
	}
	return slices.ContainsFunc(c.alone, other)
}

// installed notes that a wave of these nodes was committed. One of a single node
// has no gather, and may be a side's of its own: while its node and another both
// lead, each may overtake the commits of the other.
func (c *checker) installed(e qpid.Epoch, list []eviction.Member) {
	if len(list) == 1 && list[0] != c.gatherer {
		c.gatherer = list[0]
		c.leads++
	}
	for i := range c.gathers {
		if c.gathers[i].epoch == e {
			c.gathers[i].done = true
		}
	}
	if len(list) == 1 {
		c.alone = append(c.alone[max(0, len(c.alone)-63):], e)
	}
}

func (s *waveOf) add(t *place) {
	if t.key.Less(s.least) {
		s.least = t.key
	}
	if s.most.Less(t.key) {
		s.most = t.key
	}
}

// S7, the certified prefix, when the run is over: when a wave entitles a
// ticket, every lighter one that waited without a break, at a listed node that
// nothing has happened to since it joined, is entitled by that wave at the
// latest. An exception is a wave after whose gather anything happened to any
// node, or another node began to lead, before the lighter one's turn: its cut
// may have died with the few who knew it, or the next wave overtaken its commit. Nothing bounds the order of random rooms or of deleteMins.
func (w *world) checkOrder() {
	alike := w.checker.alike()
	for i := range w.crowd.tickets {
		t := &w.crowd.tickets[i]
		o := &w.o.Rooms[t.room]
		if !t.clean || !alwaysFIFO(o) || o.Algorithm != eviction.ByCut || w.checker.rooms[t.room].sides > 0 {
			continue
		}
		for _, waves := range alike {
			s := heaviestBefore(waves, t.epoch)
			if s == nil || s.room != t.room || s.keying != keyingOf(o, t) || s.era != t.eraNow || !s.lists(t.turnAt) || !t.key.Less(s.most) {
				continue
			}
			w.fail("S7", "room %s: ticket %d (%s) of %s is entitled at %d, a heavier one (%s) was at %v, a wave of %b", o.Name, w.ticketOf(t.id),
				weight(t.key), w.hosts[t.turnAt].name, t.epoch, weight(s.most), s.epoch, s.hosts[0])
			return
		}
	}
}

// alike lists the waves of one room, era and list together, by epoch. With each
// comes the heaviest key of it and all before.
func (c *checker) alike() (all [][]upTo) {
	type kind struct {
		room   uint8
		era    int32
		hosts  [hostsMax / 64]uint64
		keying int64
	}
	place := map[kind]int{}
	for i := range c.waves {
		s := &c.waves[i]
		k := kind{s.room, s.era, s.hosts, s.keying}
		at, ok := place[k]
		if !ok {
			at = len(all)
			place[k], all = at, append(all, nil)
		}
		all[at] = append(all[at], upTo{s.epoch.Num, s})
	}
	for _, waves := range all {
		slices.SortFunc(waves, func(a, b upTo) int { return cmp.Compare(a.epoch, b.epoch) })
		for i := 1; i < len(waves); i++ {
			if before := waves[i-1].heaviest; waves[i].heaviest.most.Less(before.most) {
				waves[i].heaviest = before
			}
		}
	}
	return all
}

// upTo is the wave with the heaviest key of those up to an epoch.
type upTo struct {
	epoch    uint64
	heaviest *waveOf
}

// heaviestBefore returns the wave with the heaviest key before epoch, nil if
// there is none.
func heaviestBefore(waves []upTo, epoch uint64) *waveOf {
	i, _ := slices.BinarySearchFunc(waves, epoch, func(u upTo, epoch uint64) int { return cmp.Compare(u.epoch, epoch) })
	if i == 0 {
		return nil
	}
	return waves[i-1].heaviest
}
