package plot

import (
	"math"
	"strconv"
	"strings"

	gonum "gonum.org/v1/plot"
)

// scale turns values into the numbers written at an axis.
type scale struct {
	unit string
	per  float64 // value of one unit
}

// timeScale picks the unit in which most of seconds is a number people say.
func timeScale(seconds float64) scale {
	switch {
	case seconds < 600:
		return scale{"s", 1}
	case seconds < 5*3600:
		return scale{"min", 60}
	}
	return scale{"h", 3600}
}

// fromZero makes axis run from 0 to a round number of units that is no smaller
// than highest, with about five ticks. Values on the axis stay unscaled.
func fromZero(axis *gonum.Axis, highest float64, s scale) {
	ticks := roundTicks(highest/s.per, 0)
	for i := range ticks {
		ticks[i].Value *= s.per
	}
	axis.Min, axis.Max = 0, ticks[len(ticks)-1].Value
	axis.Tick.Marker = gonum.ConstantTicks(ticks)
}

// roundTicks is multiples of 1, 2 or 5 times a power of ten, but no less than
// stepMin, from 0 to the first that is no smaller than highest: between four
// and eight of them unless stepMin makes them fewer.
func roundTicks(highest, stepMin float64) []gonum.Tick {
	if highest <= 0 {
		highest = 1
	}
	exponent := int(math.Floor(math.Log10(highest / 5)))
	var step float64
	for _, m := range []float64{1, 2, 5, 10} {
		step = max(stepMin, m*math.Pow10(exponent))
		if highest/step <= 6 {
			break
		}
	}
	decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	var ticks []gonum.Tick
	for i := 0; ; i++ {
		v := float64(i) * step
		label := "0"
		if i > 0 {
			label = commas(strconv.FormatFloat(v, 'f', decimals, 64))
		}
		ticks = append(ticks, gonum.Tick{Value: v, Label: label})
		// A hair below counts as reached: 0.3 is no multiple of 0.1 in binary.
		if i > 0 && v >= highest*(1-1e-9) {
			return ticks
		}
	}
}

// commas puts a comma between each three digits of a number's whole part.
func commas(number string) string {
	whole, rest, fraction := strings.Cut(number, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction {
		return whole + "." + rest
	}
	return whole
}
