package eviction

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/anteroom/anteroom/qpid"
)

// S13 where sides with a coordinator each come apart and meet again, nodes are lost, and
// their slots are made again when nobody else is away, a coordinator stands still while
// another leads, commits do not reach a node, and the rate is another one: before, while and
// after a crowd comes to where all was quiet. Those who were lost let in what they may as late
// as they may.
func TestPacersOfSidesHoldTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newSidesWorld(rapid.IntRange(2, 6).Draw(t, "nodes"), rapid.SampledFrom([]int{6, 60, 61, 1200}).Draw(t, "rate"))
		for range 2 {
			for range rapid.IntRange(0, 3).Draw(t, "before") {
				w.happens(t)
			}
			w.run(t, 60*second, 0)
			for range rapid.IntRange(1, 4).Draw(t, "while") {
				w.run(t, rapid.SampledFrom([]int64{0, 1, 2, 4, 6, 9, 15, 50}).Draw(t, "later")*200_000, rapid.SampledFrom([]int{0, 1, 1 << 20, 1 << 20}).Draw(t, "come"))
				w.happens(t)
			}
			w.run(t, 62*second, 1<<20)
		}
	})
}

// lately notes that list is in a wave, and returns how many were ever in one with any of it, as
// far as these have heard.
func (w *sidesWorld) lately(list []Member) int {
	heard := map[Member]int64{}
	for _, m := range list {
		for o, at := range w.met[m] {
			heard[o] = max(heard[o], at)
		}
	}
	w.q.late = 0
	for m, at := range heard {
		if !slices.Contains(list, m) {
			w.q.late = max(w.q.late, drifted(tokenLife)-(w.now-at))
		}
	}
	for _, m := range list {
		heard[m] = w.now
	}
	for _, m := range list {
		w.met[m] = maps.Clone(heard)
	}
	return len(heard)
}

// sidesWorld is a paceWorld of sides that share slots between them. Those of the lost are
// made again when all that are left are one side.
type sidesWorld struct {
	*paceWorld
	sides  []*pacedSide
	lost   []Member
	gone   int  // slots of the lost
	remake bool // make them again
	met    map[Member]map[Member]int64
	rates  []rateSince
}

type rateSince struct {
	at        int64
	perMinute int
}

type pacedSide struct {
	pacer pacer
	by    qpid.NodeID // its coordinator
	list  []Member
	slots int
	late  int // waves that its coordinator makes yet as if nobody had left it
	had   int // slots, then
}

func newSidesWorld(nodes, perMinute int) *sidesWorld {
	w := &sidesWorld{paceWorld: newPaceWorld(nodes, perMinute), met: map[Member]map[Member]int64{}}
	w.q.all, w.q.sides, w.q.underWay, w.q.deadline = 12, true, 400_000, 400_000
	w.rates = []rateSince{{0, perMinute}}
	w.sides = []*pacedSide{{list: slices.Clone(w.list), slots: w.q.all}}
	w.leadBy(w.sides[0])
	return w
}

// leadBy has a coordinator lead a side that has not, or no more.
func (w *sidesWorld) leadBy(s *pacedSide) {
	w.takeOver(w.now, 0)
	s.pacer, s.by, s.late = w.p, w.q.by, 0
}

// happens changes who is a side with whom.
func (w *sidesWorld) happens(t *rapid.T) {
	switch rapid.SampledFrom([]string{"split", "split", "meet", "whole", "loss", "lead", "stand", "rate", "deaf", "hears"}).Draw(t, "what") {
	case "split":
		w.split(t)
	case "meet":
		w.meet(t)
	case "whole":
		for len(w.sides) > 1 {
			w.meet(t)
		}
		w.remake = w.gone > 0
	case "loss":
		w.lose(t)
	case "lead":
		w.leadBy(rapid.SampledFrom(w.sides).Draw(t, "led"))
	case "stand":
		w.stand(t)
	case "deaf":
		w.deaf = rapid.SampledFrom(w.list).Draw(t, "deaf")
	case "hears":
		w.deaf = Member{}
	case "rate":
		w.q.perMinute = rapid.SampledFrom([]int{6, 60, 61, 1200}).Draw(t, "to")
		w.rates = append(w.rates, rateSince{w.now, w.q.perMinute})
	}
}

// most returns how many may come within the minute that ends now. A rate of before holds for those
// who have its tokens.
func (w *sidesWorld) most() (most int) {
	for i, r := range w.rates {
		if i+1 == len(w.rates) || w.rates[i+1].at+tokenLife > w.now-minute {
			most = max(most, r.perMinute)
		}
	}
	return most
}

// came returns how many came within it.
func (w *sidesWorld) came() (n int) {
	for i := len(w.calls) - 1; i >= 0 && w.now-w.calls[i] < minute; i-- {
		n++
	}
	return n
}

// stand has a side's coordinator stand still while another leads, and go on without a node
// that was in the waves of that one, and is lost.
func (w *sidesWorld) stand(t *rapid.T) {
	s := rapid.SampledFrom(w.sides).Draw(t, "stands")
	if len(s.list) < 3 {
		return
	}
	list, stood, by := s.list, s.pacer.clone(), s.by
	w.leadBy(s)
	s.list = slices.Clone(list[1:])
	w.run(t, rapid.Int64Range(0, 15).Draw(t, "for")*200_000, rapid.SampledFrom([]int{0, 1 << 20}).Draw(t, "come"))
	j := rapid.IntRange(1, len(list)-1).Draw(t, "lost")
	w.lost = append(w.lost, list[j])
	s.list, s.pacer, s.by = slices.Delete(slices.Clone(list), j, j+1), stood, by
}

// split has some nodes of a side go on by themselves, with their slots.
func (w *sidesWorld) split(t *rapid.T) {
	s := rapid.SampledFrom(w.sides).Draw(t, "side")
	if len(s.list) < 2 {
		return
	}
	k := rapid.IntRange(1, len(s.list)-1).Draw(t, "stay")
	off := &pacedSide{list: slices.Clone(s.list[k:]), slots: rapid.IntRange(0, s.slots).Draw(t, "slots")}
	w.leadBy(off)
	s.late, s.had = rapid.IntRange(0, int(w.q.underWay/200_000)).Draw(t, "late"), s.slots
	s.list, s.slots = s.list[:k:k], s.slots-off.slots
	w.sides = append(w.sides, off)
}

// meet has two sides go on as one, under either's coordinator.
func (w *sidesWorld) meet(t *rapid.T) {
	if len(w.sides) < 2 {
		return
	}
	w.sides = rapid.Permutation(w.sides).Draw(t, "order")
	n := len(w.sides) - 1
	to, from := w.sides[n-1], w.sides[n]
	to.late = 0
	to.list, to.slots, w.sides = append(to.list, from.list...), to.slots+from.slots, w.sides[:n]
	w.waveOf(to, 1) // in which nobody is let in: slots pass between those alone who are in one
}

// lose ends a node, and its side's coordinator if it is that.
func (w *sidesWorld) lose(t *rapid.T) {
	i := rapid.IntRange(0, len(w.sides)-1).Draw(t, "of")
	s := w.sides[i]
	j := rapid.IntRange(0, len(s.list)-1).Draw(t, "lost")
	if len(w.sides) == 1 && len(s.list) == 1 {
		return
	}
	w.lost = append(w.lost, s.list[j])
	s.list = slices.Delete(slices.Clone(s.list), j, j+1)
	slots := rapid.IntRange(0, s.slots).Draw(t, "slots")
	if len(s.list) == 0 {
		slots = s.slots
	}
	w.gone, s.slots = w.gone+slots, s.slots-slots
	switch {
	case len(s.list) == 0:
		w.sides = slices.Delete(w.sides, i, i+1)
	case j == 0:
		w.leadBy(s)
	}
}

// run has each side make waves, after each of which up to come people are let in at each node.
func (w *sidesWorld) run(t *rapid.T, long int64, come int) {
	for end := w.now + long; w.now < end; {
		w.now += 200_000
		for _, m := range w.lost {
			if w.now+200_000 >= w.have[m].tokenTo {
				w.spend(m, come)
			}
		}
		for _, s := range w.sides {
			w.waveOf(s, max(1, come))
			for _, m := range s.list {
				w.spend(m, come)
			}
		}
		if n, most := w.came(), w.most(); n > most {
			t.Fatalf("%d let in within a minute at a rate of %d", n, most)
		}
	}
}

// waveOf makes a wave of a side, each node of which needs so many tokens.
func (w *sidesWorld) waveOf(s *pacedSide, needs int) {
	w.p, w.q.by, w.q.remade, w.q.lost = s.pacer, s.by, w.remake && len(w.sides) == 1, never
	if w.q.remade {
		s.slots, w.gone, w.remake = s.slots+w.gone, 0, false
	}
	if w.gone > 0 || len(w.sides) > 1 {
		w.q.lost = w.now
	}
	w.q.share, w.q.lately = s.slots, w.lately(s.list)
	if s.late > 0 {
		w.q.share, s.late = s.had, s.late-1
	}
	need := make([]int, len(s.list))
	for i := range need {
		need[i] = needs
	}
	w.wave(s.list, need, func() {})
	s.pacer = w.p
}

// A side deals in proportion to its slots, and nothing without any.
func TestPacerOfASide(t *testing.T) {
	p := pacer{dueTo: never, away: never, dealt: never, known: true}
	p.fill(0, quota{perMinute: 6000, share: 1, all: 4, nodes: 1})
	if got := p.fill(second, quota{perMinute: 6000, share: 1, all: 4, nodes: 1}); got != 25 {
		t.Errorf("%d tokens for a quarter of the slots at 100 a second, want 25", got)
	}
	if got := p.fill(2*second, quota{perMinute: 6000, all: 4, nodes: 1}); got != 0 {
		t.Errorf("%d tokens for a share of nothing", got)
	}
}

// A node that heard of no commit of the side that it comes from may have left it in the middle
// of a wave, which goes on by its slots, too.
func TestPacerOwesForWhomASideMayCountYet(t *testing.T) {
	for _, sides := range []bool{false, true} {
		p := pacer{}
		p.restart(0, 0, 0)
		p.hear(0, quota{perMinute: 6000, share: 1, all: 2, nodes: 1, sides: sides}, []Member{{Name: "a"}}, []RoomNode{{Born: 1, Dealt: qpid.Epoch{Coordinator: "-"}}})
		if p.owes != sides {
			t.Errorf("where there may be sides %t: it owes %t", sides, p.owes)
		}
	}
}

// What a node let in at another side, of that one's share, is no dearer for this side's
// being small.
func TestPacerCountsWhatAnotherSideLetIn(t *testing.T) {
	p, q, at := pacer{}, quota{perMinute: 6000, share: 1, all: 100, nodes: 1}, []Member{{Name: "a"}}
	p.hear(0, q, at, []RoomNode{{Born: 1, Spent: 3}})
	p.hear(second, q, at, []RoomNode{{Born: 1, Spent: 13}})
	if want := 10 * (quota{perMinute: 6000, share: 100, all: 100, nodes: 1}).parts(); len(p.spent) != 1 || p.spent[0].parts != want {
		t.Errorf("10 who were let in at another side are %+v, want %d parts", p.spent, want)
	}
}

// A token that a node brought from another side takes as much of the minute as one of the
// whole rate.
func TestPacerCountsTheTokensOfAnotherSide(t *testing.T) {
	p, q, at := pacer{}, quota{perMinute: 6000, share: 1, all: 2, nodes: 1, lately: 1}, []Member{{Name: "a"}}
	left := p.hear(0, q, at, []RoomNode{{Born: 1, Tokens: 1}})
	p.deal(0, q, p.fill(0, q), []int{1}, left, 0)
	p.hear(second, q, at, []RoomNode{{Born: 1, Spent: 1}})
	if want := q.whole().parts(); len(p.spent) != 1 || p.spent[0].parts != want {
		t.Errorf("one who was let in by it is %+v, want %d parts", p.spent, want)
	}
}

// The debt covers the bursts of sides of which one is a node with all slots, and another all
// the other nodes.
func TestPacerOwesForEachSide(t *testing.T) {
	q := quota{perMinute: 1200, share: 12, all: 12, nodes: 1, lately: 6}
	all := q.burst() + quota{perMinute: 1200, all: 12, nodes: 5}.burst()
	if debt := q.debt() + int64(q.second())*q.pause()/1_000_000; debt < all {
		t.Errorf("two sides let in %d at once, and the debt is %d", all, debt)
	}
}

// A side gets the share of one that is over, which may have let in what it could: that is
// owed. It is not when the share is one that it had before.
func TestPacerOwesForASideThatIsOver(t *testing.T) {
	for _, remade := range []bool{false, true} {
		p := pacer{dueTo: never, away: never, dealt: never, known: true}
		q := quota{perMinute: 6000, share: 1, all: 2, nodes: 1, lately: 1}
		for q.lost = 0; q.lost <= 10*second; q.lost += second {
			p.fill(q.lost, q)
		}
		q.share, q.lost, q.remade = 2, never, remade
		if got := p.fill(10*second, q); (got == 0) != remade {
			t.Errorf("remade %v: %d tokens", remade, got)
		}
	}
}

// A large side of few nodes and a small one of many are apart for longer than a minute, and
// let in what they may at once. Then the small one ends, and its slots are made again.
func TestPacerOwesForASideThatWasLongAway(t *testing.T) {
	w := newSidesWorld(9, 60)
	few := w.sides[0]
	many := &pacedSide{list: few.list[5:], slots: 3}
	run := func(d int64, come int) {
		for end := w.now + d; w.now < end; {
			w.now += 200_000
			for _, s := range w.sides {
				w.waveOf(s, max(1, come))
				for _, m := range s.list {
					w.spend(m, come)
				}
			}
		}
	}
	run(20*second, 0)
	few.list, few.slots = few.list[:5], 9
	w.leadBy(many)
	w.sides = append(w.sides, many)
	run(150*second, 0)
	run(200_000, 1<<20)
	w.sides, w.gone = w.sides[:1], 3
	run(800_000, 1<<20)
	w.remake = true
	run(70*second, 1<<20)
	if n := w.paceWorld.most(); n > 60 {
		t.Errorf("%d let in within a minute at a rate of 60", n)
	}
}
