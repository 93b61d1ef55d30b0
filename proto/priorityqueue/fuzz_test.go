package priorityqueue

import (
	"testing"

	"github.com/anteroom/anteroom/internal/pqueue"
)

// FuzzPageToken: whatever callers bring is refused or a place, and a place that
// is given out is read as itself.
func FuzzPageToken(f *testing.F) {
	f.Add("")
	f.Add(tokenOf(pqueue.WeightOf(5, 1_700_000_000_000_000, 7, 9)))
	f.Add("00")
	f.Fuzz(func(t *testing.T, token string) {
		w, ok := placeOf(token)
		if !ok {
			return
		}
		if again, ok := placeOf(tokenOf(w)); !ok || again != w {
			t.Fatalf("%q is %v, which becomes %v", token, w, again)
		}
	})
}
