package trials

import (
	"fmt"
	"slices"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/thesis"
	"github.com/anteroom/anteroom/simtest"
)

// Algorithm is a way to run a room that is set beside the thesis's.
type Algorithm string

// The algorithms that are compared.
const (
	// Cut is our default: waves that call everyone up to a weight, and an open
	// door while nobody waits.
	Cut Algorithm = "cut"
	// CutQueueAll is Cut without the open door, as in the thesis: everyone queues.
	CutQueueAll Algorithm = "cut-queue-all"
	// QPID is the thesis's algorithm, one deleteMin per person, in our code.
	QPID Algorithm = "qpid"
)

// Algorithms is all of them, in the order in which they are shown.
func Algorithms() []Algorithm { return []Algorithm{Cut, CutQueueAll, QPID} }

// Describe says what the algorithm does, in a few words.
func (a Algorithm) Describe() string {
	switch a {
	case Cut:
		return "a wave calls many, straight in while nobody waits"
	case CutQueueAll:
		return "a wave calls many, everyone queues"
	case QPID:
		return "one deleteMin for each person, everyone queues"
	}
	panic("trials: no algorithm " + string(a))
}

// Intervals is how often the algorithm decides whom to let in: as often as the
// thesis for QPID, so that the two compare, and as in production for the cut.
// Zero: the default.
func (a Algorithm) Intervals() (period, urgent time.Duration) {
	if a == QPID {
		return time.Second, time.Second
	}
	return 0, 0
}

// thesisNodes is how many nodes every cell starts with.
const thesisNodes = 8

// ThesisOptions is a cell of the thesis's Table A.1 under an algorithm of ours.
// Where the two worlds differ is listed in docs/simulation.md.
func ThesisOptions(c thesis.Cell, a Algorithm, seed uint64) simtest.Options {
	const arrivals = 100 * time.Second
	o := simtest.Options{
		Seed:  seed,
		Nodes: thesisNodes,
		Users: c.Users,
		Span:  arrivals * 10 / 9, // people come during the first nine tenths
		Limit: time.Hour,
		Rooms: []eviction.Room{{
			Name:      "thesis",
			Target:    c.Target,
			Session:   time.Second, // nobody stays that long
			Refresh:   600 * time.Millisecond,
			TicketTTL: 2 * time.Second,
			// The thesis drops a called ticket that is not used as it does any other.
			ClaimWindow: 2 * time.Second,
			QueueAll:    a != Cut,
		}},
		// The thesis's pass is over at once: nobody is ever on the site.
		Load:   simtest.Load{Browse: simtest.Range{Max: time.Microsecond}, Sticky: true},
		Net:    simtest.Net{Latency: simtest.Range{Min: 10 * time.Millisecond, Max: 20 * time.Millisecond}},
		Faults: simtest.Faults{Adds: c.Kills, Detect: gossipNotices()},
		After:  simtest.Measure,
	}
	Kill(&o, c.Kills)
	o.Cluster.Period, o.Cluster.Urgent = a.Intervals()
	if a == QPID {
		o.Rooms[0].Algorithm = eviction.ByQPID
	}
	return o
}

// gossipNotices is how long memberlist takes, with the settings of production,
// until one of eight nodes knows that another was killed, as measured.
func gossipNotices() simtest.Range {
	return simtest.Range{Min: 1200 * time.Millisecond, Max: 1800 * time.Millisecond}
}

// Trial is one cell under one algorithm.
type Trial struct {
	Cell      thesis.Cell
	Algorithm Algorithm
}

// Trials is every combination of cells and algorithms, cell by cell.
func Trials(cells []thesis.Cell, algorithms []Algorithm) []Trial {
	var ts []Trial
	for _, c := range cells {
		for _, a := range algorithms {
			ts = append(ts, Trial{c, a})
		}
	}
	return ts
}

// CellName is how a cell is named on the command line: users/target/kills.
func CellName(c thesis.Cell) string { return fmt.Sprintf("%d/%s/%d", c.Users, c.TargetName(), c.Kills) }

// CellNamed finds a cell by its name.
func CellNamed(name string) (thesis.Cell, bool) {
	cells := thesis.Cells()
	if i := slices.IndexFunc(cells, func(c thesis.Cell) bool { return CellName(c) == name }); i >= 0 {
		return cells[i], true
	}
	return thesis.Cell{}, false
}

// Budget ends a batch of equal rounds before the round that would, going by
// those before it, end after Time. Zero Time: never.
type Budget struct {
	Time  time.Duration
	Round int // runs
	Now   func() time.Time
	start time.Time
}

// Continue reports whether run may start. At least one round runs.
func (b *Budget) Continue(run int) bool {
	now := b.Now()
	if run == 0 {
		b.start = now
	}
	if b.Time == 0 || run == 0 || run%b.Round != 0 {
		return true
	}
	rounds := time.Duration(run / b.Round)
	return now.Sub(b.start)*(rounds+1)/rounds <= b.Time
}
