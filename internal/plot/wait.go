package plot

import (
	"fmt"
	"io"
	"slices"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// WaitSeries is how long people waited. Arrival and Wait have equal length.
type WaitSeries struct {
	Name    string
	Arrival []float64 // seconds since the first arrival
	Wait    []float64 // seconds from arrival to the call
}

func (s WaitSeries) check() error {
	if len(s.Arrival) != len(s.Wait) {
		return fmt.Errorf("plot: %q has %d arrivals and %d waits", s.Name, len(s.Arrival), len(s.Wait))
	}
	if err := checkNumbers(fmt.Sprintf("arrival of %q number", s.Name), s.Arrival); err != nil {
		return err
	}
	return checkNumbers(fmt.Sprintf("wait of %q number", s.Name), s.Wait)
}

// WaitAgainstArrival writes a scatter plot with a dot for each person. First
// come, first served shows as a line; a lottery as a cloud.
//
// Where a hundred thousand dots would only hide one another, people closer than
// a dot's width share one. Nobody who waited unlike their neighbours is left out.
func WaitAgainstArrival(w io.Writer, title string, series []WaitSeries) error {
	latest, longest, people := 0.0, 0.0, 0
	for _, s := range series {
		if err := s.check(); err != nil {
			return err
		}
		if len(s.Wait) > 0 {
			latest = max(latest, slices.Max(s.Arrival))
			longest = max(longest, slices.Max(s.Wait))
			people += len(s.Wait)
		}
	}
	pic := newWaitPicture(title, latest, longest)
	pic.plot.Add(grid{})
	if people == 0 {
		pic.plot.Add(nothing{})
	}
	for i, s := range series {
		d := dots{series: s, colour: i}
		pic.plot.Add(d)
		pic.legend = append(pic.legend, legendEntry{s.Name, dotSample, d.sample})
	}
	return pic.writeTo(w)
}

// newWaitPicture has its axes in units that suit the latest arrival and the
// longest wait, both in seconds.
func newWaitPicture(title string, latest, longest float64) *picture {
	x, y := timeScale(latest), timeScale(longest)
	pic := newPicture(title, "arrived ("+x.unit+" after the first)", "waited ("+y.unit+")")
	fromZero(&pic.plot.X, latest, x)
	fromZero(&pic.plot.Y, longest, y)
	return pic
}

const (
	dotSize vg.Length = 2.4
	// dotsMax bounds the dots of a series, and so what it adds to the document, to
	// about half a megabyte.
	dotsMax = 10_000
	// dotLayers is how many dots on one spot make it darker still. Dots of one
	// layer are one path, which is what keeps the document small.
	dotLayers = 4
)

// dots draws a series as translucent dots.
type dots struct {
	series WaitSeries
	colour int
}

func (d dots) Plot(c draw.Canvas, p *gonum.Plot) {
	x, y := p.Transforms(&c)
	points := make([]vg.Point, len(d.series.Wait))
	for i := range points {
		points[i] = vg.Point{X: x(d.series.Arrival[i]), Y: y(d.series.Wait[i])}
	}
	points = thin(points, dotsMax)
	d.ink(c)
	for layer := range dotLayers {
		var path vg.Path
		for i := layer; i < len(points); i += dotLayers {
			path = append(path, dot(points[i], dotSize)...)
		}
		if path != nil {
			c.Fill(path)
		}
	}
}

// ink makes a crowd darker than one person, and one person still visible.
func (d dots) ink(c draw.Canvas) {
	c.SetColor(seriesColour(d.colour).fade(0x99))
}

func (d dots) sample(c draw.Canvas) {
	d.ink(c)
	c.Fill(dot(c.Center(), dotSample))
}

// dot is a square: at this size nobody sees the corners, and it takes half the
// bytes of a circle.
func dot(at vg.Point, size vg.Length) vg.Path {
	half := vg.Point{X: size / 2, Y: size / 2}
	return vg.Rectangle{Min: at.Sub(half), Max: at.Add(half)}.Path()
}

// thin returns at most limit of points. When there are more, it keeps one of
// each square of a grid, as fine a grid as the limit allows.
func thin(points []vg.Point, limit int) []vg.Point {
	if len(points) <= limit {
		return points
	}
	type square struct{ x, y int }
	for side := vg.Length(1); ; side *= 1.25 {
		taken := make(map[square]struct{}, limit)
		kept := make([]vg.Point, 0, limit)
		for _, p := range points {
			at := square{int(p.X / side), int(p.Y / side)}
			if _, ok := taken[at]; ok {
				continue
			}
			if len(kept) == limit {
				kept = nil // too fine
				break
			}
			taken[at] = struct{}{}
			kept = append(kept, p)
		}
		if kept != nil {
			return kept
		}
	}
}
