package main

import (
	"fmt"
	"math"
	"strconv"

	"github.com/anteroom/anteroom/internal/term"
	"github.com/anteroom/anteroom/internal/trials"
)

// number is x as a table shows it.
func number(unit trials.Unit, x float64) string {
	switch {
	case x == 0 && unit == trials.Ratio:
		return "-"
	case x == 0 || unit != trials.Tau && math.Abs(x) < 5e-5: // the rest is rounding
		return "0"
	case unit == trials.Seconds && math.Abs(x) < 1:
		return fmt.Sprintf("%.1f ms", 1000*x)
	case unit == trials.Seconds:
		return fmt.Sprintf("%.3f s", x)
	case unit == trials.Tau:
		return fmt.Sprintf("%.2e", x)
	case x == math.Trunc(x):
		return term.Count(int64(x))
	case math.Abs(x) >= 1000:
		return term.Count(int64(math.Round(x)))
	}
	return strconv.FormatFloat(x, 'f', 1, 64)
}

// half is how far the mean may be off; one run does not tell.
func half(unit trials.Unit, s trials.Spread) string {
	switch {
	case s.N < 2:
		return "-"
	case unit == trials.Seconds && s.Half() >= 5e-5 && s.Mean.Mean >= 1: // in the unit of the mean
		return fmt.Sprintf("%.3f s", s.Half())
	}
	return number(unit, s.Half())
}

// counted is "1 node" or "3 nodes".
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return term.Count(int64(n)) + " " + what + "s"
}
