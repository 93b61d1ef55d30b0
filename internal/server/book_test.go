package server

import (
	"fmt"
	"sync"
	"testing"

	"github.com/anteroom/anteroom/internal/history"
)

func entitledAndCalled(b *book, from, to int) {
	for i := from; i < to; i++ {
		e := history.Entry{At: int64(i), Event: history.Entitled, Room: "shop", Ticket: fmt.Sprintf("%032x", i), Joined: uint64(i), Epoch: uint64(i), Stamp: uint64(i)}
		b.add(e)
		e.Event = history.Called
		b.add(e)
	}
}

func TestBookHasEveryoneWhoeverReadsIt(t *testing.T) {
	b := newBook()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() { entitledAndCalled(b, 1000*i, 1000*(i+1)) })
		all.Go(func() { b.report("shop") })
	}
	all.Wait()
	if r := b.report("shop"); r.N != 4000 || r.DiscordantPairs != 0 {
		t.Errorf("%d people and %d pairs turned, want 4000 and none", r.N, r.DiscordantPairs)
	}
}

// However long somebody reads, the loop can write, within a bound.
func TestBookThatIsBeingReadDoesNotHoldUpTheLoop(t *testing.T) {
	b := newBook()
	b.whole.Lock()
	entitledAndCalled(b, 0, 2*freshMax) // or the test hangs
	if n := len(b.fresh); n > freshMax {
		t.Errorf("%d entries wait, want at most %d", n, freshMax)
	}
	b.whole.Unlock()
	if r := b.report("shop"); r.N == 0 || r.N > freshMax {
		t.Errorf("%d people in the book", r.N)
	}
}
