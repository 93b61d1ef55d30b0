package eviction

import "testing"

// TestWhoWasSlowOwesRoundTrips: of a newcomer one round trip has to fit, of one that
// was slow three in a row. Who is listed owes nothing, however late one is.
func TestWhoWasSlowOwesRoundTrips(t *testing.T) {
	for _, tt := range []struct {
		name  string
		owes  int
		trips string // f: fits, l: late
		want  int
		late  int
	}{
		{"a newcomer", 1, "f", 0, 0},
		{"a slow newcomer", 1, "lff", 1, 0},
		{"a slow newcomer that is fast", 1, "lfff", 0, 0},
		{"left out", fitsMin, "ff", 1, 0},
		{"left out, late in between", fitsMin, "fflff", 1, 0},
		{"left out, and back", fitsMin, "fflfff", 0, 0},
		{"listed", 0, "fl", 0, 1},
		{"listed, and slow", 0, "fll", 0, 2},
		{"listed, late now and then", 0, "lflfl", 0, 1},
	} {
		c := candidate{owes: tt.owes}
		for _, trip := range tt.trips {
			c.fits(trip == 'f')
		}
		if c.owes != tt.want || c.late != tt.late {
			t.Errorf("%s: after %s it owes %d, %d late; want %d, %d", tt.name, tt.trips, c.owes, c.late, tt.want, tt.late)
		}
	}
}
