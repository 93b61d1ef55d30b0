package plot

import (
	"bytes"
	"fmt"
	"io"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Panel is one plot of several in a picture: lines against names that stand side
// by side, as in ByName. Values are in the unit that YLabel says.
type Panel struct {
	Title, XLabel, YLabel string
	Names                 []string
	Lines                 []Line
}

const (
	panelHeight vg.Length = 230
	panelGap    vg.Length = 24
)

// Panels writes plots in two columns. The title is for screen readers and
// tooltips. Unlike the others, the picture follows a reader who prefers dark pages.
func Panels(w io.Writer, title string, panels []Panel) error {
	rows := vg.Length((len(panels) + 1) / 2)
	width, height := pictureWidth*5/4, 2*margin+rows*panelHeight+max(0, rows-1)*panelGap
	svg := vgsvg.New(width, height)
	c := draw.New(svg)
	c.SetColor(paper)
	c.Fill(c.Rectangle.Path())
	c = draw.Crop(c, margin, -margin, margin, -margin)
	half := (c.Size().X - panelGap) / 2
	for i, p := range panels {
		highest, last, err := reach(p.Lines)
		if err != nil {
			return err
		}
		if int(last) >= max(1, len(p.Names)) {
			return fmt.Errorf("plot: a point at %v, and %d names", last, len(p.Names))
		}
		pic := newPicture(p.Title, p.XLabel, p.YLabel)
		named(&pic.plot.X, p.Names)
		pic.addLines(p.Lines, highest, scale{per: 1}, true)
		left := c.Min.X + vg.Length(i%2)*(half+panelGap)
		top := c.Max.Y - vg.Length(i/2)*(panelHeight+panelGap)
		pic.draw(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: left, Y: top - panelHeight}, Max: vg.Point{X: left + half, Y: top},
		}})
	}
	document, err := finish(svg, title)
	if err != nil {
		return err
	}
	_, err = w.Write(bytes.Replace(document, []byte("</title>\n"), []byte("</title>\n"+darkStyle()), 1))
	return err
}

// darkStyle turns the colours that are no data's around.
func darkStyle() string {
	const night, moon, mist, coal rgb = 0x15191e, 0xe8edf2, 0xa9b4bf, 0x343b43
	b := "<style>\n@media (prefers-color-scheme: dark) {\n"
	for _, c := range []struct{ day, night rgb }{{paper, night}, {ink, moon}, {pencil, mist}, {chalk, coal}} {
		for _, what := range []string{"fill", "stroke"} {
			b += fmt.Sprintf("[style*=\"%s:#%06X\"] { %s: #%06x !important }\n", what, uint32(c.day), what, uint32(c.night))
		}
	}
	return b + "}\n</style>\n"
}
