package plot

import (
	"fmt"
	"io"
	"slices"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Line is a line through points. X and Y have equal length; X ascends.
type Line struct {
	Name string
	X, Y []float64
}

// OverTime writes a plot of lines against seconds since the beginning. yLabel
// says what of, with its unit.
func OverTime(w io.Writer, title, yLabel string, lines []Line) error {
	highest, latest, err := reach(lines)
	if err != nil {
		return err
	}
	s := timeScale(latest)
	pic := newPicture(title, "time ("+s.unit+")", yLabel)
	fromZero(&pic.plot.X, latest, s)
	return pic.withLines(w, lines, highest, scale{per: 1}, false)
}

// ByName writes a plot of lines against names, such as those of percentiles,
// which stand side by side: the first has the X of 0, the next of 1. Values are
// in seconds.
func ByName(w io.Writer, title, xLabel, yLabel string, names []string, lines []Line) error {
	highest, last, err := reach(lines)
	if err != nil {
		return err
	}
	if int(last) >= max(1, len(names)) {
		return fmt.Errorf("plot: a point at %v, and %d names", last, len(names))
	}
	s := timeScale(highest)
	if highest < 1 {
		s = scale{"ms", 1e-3}
	}
	pic := newPicture(title, xLabel, yLabel+" ("+s.unit+")")
	named(&pic.plot.X, names)
	return pic.withLines(w, lines, highest, s, true)
}

// named has names along an axis, side by side.
func named(axis *gonum.Axis, names []string) {
	ticks := make([]gonum.Tick, len(names))
	for i, name := range names {
		ticks[i] = gonum.Tick{Value: float64(i), Label: name}
	}
	axis.Min, axis.Max = -0.3, float64(len(names))-0.7
	axis.Tick.Marker = gonum.ConstantTicks(ticks)
}

// reach is how far lines go along both axes.
func reach(lines []Line) (highest, latest float64, err error) {
	for _, l := range lines {
		if len(l.X) != len(l.Y) {
			return 0, 0, fmt.Errorf("plot: %q has %d times and %d values", l.Name, len(l.X), len(l.Y))
		}
		for what, values := range map[string][]float64{"place": l.X, "value": l.Y} {
			if err := checkNumbers(fmt.Sprintf("%s of %q number", what, l.Name), values); err != nil {
				return 0, 0, err
			}
		}
		if !slices.IsSorted(l.X) {
			return 0, 0, fmt.Errorf("plot: the points of %q go to and fro", l.Name)
		}
		if len(l.X) > 0 {
			highest, latest = max(highest, slices.Max(l.Y)), max(latest, l.X[len(l.X)-1])
		}
	}
	return highest, latest, nil
}

// withLines adds lines to a picture that has its axis along the bottom, and
// writes it.
func (p *picture) withLines(w io.Writer, lines []Line, highest float64, s scale, marked bool) error {
	p.addLines(lines, highest, s, marked)
	return p.writeTo(w)
}

func (p *picture) addLines(lines []Line, highest float64, s scale, marked bool) {
	fromZero(&p.plot.Y, highest, s)
	p.plot.Add(grid{})
	empty := true
	for i, l := range lines {
		drawn := newCurve(i, l, marked)
		p.plot.Add(drawn)
		p.legend = append(p.legend, legendEntry{l.Name, lineSample, drawn.sample})
		empty = empty && len(l.X) == 0
	}
	if empty {
		p.plot.Add(nothing{})
	}
}

// curve draws a line, with a marker at each point or without.
type curve struct {
	data   Line
	line   draw.LineStyle
	marker draw.GlyphStyle
	marked bool
}

func newCurve(i int, l Line, marked bool) curve {
	return curve{
		data: l, marked: marked,
		line:   draw.LineStyle{Color: seriesColour(i), Width: 1.5},
		marker: draw.GlyphStyle{Color: seriesColour(i), Radius: 3, Shape: draw.CircleGlyph{}},
	}
}

// pointsMax bounds the points of a line that is drawn: more than there is room
// for. Of those that share a place the highest is kept.
const pointsMax = 1200

func (l curve) Plot(c draw.Canvas, p *gonum.Plot) {
	x, y := p.Transforms(&c)
	of := (len(l.data.X) + pointsMax - 1) / pointsMax
	var points []vg.Point
	for i := 0; i < len(l.data.X); i += max(1, of) {
		top := slices.Max(l.data.Y[i:min(i+max(1, of), len(l.data.Y))])
		points = append(points, vg.Point{X: x(l.data.X[i]), Y: y(top)})
	}
	if len(points) > 1 {
		c.StrokeLines(l.line, points)
	}
	for _, point := range points {
		if l.marked || len(points) == 1 {
			c.DrawGlyph(l.marker, point)
		}
	}
}

func (l curve) sample(c draw.Canvas) {
	middle := c.Center()
	c.StrokeLine2(l.line, c.Min.X, middle.Y, c.Max.X, middle.Y)
	if l.marked {
		c.DrawGlyph(l.marker, middle)
	}
}
