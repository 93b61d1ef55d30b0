package loop

import (
	"testing"

	"github.com/anteroom/anteroom/qpid"
)

// However many watch a ticket, two are remembered, the newest, and the others are
// told.
func TestATicketHasTwoWatchesTheNewest(t *testing.T) {
	var s streams
	w := watched{"shop", qpid.ItemID{1}}
	other, endOther := s.add(watched{"shop", qpid.ItemID{2}})
	var all []<-chan struct{}
	var ends []func()
	for range 10 {
		c, end := s.add(w)
		all, ends = append(all, c), append(ends, end)
	}
	if len(s.all[w]) != 2 {
		t.Fatalf("%d watches of a ticket are remembered", len(s.all[w]))
	}
	for i, c := range all {
		select {
		case _, open := <-c:
			if open || i >= 8 {
				t.Errorf("watch %d: open %v", i, open)
			}
		default:
			if i < 8 {
				t.Errorf("watch %d is not ended", i)
			}
		}
	}
	s.wake(w)
	for i, c := range all[8:] {
		if _, open := <-c; !open {
			t.Errorf("watch %d of the newest is ended", i)
		}
	}
	select {
	case <-other:
		t.Error("another ticket's watch heard of it")
	default:
	}
	for _, end := range append(ends, endOther) {
		end()
	}
	if len(s.all) != 0 {
		t.Errorf("%d tickets are remembered after all watches have ended", len(s.all))
	}
}
