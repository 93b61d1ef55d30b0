package trials

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/internal/plot"
	"github.com/anteroom/anteroom/internal/thesis"
	"github.com/anteroom/anteroom/simtest"
)

// Waits is how long the people of one run waited, by when they came.
func Waits(name string, admissions []fairness.Admission) plot.WaitSeries {
	s := plot.WaitSeries{Name: name}
	if len(admissions) == 0 {
		return s
	}
	first := admissions[0].JoinedAt
	for i := range admissions {
		first = min(first, admissions[i].JoinedAt)
	}
	for i := range admissions {
		a := &admissions[i]
		s.Arrival = append(s.Arrival, float64(a.JoinedAt-first)/1e6)
		s.Wait = append(s.Wait, float64(max(0, a.CalledAt-a.JoinedAt))/1e6)
	}
	return s
}

// Draw draws a batch b of o: how long the people of its first run waited, and
// under the other method, and how all's distances depend on the kills. That
// takes further runs: one of the first seed, and b.Runs for each other number
// of kills.
func Draw(ctx context.Context, f *Folder, b Batch, o simtest.Options, first []fairness.Admission, all *Sample) error {
	if err := drawWaits(ctx, f, b, o, first); err != nil {
		return err
	}
	return drawKills(ctx, f, b, o, all)
}

func drawWaits(ctx context.Context, f *Folder, b Batch, o simtest.Options, first []fairness.Admission) error {
	if e := o.Rooms[0].Event; e.Shuffle {
		err := f.Write("heatmap-shuffle.svg", func(w io.Writer) error {
			s := Waits("shuffle", first)
			return plot.Heatmap(w, "Waiting time against arrival, shuffle", s.Arrival, s.Wait)
		})
		if err != nil {
			return err
		}
		o.Rooms = slices.Clone(o.Rooms)
		o.Rooms[0].Event.Shuffle = false
		one := b
		one.Runs = 1
		one.Of(o).Run(ctx, func(o *Outcome) { first = o.Admissions })
	}
	fifo, random := Waits("fifo", first), Waits("random", first)
	o.Rooms = slices.Clone(o.Rooms)
	room := &o.Rooms[0]
	b.Runs = 1
	if room.Method == eviction.FIFO {
		room.Method, room.Algorithm = eviction.Random, eviction.ByCut
		b.Of(o).Run(ctx, func(o *Outcome) { random = Waits("random", o.Admissions) })
	} else {
		room.Method = eviction.FIFO
		b.Of(o).Run(ctx, func(o *Outcome) { fifo = Waits("fifo", o.Admissions) })
	}
	const title = "Waiting time against arrival"
	err := f.Write("wait-against-arrival.svg", func(w io.Writer) error {
		return plot.WaitAgainstArrival(w, title, []plot.WaitSeries{fifo, random})
	})
	for _, s := range []plot.WaitSeries{fifo, random} {
		if err != nil {
			return err
		}
		err = f.Write("heatmap-"+s.Name+".svg", func(w io.Writer) error {
			return plot.Heatmap(w, title+", "+s.Name, s.Arrival, s.Wait)
		})
	}
	return err
}

func drawKills(ctx context.Context, f *Folder, b Batch, o simtest.Options, all *Sample) error {
	series := []plot.TauSeries{{Name: "kendall_tau"}, {Name: "kendall_tau_thesis"}}
	asked := o.Faults
	for _, kills := range KillSteps(asked.Kills) {
		sample := all
		if kills != asked.Kills {
			o.Faults = asked
			o.Faults.Adds = min(kills, asked.Adds)
			Kill(&o, kills)
			sample = NewSample(Metrics())
			b.Of(o).Run(ctx, sample.Add)
		}
		if sample.Runs == 0 {
			continue
		}
		for i := range series {
			series[i].Points = append(series[i].Points, tauPoint(kills, sample.Named(series[i].Name)))
		}
	}
	return f.Write("tau-against-kills.svg", func(w io.Writer) error {
		return plot.TauAgainstKills(w, "Kendall tau against kills", series)
	})
}

// killsMax bounds the points of a plot against kills.
const killsMax = 6

// KillSteps is the numbers of kills, from none to kills, that a plot against
// kills shows: all of them or, when there are too many, killsMax evenly spread.
func KillSteps(kills int) []int {
	points := min(kills+1, killsMax)
	steps := make([]int, points)
	for i := range steps {
		steps[i] = i * kills / max(1, points-1)
	}
	return steps
}

func tauPoint(kills int, s Spread) plot.TauPoint {
	return plot.TauPoint{Kills: kills, Tau: s.Mean.Mean, Low: s.Low, High: s.High}
}

// DrawCells draws, for each number of users and each target, the distances of
// the thesis and ours against kills: as the thesis counts them, and strictly.
func DrawCells(f *Folder, tallies []*Tally) error {
	type picture struct{ users, target int }
	drawn := map[picture]bool{}
	for _, t := range tallies {
		p := picture{t.Cell.Users, t.Cell.Target}
		if drawn[p] {
			continue
		}
		drawn[p] = true
		var same []*Tally
		for _, u := range tallies {
			if (picture{u.Cell.Users, u.Cell.Target}) == p {
				same = append(same, u)
			}
		}
		at := fmt.Sprintf("%d-%s", t.Cell.Users, t.Cell.TargetName())
		of := fmt.Sprintf("%d users, target %s", t.Cell.Users, t.Cell.TargetName())
		err := f.Write("tau-thesis-"+at+".svg", func(w io.Writer) error {
			return plot.TauAgainstKills(w, "Kendall tau as the thesis counts it, "+of, cellSeries(same, asTheThesis))
		})
		if err != nil {
			return err
		}
		err = f.Write("tau-strict-"+at+".svg", func(w io.Writer) error {
			return plot.TauAgainstKills(w, "Kendall tau without ties, "+of, cellSeries(same, strict))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// cellSeries is the thesis's own line, where it is known, and one per algorithm.
func cellSeries(tallies []*Tally, metric string) []plot.TauSeries {
	published := plot.TauSeries{Name: "thesis"}
	if metric == strict {
		published.Name = "thesis, recounted"
	}
	lines := map[Algorithm]int{}
	var series []plot.TauSeries
	seen := map[thesis.Cell]bool{}
	for _, t := range tallies {
		if tau, ok := t.published(metric); ok && !seen[t.Cell] {
			published.Points = append(published.Points, plot.TauPoint{Kills: t.Cell.Kills, Tau: tau, Low: tau, High: tau})
		}
		seen[t.Cell] = true
		if t.Sample.Runs == 0 {
			continue
		}
		i, ok := lines[t.Algorithm]
		if !ok {
			i = len(series)
			lines[t.Algorithm] = i
			series = append(series, plot.TauSeries{Name: string(t.Algorithm)})
		}
		series[i].Points = append(series[i].Points, tauPoint(t.Cell.Kills, t.Sample.Named(metric)))
	}
	if published.Points != nil {
		series = append([]plot.TauSeries{published}, series...)
	}
	return series
}
