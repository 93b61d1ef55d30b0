package plot

import "image/color"

// rgb is an opaque colour, 0xRRGGBB.
type rgb uint32

const (
	paper  rgb = 0xffffff
	ink    rgb = 0x222222 // titles, labels
	pencil rgb = 0x666666 // axes, numbers
	chalk  rgb = 0xe4e4e4 // grid
)

// RGBA is as color.Color wants it.
func (c rgb) RGBA() (r, g, b, a uint32) { return c.fade(0xff).RGBA() }

// fade is c with the given alpha.
func (c rgb) fade(alpha uint8) color.NRGBA {
	return color.NRGBA{R: uint8(c >> 16), G: uint8(c >> 8), B: uint8(c), A: alpha}
}

// seriesColour is from Okabe and Ito's palette, which people who are
// colour-blind can tell apart. It repeats after six.
func seriesColour(i int) rgb {
	const blue, vermilion, green, purple, orange, sky = 0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9
	palette := [...]rgb{blue, vermilion, green, purple, orange, sky}
	return palette[i%len(palette)]
}

// heatColour is the colour of n people where the fullest cell has most. One
// person among thousands differs from nobody at a glance: the colours between
// the darkest and those of somebody are left out.
func heatColour(n float64, most int) rgb {
	const somebody = 0.12
	if n == 0 {
		return viridis(0)
	}
	return viridis(somebody + (1-somebody)*n/float64(most))
}

// viridis is a colour from dark (0) to bright (1) that looks evenly graded, in
// print without colours as well: matplotlib's, from ten of its colours.
func viridis(part float64) rgb {
	stops := [...]rgb{
		0x440154, 0x482878, 0x3e4a89, 0x31688e, 0x26828e, 0x1f9e89, 0x35b779, 0x6dcd59, 0xb4de2c, 0xfde725,
	}
	at := min(max(part, 0), 1) * float64(len(stops)-1)
	i := min(int(at), len(stops)-2)
	mix := func(shift int) rgb {
		a, b := float64(stops[i]>>shift&0xff), float64(stops[i+1]>>shift&0xff)
		return rgb(a+(b-a)*(at-float64(i))+0.5) << shift
	}
	return mix(16) | mix(8) | mix(0)
}
