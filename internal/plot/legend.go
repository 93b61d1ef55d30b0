package plot

import (
	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	legendRow  vg.Length = 16 // height
	sampleGap  vg.Length = 5  // between a sample and its name
	legendGap  vg.Length = 18 // between two entries
	lineSample vg.Length = 22 // width of a sample of a line
	dotSample  vg.Length = 6  // width of a sample of a dot
)

// legendEntry is a name after a sample of what it stands for.
type legendEntry struct {
	name   string
	width  vg.Length           // of the sample
	sample func(c draw.Canvas) // draws at the middle of c
}

// drawLegend writes the entries along the top of c, in as many rows as they
// need, and returns the height they took. Entries without a name are left out.
func drawLegend(c draw.Canvas, entries []legendEntry) vg.Length {
	s := style(10.5, xfont.WeightNormal, ink)
	s.YAlign = draw.YCenter
	x, row := c.Min.X, 0
	drawn := false
	for _, e := range entries {
		if e.name == "" {
			continue
		}
		width := e.width + sampleGap + s.Width(e.name)
		if drawn && x+width > c.Max.X {
			x, row = c.Min.X, row+1
		}
		drawn = true
		middle := c.Max.Y - legendRow*vg.Length(row) - legendRow/2
		e.sample(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: x, Y: middle - legendRow/2},
			Max: vg.Point{X: x + e.width, Y: middle + legendRow/2},
		}})
		c.FillText(s, vg.Point{X: x + e.width + sampleGap, Y: middle}, e.name)
		x += width + legendGap
	}
	if !drawn {
		return 0
	}
	return legendRow * vg.Length(row+1)
}
