package brand

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// Color is one of sRGB.
type Color struct{ R, G, B uint8 }

// ParseColor reads #rgb and #rrggbb.
func ParseColor(text string) (Color, error) {
	if !regexp.MustCompile(`^#(?:[0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})$`).MatchString(text) {
		return Color{}, errors.New("no color; give one such as #0b6b66")
	}
	if len(text) == 4 {
		text = string([]byte{'#', text[1], text[1], text[2], text[2], text[3], text[3]})
	}
	n, err := strconv.ParseUint(text[1:], 16, 32)
	return Color{uint8(n >> 16), uint8(n >> 8), uint8(n)}, err
}

func (c Color) String() string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// Contrast is the contrast ratio of two colors, from 1 to 21, by WCAG 2.2.
func Contrast(a, b Color) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// luminance is the relative luminance of WCAG 2.2.
func (c Color) luminance() float64 {
	linear := func(v uint8) float64 {
		s := float64(v) / 255
		if s <= 0.04045 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}

// Readable returns the color closest to c, on its way to far, that has a contrast
// of at least 4.5 with every one of grounds. Far must have it.
func (c Color) Readable(far Color, grounds ...Color) Color {
	const steps = 100
	for i := range steps {
		at := c.toward(far, float64(i)/steps)
		if at.readableOn(grounds) {
			return at
		}
	}
	return far
}

// contrastMin is what WCAG 2.2 asks for at level AA.
const contrastMin = 4.5

func (c Color) readableOn(grounds []Color) bool {
	for _, g := range grounds {
		if Contrast(c, g) < contrastMin {
			return false
		}
	}
	return true
}

func (c Color) toward(d Color, share float64) Color {
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + share*(float64(b)-float64(a)))) }
	return Color{mix(c.R, d.R), mix(c.G, d.G), mix(c.B, d.B)}
}
