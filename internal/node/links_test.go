package node

import "testing"

func TestTheOldestLinksAreForgottenWhenThereAreTooMany(t *testing.T) {
	var l links
	for i := range linksMax + 10 {
		l.put(numbered(i), offered{visitor: numbered(i), until: 100}, int64(i%2))
	}
	if len(l.of) != linksMax || len(l.order) != linksMax {
		t.Errorf("%d links, %d in order; want %d", len(l.of), len(l.order), linksMax)
	}
	if _, ok := l.of[numbered(9)]; ok {
		t.Error("one of the oldest is still good")
	}
	l.put(numbered(7), offered{until: 300}, 200)
	if len(l.of) != 1 || len(l.order) != 1 {
		t.Errorf("%d links, %d in order when all but one have run out", len(l.of), len(l.order))
	}
}
