package link_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/eviction"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/qpid"
)

func (f *fake) heard() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.hints...)
}

// More hints than go at once all arrive, and messages sent meanwhile are in order.
func TestHintsArriveBesideTheMessages(t *testing.T) {
	pair(t, nil, func(t *testing.T, _ *wires, a, b *end) {
		var want, rooms []string
		for i := range 2500 {
			id := qpid.ItemID{byte(i >> 8), byte(i)}
			a.Links.Hint(b.self, "shop", id)
			want = append(want, fmt.Sprintf("shop %x", id[:2]))
			if i%10 == 0 {
				rooms = append(rooms, fmt.Sprint(i))
				a.urge(b, fmt.Sprint(i))
			}
		}
		soon()
		if diff := cmp.Diff(want, b.heard()); diff != "" {
			t.Errorf("hints arrived otherwise (-sent +received):\n%s", diff)
		}
		if diff := cmp.Diff(rooms, b.rooms()); diff != "" {
			t.Errorf("messages arrived otherwise (-sent +received):\n%s", diff)
		}
	})
}

// What cannot be sent now is worth nothing later.
func TestHintsForNobodyAreDropped(t *testing.T) {
	bubble(t, func(t *testing.T, w *wires) {
		a, b := w.start(t, member("a", 1), nil), w.start(t, member("b", 2), nil)
		a.Links.Hint(b.self, "not a member", qpid.ItemID{1})
		a.SetMembers(map[eviction.Member]string{b.self: "nowhere", a.self: a.address})
		soon()
		a.Links.Hint(b.self, "no link", qpid.ItemID{2})
		meet(a, b)
		time.Sleep(3 * time.Second)
		a.Links.Hint(b.self, "shop", qpid.ItemID{3})
		soon()
		if diff := cmp.Diff([]string{"shop 0300"}, b.heard()); diff != "" {
			t.Errorf("b heard (-want +got):\n%s", diff)
		}
	})
}

// A hint that makes no sense is left out; the stream and the others are as good as before.
func TestAHintThatMakesNoSenseIsLeftOut(t *testing.T) {
	bubble(t, func(t *testing.T, w *wires) {
		b := w.start(t, member("b", 2), nil)
		c := w.raw(t, b)
		hints := &peerv1.Hints{Hints: []*peerv1.Hint{
			{Room: "short", Id: []byte{1}}, {Room: "good", Id: append([]byte{7}, make([]byte, 15)...)},
		}}
		_ = say(t, c, hello(&peerv1.Member{Name: "x"}, &peerv1.Member{Name: "b", Boot: 2}),
			&peerv1.LinkRequest{Kind: &peerv1.LinkRequest_Hints{Hints: hints}}, frame(1, "next"))
		if diff := cmp.Diff([]string{"good 0700"}, b.heard()); diff != "" {
			t.Errorf("b heard (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"next"}, b.rooms()); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
	})
}
