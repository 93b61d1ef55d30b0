package node

import (
	"encoding/binary"
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

func numbered(i int) (id qpid.ItemID) {
	binary.BigEndian.PutUint32(id[:], uint32(i))
	return id
}

func TestWhereAPlaceWentIsKnownForAsLongAsTicketsLive(t *testing.T) {
	x, y, z := eviction.Member{Name: "x", Boot: 1}, eviction.Member{Name: "y", Boot: 2}, eviction.Member{Name: "z", Boot: 3}
	old := Ticket{ID: numbered(1), Home: x, Past: Homes{{Name: "w"}}}
	var m moved
	expect := func(what string, now int64, want eviction.Member, gen uint32) Ticket {
		t.Helper()
		got := m.follow(old, x, now, now+10)
		if got.Home != want || got.Gen != gen {
			t.Errorf("%s: at %v, generation %d; want %v, %d", what, got.Home, got.Gen, want, gen)
		}
		return got
	}
	expect("nothing is known", 0, x, 0)
	m.put(old.ID, movedTo{y, 1, 10}, 5)
	if got := expect("it went to y", 5, y, 1); got.Past != (Homes{x, {Name: "w"}}) {
		t.Errorf("former homes %v", got.Past)
	}
	m.put(old.ID, movedTo{z, 1, 10}, 5)
	expect("z took it over from the same home, and y was first", 5, y, 1)
	m.put(old.ID, movedTo{z, 2, 10}, 5)
	expect("it went on to z", 6, z, 2)
	m.expire(10)
	expect("somebody asked at 6", 15, z, 2)
	m.expire(25)
	expect("nobody asked since 15", 25, x, 0)
	if len(m.to)+len(m.order) > 0 {
		t.Errorf("%d entries and %d to look at are left", len(m.to), len(m.order))
	}
	m.put(old.ID, movedTo{y, 1, 40}, 5)
	m.back(old.ID)
	expect("it is back", 26, x, 0)
	m.put(old.ID, movedTo{z, 1, 50}, 5)
	expect("another has gone on with it in the same generation", 26, z, 1)
	old.Gen = 1
	expect("so it has for a ticket of the copy that was given up here", 26, z, 1)
	old.Home = y
	expect("but a ticket of a third one of that generation is good there", 26, y, 1)
	old.Home, old.Gen = x, 0
	m.back(old.ID)
	m.put(old.ID, movedTo{z, 3, 50}, 5)
	expect("it went again", 27, z, 3)
	m.expire(40)
	expect("it went again, later than it first did", 45, z, 3)
}

func TestTheOldestPlacesThatWentAreForgottenWhenThereAreTooMany(t *testing.T) {
	var m moved
	home := eviction.Member{Name: "y"}
	for i := range 1000 {
		m.put(numbered(i), movedTo{home, 1, int64(100 + i)}, 64)
		if i%3 == 0 {
			m.follow(Ticket{ID: numbered(i)}, eviction.Member{}, 0, 5000)
		}
		if i%100 == 50 {
			m.expire(int64(50 + i))
		}
		if len(m.to) > 64 || len(m.order) != len(m.to) {
			t.Fatalf("%d entries, %d to look at; want 64 at most, and as many", len(m.to), len(m.order))
		}
		if got := m.follow(Ticket{ID: numbered(i)}, eviction.Member{}, 0, 0); got.Home != home {
			t.Fatalf("the latest, %d, is forgotten", i)
		}
	}
	m.expire(10_000)
	if len(m.to)+len(m.order) > 0 {
		t.Errorf("%d entries and %d to look at are left when all have run out", len(m.to), len(m.order))
	}
}
