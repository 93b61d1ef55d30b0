package plot

import (
	"fmt"
	"io"
	"math"
	"slices"

	xfont "golang.org/x/image/font"
	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// heatBins is the number of cells along each side.
const heatBins = 30

// Heatmap writes a histogram in two dimensions of waiting time against arrival,
// 30 cells by 30, with a bar that tells what the colours mean: the brighter a
// cell, the more people; the darkest colour is nobody. arrival and wait are in seconds and of equal length.
// Unlike numpy.histogram2d's, the cells start at zero, not at the smallest value.
func Heatmap(w io.Writer, title string, arrival, wait []float64) error {
	if err := (WaitSeries{"heat map", arrival, wait}).check(); err != nil {
		return err
	}
	var latest, longest float64
	if len(wait) > 0 {
		latest, longest = slices.Max(arrival), slices.Max(wait)
	}
	pic := newWaitPicture(title, latest, longest)
	cells := heat{latest: positive(latest), longest: positive(longest)}
	cells.count(arrival, wait)
	// The cells end with the data, not with a round number.
	pic.plot.X.Max, pic.plot.Y.Max = cells.latest, cells.longest
	if len(wait) == 0 {
		pic.plot.Add(nothing{})
		return pic.writeTo(w)
	}
	pic.plot.Add(&cells)
	pic.right = 74
	pic.beside = func(column draw.Canvas, data vg.Rectangle) { drawColourBar(column, data, cells.most) }
	return pic.writeTo(w)
}

// positive keeps an axis from having no length.
func positive(x float64) float64 {
	if x == 0 {
		return 1
	}
	return x
}

// heat counts people in cells of equal size.
type heat struct {
	latest, longest float64 // seconds: the far edges
	people          [heatBins][heatBins]int
	most            int // people in the fullest cell
}

// count puts each person into a cell. The far edges belong to the last cells.
func (h *heat) count(arrival, wait []float64) {
	bin := func(v, far float64) int { return min(int(v/far*heatBins), heatBins-1) }
	for i := range wait {
		cell := &h.people[bin(arrival[i], h.latest)][bin(wait[i], h.longest)]
		*cell++
		h.most = max(h.most, *cell)
	}
}

func (h *heat) Plot(c draw.Canvas, _ *gonum.Plot) {
	c.SetColor(heatColour(0, h.most))
	c.Fill(c.Rectangle.Path())
	size := c.Size()
	edge := func(x, y int) vg.Point {
		return vg.Point{X: c.Min.X + size.X*vg.Length(x)/heatBins, Y: c.Min.Y + size.Y*vg.Length(y)/heatBins}
	}
	for x := range heatBins {
		for y := range heatBins {
			n := h.people[x][y]
			if n == 0 {
				continue
			}
			c.SetColor(heatColour(float64(n), h.most))
			fillCell(c, vg.Rectangle{Min: edge(x, y), Max: edge(x+1, y+1)})
		}
	}
}

// fillCell covers the seams that renderers leave between neighbours by reaching
// under those that are drawn later: to the right and above.
func fillCell(c draw.Canvas, cell vg.Rectangle) {
	const under = 0.4
	cell.Max.X = min(cell.Max.X+under, c.Max.X)
	cell.Max.Y = min(cell.Max.Y+under, c.Max.Y)
	c.Fill(cell.Path())
}

// drawColourBar draws the colours from 0 to most people in column, beside data.
func drawColourBar(column draw.Canvas, data vg.Rectangle, most int) {
	bar := column
	bar.Min = vg.Point{X: column.Min.X + 14, Y: data.Min.Y}
	bar.Max = vg.Point{X: column.Min.X + 28, Y: data.Max.Y}
	const strips = 64
	height := bar.Size().Y
	for i := range strips {
		n := 0.0 // the lowest strip is nobody, however many people the next one is
		if i > 0 {
			n = max(1, (float64(i)+0.5)/strips*float64(most))
		}
		bar.SetColor(heatColour(n, most))
		low := bar.Min.Y + height*vg.Length(i)/strips
		fillCell(bar, vg.Rectangle{
			Min: vg.Point{X: bar.Min.X, Y: low},
			Max: vg.Point{X: bar.Max.X, Y: low + height/strips},
		})
	}
	numbers := style(10, xfont.WeightNormal, pencil)
	numbers.YAlign = draw.YCenter
	top := float64(most)
	for _, tick := range roundTicks(top, 1) {
		if tick.Value > top {
			break
		}
		y := bar.Min.Y + height*vg.Length(tick.Value/top)
		bar.StrokeLine2(draw.LineStyle{Color: pencil, Width: 0.75}, bar.Max.X, y, bar.Max.X+3, y)
		column.FillText(numbers, vg.Point{X: bar.Max.X + 6, Y: y}, tick.Label)
	}
	label := style(11, xfont.WeightNormal, ink)
	label.Rotation = math.Pi / 2
	label.XAlign, label.YAlign = draw.XCenter, draw.YBottom
	column.FillText(label, vg.Point{X: column.Max.X, Y: data.Min.Y + height/2}, fmt.Sprintf("people in a cell (most: %s)", commas(fmt.Sprint(most))))
}
