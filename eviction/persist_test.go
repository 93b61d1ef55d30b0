package eviction

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/qpid"
)

func record() *Record {
	return &Record{
		Line: Line{1, "a"}, Voters: Voters{Version: 1, Names: []qpid.NodeID{"a", "b", "c"}, At: qpid.Epoch{Num: 98}}, Epoch: 100, Member: Member{"b", 1},
		Met:   []Sighting{{Member: memberA, Epoch: 90}, {Member: memberC, Epoch: 95, Left: true}},
		Rooms: []RoomRecord{{Room: Room{Name: "shop", Target: 10, Session: time.Second}, Line: Line{1, "a"}, Voids: []Void{{memberA, 92}}}},
	}
}

// What must be on disk before a node speaks again, and what need not.
func TestRecordDiffers(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Record)
		want   bool
	}{
		{"nothing", func(*Record) {}, false},
		{"a later wave with the same members", func(r *Record) { r.Epoch++; r.Met[0].Epoch++; r.Voters.At.Num++ }, false},
		{"half the gap of epochs", func(r *Record) { r.Epoch += epochGap / 2 }, true},
		{"the line", func(r *Record) { r.Line.Stamp++ }, true},
		{"the voters", func(r *Record) { r.Voters.Version++ }, true},
		{"the line has begun", func(r *Record) { r.Voters.At = qpid.Epoch{} }, true},
		{"a proposal", func(r *Record) { r.Voters.Next = []qpid.NodeID{"a", "b"} }, true},
		{"someone met", func(r *Record) { r.Met = append(r.Met, Sighting{Member: Member{"d", 1}}) }, true},
		{"another life", func(r *Record) { r.Met[1].Member.Boot++ }, true},
		{"a goodbye", func(r *Record) { r.Met[0].Left = true }, true},
		{"a void", func(r *Record) { r.Rooms[0].Voids = append(r.Rooms[0].Voids, Void{memberC, 98}) }, true},
		{"a later void", func(r *Record) { r.Rooms[0].Voids = []Void{{memberA, 99}} }, true},
		{"a room", func(r *Record) { r.Rooms = append(r.Rooms, RoomRecord{Room: Room{Name: "x"}}) }, true},
		{"a room's configuration", func(r *Record) { r.Rooms[0].Room.Version.Stamp++ }, true},
		{"a room's line", func(r *Record) { r.Rooms[0].Line.Stamp++ }, true},
		{"a vote for where a room goes", func(r *Record) { r.Rooms[0].Goes.To.Stamp++ }, true},
		{"the longest session", func(r *Record) { r.Rooms[0].TTL = time.Hour }, true},
		{"the cut", func(r *Record) { r.Rooms[0].Cut.Epoch++ }, false},
		{"a raised limit", func(r *Record) { r.Rooms[0].Supply.Slots++ }, true},
		{"a later wave with as many slots", func(r *Record) { r.Rooms[0].Supply.At.Num++ }, false},
	}
	for _, test := range tests {
		r := record()
		test.change(r)
		if got := record().Differs(r); got != test.want {
			t.Errorf("%s: Differs = %v, want %v", test.name, got, test.want)
		}
	}
	if (*Record)(nil).Differs(nil) || !record().Differs(nil) || !(*Record)(nil).Differs(record()) {
		t.Error("Differs of no record is wrong")
	}
	// Of two proposals the one that a later wave carried counts, as in Paxos: a
	// node that forgot which wave that was could revive one that has lost.
	a, b := record(), record()
	a.Voters.Next, b.Voters.Next = []qpid.NodeID{"a", "b"}, []qpid.NodeID{"a", "b"}
	b.Voters.At.Num++
	if !a.Differs(b) {
		t.Error("the wave that carried an open proposal is not kept")
	}
}

// What was lowered again is on disk as soon as it is within the limit: not each step of it,
// but so that who restarts long after an event does not wait for what it had raised.
func TestRecordDiffersWhenTheLimitHoldsAgain(t *testing.T) {
	supply := func(slots int) *Record {
		r := record()
		r.Rooms[0].Room.Target, r.Rooms[0].Supply.Slots = 10, slots
		return r
	}
	for _, test := range []struct {
		from, to int
		want     bool
	}{{40, 41, true}, {40, 39, false}, {40, 11, false}, {40, 10, true}, {40, 9, true}, {10, 9, false}, {10, 4, false}, {4, 5, true}} {
		if got := supply(test.from).Differs(supply(test.to)); got != test.want {
			t.Errorf("%d slots on disk, %d now, a limit of 10: Differs = %t, want %t", test.from, test.to, got, test.want)
		}
	}
}

// A node that comes back from disk counts everyone it knew, and its own earlier
// life, as lost just now, and as having acted in waves it does not know of.
func TestRestore(t *testing.T) {
	now := Time{Boot: 5e9, Wall: 1_700_000_000_000_000}
	r := record()
	r.Since, r.Rooms[0].TTL = 98, time.Minute
	r.Rooms[0].Cut = Cut{Epoch: 99, Value: qpid.Weight{Stamp: uint64(now.Wall) + 300_000}}
	n := NewNode(Config{}, Start{Self: Peer{Member{"b", 2}, now.Wall}, Joins: true, Record: r}, []Room{{Name: "shop", Target: 10, Session: time.Second}}, now)
	if !n.knows || n.line != r.Line || n.epoch.Num <= r.Epoch+epochGap/2 {
		t.Errorf("knows %v, line %v, epoch %v", n.knows, n.line, n.epoch)
	}
	if n.since != r.Since {
		t.Errorf("it votes as of wave %d, and stands for wave %d", n.since, r.Since)
	}
	for _, m := range []Member{memberA, {"b", 1}, memberC} {
		i, ok := n.findMet(m)
		if !ok || n.met[i].at != now.Boot {
			t.Errorf("%v: met %v, want lost just now", m, n.met)
			continue
		}
		// Its last wave may be later than what was synced: a void that is older
		// than that would not cover its last account.
		if n.met[i].epoch < n.epoch.Num {
			t.Errorf("%v was last met in wave %d, want %d", m, n.met[i].epoch, n.epoch.Num)
		}
		if n.met[i].left != (m == memberC) {
			t.Errorf("%v left: %v", m, n.met[i].left)
		}
	}
	g := n.Gate("shop")
	if want := micros(500*time.Millisecond + 10*time.Second + time.Minute + time.Second + 200*time.Millisecond); g.delay() < want {
		t.Errorf("D is %v, want at least %v: passes of the longer session may be alive", durationOf(g.delay()), durationOf(want))
	}
	if got := n.Stamp(); got <= g.cut.Value.Stamp {
		t.Errorf("a newcomer is stamped %d, within the restored cut %d", got, g.cut.Value.Stamp)
	}
}

// Which of two lives of one name was met last says who votes: it must not be
// forgotten, while how late it was may be.
func TestRecordDiffersByTheLatestLife(t *testing.T) {
	lives := func(first, second uint64) *Record {
		r := record()
		r.Met = []Sighting{{Member: Member{"c", 1}, Wave: first}, {Member: Member{"c", 2}, Wave: second}}
		return r
	}
	if lives(3, 5).Differs(lives(3, 4)) {
		t.Error("a later wave with the same life differs")
	}
	if !lives(5, 4).Differs(lives(3, 4)) {
		t.Error("the earlier life is back, and nothing differs")
	}
}

// So does which of them was there last, this node or another one of its name.
func TestRecordDiffersByTheLifeOfItsOwnName(t *testing.T) {
	own := func(since, rival uint64) *Record {
		r := record()
		r.Since = since
		r.Met = append(r.Met, Sighting{Member: Member{r.Member.Name, 9}, Wave: rival})
		return r
	}
	if own(7, 5).Differs(own(6, 5)) {
		t.Error("a later wave of this node differs")
	}
	if !own(7, 5).Differs(own(4, 5)) || !own(4, 5).Differs(own(4, 3)) {
		t.Error("the other one is here last, and nothing differs")
	}
}
