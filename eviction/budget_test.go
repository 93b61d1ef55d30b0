package eviction

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/qpid"
)

// crowded returns a node alone with so many rooms where people wait.
func crowded(t *testing.T, rooms, waveBytes int) *Node {
	t.Helper()
	var configs []Room
	for i := range rooms {
		configs = append(configs, Room{Name: fmt.Sprintf("room-%03d", i), Session: time.Minute})
	}
	n := NewNode(Config{WaveBytes: waveBytes}, Start{Self: Peer{Member: Member{Name: "a", Boot: 1}}, Expect: 1}, configs, Time{Boot: 1, Wall: 1})
	for _, g := range n.Gates() {
		for i := range 100 {
			g.Queue.Insert(qpid.Weight{Stamp: uint64(1 + i), ID: qpid.ItemID{byte(i)}})
		}
		g.total, g.waiting = 100, []int{100}
	}
	return n
}

func asks(rooms []RoomGather) (asked, digests []string) {
	for _, r := range rooms {
		asked = append(asked, r.Room)
		if r.Digest {
			digests = append(digests, r.Room)
		}
	}
	return asked, digests
}

func TestRoomsTakeTurnsWithinTheBudget(t *testing.T) {
	n := crowded(t, 50, 20_000)
	now := Time{Boot: 10_000_000, Wall: 10_000_000}
	seen, digested, waves := map[string]int{}, map[string]bool{}, 0
	for len(seen) < 50 {
		waves++
		if waves > 50 {
			t.Fatalf("after %d waves only %d of 50 rooms were asked about", waves, len(seen))
		}
		rooms, more := n.dueRooms(now)
		asked, digests := asks(rooms)
		bytes := 0
		for _, name := range asked {
			bytes += n.Gate(name).plainSize(1)
			seen[name]++
		}
		for i, name := range digests {
			digested[name] = true
			if i > 0 {
				bytes += n.Gate(name).digestSize()
			}
		}
		switch {
		case bytes > 20_000 && len(asked) > 1:
			t.Errorf("wave %d: about %d bytes for %d rooms, %d with digests; the budget is 20,000", waves, bytes, len(asked), len(digests))
		case !more && len(asked) < 50:
			t.Errorf("wave %d leaves rooms out and does not say so", waves)
		case !slices.IsSorted(asked):
			t.Errorf("wave %d asks about %v, want them by name", waves, asked)
		}
		now.Boot += micros(n.c.Urgent)
	}
	for name, times := range seen {
		if times > 2 {
			t.Errorf("%s had %d turns before each had one", name, times)
		}
	}
	for range 200 {
		rooms, _ := n.dueRooms(now)
		_, digests := asks(rooms)
		for _, name := range digests {
			digested[name] = true
		}
		now.Boot += micros(n.c.Urgent)
	}
	if len(digested) != 50 {
		t.Errorf("%d of 50 rooms ever had their digests carried", len(digested))
	}
}

func TestOneRoomGoesHoweverLarge(t *testing.T) {
	n := crowded(t, 3, 1)
	rooms, more := n.dueRooms(Time{Boot: 10_000_000})
	asked, digests := asks(rooms)
	if len(asked) != 1 || len(digests) != 1 || !more {
		t.Errorf("asked about %v, digests of %v, more %v; want one room, its digests, and more to come", asked, digests, more)
	}
}

func TestWithinTheBudgetAllRoomsGo(t *testing.T) {
	n := crowded(t, 100, 0)
	rooms, more := n.dueRooms(Time{Boot: 10_000_000})
	if asked, digests := asks(rooms); len(asked) != 100 || len(digests) != 100 || more {
		t.Errorf("asked about %d rooms, digests of %d, more %v; want 100, 100, false", len(asked), len(digests), more)
	}
}

// A change of the voters is told together with what every room knows of its slots:
// else a room would know less than the voters who are to vouch for it.
func TestAQuietRoomIsAskedAboutWhileTheVotersChange(t *testing.T) {
	n := crowded(t, 1, 1<<20)
	g := n.Gates()[0]
	now := Time{Boot: 10_000_000, Wall: 10_000_000}
	g.busy, g.total, g.asked = false, 0, now.Boot-1
	if rooms, _ := n.dueRooms(now); len(rooms) != 0 {
		t.Errorf("asks about %d rooms in which nothing happens, want none yet", len(rooms))
	}
	n.voters.Next = names("ab")
	if rooms, _ := n.dueRooms(now); len(rooms) != 1 {
		t.Errorf("asks about %d rooms while the voters change, want the one there is", len(rooms))
	}
}
