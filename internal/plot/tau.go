package plot

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// TauSeries is a line of Kendall tau distances.
type TauSeries struct {
	Name   string
	Points []TauPoint
}

// TauPoint is a mean over runs with its confidence interval. Without one, Low
// and High equal Tau.
type TauPoint struct {
	Kills     int // nodes removed during the run
	Tau       float64
	Low, High float64 // what is below zero is not drawn
}

// TauAgainstKills writes a plot of distance against nodes lost. The axis is
// linear, since a distance of 0, the aim, has no place on a logarithmic one.
// Series are drawn side by side, a few points apart, so that equal values show.
func TauAgainstKills(w io.Writer, title string, series []TauSeries) error {
	highest, kills := 0.0, []int{}
	for _, s := range series {
		for _, p := range s.Points {
			if err := checkNumbers(fmt.Sprintf("distance of %q at kills", s.Name), []float64{p.Tau, max(0, p.Low), p.High}); err != nil {
				return err
			}
			if p.Kills < 0 || p.Low > p.Tau || p.High < p.Tau {
				return fmt.Errorf("plot: %q has %+v, want kills of at least 0 and a distance between its bounds", s.Name, p)
			}
			highest = max(highest, p.High)
			kills = append(kills, p.Kills)
		}
	}
	s := scale{"pairs per million", 1e-6}
	switch {
	case highest == 0:
		highest = s.per // all is well: an axis of one pair per million shows it
	case highest >= 0.01:
		s = scale{"share of pairs", 1}
	}
	pic := newPicture(title, "nodes removed (and as many added) during the run", "Kendall tau distance ("+s.unit+")")
	fromZero(&pic.plot.Y, highest, s)
	killsAxis(&pic.plot.X, kills)
	pic.plot.Add(grid{})
	if len(kills) == 0 {
		pic.plot.Add(nothing{})
	}
	for i, s := range series {
		line := newTauLine(i, len(series), s)
		pic.plot.Add(line)
		pic.legend = append(pic.legend, legendEntry{s.Name, lineSample, line.sample})
	}
	return pic.writeTo(w)
}

// killsAxis has a tick for each number of kills, or round ones when there are
// too many to label, and room at both ends so that no marker sits on an axis.
func killsAxis(axis *gonum.Axis, kills []int) {
	slices.Sort(kills)
	kills = slices.Compact(kills)
	highest := 1.0
	if len(kills) > 0 {
		highest = max(highest, float64(kills[len(kills)-1]))
	}
	var ticks []gonum.Tick
	for _, k := range kills {
		ticks = append(ticks, gonum.Tick{Value: float64(k), Label: strconv.Itoa(k)})
	}
	if len(ticks) == 0 || len(ticks) > 12 {
		ticks = roundTicks(highest, 1)
	}
	axis.Min, axis.Max = -0.06*highest, 1.06*highest
	axis.Tick.Marker = gonum.ConstantTicks(ticks)
}

// tauLine draws one series: a line, intervals, markers.
type tauLine struct {
	points []TauPoint // by kills
	line   draw.LineStyle
	marker draw.GlyphStyle
	shift  vg.Length // to the right, from where the axis says
}

func newTauLine(i, of int, s TauSeries) tauLine {
	shapes := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}}
	points := slices.Clone(s.Points)
	slices.SortStableFunc(points, func(a, b TauPoint) int { return a.Kills - b.Kills })
	return tauLine{
		points: points,
		line:   draw.LineStyle{Color: seriesColour(i), Width: 1.5},
		marker: draw.GlyphStyle{Color: seriesColour(i), Radius: 3.2, Shape: shapes[i%len(shapes)]},
		shift:  vg.Length(float64(i)-float64(of-1)/2) * 5,
	}
}

func (l tauLine) Plot(c draw.Canvas, p *gonum.Plot) {
	x, y := p.Transforms(&c)
	at := func(kills int, tau float64) vg.Point {
		return vg.Point{X: x(float64(kills)) + l.shift, Y: y(max(0, tau))}
	}
	const foot = 3 // half the width of an interval's ends
	thin := draw.LineStyle{Color: l.line.Color, Width: 1}
	line := make([]vg.Point, len(l.points))
	for i, q := range l.points {
		line[i] = at(q.Kills, q.Tau)
		if q.Low == q.High {
			continue
		}
		low, high := at(q.Kills, q.Low), at(q.Kills, q.High)
		c.StrokeLine2(thin, low.X, low.Y, high.X, high.Y)
		c.StrokeLine2(thin, low.X-foot, low.Y, low.X+foot, low.Y)
		c.StrokeLine2(thin, high.X-foot, high.Y, high.X+foot, high.Y)
	}
	if len(line) > 1 {
		c.StrokeLines(l.line, line)
	}
	for _, point := range line {
		c.DrawGlyph(l.marker, point)
	}
}

func (l tauLine) sample(c draw.Canvas) {
	middle := c.Center()
	c.StrokeLine2(l.line, c.Min.X, middle.Y, c.Max.X, middle.Y)
	c.DrawGlyph(l.marker, middle)
}
