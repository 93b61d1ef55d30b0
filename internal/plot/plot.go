// Package plot draws the pictures of a fairness report as SVG: Kendall tau
// against nodes lost, waiting time against arrival, and the heat map of the
// latter. All axes that measure something are linear and start at zero, so that
// twice as high is twice as much.
//
// The same input gives the same bytes: nothing in a picture depends on the time,
// the machine or the order of a map. Fonts are named, not embedded; a viewer
// without them falls back to its own.
package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"

	xfont "golang.org/x/image/font"
	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Size of every picture, in points.
const (
	pictureWidth  vg.Length = 640
	pictureHeight vg.Length = 400
	margin        vg.Length = 14
)

// picture is a title and a legend above a plot.
type picture struct {
	title  string
	legend []legendEntry
	plot   *gonum.Plot
	// right is kept free to the right of the plot, for beside to draw in. beside
	// gets the column and the area of the plot that the data are in.
	right  vg.Length
	beside func(column draw.Canvas, data vg.Rectangle)
}

// newPicture has both axes in the house style, without ranges.
func newPicture(title, xLabel, yLabel string) *picture {
	p := gonum.New()
	for _, axis := range []*gonum.Axis{&p.X, &p.Y} {
		axis.Padding = 0
		axis.LineStyle = draw.LineStyle{Color: pencil, Width: 0.75}
		axis.Tick.LineStyle = axis.LineStyle
		axis.Tick.Length = 4
		axis.Tick.Label.Font = sans(10, xfont.WeightNormal)
		axis.Tick.Label.Color = pencil
		axis.Label.TextStyle.Font = sans(11, xfont.WeightNormal)
		axis.Label.TextStyle.Color = ink
		axis.Label.Padding = 6
	}
	p.X.Label.Text, p.Y.Label.Text = xLabel, yLabel
	return &picture{title: title, plot: p}
}

// writeTo draws the picture and writes it as an SVG document.
func (p *picture) writeTo(w io.Writer) error {
	svg := vgsvg.New(pictureWidth, pictureHeight)
	c := draw.New(svg)
	c.SetColor(paper)
	c.Fill(c.Rectangle.Path())
	p.draw(draw.Crop(c, margin, -margin, margin, -margin))
	document, err := finish(svg, p.title)
	if err != nil {
		return err
	}
	_, err = w.Write(document)
	return err
}

// draw fills c with the picture.
func (p *picture) draw(c draw.Canvas) {
	title := style(14, xfont.WeightBold, ink)
	title.YAlign = draw.YTop
	for title.Width(p.title) > c.Size().X && title.Font.Size > 8 {
		title.Font.Size--
	}
	c.FillText(title, vg.Point{X: c.Min.X, Y: c.Max.Y}, p.title)
	c.Max.Y -= title.Height(p.title) + 10
	if used := drawLegend(c, p.legend); used > 0 {
		c.Max.Y -= used + 8
	}
	area := draw.Crop(c, 0, -p.right, 0, 0)
	p.plot.Draw(area)
	if p.beside != nil {
		column := c
		column.Min.X = area.Max.X
		p.beside(column, p.plot.DataCanvas(area).Rectangle)
	}
}

// finish gives the document its title, for screen readers and tooltips, and
// its fonts' next of kin.
func finish(svg *vgsvg.Canvas, title string) ([]byte, error) {
	var b, escaped bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("plot: %w", err)
	}
	if err := xml.EscapeText(&escaped, []byte(title)); err != nil {
		return nil, fmt.Errorf("plot: %w", err)
	}
	document := bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
	head, body, ok := bytes.Cut(document, []byte("xlink\">\n"))
	if !ok {
		return nil, errors.New("plot: the SVG library begins its documents in another way now")
	}
	return bytes.Join([][]byte{
		head, []byte("xlink\" role=\"img\">\n<title>"), escaped.Bytes(), []byte("</title>\n"), body,
	}, nil), nil
}

func sans(size font.Length, weight xfont.Weight) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size, Weight: weight}
}

func style(size font.Length, weight xfont.Weight, c rgb) text.Style {
	return text.Style{Font: sans(size, weight), Color: c, Handler: gonum.DefaultTextHandler}
}

// grid is horizontal lines at the ticks of the vertical axis.
type grid struct{}

func (grid) Plot(c draw.Canvas, p *gonum.Plot) {
	_, y := p.Transforms(&c)
	for _, tick := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if tick.Value > p.Y.Min {
			c.StrokeLine2(draw.LineStyle{Color: chalk, Width: 0.75}, c.Min.X, y(tick.Value), c.Max.X, y(tick.Value))
		}
	}
}

// nothing says that there is nothing to see, lest an empty plot look broken.
type nothing struct{}

func (nothing) Plot(c draw.Canvas, _ *gonum.Plot) {
	s := style(12, xfont.WeightNormal, pencil)
	s.XAlign, s.YAlign = draw.XCenter, draw.YCenter
	c.FillText(s, c.Center(), "no data")
}

// checkNumbers refuses what no axis from zero can show.
func checkNumbers(what string, values []float64) error {
	for i, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return fmt.Errorf("plot: %s %d is %v, want a number of at least 0", what, i, v)
		}
	}
	return nil
}
