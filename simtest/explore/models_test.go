package explore

import (
	"flag"
	"fmt"
	"testing"

	"github.com/anteroom/anteroom/eviction"
)

var big = flag.Bool("explore", false, "explore larger bounds (minutes, gigabytes)")

// sideshow are the kinds of messages whose order against the others is not
// explored: who asks whom to do what sooner, or how late it is.
func sideshow() []string {
	return []string{"probe", "probe_ack", "urgent", "nack", "slots_ack", "sync_request", "sync_reply", "sync_ack"}
}

func pick[T any](small, large T) T {
	if *big {
		return large
	}
	return small
}

// TestPromises explores every model and holds it to its demands.
func TestPromises(t *testing.T) {
	for _, tt := range []struct {
		name  string
		model func() *model
	}{
		{"founding", founding},
		{"founding_reaches_few", foundingReachesFew},
		{"site", site},
		{"transfer", transfer},
		{"take-over", takeOver},
		{"comeback", comeback},
		{"void_reaches_one_node", voidReachesOneNode},
		{"two_coordinators", twoCoordinators},
		{"coordinator_dies", coordinatorDies},
		{"partition", partition},
		{"share", share},
		{"amnesia", amnesia},
		{"two_levels", twoLevels},
		{"qpid_root", qpidRoot},
		{"qpid_deleteMin", qpidDeleteMin},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := tt.model()
			switch {
			case *big:
				m.demand.most = 4_000_000 // they take about a kilobyte each
			case testing.Short():
				m.demand.most, m.demand.seen = 3_000, nil
			}
			got, _ := explore(m)
			t.Log(got)
			if got.broken != nil {
				t.Fatal(got.broken)
			}
			for _, what := range m.demand.seen {
				if got.notes[what] == 0 {
					t.Errorf("no %s happened: the model does not do what it says", what)
				}
			}
		})
	}
}

// Three nodes found a cluster, in two waves, while people come.
func founding() *model {
	return &model{
		nodes: 3, cluster: cluster(), room: room(2), visitors: []script{{join(0)}, {join(1)}, {join(2)}},
		prelude:  together,
		schedule: []moment{{name: "the founding wave", at: 1000}, {name: "a wave", at: 2000}, {name: "the next wave", at: 3000}},
		coarse:   coarse{eager: sideshow()},
		demand:   demand{stable: true, seen: []string{"side wave", "unanimous wave", "mint", "entitled", "called", "frozen joins"}},
	}
}

// The founding commit is lost on its way to one node or both, and a partition
// follows. Founders know without it; of two foundings one gets through.
func foundingReachesFew() *model {
	return &model{
		nodes: 3, cluster: cluster(), room: room(2), visitors: []script{{join(0), leave(0)}}, prelude: together,
		schedule: []moment{{name: "a wave", at: 1000}, {name: "the next wave", at: 2000}, {name: "D is over", at: 9000, quiet: true}},
		faults: faults{
			drops: limit[string]{2, []string{"commit"}}, heals: pick[uint8](0, 1),
			until: pick(2, 0), cuts: []cut{between("a|bc", []int{0}, []int{1, 2}), between("ab|c", []int{0, 1}, []int{2})}[:pick(1, 2)],
		},
		coarse: coarse{eager: sideshow(), told: true, deeds: 2},
		demand: demand{end: wholeAgain, seen: []string{"side wave", "primary wave", "mint"}},
	}
}

// Two nodes and one slot: people come to both, get in and leave again; one
// message is lost.
func site() *model {
	return &model{
		nodes: 2, cluster: cluster(), room: room(1), visitors: []script{{join(0), leave(0), end(0)}, script{join(1), leave(1), end(1)}[:pick(2, 3)]},
		prelude:  since(2500),
		schedule: []moment{{name: "a wave", at: 3000}, {name: "the next wave", at: 4000}, {name: "the next wave", at: 5000}},
		faults:   faults{drops: limit[string]{n: 1}},
		coarse:   coarse{eager: sideshow()},
		demand:   demand{end: wholeAgain, stable: true, seen: []string{"entitled", "called", "slots", "frozen joins", "frozen leaves the queue"}},
	}
}

// A slot goes from a to b; it is lost or late, before or after a node dies
// and comes back with its disk, or the two are cut off, until one is void.
func transfer() *model {
	slots := []string{"slots"}
	return &model{
		nodes: 2, cluster: cluster(), room: room(1), visitors: []script{{join(1), leave(1)}},
		prelude: since(2500, 0),
		schedule: []moment{
			{name: "a wave", at: 3000},
			{name: "who is away is silent", at: 5900, quiet: true},
			{name: "and void", at: 6000},
			{name: "D is over", at: 12_000, quiet: true},
			{name: "a wave", at: 13_000},
		},
		faults: faults{
			drops: limit[string]{1, slots}, late: limit[string]{5, slots}, until: pick(2, 3),
			crashes: limit[int]{n: 1}, restarts: 1, disks: true, pauses: limit[int]{n: pick[uint8](0, 1)}, cuts: []cut{between("a|b", []int{0}, []int{1})}, heals: 1,
		},
		coarse: coarse{eager: sideshow(), told: true, deeds: 2},
		demand: demand{end: wholeAgain, seen: []string{"slots", "called", "void", "mint", "side wave"}},
	}
}

// b dies with one person on the site and one called. They go to a: one with a
// pass, the other with a ticket, and later with a copy of it.
func takeOver() *model {
	r := room(4)
	r.Session *= 8
	return &model{
		nodes: 2, cluster: cluster(), room: r,
		visitors: []script{{join(1), leave(1), refresh(0)}, {join(1), ask(0), leave(0), end(0), askAgain(0)}},
		prelude: func(w *world) {
			since(4500, 0, 1)(w)
			w.visit(0)
			w.quiet(ms(4900))
		},
		schedule: []moment{
			{name: "a wave", at: 5000},
			{name: "b is void", at: 9500, quiet: true},
			{name: "its lease is over", at: 10_000},
			{name: "D is over", at: 20_000, quiet: true},
			{name: "a wave", at: 21_000},
			{name: "a wave", at: 22_000},
		},
		faults: faults{crashes: limit[int]{1, []int{1}}, pauses: limit[int]{0, []int{1}}, until: pick(2, 0)},
		coarse: coarse{eager: sideshow(), told: true},
		demand: demand{end: wholeAgain, seen: []string{"checks in elsewhere", "refreshes the pass elsewhere", "void", "mint", "called"}},
	}
}

// The same, but b is only paused, from before the wave on, and comes back at
// some time.
func comeback() *model {
	m := takeOver()
	m.faults.crashes.n, m.faults.pauses.n, m.faults.until = pick[uint8](0, 1), 1, pick(1, 0)
	return m
}

// A slot of c is on its way to b when c dies. b takes part in waves, but no
// commit reaches it, so it does not learn that c is void; D passes.
func voidReachesOneNode() *model {
	return &model{
		nodes: 3, cluster: cluster(), room: room(1), visitors: []script{{join(2), leave(2), end(2)}, {join(1)}},
		prelude: func(w *world) {
			since(4500, 0)(w)
			w.visit(0)
			w.visit(0)
			w.visit(1)
			w.quiet(ms(4900))
		},
		schedule: []moment{
			{name: "a wave", at: 5000},
			{name: "a wave without c", at: 6000},
			{name: "D is almost over", at: 10_900, quiet: true},
			{name: "D is over", at: 11_000},
		},
		faults: faults{
			cuts:  []cut{{name: "c→b, and commits to b", links: [][2]int{{2, 1}}, loses: [2]int{0, 1}}},
			heals: 1, crashes: limit[int]{1, []int{2}}, until: 3, late: limit[string]{4, []string{"slots"}},
		},
		coarse: coarse{eager: sideshow(), told: true},
		demand: demand{end: wholeAgain, seen: []string{"slots", "void"}},
	}
}

// b and c take a for dead, one after the other, while a runs a wave: two
// coordinators and three different views.
func twoCoordinators() *model {
	return &model{
		nodes: 3, cluster: cluster(), room: room(2), visitors: []script{{join(1)}, {join(2)}},
		prelude:  since(2500, 0, 1),
		schedule: []moment{{name: "a wave", at: 3000}, {name: "the next wave", at: 4000}},
		faults:   faults{doubts: 2, doubtable: [][2]int{{1, 0}, {2, 0}}, late: limit[string]{n: pick[uint8](0, 1)}},
		coarse:   coarse{eager: sideshow()},
		demand:   demand{end: wholeAgain, seen: []string{"nack", "slots", "called"}},
	}
}

// The coordinator dies at any point of a wave, and comes back without memory
// at any time. Nothing is minted before D.
func coordinatorDies() *model {
	return &model{
		nodes: pick(3, 4), cluster: cluster(), room: room(2), visitors: []script{{join(1), leave(1)}},
		prelude: since(2500, 0),
		schedule: []moment{
			{name: "a wave", at: 3000},
			{name: "D is almost over", at: 8500, quiet: true},
			{name: "D is over", at: 12_500, quiet: true},
		},
		faults: faults{crashes: limit[int]{1, pick([]int{0}, nil)}, restarts: 1, until: 2},
		coarse: coarse{eager: sideshow(), patient: true},
		demand: demand{end: wholeAgain, seen: []string{"mint", "nack", "void", "primary wave"}},
	}
}

func cuts() []cut {
	return []cut{between("ab|c", []int{0, 1}, []int{2}), between("a|bc", []int{0}, []int{1, 2})}
}

// One person is on the site by a, one is called by c; then c is cut off, or
// paused, past the end of its lease and past D, and comes back at some time. It
// runs side waves of its own, or goes on with an old lease.
func partition() *model {
	return &model{
		nodes: 3, cluster: cluster(), room: room(2), visitors: []script{{join(0), leave(0)}, {join(2), leave(2), refresh(2)}},
		prelude: since(4500, 0, 1),
		schedule: []moment{
			{name: "a wave", at: 5000},
			{name: "the lease is almost over", at: 8999, quiet: true},
			{name: "the lease is over", at: 9100, quiet: true},
			{name: "D is over", at: 12_000, quiet: true},
		},
		faults: faults{cuts: cuts()[:pick(1, 2)], heals: 1, pauses: limit[int]{1, pick([]int{2}, nil)}, until: pick(2, 0)},
		coarse: coarse{eager: sideshow(), told: true},
		demand: demand{end: wholeAgain, seen: []string{"mint", "side wave", "void"}},
	}
}

// Each side of a partition goes on with the slots it has, on side leases.
func share() *model {
	m := partition()
	m.room.OnPartition = eviction.Share
	m.faults.pauses.n = pick[uint8](0, 1)
	m.demand.seen = []string{"side wave"} // nothing is minted for a side that may still be there
	return m
}

// c is cut off, and D passes: a and b make its slots again. Then b forgets
// everything, and is cut off from a together with c, which remembers how it
// was. Those two must not be a quorum.
func amnesia() *model {
	return &model{
		nodes: 3, cluster: cluster(), room: room(2), visitors: []script{{join(0), leave(0)}, {join(2)}},
		prelude: func(w *world) {
			since(4500, 0, 1)(w)
			w.apply(event{kind: evCut})
			w.quiet(ms(11_900))
		},
		schedule: []moment{
			{name: "D is over", at: 12_000}, {name: "a wave", at: 13_000}, {name: "waves of the other two", at: 19_000, quiet: true},
		},
		faults: faults{cuts: cuts(), heals: 1, crashes: limit[int]{1, []int{1}}, restarts: 1, until: pick(2, 3)},
		coarse: coarse{eager: sideshow(), told: true},
		demand: demand{end: wholeAgain, seen: []string{"side wave", "primary wave"}},
	}
}

// A wave over a path of three: the node in the middle passes everything on,
// and waits for its child only so long.
func twoLevels() *model {
	c := cluster()
	c.Fanout = 1
	return &model{
		nodes: 3, cluster: c, room: room(2), visitors: []script{{join(0)}, {join(2)}},
		prelude:  since(2500),
		schedule: []moment{{name: "a wave", at: 3000}, {name: "b waits no longer", at: 3400}, {name: "the next wave", at: 4000}},
		faults:   faults{drops: limit[string]{n: pick[uint8](0, 1)}, late: limit[string]{n: pick[uint8](1, 2)}},
		coarse:   coarse{eager: sideshow()},
		demand:   demand{end: wholeAgain, stable: true, seen: []string{"entitled", "called"}},
	}
}

// Waves, and people who come in between and meanwhile: the root moves, and
// there is one.
func qpidRoot() *model {
	return &model{
		nodes: 3, cluster: cluster(), room: byQPID(1), visitors: []script{{join(0)}, {join(1)}, {join(2)}}[pick(1, 0):],
		prelude:  since(2500),
		schedule: []moment{{name: "a wave", at: 3000}, {name: "the next wave", at: 4000}},
		coarse:   coarse{eager: sideshow()},
		demand:   demand{stable: true, end: slotsAreBack, seen: []string{"qpid", "entitled", "slots", "frozen joins"}},
	}
}

// A deleteMin from another node meets a wave, also while its caller or the root
// is frozen, and one message is lost.
func qpidDeleteMin() *model {
	return &model{
		nodes: 3, cluster: cluster(), room: byQPID(2), visitors: []script{{deleteMin(0)}, {join(1)}, {join(2)}, {deleteMin(0)}}[:pick(3, 4)],
		prelude:  since(2500, 2),
		schedule: []moment{{name: "a wave", at: 3000}, {name: "lost deleteMins are given up", at: 6000, quiet: true}},
		faults:   faults{drops: limit[string]{n: pick[uint8](1, 2)}},
		coarse:   coarse{eager: sideshow(), deeds: 2},
		demand:   demand{end: slotsAreBack, seen: []string{"qpid", "entitled", "slots", "frozen calls deleteMin"}},
	}
}

// slotsAreBack holds when every deleteMin has been answered or given up: L4.
func slotsAreBack(w *world) error {
	for h := range w.m.nodes {
		if r := w.life(h).room; r.Used != r.Called+r.OnSite {
			return broken("L4", "%v uses %d slots for %d called and %d on site", w.life(h).self, r.Used, r.Called, r.OnSite)
		}
	}
	return nil
}

// wholeAgain holds when a world that ends comes to rest once everything is
// mended: one wave with everyone in it, and as many slots as the limit says.
// This is L3. Only some of the ends are tried.
func wholeAgain(w *world) error {
	if w.ends%pick(50, 10) != 1 {
		return nil
	}
	w = w.copy()
	apart := *w.explorer
	apart.notes = map[string]int{}
	w.explorer = &apart
	w.cut, w.cutNow = 0, none
	for h := range w.m.nodes {
		w.hosts[h].paused = false
		if !w.hosts[h].up {
			w.start(h)
		}
	}
	for h := range w.m.nodes {
		w.hear(h, w.everyone()...)
	}
	w.quiet(w.now + ms(20_000))
	slots := 0
	for h := range w.m.nodes {
		l := w.life(h)
		slots += l.room.Owned
		if !l.leased(w.m, w.now) || len(l.status.List) != w.m.nodes {
			w.fail(broken("L3", "%v has no lease, or is alone: %v %v", l.self, l.status.Grade, l.status.List))
		}
	}
	if slots != w.m.room.Target {
		w.fail(broken("L3", "%d slots, the limit is %d", slots, w.m.room.Target))
	}
	if w.broken != nil {
		return fmt.Errorf("once mended: %w\n%s", w.broken, w.describe())
	}
	return nil
}
