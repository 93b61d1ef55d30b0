package page

import (
	"fmt"
	"html/template"

	"github.com/anteroom/anteroom/internal/brand"
)

// accent is the style of a room's own color; empty for none. The color is
// changed as little as it takes to be read on what page.css has it on: --card and
// --ground, which a test compares. White on it in the light, and near black on it
// in the dark, have as much contrast as it has there.
func accent(text string) template.CSS {
	c, err := brand.ParseColor(text)
	if err != nil {
		return ""
	}
	light, dark := grounds()
	day, night := c.Readable(brand.Color{}, light...), c.Readable(brand.Color{R: 255, G: 255, B: 255}, dark...)
	return template.CSS(fmt.Sprintf(":root{--accent:%v}@media (prefers-color-scheme:dark){:root{--accent:%v}}", day, night))
}

// grounds are what stands behind the accent, on light pages and on dark: --card,
// --ground and --note of page.css.
func grounds() (light, dark []brand.Color) {
	return []brand.Color{{R: 0xff, G: 0xff, B: 0xff}, {R: 0xf3, G: 0xf1, B: 0xec}, {R: 0xfd, G: 0xf4, B: 0xdd}},
		[]brand.Color{{R: 0x19, G: 0x21, B: 0x2a}, {R: 0x10, G: 0x15, B: 0x1b}, {R: 0x2c, G: 0x2a, B: 0x1f}}
}
