package gateway

import (
	"fmt"
	"strings"

	"github.com/boombuler/barcode/qr"

	"github.com/anteroom/anteroom/internal/brand"
)

// qrCode is a picture of text, as a data URL: black on white whatever the colors
// around it, with the margin of four modules that scanners need. Empty where text is
// too long for a code that a telephone reads off a screen.
func qrCode(text string) string {
	const longest, margin = 1000, 4
	if len(text) > longest {
		return ""
	}
	code, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		return ""
	}
	side := code.Bounds().Dx()
	var dots strings.Builder
	for y := range side {
		for x := range side {
			if r, _, _, _ := code.At(x, y).RGBA(); r == 0 {
				fmt.Fprintf(&dots, "M%d %dh1v1h-1z", x+margin, y+margin)
			}
		}
	}
	svg := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[1]d" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h%[1]dv%[1]dH0z"/><path d="%[2]s"/></svg>`, side+2*margin, dots.String())
	return brand.Picture{Type: "image/svg+xml", Bytes: []byte(svg)}.URL()
}
