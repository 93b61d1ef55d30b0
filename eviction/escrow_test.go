package eviction

import (
	"slices"
	"testing"
)

// Whoever looks at the voids of a room may keep them: what was shown stays as it was.
func TestVoidsThatWereShownDoNotChange(t *testing.T) {
	a, b := Member{Name: "a", Boot: 1}, Member{Name: "b", Boot: 1}
	var e escrow
	e.accept(Member{}, Line{}, &RoomCommit{Void: []Void{{b, 3}}}, 0)
	for _, change := range []func(){
		func() { e.accept(Member{}, Line{}, &RoomCommit{Void: []Void{{b, 5}}}, 0) },
		func() { e.accept(Member{}, Line{}, &RoomCommit{Void: []Void{{a, 4}}}, 0) },
		func() { e.forget(func(m Member) bool { return m != a }) },
	} {
		shown := e.Voids()
		kept := slices.Clone(shown)
		change()
		if !slices.Equal(shown, kept) || slices.Equal(e.Voids(), kept) {
			t.Errorf("%v was shown, is %v there and %v here", kept, shown, e.Voids())
		}
	}
}
