package eviction

import (
	"reflect"
	"testing"
	"time"

	"github.com/anteroom/anteroom/qpid"
)

// Nobody can tell how many slots there are, and z is lost, so that those of the others are counted:
// D later they are all that there is, whoever was lost since, and less what was burned.
func TestACensusIsTakenAndRunsOut(t *testing.T) {
	lost := func(m Member, age int64) (Sighting, VoidCount) {
		return Sighting{Member: m, Age: age, Epoch: 99}, VoidCount{m, 99, 99, 3}
	}
	counted := func(change func(x *deciding)) RoomCommit {
		x := decideAt(Room{Target: 10, Session: time.Minute}, 3)
		s, v := lost(Member{"z", 1}, 10e6)
		x.d.met, x.r.Voids = []Sighting{s}, []VoidCount{v}
		x.r.Nodes[0].Minted, x.r.Nodes[0].Free = 6, 6
		census := &Census{At: qpid.Epoch{Num: 50, Coordinator: "a.1"}, Slots: 9, Age: 60e6}
		x.r.Supply[0] = Supply{Slots: 10, At: qpid.Epoch{Num: 99, Coordinator: "a.1"}, Line: x.d.line, Voters: x.d.voters.Version, Burned: 2, Reckoning: Reckoning{Census: census}}
		for i := range x.r.Nodes {
			x.r.Nodes[i].Holds = x.r.Supply[0].At
		}
		change(x)
		return x.decide()
	}
	for _, test := range []struct {
		name   string
		change func(x *deciding)
		want   *Census // nil: none
		sure   bool
		supply int
	}{
		{"it goes on", func(x *deciding) {}, &Census{At: qpid.Epoch{Num: 50, Coordinator: "a.1"}, Slots: 7, Age: 60e6}, false, 8},
		{"D has passed", func(x *deciding) { x.r.Supply[0].Census.Age = 2 * 60e6 }, nil, true, 7},
		{"there is none yet", func(x *deciding) { x.r.Supply[0].Census = nil }, &Census{At: qpid.Epoch{Num: 100, Coordinator: "a.1"}, Slots: 6}, false, 8},
		{"no quorum holds it", func(x *deciding) { x.r.Nodes[0].Holds, x.r.Nodes[1].Holds = qpid.Epoch{}, qpid.Epoch{} }, &Census{At: qpid.Epoch{Num: 100, Coordinator: "a.1"}, Slots: 6}, false, 8},
		{"one has not heard of the loss", func(x *deciding) { x.r.Supply[0].Census, x.r.Voids[0].Nodes = nil, 2 }, nil, false, 8},
		{"one has heard of an earlier loss", func(x *deciding) { x.r.Supply[0].Census, x.r.Voids[0].Min = nil, 98 }, nil, false, 8},
		{"nobody is lost", func(x *deciding) { x.d.met, x.r.Voids = nil, nil }, nil, true, 10},
		{"it is of another line", func(x *deciding) { x.r.Supply[0].Line = Line{2, "b"} }, &Census{At: qpid.Epoch{Num: 100, Coordinator: "a.1"}, Slots: 6}, false, 6},
		{"the room shares", func(x *deciding) { x.r.Shared = true }, nil, false, 8},
	} {
		if c := counted(test.change); !reflect.DeepEqual(c.Census, test.want) || c.Sure != test.sure || c.Supply != test.supply || c.Mint != 0 {
			t.Errorf("%s: census %+v, sure %t, %d slots, %d minted; want %+v, %t, %d, 0", test.name, c.Census, c.Sure, c.Supply, c.Mint, test.want, test.sure, test.supply)
		}
	}
}

// A node that was restarted has of a supply only how many slots there are. That others have
// of the same wave is not lost for it.
func TestWhatADiskHasOfASupplyHidesNothing(t *testing.T) {
	at := qpid.Epoch{Num: 9, Coordinator: "a.1"}
	disk := Supply{Slots: 10, At: at}
	for _, whole := range []Supply{
		{Slots: 10, At: at, Burned: 1, Reckoning: Reckoning{Sure: true, Claims: []Claim{{Slots: 3}}}},
		{Slots: 10, At: at, Burned: 1, Reckoning: Reckoning{Census: &Census{At: at, Slots: 4}}},
	} {
		if a, b := disk.merge(whole), whole.merge(disk); !reflect.DeepEqual(a, whole) || !reflect.DeepEqual(b, whole) {
			t.Errorf("%+v and %+v are together %+v, or %+v", disk, whole, a, b)
		}
	}
}
