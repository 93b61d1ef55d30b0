package eviction

import (
	"testing"

	"github.com/anteroom/anteroom/qpid"
)

// At a slow rate each node has a token after quiet. They are all spent, and most of the nodes
// are lost with their coordinator: the next one owes for all of them.
func TestPacerOwesForThoseWhoWereLost(t *testing.T) {
	w := newPaceWorld(5, 6)
	for w.now < 130*second {
		w.now += second
		w.wave(w.list, []int{1, 1, 1, 1, 1}, func() {})
	}
	for _, m := range w.list {
		w.spend(m, 1)
	}
	w.now += 2 * second
	w.takeOver(w.now, 0)
	for w.now < 200*second {
		w.wave(w.list[2:], []int{1, 1, 1}, func() {})
		w.spend(w.list[2], 1)
		w.now += 200_000
	}
	if n := w.most(); n > 6 {
		t.Errorf("%d let in within a minute at a rate of 6", n)
	}
}

// Who ran the waves decides once more, for itself, after a new coordinator has decided for
// the others: it had asked them before that one did.
func TestPacerOwesForADecisionUnderWay(t *testing.T) {
	w := newPaceWorld(3, 1200)
	w.q.underWay, w.q.deadline = 500_000, 500_000
	rich := []int{1 << 20, 1 << 20, 1 << 20}
	for w.now < 130*second {
		w.now += 100_000
		w.wave(w.list, rich, func() {})
	}
	w.spend(w.list[0], 1<<20)
	old, by := w.p, w.q.by
	for decided := w.now + 100_000; w.now < decided+70*second; {
		w.now += 100_000
		if w.now == decided {
			w.takeOver(w.now, w.q.underWay)
		}
		w.wave(w.list[1:], rich[1:], func() {})
		for _, m := range w.list[1:] {
			w.spend(m, 1<<20)
		}
		if w.now <= decided+w.q.underWay {
			last, is := w.p, w.q.by
			w.p, w.q.by = old, by
			w.wave(w.list[:1], rich[:1], func() {})
			w.p, w.q.by, old = last, is, w.p
			w.spend(w.list[0], 1<<20)
		}
	}
	if n := w.most(); n > 1200 || n < 1150 {
		t.Errorf("%d let in within a minute at a rate of 1200", n)
	}
}

// Who led is cut off with what a node may have, and lets it in as late as it may: a minute that
// begins then has all of it, and of the next coordinator's less by as much.
func TestPacerOwesForWhatIsLetInLate(t *testing.T) {
	w := newQuorumWorld(3, 1200)
	w.leads(w.nodes[0], []int{1, 0})
	w.run(t, 60*second, 0)
	w.open = append(w.open, w.ask(len(w.nodes)))
	w.leads(w.nodes[1], []int{2, 1})
	w.run(t, 64*second, 1<<20)
}

// A new coordinator deals nothing for a second when it hears of those to whom another dealt
// within the minute, or it itself when it led before, or of those who have forgotten it; and where
// it hears of none nothing before all dealt before has lapsed: for fifty tokens, half a second
// more.
func TestPacerRestarts(t *testing.T) {
	const owing, free = 103*second + 410_000, 104*second + 510_000
	for _, c := range []struct {
		dealt qpid.Epoch
		age   int64 // of it
		led   int64 // when this one led last
		from  int64
	}{
		{qpid.Epoch{Num: 3, Coordinator: "b"}, 0, never, owing},
		{qpid.Epoch{Num: 3, Coordinator: "b"}, 62 * second, never, owing},
		{qpid.Epoch{Num: 3, Coordinator: "b"}, 63 * second, never, free},
		{qpid.Epoch{Num: 9, Coordinator: "a"}, 0, 101 * second, owing},
		{qpid.Epoch{Num: 9, Coordinator: "a"}, 0, 40 * second, free},
		{qpid.Epoch{}, 0, never, owing}, // of a version that does not say
		{qpid.Epoch{Coordinator: "-"}, 0, never, free},
		{qpid.Epoch{Num: 1, Coordinator: forgotten}, 61 * second, never, owing},
		{qpid.Epoch{Num: 1, Coordinator: forgotten}, 63 * second, never, free},
	} {
		p, q := pacer{dealt: c.led}, quota{perMinute: 6000, share: 1, all: 1, nodes: 1, by: "a", deadline: 500_000}
		p.restart(102*second, 500_000, 9)
		p.hear(102*second+400_000, q, []Member{{Name: "a"}}, []RoomNode{{Born: 1, Dealt: c.dealt, DealtAge: c.age}})
		p.known = true
		for at := 102*second + 400_000; at < c.from; at += 100_000 {
			if got := p.fill(at, q); got != 0 {
				t.Fatalf("%+v: %d tokens after %d ms", c, got, at/1000-102_000)
			}
		}
		if got := p.fill(c.from+500_000, q); got < 45 || got > 50 {
			t.Errorf("%+v: %d tokens half a second later, want nearly 50", c, got)
		}
	}
}

// Who has forgotten who dealt is of no matter where those who remember are in every quorum.
func TestPacerGoesByThoseWhoRemember(t *testing.T) {
	voters := Voters{Version: 1, Names: []qpid.NodeID{"a", "b", "c", "d"}}
	for _, c := range []struct {
		voters Voters
		forgot []bool
		known  bool
	}{
		{voters, []bool{false, false, true}, true},
		{voters, []bool{true, false, false}, false}, // a and d are a quorum
		{voters, []bool{false, true, true}, false},
		{Voters{Version: 1, Names: []qpid.NodeID{"a", "b", "c"}, Next: voters.Names}, []bool{false, false, true}, true},
		{Voters{Version: 1, Names: []qpid.NodeID{"a", "b", "c"}, Next: []qpid.NodeID{"b", "c"}}, []bool{false, true, false}, false},
		{Voters{}, []bool{false}, false}, // on a line that begins
	} {
		for _, by := range []qpid.Epoch{{Num: 1, Coordinator: forgotten}, {Coordinator: "-"}} { // the latter has not even a disk
			d := &decision{voters: c.voters}
			nodes := make([]RoomNode, len(c.forgot))
			for i, forgot := range c.forgot {
				d.list = append(d.list, Member{Name: qpid.NodeID(rune('a' + i)), Boot: 1})
				nodes[i] = RoomNode{Index: i, Dealt: qpid.Epoch{Num: 7, Coordinator: "x"}}
				if forgot {
					nodes[i].Dealt = by
				}
			}
			if got := d.remember(nodes); got != c.known {
				t.Errorf("voters %v, forgotten %v: %t", c.voters, c.forgot, got)
			}
		}
	}
	for _, known := range []bool{false, true} {
		p := pacer{}
		p.restart(0, 500_000, 9)
		p.hear(0, quota{perMinute: 6, by: "a", known: known}, []Member{{Name: "a"}}, []RoomNode{{Dealt: qpid.Epoch{Num: 1, Coordinator: forgotten}}})
		if p.owes == known {
			t.Errorf("where others remember, %t: it owes %t", known, p.owes)
		}
	}
}

// What is let in by a node that was lost after it was dealt counts, also where a debt ends then.
func TestPacerForgetsADebtAlone(t *testing.T) {
	w := newPaceWorld(3, 6)
	w.have[w.list[0]].dealt, w.q.lately = qpid.Epoch{Num: 1, Coordinator: "x"}, 2
	for w.now < 60*second {
		w.now += 200_000
		w.wave(w.list, []int{1, 1, 1}, func() {})
	}
	for _, m := range w.list {
		if w.spend(m, 1) == 0 {
			t.Fatalf("no token at %v", m)
		}
	}
	w.lead(w.list[:1], 3*second)
	if w.p.level > -500_000 || w.p.dueTo != never {
		t.Errorf("a level of %d, and two tokens were lost", w.p.level)
	}
}

// The rate is low for a moment, in which another coordinator takes over: what it owes of
// before is not cheaper for that.
func TestPacerOwesForAHigherRate(t *testing.T) {
	for _, low := range []int64{200_000, 400_000, 800_000, 2_000_000} {
		w := newPaceWorld(3, 60_000)
		rich := []int{1 << 20, 1 << 20, 1 << 20}
		for w.now < 90*second {
			w.now += 200_000
			w.wave(w.list, rich, func() {})
		}
		w.spend(w.list[0], 1<<20)
		w.takeOver(w.now, 0)
		w.q.perMinute = 6
		for end := w.now + low; w.now < end+70*second; {
			w.now += 200_000
			if w.now > end {
				w.q.perMinute = 60_000
			}
			w.wave(w.list[1:], rich[1:], func() {})
			w.spend(w.list[1], 1<<20)
		}
		if n := w.most(); n > 60_000 || n < 55_000 {
			t.Errorf("%d let in within a minute at a rate of 60,000 that was low for %d ms", n, low/1000)
		}
	}
}

// The lead goes from one to another and back every twenty seconds, and for some of them nobody has
// it: who has it next goes on where the other one was. What accrued meanwhile is not lost, up to a
// burst, and what was spent is forgotten as it grows old, however often it was told on.
func TestPacerGoesOnWhileTheLeadChanges(t *testing.T) {
	for _, c := range []struct{ rate, none int }{{6, 5}, {12, 5}, {60, 5}, {6000, 0}} {
		w := newQuorumWorld(5, c.rate)
		w.run(t, 130*second, 1<<20)
		in := 0
		for i := range 30 {
			w.now += int64(c.none) * second
			w.leads(w.nodes[(i+1)%2], []int{0, 1, 2, 3, 4})
			for range 20 - c.none {
				w.run(t, second, 1<<20)
				for _, at := range w.calls {
					if at > w.now-second {
						in++
					}
				}
			}
		}
		if want := 10 * c.rate * 85 / 100; in < want {
			t.Errorf("%d let in within ten minutes at %d a minute, want %d", in, c.rate, want)
		}
	}
}

// A node replies to the next lead's first wave later than the others, and just before that to one
// more of the lead before: what that one deals accrued since the others were heard of.
func TestPacerInheritsFromLateReplies(t *testing.T) {
	for _, later := range []int64{0, 100_000, 390_000} {
		w := newQuorumWorld(5, 60_000)
		w.run(t, 130*second, 0)
		w.run(t, 200_000, 1<<20)
		w.listed = []int{3, 4}
		before := w.ask(0)
		w.leads(w.nodes[1], []int{2, 3})
		next := w.ask(1)
		w.now += later
		before.at = w.now
		w.askMore(before, 3)
		w.askMore(next, 3)
		w.decide(next, 1<<20)
		w.open = append(w.open, before)
		w.run(t, 70*second, 1<<20)
	}
}

// Who led had no quorum for an hour, asked one node all the time, and is lost: nobody else knows
// that it dealt nothing, and that holds the next one up for no longer than a minute.
func TestPacerInheritsFromOneThatOnlyAsked(t *testing.T) {
	w := newQuorumWorld(3, 6)
	w.run(t, 130*second, 1)
	by := w.ask(2).epoch().Coordinator
	for range 3600 {
		w.now += second
		w.waves++
		w.have[w.nodes[1].Member].asks(&wave{epoch: qpid.Epoch{Num: w.waves, Coordinator: by}}, w.now)
	}
	w.leads(w.nodes[2], []int{1, 2})
	w.run(t, 75*second, 1)
	if len(w.calls) == 0 {
		t.Error("nobody was let in within 75 s")
	}
}

// Slots are made again an hour after somebody was lost: nothing is owed of then.
func TestPacerOwesForNobodyLongGone(t *testing.T) {
	w := newPaceWorld(5, 6)
	for w.now < 3700*second {
		w.now += second
		w.q.sides, w.q.lost, w.q.remade = true, min(w.now, 100*second), w.now == 3690*second
		w.wave(w.list, []int{1, 1, 1, 1, 1}, func() {})
	}
	if n := w.have[w.list[0]].tokens; n != 1 {
		t.Errorf("%d tokens at a node, want 1", n)
	}
}

// A coordinator that stood still goes on as one that takes over: another may have run waves
// meanwhile, with one of those whom it named last and one who is lost since.
func TestPacerOwesAfterAPause(t *testing.T) {
	w := newPaceWorld(3, 1200)
	w.lead(w.list, 30*second)
	stood, by := w.p, w.q.by
	w.takeOver(w.now, 0)
	others := []Member{w.list[2], w.list[1]}
	w.lead(others, 10*second)
	w.lead(others, 50*second, w.list[2])
	w.p, w.q.by = stood, by
	w.lead(w.list[:2], 72*second, w.list[0])
	if n := w.most(); n > 1200 || n < 1150 {
		t.Errorf("%d let in within a minute at a rate of 1200", n)
	}
}

// A coordinator stands still for less time than tokens live, and so do those that it dealt.
// Another one leads meanwhile, and deals to a node that is lost.
func TestPacerOwesForWhoLedWhileItStoodStill(t *testing.T) {
	w := newPaceWorld(4, 60_000)
	rich := []int{1 << 20, 1 << 20, 1 << 20, 1 << 20}
	for w.now < 90*second {
		w.now += 100_000
		w.wave(w.list, rich, func() {})
	}
	stood, by := w.p.clone(), w.q.by
	w.takeOver(w.now, 0)
	for end := w.now + tokenLife - 200_000; w.now < end; {
		w.now += 100_000
		w.wave(w.list[1:], []int{0, 0, 1 << 20}, func() {})
		w.spend(w.list[3], 1<<20)
	}
	w.p, w.q.by = stood, by
	for w.now < 170*second {
		w.now += 100_000
		w.wave(w.list[:3], rich[:3], func() {})
		w.spend(w.list[0], 1<<20)
	}
	if n := w.most(); n > 60_000 || n < 55_000 {
		t.Errorf("%d let in within a minute at a rate of 60,000", n)
	}
}

// A coordinator stands still, asks once, and stands still again while another one leads: a
// node that hears of no commit meanwhile replies to both. The other one deals as that node
// knows, and is lost.
func TestPacerOwesUntilAllKnow(t *testing.T) {
	w := newPaceWorld(4, 6000)
	w.lead(w.list, 90*second)
	first, by := w.p.clone(), w.q.by
	w.takeOver(w.now, 0)
	w.lead(w.list[1:], 70*second)
	w.deaf = w.list[2]
	other, otherBy := w.p.clone(), w.q.by
	w.p, w.q.by = first, by
	w.lead([]Member{w.list[0], w.deaf}, 200_000)
	first = w.p.clone()
	w.p, w.q.by = other, otherBy
	w.lead(w.list[1:], 3*second, w.list[1], w.list[3])
	w.p, w.q.by, w.deaf = first, by, Member{}
	w.lead([]Member{w.list[0], w.list[2]}, 70*second, w.list[0], w.list[2])
	if n := w.most(); n > 6000 || n < 5500 {
		t.Errorf("%d let in within a minute at a rate of 6,000", n)
	}
}

// A debt counts for a minute: nothing of before is in any then, however slow the rate is.
func TestPacerForgetsADebtAfterAMinute(t *testing.T) {
	w := newPaceWorld(5, 6)
	w.q.share, w.q.all = 1, 1000
	w.have[w.list[0]].dealt = qpid.Epoch{Num: 1, Coordinator: "x"}
	for w.now < 63*second {
		w.now += 200_000
		w.wave(w.list, make([]int, 5), func() {})
	}
	if w.p.debt > 0 {
		t.Errorf("a minute after nodes were heard of that are not known, %d are owed", w.p.debt)
	}
}

// Of who is not listed those may have had a token who were in a wave within the minute, and
// a wave that they were in goes on for what is left of a deadline.
func TestADecisionKnowsWhoMayHaveTokens(t *testing.T) {
	d := &decision{list: []Member{{Name: "a", Boot: 1}, {Name: "b", Boot: 2}}, reckons: Bounds{Deadline: 500_000}}
	if got := d.underWay(); d.lately(true) != 2 || got != 0 {
		t.Errorf("with nobody away: %d nodes, %d µs", d.lately(true), got)
	}
	d.met = []Sighting{
		{Member: Member{Name: "c", Boot: 1}, Age: 59 * second},
		{Member: Member{Name: "d", Boot: 1}, Age: 61 * second},
		{Member: Member{Name: "b", Boot: 1}, Age: 30 * second, Left: true}, // it is back
		{Member: Member{Name: "e", Boot: 1}, Age: 200_000},
	}
	if got := d.late(); got < 1_800_000 || got > 1_801_000 {
		t.Errorf("tokens of those who are away last for %d µs, want 1,800,000", got)
	}
	if got := d.underWay(); d.lately(false) != 4 || got < 300_000 || got > 301_000 {
		t.Errorf("%d nodes, %d µs, want 4 and 300,000", d.lately(false), got)
	}
	// Where they share d may have gone on since, and so may an earlier life of a until this one began.
	d.met, d.up = append(d.met, Sighting{Member: Member{Name: "a"}, Age: 90 * second}), []int64{50 * second, 0}
	if d.lately(true) != 6 || d.lately(false) != 4 {
		t.Errorf("%d and %d nodes, want 6 where they share and 4 else", d.lately(true), d.lately(false))
	}
	d.up[0] = 70 * second
	if d.lately(true) != 5 {
		t.Errorf("%d nodes, want 5: what an earlier life let in is longer ago", d.lately(true))
	}
}

// The debt of before is taken by who may deal: a lead without slots owes it until it has some, and
// deals nothing for a second then.
func TestADebtIsTakenWhenThereAreSlots(t *testing.T) {
	q := quota{perMinute: 6000, all: 1, nodes: 1, lately: 1}
	p := pacer{known: true, dueTo: never, away: never}
	p.owe(100*second, 100*second)
	for at := 100 * second; at < 110*second; at += second {
		if got := p.fill(at, q); got != 0 || !p.owes {
			t.Fatalf("without slots: %d tokens, owes %v", got, p.owes)
		}
	}
	q.share = 1
	for at := 110 * second; at <= 111*second; at += second / 10 {
		if got := p.fill(at, q); got != 0 || p.owes {
			t.Fatalf("%d ms after there were slots: %d tokens, owes %v", at/1000-110_000, got, p.owes)
		}
	}
	if got := p.fill(112*second, q); got == 0 {
		t.Error("two seconds after there were slots: no tokens")
	}
}

// Who takes over a bucket owes what the lead before did, for as long.
func TestADebtIsInheritedForAsLongAsItCounts(t *testing.T) {
	const now, deadline = 1000 * second, second / 2
	q := quota{perMinute: 60, share: 1, all: 1, nodes: 1, by: "a", wave: 9, alone: true, deadline: deadline}
	left := &Left{Bucket: Bucket{Debt: 3_000_000, DebtFor: 40 * second}, Age: second}
	p := pacer{dueTo: never, away: never}
	p.begin(now, q, []RoomNode{{Dealt: qpid.Epoch{Num: 8, Coordinator: "b"}, Left: left}})
	if want := now - second + drifted(deadline) + 40*second; p.debt != 3_000_000 || p.dueTo != want {
		t.Errorf("it owes %d until %d, want 3 tokens until %d", p.debt, p.dueTo, want)
	}
}

// The bucket of a lead is the one that its last decision left, from a node that has it.
func TestTheBucketIsThatOfTheLastDecision(t *testing.T) {
	heard := func(num uint64, left *Left) RoomNode {
		return RoomNode{Dealt: qpid.Epoch{Num: num, Coordinator: "b"}, Left: left}
	}
	a, b := &Left{Age: 1}, &Left{Age: 2}
	for _, test := range []struct {
		name  string
		nodes []RoomNode
		want  int
	}{
		{"one", []RoomNode{heard(8, a)}, 0},
		{"the last", []RoomNode{heard(7, a), heard(8, b), heard(6, a)}, 1},
		{"the last, of which nobody has the bucket", []RoomNode{heard(8, nil), heard(7, a)}, 0},
		{"the last, of which another one has it", []RoomNode{heard(8, nil), heard(8, b)}, 1},
	} {
		if got := latest(test.nodes); got != &test.nodes[test.want] {
			t.Errorf("%s: %+v, want that of %d", test.name, got, test.want)
		}
	}
}
