package fairness

import "math"

// Mean is a mean of independent runs with its 95 % confidence interval.
type Mean struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`  // lower end of the interval
	High float64 `json:"high"` // upper end of the interval
	N    int     `json:"n"`    // number of runs
}

// MeanOf is the mean of values, with the interval that Student's t gives:
//
//	mean ± t(0.975, n-1) · s / √n
//
// where s² = Σ(value - mean)² / (n-1). One value has no interval: Low and High
// then equal it. The mean of nothing is 0.
//
// The interval may reach below zero where a negative value has no meaning, and
// has no width when every run gave the same.
func MeanOf(values []float64) Mean {
	n := len(values)
	if n == 0 {
		return Mean{}
	}
	var sum float64
	for _, v := range values {
		sum += v
	}
	mean := sum / float64(n)
	if n == 1 {
		return Mean{Mean: mean, Low: mean, High: mean, N: n}
	}
	var squares float64
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	half := studentT(n-1) * math.Sqrt(squares/float64(n-1)/float64(n))
	return Mean{Mean: mean, Low: mean - half, High: mean + half, N: n}
}

// studentT is the 0.975 quantile of Student's t. Beyond the table, which is of 1
// to 29 degrees of freedom, it is the normal quantile z with the first two
// corrections of its expansion in 1/degrees,
//
//	z + (z³+z)/4ν + (5z⁵+16z³+3z)/96ν²
//
// which is within 0.0001 there.
func studentT(degrees int) float64 {
	table := [...]float64{
		12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
		2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
		2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452,
	}
	if degrees <= len(table) {
		return table[degrees-1]
	}
	const z = 1.959964
	v := float64(degrees)
	return z + (z*z*z+z)/(4*v) + (5*z*z*z*z*z+16*z*z*z+3*z)/(96*v*v)
}
