package eviction

import "testing"

// TestWhoWasSlowOwesRoundTrips: of one that was left out as slow three round trips in
// a row have to fit, of any other that is not listed one. Who is listed owes nothing.
func TestWhoWasSlowOwesRoundTrips(t *testing.T) {
	for _, tt := range []struct {
		name       string
		c          candidate
		listed     bool
		trips      string // f: fits, l: late
		owes, late int
	}{
		{"a newcomer", candidate{owes: 1}, false, "f", 0, 0},
		{"a slow newcomer", candidate{owes: 1}, false, "ll", 1, 2},
		{"a slow newcomer that is fast", candidate{owes: 1}, false, "lf", 0, 0},
		{"out for another reason, and slow", candidate{}, false, "fl", 1, 1},
		{"left out", candidate{owes: fitsMin, gray: true}, false, "ff", 1, 0},
		{"left out, late in between", candidate{owes: fitsMin, gray: true}, false, "fflff", 1, 0},
		{"left out, and the last wave had it", candidate{owes: fitsMin, gray: true}, true, "ffl", fitsMin, 1},
		{"left out, and ready", candidate{owes: fitsMin, gray: true}, false, "fflfff", 0, 0},
		{"listed", candidate{}, true, "fl", 0, 1},
		{"listed, and slow", candidate{gray: true}, true, "flll", 0, lateMin},
		{"listed, late now and then", candidate{}, true, "lflfl", 0, 1},
	} {
		for _, trip := range tt.trips {
			tt.c.fits(trip == 'f', tt.listed)
		}
		if tt.c.owes != tt.owes || tt.c.late != tt.late {
			t.Errorf("%s: after %s it owes %d, %d late; want %d, %d", tt.name, tt.trips, tt.c.owes, tt.c.late, tt.owes, tt.late)
		}
	}
}
